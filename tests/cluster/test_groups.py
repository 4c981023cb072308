#!/usr/bin/env python3
"""Partition groups with several voters: nothing acknowledged is lost whoever dies, the next leader
knows what the last one took, a node that lost its disk gets everything back, and producers are
answered in time when too few nodes are there.
"""
import hashlib
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import (NONE, NOT_LEADER, PRODUCE, batch, produce_body, read_batches,  # noqa: E402
                    read_produce, wait_for)
from cluster import Cluster  # noqa: E402
from faulty import Faulty  # noqa: E402

TIMED_OUT, NOT_ENOUGH_REPLICAS = 7, 19
SMALL = {"ottla.shards": 2, "journal.size.bytes": 67108864, "group.initial.rebalance.delay.ms": 0}


def others(cluster, node):
    return [one for one in cluster if one != node]


def values_of(cluster, topic, partition=0):
    """Every value of the partition, in order, read at its leader."""
    values, offset = [], 0
    with cluster.connect(cluster.wait_leader(topic, partition)) as client:
        while True:
            fetched = client.fetch(topic, partition, offset)
            assert fetched.error == NONE, fetched
            batches = read_batches(fetched.records)
            if not batches:
                return values
            for one in batches:
                assert one.base_offset == offset, "offset %d, %d is due" % (one.base_offset, offset)
                values += one.values
                offset += one.count


def log_digest(broker, topic, partition=0):
    """Of the partition's segments as they are on the disk of a broker that was stopped."""
    folder = os.path.join(broker.data_dir, "%s-%d" % (topic, partition))
    digest = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        if name.endswith(".log"):
            with open(os.path.join(folder, name), "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def assert_equal_logs(cluster, topic, partitions=1):
    """Stops all nodes once they have applied the same, and compares their files."""
    for node in cluster.running():
        cluster.stop(node)
    for partition in range(partitions):
        digests = {log_digest(cluster[node], topic, partition) for node in cluster}
        assert len(digests) == 1, "%s-%d differs between the nodes" % (topic, partition)


def wait_same_end(cluster, topic):
    """Until every replica has what its leader has: followers serve fetches of committed records."""
    end = len(values_of(cluster, topic))

    def reached():
        for node in cluster.running():
            with cluster.connect(node) as client:
                answer = client.call("Fetch", 11, replicaId=-1, maxWaitMs=0, minBytes=0,
                                     maxBytes=1, isolationLevel=0, sessionId=0, sessionEpoch=-1,
                                     forgottenTopicsData=[], rackId="", topics=[
                                         {"topic": topic, "partitions": [
                                             {"partition": 0, "currentLeaderEpoch": -1,
                                              "fetchOffset": end, "logStartOffset": -1,
                                              "partitionMaxBytes": 1}]}])
            one = answer["responses"][0]["partitions"][0]
            if one["errorCode"] != NONE or one["highWatermark"] < end:
                return False
        return True

    wait_for("all replicas of %s at %d" % (topic, end), reached, 30)


def test_killed_leaders_lose_nothing_that_was_acknowledged():
    with Cluster(3, SMALL) as cluster:
        cluster.create_topic("t")
        sent = 0
        for _ in range(3):
            for _ in range(20):
                cluster.produce("t", 0, batch([b"%d" % sent]))
                sent += 1
            leader = cluster.leader("t")
            begun = time.monotonic()
            cluster.kill(leader)
            cluster.produce("t", 0, batch([b"%d" % sent]))
            print("served again after %.0f ms" % ((time.monotonic() - begun) * 1000))
            sent += 1
            cluster.start(leader)
            cluster.wait_leader("t")
        found = values_of(cluster, "t")
        # A batch whose answer was lost is sent again, without a producer id it may be there twice.
        assert list(dict.fromkeys(found)) == [b"%d" % i for i in range(sent)], found
        wait_same_end(cluster, "t")
        assert_equal_logs(cluster, "t")


def test_the_next_leader_knows_what_the_last_one_took():
    with Cluster(3, SMALL) as cluster:
        cluster.create_topic("t")
        with cluster.connect() as client:
            error, producer, epoch = client.init_producer_id()
            assert error == NONE
        bodies = [batch([b"%d" % i], (producer, epoch), i) for i in range(3)]
        offsets = [cluster.produce("t", 0, body) for body in bodies]
        assert offsets == [0, 1, 2], offsets
        leader = cluster.leader("t")
        cluster.kill(leader)
        cluster.wait_leader("t", other_than=leader)
        assert [cluster.produce("t", 0, body) for body in bodies[1:]] == [1, 2]
        assert values_of(cluster, "t") == [b"0", b"1", b"2"]


def test_a_node_that_lost_its_disk_gets_it_back_and_counts_again():
    with Cluster(3, SMALL) as cluster:
        cluster.create_topic("t", 3)
        big = [os.urandom(1000) for _ in range(60)]
        for i in range(60):  # more than a window holds
            cluster.produce("t", i % 3, batch(big))
        lost = others(cluster, cluster.leader("t"))[0]
        cluster.kill(lost)
        shutil.rmtree(cluster[lost].data_dir)
        for i in range(6):
            cluster.produce("t", i % 3, batch([b"while it was away"]))
        cluster.start(lost)
        wait_same_end(cluster, "t")
        wait_for("a log that was brought up to date from files, not from memory",
                 lambda: "brought to entry" in cluster[lost].log_tail(1000))
        # The majority now needs the node that came back.
        away = next(node for node in cluster if node not in (lost, cluster.leader("t")))
        cluster.kill(away)
        for partition in range(3):
            cluster.produce("t", partition, batch([b"by two"]))
        cluster.start(away)
        for partition in range(3):
            assert values_of(cluster, "t", partition)[-1] == b"by two"
        wait_same_end(cluster, "t")
        assert_equal_logs(cluster, "t", 1)


def test_a_node_that_lost_its_disk_when_its_leader_keeps_only_the_end():
    with Cluster(3, {**SMALL, "log.segment.bytes": 1048576}) as cluster:
        cluster.create_topic("t")
        values = [os.urandom(1000) for _ in range(60)]
        for _ in range(60):
            cluster.produce("t", 0, batch(values))
        leader = cluster.leader("t")
        lost, other = others(cluster, leader)
        with cluster.connect(leader) as client:
            low, error = client.delete_records("t", 0, 3000)
            assert (low, error) == (3000, NONE), (low, error)
        cluster.kill(lost)
        shutil.rmtree(cluster[lost].data_dir)
        cluster.start(lost)
        wait_for("the node to have the log's end", lambda: os.path.isdir(
            os.path.join(cluster[lost].data_dir, "t-0")))
        cluster.kill(other)
        assert cluster.produce("t", 0, batch([b"by two"])) == 3600
        cluster.kill(leader)
        cluster.start(other)
        # What is read now comes from the node that lost all, or from one that it brought up to date.
        with cluster.connect(cluster.wait_leader("t")) as client:
            assert client.list_offset("t", 0, -2)[2] == 3000
            last = read_batches(client.fetch("t", 0, 3600).records)
            assert last[0].values == [b"by two"], last


def test_a_follower_that_was_paused_catches_up():
    with Cluster(3, SMALL) as cluster:
        cluster.create_topic("t")
        slow = others(cluster, cluster.leader("t"))[0]
        cluster.freeze(slow)
        values = [os.urandom(2000) for _ in range(100)]
        for _ in range(30):
            cluster.produce("t", 0, batch(values))
        cluster.resume(slow)
        wait_same_end(cluster, "t")
        assert_equal_logs(cluster, "t")


def test_records_for_a_partition_that_a_follower_has_not_heard_of():
    """The group's log may be ahead of the metadata that brings the partition."""
    with Cluster(3, {**SMALL, "ottla.topic.partition.groups": 1}) as cluster:
        cluster.create_topic("t")
        for count in range(2, 8):
            busy = (cluster.leader("t"), cluster.metadata(1, [])["controllerId"])
            slow = [node for node in cluster if node not in busy][0]
            cluster.freeze(slow)
            with cluster.connect(cluster.leader("t")) as client:
                answer = client.call("CreatePartitions", 3, timeoutMs=20000, validateOnly=False,
                                     topics=[{"name": "t", "count": count, "assignments": None}])
            assert answer["results"][0]["errorCode"] == NONE, answer
            for _ in range(5):
                cluster.produce("t", count - 1, batch([b"%d" % count]))
            cluster.resume(slow)
            cluster.wait_led("t", count)
        cluster.produce("t", 0, batch([b"last"]))
        wait_same_end(cluster, "t")
        for node in cluster:
            with open(cluster[node].log_path, errors="replace") as log:
                assert "offline" not in log.read(), "a group failed at node %d" % node
        assert_equal_logs(cluster, "t", 7)


def produce_once(cluster, node, acks, timeout_ms):
    """(error, seconds) of one Produce to the node."""
    begun = time.monotonic()
    with cluster.connect(node, 10.0) as client:
        body = produce_body("t", 0, batch([b"x"]), acks, timeout_ms)
        error, _ = read_produce(client.answer(client.send_body(PRODUCE, 7, body, False)))
    return error, time.monotonic() - begun


def test_too_few_in_sync_is_said_at_once():
    with Cluster(3, {**SMALL, "min.insync.replicas": 2}) as cluster:
        cluster.create_topic("t")
        leader = cluster.leader("t")
        assert produce_once(cluster, leader, -1, 10000)[0] == NONE
        for node in others(cluster, leader):
            cluster.kill(node)
        error, seconds = produce_once(cluster, leader, -1, 10000)
        # It may have noticed already that no majority is there, and leads no more.
        assert error in (NOT_ENOUGH_REPLICAS, NOT_LEADER), error
        assert seconds < 3, "answered after %.1f s" % seconds
        cluster.start(others(cluster, leader)[0])
        cluster.produce("t", 0, batch([b"two are enough"]))


def test_nobody_waits_beyond_the_time_of_the_request():
    with Cluster(3, SMALL) as cluster:
        cluster.create_topic("t")
        leader = cluster.leader("t")
        assert produce_once(cluster, leader, -1, 10000)[0] == NONE
        for node in others(cluster, leader):
            cluster.freeze(node)
        error, seconds = produce_once(cluster, leader, 1, 10000)
        assert error == NONE, "acks=1 needs nobody else: error %d" % error
        error, seconds = produce_once(cluster, leader, -1, 200)
        assert error in (TIMED_OUT, NOT_LEADER), error
        assert seconds < 3, "answered after %.1f s" % seconds
        for node in others(cluster, leader):
            cluster.resume(node)
        cluster.produce("t", 0, batch([b"again"]))
        assert values_of(cluster, "t")[-1] == b"again"


def test_a_leader_whose_disk_stands_still_hands_over():
    with Cluster(3, SMALL, kind=Faulty) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", 0, batch([b"before"]))
        leader = cluster.leader("t")
        cluster[leader].fault("STALL")
        begun = time.monotonic()
        cluster.produce("t", 0, batch([b"by the others"]))
        print("committed without the leader's disk after %.0f ms" % (
            (time.monotonic() - begun) * 1000))
        new = cluster.wait_leader("t", other_than=leader, nodes=others(cluster, leader),
                                  timeout_s=5)
        print("node %d leads after %.1f s" % (new, time.monotonic() - begun))
        cluster.produce("t", 0, batch([b"after"]))
        cluster[leader].heal()
        wait_same_end(cluster, "t")
        assert list(dict.fromkeys(values_of(cluster, "t"))) == [b"before", b"by the others",
                                                                b"after"]
        assert_equal_logs(cluster, "t")


def test_a_slow_follower_slows_nobody():
    with Cluster(3, SMALL, kind=Faulty) as cluster:
        cluster.create_topic("t")
        leader = cluster.leader("t")
        slow = others(cluster, leader)[0]

        def slowest(count):
            with cluster.connect(leader) as client:
                times = []
                for _ in range(count):
                    begun = time.monotonic()
                    assert client.produce("t", 0, batch([b"x" * 1000]))[0] == NONE
                    times.append(time.monotonic() - begun)
            return sorted(times)[-count // 100]

        before = slowest(500)
        cluster[slow].fault("DELAY 500")
        after = slowest(500)
        print("p99 %.1f ms, with one disk of 500 ms %.1f ms" % (before * 1000, after * 1000))
        assert after < 0.25, "it waits for the slow one: %.3f s" % after
        cluster[slow].heal()
        wait_same_end(cluster, "t")


def test_all_nodes_are_killed_at_once():
    with Cluster(3, SMALL) as cluster:
        cluster.create_topic("t", 6)
        sent = 0
        for _ in range(3):
            for _ in range(12):
                cluster.produce("t", sent % 6, batch([b"%d" % sent]))
                sent += 1
            for node in list(cluster):
                cluster.kill(node)
            cluster.start_all()
            cluster.wait_led("t", 6)
        found = [value for partition in range(6)
                 for value in dict.fromkeys(values_of(cluster, "t", partition))]
        assert sorted(found, key=int) == [b"%d" % i for i in range(sent)], len(found)


def test_a_deleted_topic_stays_deleted():
    with Cluster(3, SMALL) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", 0, batch([b"old"]))
        away = others(cluster, cluster.leader("t"))[0]
        cluster.kill(away)
        with cluster.connect() as client:
            assert client.delete_topics(["t"])["t"] == NONE
        cluster.create_topic("t")
        cluster.produce("t", 0, batch([b"new"]))
        cluster.start(away)
        assert values_of(cluster, "t") == [b"new"]
        wait_same_end(cluster, "t")
        assert_equal_logs(cluster, "t")


if __name__ == "__main__":
    cases.main("cluster", globals())
