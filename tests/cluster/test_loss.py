#!/usr/bin/env python3
"""Nodes that lose their data directory and come back under their old id: they do not help a node
without an acknowledged record to lead, whatever else dies, and are brought up by the others.
"""
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import batch, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402

NOT_ENOUGH_REPLICAS = 19
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTIONS_S = 2.5  # in which a leader would be found, if the votes allowed it


def lose(cluster, node):
    shutil.rmtree(cluster[node].data_dir)


def is_complete(cluster, node):
    """Whether the node has all that it may have promised."""
    return os.path.exists(cluster[node].data_dir) and \
        not os.path.exists(os.path.join(cluster[node].data_dir, ".incomplete"))


def wait_complete(cluster, node):
    wait_for("node %d has caught up" % node, lambda: is_complete(cluster, node))


def test_a_node_without_data_elects_nobody():
    """1 and 2 have what was acknowledged. 1 goes away, 2 loses it: 3 may not lead by 2's vote."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 3, 3)
        for node in cluster:
            wait_complete(cluster, node)
        cluster.kill(3)
        cluster.create_topic("later", 1, 2)
        for partition in range(3):
            assert cluster.produce("t", partition, batch([b"x"] * 10)) == 0
        cluster.kill(1)
        cluster.kill(2)
        lose(cluster, 2)
        cluster.start(2, wait=False)
        cluster.start(3, wait=False)
        time.sleep(ELECTIONS_S)
        assert not is_complete(cluster, 2), "what node 2 had is with node 1 alone"
        cluster.kill(2)  # it knows even less now
        cluster.start(2, wait=False)
        time.sleep(ELECTIONS_S)
        cluster.start(1)
        cluster.wait_brokers(3)
        cluster.wait_led("later", 1)
        for partition in range(3):
            assert cluster.produce("t", partition, batch([b"y"])) == 10
        wait_complete(cluster, 2)


def test_two_replicas_one_of_which_lost_everything():
    """With two replicas the other one has all that was acknowledged, and leads by any vote."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 3, 2)
        for partition in range(3):
            assert cluster.produce("t", partition, batch([b"x"] * 10)) == 0
        for node in cluster:
            wait_complete(cluster, node)
        cluster.kill(1)
        lose(cluster, 1)
        for node in (2, 3):
            cluster.kill(node)
        cluster.start_all()
        for partition in range(3):
            assert cluster.produce("t", partition, batch([b"y"])) == 10
        wait_complete(cluster, 1)


def test_a_majority_that_lost_everything():
    """Nobody leads, and no election helps, whichever node is asked; the topic can be made anew."""
    with Cluster(5, voters=3, overrides={"broker.session.timeout.ms": 2000}) as cluster:
        with cluster.connect(1) as client:
            made = client.call("CreateTopics", 7, timeoutMs=20000, topics=[{
                "name": "t", "numPartitions": -1, "replicationFactor": -1, "assignments": [
                    {"partitionIndex": 0, "brokerIds": [3, 4, 5]}]}])["topics"][0]
        assert made["errorCode"] == 0, made
        assert cluster.produce("t", 0, batch([b"x"] * 10)) == 0
        for node in (4, 5):
            cluster.kill(node)
            lose(cluster, node)
        for node in (4, 5):
            cluster.start(node)
        cluster.wait_brokers(5)
        for asked in cluster:
            with cluster.connect(asked) as client:
                result = client.call("ElectLeaders", 2, electionType=1, timeoutMs=20000,
                                     topicPartitions=[{"topic": "t", "partitions": [0]}])
            result = result["replicaElectionResults"][0]["partitionResult"][0]
            assert result["errorCode"] == ELIGIBLE_LEADERS_NOT_AVAILABLE, (asked, result)
        with cluster.connect(1) as client:
            client.call("DeleteTopics", 6, topics=[{"name": "t"}], timeoutMs=20000)
        cluster.create_topic("t", 1, 3)
        assert cluster.produce("t", 0, batch([b"y"])) == 0


def test_a_cluster_begins_without_its_third_node():
    with Cluster(3) as cluster:
        for node in cluster:
            cluster.kill(node)
            lose(cluster, node)
        for node in (1, 2):
            cluster.start(node, wait=False)
        cluster.wait_brokers(2, [1, 2])
        cluster.create_topic("t", 1, 2)
        assert cluster.produce("t", 0, batch([b"x"])) == 0
        cluster.start(3)
        cluster.wait_brokers(3)
        wait_complete(cluster, 3)


def test_a_replica_that_is_brought_up_is_not_in_sync():
    """It is online and not in sync, by any node's word, until it has what the others have; then it
    counts for min.insync.replicas again."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3, min_insync_replicas=3, segment_bytes=1 << 20,
                             follower_replication_throttled_replicas="*")
        for _ in range(30):
            cluster.produce("t", 0, batch([bytes(100000)] * 2))
        cluster.alter_configs(4, "", {"follower.replication.throttled.rate": "2000000"})
        lost = next(node for node in cluster if node != cluster.wait_leader("t"))
        cluster.kill(lost)
        lose(cluster, lost)
        cluster.start(lost)

        def is_in_sync(node):
            told = cluster.partition(node, "t", 0)
            return lost in told["isrNodes"], lost in told["offlineReplicas"]

        for node in cluster:
            wait_for("an online replica", lambda: not is_in_sync(node)[1])
            assert is_in_sync(node) == (False, False), "node %d: %s" % (
                node, cluster.partition(node, "t", 0))
        leader = cluster.wait_leader("t")
        with cluster.connect(leader) as client:
            assert client.produce("t", 0, batch([b"x"]))[0] == NOT_ENOUGH_REPLICAS
        for node in cluster:
            wait_for("all in sync", lambda: is_in_sync(node) == (True, False))
        size = sum(os.path.getsize(os.path.join(cluster[lost].data_dir, "t-0", name))
                   for name in os.listdir(os.path.join(cluster[lost].data_dir, "t-0"))
                   if name.endswith(".log"))
        assert size >= 30 * 200000, "in sync with %d bytes" % size
        assert cluster.produce("t", 0, batch([b"x"])) == 60


def damage(broker):
    """One byte of each checkpoint, in its middle, is another one; how many there are."""
    groups = os.path.join(broker.data_dir, "groups")
    paths = [os.path.join(groups, group, "checkpoint") for group in os.listdir(groups)]
    paths = [path for path in paths if os.path.exists(path)]
    for path in paths:
        with open(path, "r+b") as data:
            data.seek(os.path.getsize(path) // 2)
            byte = data.read(1)
            data.seek(-1, os.SEEK_CUR)
            data.write(bytes([byte[0] ^ 1]))
    return len(paths)


def said(broker, words):
    """The groups of which the node said so, since it began."""
    with open(broker.log_path) as log:
        return set(re.findall(r"group (\d+).*%s" % words, log.read()))


def test_a_replica_whose_checkpoints_are_damaged():
    """It does not guess who its members are: it comes again from the others, and votes then."""
    with Cluster(3, {"ottla.log.level": "debug"}) as cluster:
        cluster.create_topic("t", 3, 3)
        for partition in range(3):
            assert cluster.produce("t", partition, batch([b"x"] * 10)) == 0
        for node in cluster:
            wait_complete(cluster, node)
        cluster.stop(1)
        damaged = damage(cluster[1])
        assert damaged >= 4
        cluster.start(1)
        wait_for("all groups to be whole", lambda: len(said(cluster[1], "has caught up")) == damaged)
        assert len(said(cluster[1], "comes again from the other")) == damaged
        cluster.kill(2)  # nothing is acknowledged without node 1
        for partition in range(3):
            assert cluster.produce("t", partition, batch([b"y"])) == 10
        cluster.start(2)
        cluster.wait_brokers(3)


if __name__ == "__main__":
    cases.main("cluster", globals())
