#!/usr/bin/env python3
"""A disk that does not read (a preloaded library makes reads fail): the log says which file it is,
nothing is taken for damaged, and what goes meanwhile leaves nothing behind.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from account import Account, log_says  # noqa: E402
from client import LOST, NONE, STORAGE_ERROR, Client, batch, read_batches, wait_for  # noqa: E402
from faulty import Faulty  # noqa: E402

# Little stays in memory for readers.
FROM_FILES = {"ottla.fetch.tail.bytes": 4096, "checkpoint.interval.ms": 1000}


def fill(broker, topic, batches=20):
    with Client(broker.port) as client:
        client.create_topic(topic, 1)
        for _ in range(batches):
            assert client.produce(topic, 0, batch([b"x" * 20000]))[0] == NONE


def fetch(broker, topic):
    with Client(broker.port, 10) as client:
        return client.fetch(topic, 0, 0)


def log_of(broker):
    with open(broker.log_path, errors="replace") as log:
        return log.read()


def test_a_topic_that_cannot_be_read_is_deleted_with_its_files():
    with Faulty() as broker:
        fill(broker, "t")
        broker.stop()
        assert "t-0" in os.listdir(broker.data_dir)
        broker.fault("EIO read /t-0/")
        broker.start()
        assert fetch(broker, "t").error == STORAGE_ERROR
        with Client(broker.port) as client:
            client.delete_topics(["t"])
        broker.heal()
        wait_for("the files of t leave their place",
                 lambda: "t-0" not in os.listdir(broker.data_dir))
        fill(broker, "t", 1)
        assert len(read_batches(fetch(broker, "t").records)) == 1
        broker.restart()
        assert len(read_batches(fetch(broker, "t").records)) == 1


def test_metadata_that_cannot_be_read_is_called_so():
    with Faulty() as broker:
        account = Account(broker.port)
        account.put_many(100)
        broker.stop()
        broker.fault("EIO read /__cluster_metadata-0/")
        broker.spawn()
        log_says(broker, "ERROR", "the metadata in", "cannot be read")
        log_says(broker, "INFO", "the disk may be read again by now")
        broker.heal()
        broker.wait_ready()
        account.wait_until_it_accepts()
        account.check()
        assert "cannot be written" not in log_of(broker), log_of(broker)
        assert "takes writes again" not in log_of(broker), log_of(broker)


def test_a_file_that_cannot_be_sent_is_named():
    with Faulty(FROM_FILES) as broker:
        fill(broker, "t")
        wait_for("it is read from a file", lambda: cannot_be_sent(broker, "t"))
        log_says(broker, "ERROR", "/t-0/00000000000000000000.log cannot be read at byte")
        assert "closing the connection" not in log_of(broker), log_of(broker)
        broker.heal()
        assert len(read_batches(fetch(broker, "t").records)) == 20


def cannot_be_sent(broker, topic):
    broker.fault("EIO send /%s-0/" % topic)
    try:
        return fetch(broker, topic).error != NONE
    except LOST:
        return True


OPTIONS = None
if __name__ == "__main__":
    cases.main("disk", globals())
