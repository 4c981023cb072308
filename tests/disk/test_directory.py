#!/usr/bin/env python3
"""Whose data directory it is: one broker at a time, the node and the cluster it was made for. And:
SIGTERM stops a broker within two seconds under load.
"""
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from account import Account  # noqa: E402
from client import LOST, Client, batch  # noqa: E402
from ottla import Broker  # noqa: E402


def refused(broker, *words):
    """The broker must end with status 1 at once; its last lines must have the words."""
    try:
        broker.spawn()
        status = broker.process.wait(10)
        broker.process = None
        tail = broker.log_tail()
        assert status == 1, "status %d: %s" % (status, tail)
        assert any(all(word in line for word in words) for line in tail.splitlines()), tail
    except subprocess.TimeoutExpired:
        raise AssertionError("it runs: " + broker.log_tail())
    finally:
        broker.close()


def test_second_broker_on_the_same_directory_is_refused():
    with Broker() as broker:
        account = Account(broker.port)
        account.put_many(30)
        refused(Broker(data_dir=broker.data_dir, name="second"), "ERROR", broker.data_dir, "in use")
        account.put_many(30)
        broker.restart()
        account.check()


def test_directory_of_another_node_is_refused():
    with Broker({"node.id": 7}) as broker:
        account = Account(broker.port)
        account.put_many(30)
        broker.stop()
        refused(Broker({"node.id": 8}, data_dir=broker.data_dir, name="other"), "ERROR", "node 7",
                "node.id is 8")
        broker.start()
        account.check()


def test_directory_of_another_cluster_is_refused():
    with Broker({"cluster.id": "one"}) as broker:
        account = Account(broker.port)
        account.put_many(30)
        broker.stop()
        refused(Broker({"cluster.id": "two"}, data_dir=broker.data_dir, name="other"), "ERROR",
                "cluster one", "two")
        broker.start()
        account.check()


def test_directory_that_cannot_be_made_is_refused():
    refused(Broker(data_dir="/proc/nowhere/data"), "/proc/nowhere")


class Pusher(threading.Thread):
    """Produces as fast as it can; keeps what was acknowledged."""

    def __init__(self, port, topic, partition):
        super().__init__(daemon=True)
        self.port, self.topic, self.partition = port, topic, partition
        self.acked, self.stopping = -1, False
        self.data = batch([b"x" * 1000] * 10)

    def run(self):
        while not self.stopping:
            try:
                with Client(self.port) as client:
                    while not self.stopping:
                        error, offset = client.produce(self.topic, self.partition, self.data)
                        if error == 0:
                            self.acked = max(self.acked, offset + 9)
            except LOST:
                time.sleep(0.01)


def test_sigterm_stops_within_two_seconds_under_load():
    with Broker() as broker:
        with Client(broker.port) as client:
            client.create_topic("load", 4)
        pushers = [Pusher(broker.port, "load", p) for p in range(4)]
        for pusher in pushers:
            pusher.start()
        slowest = 0
        for _ in range(4):
            time.sleep(1.5)
            begin = time.monotonic()
            broker.process.send_signal(signal.SIGTERM)
            status = broker.process.wait(20)
            slowest = max(slowest, time.monotonic() - begin)
            assert status == 0, "status %d" % status
            broker.process = None
            broker.start()
        for pusher in pushers:
            pusher.stopping = True
        for pusher in pushers:
            pusher.join(20)
        with Client(broker.port) as client:
            for pusher in pushers:
                end = client.list_offset("load", pusher.partition)[2]
                assert pusher.acked > 0 and end > pusher.acked, (end, pusher.acked)
        print("slowest stop %.2f s" % slowest)
        assert slowest < 2.0, "a stop took %.2f s" % slowest


def test_sigterm_while_starting():
    for delay in (0.0, 0.005, 0.02, 0.05):
        broker = Broker()
        try:
            broker.spawn()
            time.sleep(delay)
            broker.process.terminate()
            status = broker.process.wait(10)
            broker.process = None
            assert status in (0, -signal.SIGTERM), "status %d" % status
            broker.start()
            broker.stop()
        finally:
            broker.close()


OPTIONS = None
if __name__ == "__main__":
    cases.main("disk", globals())
