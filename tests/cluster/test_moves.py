#!/usr/bin/env python3
"""Leaders and replicas are moved by operators: elections of preferred leaders, reassignments of
partitions with their data, under load and through failures, by requests and by Kafka's own tools.
"""
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import LOST, NONE, batch, read_batches, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402

UNKNOWN_TOPIC, INVALID_ASSIGNMENT, INVALID_FACTOR = 3, 39, 38
PREFERRED_AWAY, NO_ELIGIBLE, NOT_NEEDED, NO_REASSIGNMENT = 80, 83, 84, 85
PREFERRED, UNCLEAN = 0, 1


def reassign(cluster, topic, plan, node=None, **more):
    """plan: {partition: replicas or None}; returns {partition: error code}."""
    wanted = [{"partitionIndex": partition, "replicas": replicas}
              for partition, replicas in plan.items()]
    with cluster.connect(node, 20.0) as client:
        answer = client.call("AlterPartitionReassignments", 1, timeoutMs=20000,
                             topics=[{"name": topic, "partitions": wanted}],
                             allowReplicationFactorChange=more.get("resize", True))
    assert answer["errorCode"] == NONE, answer
    return {one["partitionIndex"]: one["errorCode"]
            for one in answer["responses"][0]["partitions"]}


def ongoing(cluster, node=None, topics=None):
    """{(topic, partition): (replicas, adding, removing)}"""
    with cluster.connect(node) as client:
        answer = client.call("ListPartitionReassignments", 0, timeoutMs=10000, topics=topics)
    assert answer["errorCode"] == NONE, answer
    return {(topic["name"], one["partitionIndex"]):
            (one["replicas"], one["addingReplicas"], one["removingReplicas"])
            for topic in answer["topics"] for one in topic["partitions"]}


def elect(cluster, kind, topics, node=None):
    """{(topic, partition): error code}"""
    with cluster.connect(node, 20.0) as client:
        answer = client.call("ElectLeaders", 2, electionType=kind, timeoutMs=20000,
                             topicPartitions=topics)
    assert answer["errorCode"] == NONE, answer
    return {(topic["topic"], one["partitionId"]): one["errorCode"]
            for topic in answer["replicaElectionResults"] for one in topic["partitionResult"]}


def replicas(cluster, node, topic, partition=0):
    return cluster.partition(node, topic, partition)["replicaNodes"]


def wait_moved(cluster, timeout_s=60):
    wait_for("the end of all moves", lambda: not any(
        ongoing(cluster, node) for node in cluster.running()), timeout_s)


def has_data(cluster, node, topic, partition=0):
    return os.path.exists(os.path.join(cluster[node].data_dir, "%s-%d" % (topic, partition)))


def values(cluster, topic, partition=0, at_most=1 << 30):
    """All records of the partition, read from its leader."""
    found = []
    while len(found) < at_most:
        node = cluster.wait_leader(topic, partition)
        with cluster.connect(node) as client:
            got = client.fetch(topic, partition, len(found))
        assert got.error == NONE, got.error
        if not got.records:
            assert got.high_watermark == len(found), (got.high_watermark, len(found))
            return found
        for one in read_batches(got.records):
            assert one.base_offset <= len(found), "a gap below %d" % one.base_offset
            found += one.values[len(found) - one.base_offset:]
    return found


def test_a_partition_moves_with_its_data():
    with Cluster(4, voters=3) as cluster:
        cluster.create_topic("t", 1, 3)
        before = replicas(cluster, 1, "t")
        for i in range(50):
            cluster.produce("t", 0, batch([b"%d" % i]))
        new = ({1, 2, 3, 4} - set(before)).pop()
        target = [new] + before[:2]
        assert reassign(cluster, "t", {0: target}) == {0: NONE}
        wait_moved(cluster)
        for node in cluster:
            assert replicas(cluster, node, "t") == target
        wait_for("no data on the node that is left", lambda: not has_data(cluster, before[2], "t"))
        wait_for("data on the new node", lambda: has_data(cluster, new, "t"))
        assert elect(cluster, PREFERRED, None) == {("t", 0): NONE}
        assert cluster.wait_leader("t") == new
        assert cluster.produce("t", 0, batch([b"x"])) == 50
        cluster.kill(before[0])
        cluster.wait_leader("t", other_than=before[0])
        assert cluster.produce("t", 0, batch([b"x"])) == 51


if __name__ == "__main__":
    cases.main("cluster", globals())
