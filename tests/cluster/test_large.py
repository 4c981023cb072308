#!/usr/bin/env python3
"""Large batches: followers write them to journal and log from the frames they came in
(storage/journal_frame.h, storage/log_direct.h). All replicas have the same files, after every node
was killed too.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import Tail, batch, read_batches, wait_for  # noqa: E402
from cluster import Cluster, log_bytes  # noqa: E402

SIZES = (262144, 9000, 100, 700001, 70000)   # of the last record of each batch


def write(cluster, numbers, tails):
    for number in numbers:
        value = b"%06d" % number
        offset = cluster.produce("t", 0, batch([value], tail=tails[number % len(tails)]))
        assert offset == number, "%d is at offset %d" % (number, offset)


def check(cluster, count, tails):
    """Of nodes that are stopped."""
    logs = {node: log_bytes(cluster[node].data_dir, "t", 0) for node in cluster}
    found = read_batches(logs[1])
    assert [one.base_offset for one in found] == list(range(count)), len(found)
    for number, one in enumerate(found):
        whole = b"%06d" % number + tails[number % len(tails)].data[:-1]
        assert one.values == [whole], "another value at offset %d" % number
    for node, content in logs.items():
        assert content == logs[1], "node %d has another log than node 1" % node


def test_all_replicas_have_the_same_bytes():
    """A kill of all leaves the last of them to the journals; then some come behind those."""
    tails = [Tail(os.urandom(size) + b"\0") for size in SIZES]
    with Cluster(3, {"log.segment.bytes": 6000000}) as cluster:
        cluster.create_topic("t", 1, 3)
        write(cluster, range(40), tails)
        for node in cluster:
            cluster.kill(node)
        cluster.start_all()
        write(cluster, range(40, 60), tails)
        for node in cluster:
            wait_for("node %d has all" % node,
                     lambda n=node: len(read_batches(log_bytes(cluster[n].data_dir, "t", 0))) == 60)
        for node in cluster:
            cluster.stop(node)
        check(cluster, 60, tails)


if __name__ == "__main__":
    cases.main("cluster", globals())
