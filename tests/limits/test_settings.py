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


def open_log_files(broker):
    """The files of the topic t that the broker holds open: logs and their indexes."""
    folder, found = "/proc/%d/fd" % broker.pid, []
    for descriptor in os.listdir(folder):
        try:
            found.append(os.readlink(os.path.join(folder, descriptor)))
        except FileNotFoundError:
            pass  # closed meanwhile
    return [path for path in found if path.startswith(os.path.join(broker.data_dir, "t-"))]


def kept_open(settings, partitions=100):
    """How many stay open when all partitions were written and read."""
    with Broker({**settings, "ottla.fetch.tail.bytes": 4096, "ottla.shards": 2}) as broker:
        with Client(broker.port) as client:
            client.create_topic("t", partitions)
            for partition in range(partitions):
                data = batch([b"%d" % partition + b"x" * 400])
                wait_for("a leader", lambda: client.produce("t", partition, data)[0] == NONE)
        logs = [os.path.join(broker.data_dir, "t-%d" % number, "0" * 20 + ".log")
                for number in range(partitions)]
        wait_for("all logs to be files",
                 lambda: all(os.path.exists(path) and os.path.getsize(path) for path in logs))
        with Client(broker.port) as client:
            for partition in range(partitions):
                batches = read_batches(client.fetch("t", partition, 0).records)
                assert batches[0].values[0].startswith(b"%d" % partition), batches
        return len(open_log_files(broker))


def test_log_files_kept_open_are_bounded():
    few, many = kept_open({"ottla.log.open.files": 16}), kept_open({})
    print("%d and %d are open" % (few, many))
    assert few <= 16 + 2, "each of the two loops may round up"
    assert many >= 100, many


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
