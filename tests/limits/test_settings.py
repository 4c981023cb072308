#!/usr/bin/env python3
"""Settings that bound a broker, or what it says, count."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import NONE, Client, batch, read_batches, wait_for  # noqa: E402
from ottla import Broker  # noqa: E402


def produce(broker, count, value=b"x" * 400):
    with Client(broker.port) as client:
        client.create_topic("t", 1)
        wait_for("the topic", lambda: client.produce("t", 0, batch([value]))[0] == NONE)
        for _ in range(count - 1):
            assert client.produce("t", 0, batch([value]))[0] == NONE


def fetched(broker):
    with Client(broker.port) as client:
        return len(read_batches(client.fetch("t", 0, 0).records))


def test_an_answer_to_a_fetch_is_bounded():
    with Broker({"fetch.max.bytes": 2048}) as broker:
        produce(broker, 20)
        assert fetched(broker) == 4, fetched(broker)
    with Broker() as broker:
        produce(broker, 20)
        assert fetched(broker) == 20, fetched(broker)


def test_the_log_has_no_line_below_its_level():
    seen = {}
    for level in ("debug", "INFO", "warn", "off"):
        with Broker({"ottla.log.level": level}) as broker:
            produce(broker, 1)
            with open(broker.log_path) as log:
                seen[level] = {line.split()[1] for line in log}
    assert seen["debug"] >= {"DEBUG", "INFO"} and seen["INFO"] == {"INFO"}, seen
    assert seen["warn"] == seen["off"] == set(), seen


def buffers(broker, option):
    """Of the connections to the broker, as the kernel tells (twice what was asked for)."""
    with Client(broker.port):
        told = subprocess.run(["ss", "-tmnH", "sport = :%d" % broker.port], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    return {word[len(option):] for line in told.splitlines()
            for word in line.split("skmem:(")[-1].rstrip(")").split(",") if word.startswith(option)}


def test_socket_buffers_are_set_when_asked_for():
    with Broker({"socket.send.buffer.bytes": 20000, "socket.receive.buffer.bytes": 30000}) as broker:
        assert "40000" in buffers(broker, "tb"), buffers(broker, "tb")
        assert "60000" in buffers(broker, "rb"), buffers(broker, "rb")


if __name__ == "__main__":
    cases.main("limits", globals())
