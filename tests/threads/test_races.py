#!/usr/bin/env python3
"""The broker built with ThreadSanitizer under a mixed load from many connections: topics come and go,
records are produced and read on all shards, groups commit. A data race ends the broker with a status
other than 0, which fails the case. OTTLA_BIN is such a build.
"""
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import Client, batch, read_batches  # noqa: E402
from ottla import Broker  # noqa: E402

PARTITIONS = 6
ROUNDS = 60


def in_threads(*actions):
    """Runs all at once; raises what the first of them raised."""
    failures = []

    def guarded(action):
        try:
            action()
        except Exception as error:  # told by the one who joins
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def produce(port, topic):
    with Client(port, 60) as client:
        for number in range(ROUNDS):
            for partition in range(PARTITIONS):
                error, _ = client.produce(topic, partition, batch([b"v%d" % number * 50]))
                assert error == 0, error


def read(port, topic):
    with Client(port, 60) as client:
        for partition in range(PARTITIONS):
            offset = 0
            while offset < ROUNDS:
                fetched = client.fetch(topic, partition, offset, max_wait_ms=200)
                assert fetched.error == 0, fetched.error
                offset += sum(made.count for made in read_batches(fetched.records))


def come_and_go(port, prefix):
    with Client(port, 60) as client:
        for number in range(ROUNDS // 4):
            name = "%s-%d" % (prefix, number)
            client.create_topic(name, 3)
            client.produce(name, 0, batch([b"x"]))
            client.delete_topics([name])


def commit(port, group, topic):
    with Client(port, 60) as client:
        client.find_coordinator(group)
        for number in range(ROUNDS):
            client.commit(group, {(topic, number % PARTITIONS): number})
            client.list_offset(topic, number % PARTITIONS)


def test_mixed_load_has_no_data_race():
    overrides = {"ottla.shards": 4, "checkpoint.interval.ms": 1000,
                 "journal.file.bytes": 1048576, "journal.size.bytes": 33554432,
                 "ottla.fetch.tail.bytes": 65536}
    with Broker(overrides) as broker:
        with Client(broker.port, 60) as client:
            client.create_topic("load", PARTITIONS)
        in_threads(*[lambda: produce(broker.port, "load")] * 2,
                   *[lambda: read(broker.port, "load")] * 3,
                   lambda: come_and_go(broker.port, "a"), lambda: come_and_go(broker.port, "b"),
                   *[lambda n=n: commit(broker.port, "g%d" % n, "load") for n in range(3)])
        broker.stop()
        broker.start()
        read(broker.port, "load")


if __name__ == "__main__":
    cases.main("threads", globals())
