#!/usr/bin/env python3
"""Disks of a cluster that do not read (a preloaded library makes reads fail): another replica leads,
and what moves away meanwhile takes its files with it.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "disk"))

import cases  # noqa: E402
from account import log_says  # noqa: E402
from client import LOST, NONE, batch, read_batches, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402
from faulty import Faulty  # noqa: E402

# Little stays in memory for readers.
FROM_FILES = {"ottla.fetch.tail.bytes": 4096, "checkpoint.interval.ms": 1000}
BATCHES = 20


def fill(cluster):
    cluster.create_topic("t", 1)
    for _ in range(BATCHES):
        cluster.produce("t", 0, batch([b"x" * 20000]))


def fetch(cluster, node):
    with cluster.connect(node, 10.0) as client:
        return client.fetch("t", 0, 0)


def is_refused(cluster, node):
    """The connection ends, or an error comes."""
    try:
        return fetch(cluster, node).error != NONE
    except LOST:
        return True


def test_a_leader_that_cannot_send_its_files_hands_over():
    with Cluster(3, FROM_FILES, kind=Faulty) as cluster:
        fill(cluster)
        leader = cluster.wait_leader("t")
        cluster[leader].fault("EIO send /t-0/")
        wait_for("it cannot be sent", lambda: is_refused(cluster, leader))
        log_says(cluster[leader], "ERROR", "/t-0/", ".log cannot be read at byte")
        log_says(cluster[leader], "WARN", "another replica shall lead it")
        now = cluster.wait_leader("t", other_than=leader)
        assert len(read_batches(fetch(cluster, now).records)) == BATCHES
        cluster[leader].heal()
        cluster.produce("t", 0, batch([b"after"]))


def test_what_cannot_be_read_moves_away_with_its_files():
    with Cluster(3, FROM_FILES, kind=Faulty) as cluster:
        fill(cluster)
        stays = [cluster.wait_leader("t")]
        stays.append(next(node for node in cluster if node not in stays))
        leaves = next(node for node in cluster if node not in stays)
        cluster.stop(leaves)
        cluster[leaves].fault("EIO read /t-0/")
        cluster.start(leaves)
        log_says(cluster[leaves], "ERROR", " of t cannot be read")
        with cluster.connect(stays[0]) as client:
            answer = client.call("AlterPartitionReassignments", 1, timeoutMs=20000, topics=[
                {"name": "t", "partitions": [{"partitionIndex": 0, "replicas": stays}]}])
        assert answer["errorCode"] == NONE, answer
        wait_for("its files are gone",
                 lambda: "t-0" not in os.listdir(cluster[leaves].data_dir))
        cluster[leaves].heal()
        assert len(read_batches(fetch(cluster, cluster.wait_leader("t")).records)) == BATCHES


if __name__ == "__main__":
    cases.main("cluster", globals())
