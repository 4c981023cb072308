#!/usr/bin/env python3
"""kill -9 while topics come and go, records are deleted and producer ids are given out: what was
acknowledged holds, nothing half-done stays, ids are never given twice.
"""
import os
import random
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import LOST, NONE, TOPIC_EXISTS, UNKNOWN_TOPIC, Client, batch, wait_for  # noqa: E402
from ottla import Broker  # noqa: E402

KILLS = 12
SETTINGS = {"num.partitions": 1, "auto.create.topics.enable": "false",
            "checkpoint.interval.ms": 1000, "journal.size.bytes": 33554432,
            "journal.file.bytes": 1048576, "log.segment.delete.delay.ms": 100}


class Worker(threading.Thread):
    """Does one thing again and again, over new connections when one ends, until it is told to stop."""

    def __init__(self, port, step):
        super().__init__(daemon=True)
        self.port, self.step, self.stopping, self.error = port, step, False, None

    def run(self):
        try:
            while not self.stopping:
                try:
                    with Client(self.port, 20) as client:
                        while not self.stopping:
                            self.step(client)
                except LOST:
                    time.sleep(0.01)
        except BaseException as error:
            self.error = error


def run_under_kills(broker, steps, kills=KILLS, at_restart=None, longest_s=0.6):
    """Runs the steps, each in a thread, while the broker is killed again and again."""
    moments = random.Random(OPTIONS.seed)
    workers = [Worker(broker.port, step) for step in steps]
    for worker in workers:
        worker.start()
    for _ in range(kills):
        time.sleep(moments.uniform(0.02, longest_s))
        broker.kill9()
        broker.start()
        if at_restart is not None:
            at_restart()
    for worker in workers:
        worker.stopping = True
    for worker in workers:
        worker.join(30)
        assert not worker.is_alive(), "a worker does not come to an end"
        if worker.error is not None:
            raise worker.error


class Topics:
    """One thread's topics, with what is known of each: "there", "gone", or unknown."""

    def __init__(self, number, seed):
        self.number, self.random, self.count = number, random.Random(seed), 0
        self.known = {}
        self.creates = self.deletes = 0

    def step(self, client):
        there = [name for name, state in self.known.items() if state == "there"]
        if len(there) > 5 or (there and self.random.random() < 0.4):
            self.delete(client, self.random.choice(there))
        else:
            self.create(client)

    def create(self, client):
        self.count += 1
        name = "t%d-%d" % (self.number, self.count)
        self.known[name] = "unknown"
        error = client.create_topics([(name, self.random.choice((1, 3, 12)), {})])[name]
        assert error == NONE, "create %s: error %d" % (name, error)
        self.known[name] = "there"
        self.creates += 1
        error, offset = client.produce(name, 0, batch([name.encode()]))
        assert error == NONE, "produce to %s, just made: error %d" % (name, error)

    def delete(self, client, name):
        self.known[name] = "unknown"
        error = client.delete_topics([name])[name]
        assert error == NONE, "delete %s: error %d" % (name, error)
        self.known[name] = "gone"
        self.deletes += 1

    def check(self, client, listed):
        for name, state in self.known.items():
            if state == "there":
                assert name in listed, "%s was created and is not there" % name
                for error, partition, leader in listed[name][1]:
                    assert error == NONE and leader >= 0, (name, partition, error, leader)
                error, _, end = client.list_offset(name, 0)
                assert error == NONE and end <= 1, (name, error, end)
            elif state == "gone":
                assert name not in listed, "%s was deleted and is there" % name


def partition_folders(broker):
    pattern = re.compile(r"(t\d+-\d+)-(\d+)(\..*-delete)?$")
    return {name: pattern.match(name) for name in os.listdir(broker.data_dir)
            if pattern.match(name)}


def no_orphans(broker, listed):
    """Only partitions of topics that are there have folders; nothing waits to be deleted."""
    for folder, match in partition_folders(broker).items():
        if match.group(3) or match.group(1) not in listed:
            return False
    return True


def test_topics_come_and_go():
    with Broker(SETTINGS) as broker:
        makers = [Topics(i, OPTIONS.seed + i) for i in range(3)]
        run_under_kills(broker, [maker.step for maker in makers], KILLS * 2)
        for again in range(2):
            with Client(broker.port) as client:
                listed = client.metadata()
                for maker in makers:
                    maker.check(client, listed)
                # A name whose fate is unknown must be one or the other.
                for maker in makers:
                    for name, state in list(maker.known.items()):
                        if state == "unknown":
                            error = client.create_topics([(name, 1, {})])[name]
                            assert error == (TOPIC_EXISTS if name in listed else NONE), error
                            error = client.delete_topics([name])[name]
                            assert error == NONE, "delete %s: error %d" % (name, error)
                            maker.known[name] = "gone"
                listed = client.metadata()
            wait_for("folders of deleted topics to go", lambda: no_orphans(broker, listed), 30)
            if again == 0:
                broker.kill9()
                broker.start()
        done = [(maker.creates, maker.deletes) for maker in makers]
        print("created, deleted: %s" % done)
        assert all(creates > KILLS and deletes > KILLS for creates, deletes in done), done


def test_same_name_made_again_is_empty():
    """A topic that is deleted and made again never shows records of its earlier life."""
    state = {"lives": 0, "wrote": False}

    def step(client):
        name = "phoenix"
        client.delete_topics([name])
        error = client.create_topics([(name, 2, {})])[name]
        if error == TOPIC_EXISTS:  # the delete before was cut off
            return
        assert error == NONE, error
        state["lives"] += 1
        life = b"life %d" % state["lives"]
        error, _, end = client.list_offset(name, 0)
        assert (error, end) == (NONE, 0), "a new topic ends at %d, error %d" % (end, error)
        for _ in range(5):
            error, _ = client.produce(name, 0, batch([life]))
            assert error == NONE, error
        fetched = client.fetch(name, 0, 0)
        assert fetched.error == NONE and fetched.high_watermark == 5, fetched

    with Broker(SETTINGS) as broker:
        run_under_kills(broker, [step])
        assert state["lives"] > KILLS, state


def test_log_start_never_goes_back():
    with Broker(SETTINGS) as broker:
        with Client(broker.port) as client:
            client.create_topic("shrinks", 2, segment_bytes=1048576)
        rng = random.Random(OPTIONS.seed)
        data = batch([os.urandom(50) for _ in range(20)])
        state = {"end": 0, "asked": 0, "start": 0, "deletes": 0}

        def produce(client):
            error, offset = client.produce("shrinks", 0, data)
            assert error in (NONE, 3, 5, 6), error
            if error == NONE:
                state["end"] = offset + 20

        def shrink(client):
            if state["end"] <= state["asked"]:
                return
            offset = rng.randrange(state["asked"], state["end"]) + 1
            state["asked"] = offset
            low, error = client.delete_records("shrinks", 0, offset)
            assert error in (NONE, 3, 5, 6), error
            if error == NONE:
                assert low >= offset, (low, offset)
                state["start"] = low
                state["deletes"] += 1
            time.sleep(0.005)

        def check():
            with Client(broker.port) as client:
                promised = state["start"]
                error, _, start = client.list_offset("shrinks", 0, -2)
                assert error == NONE and promised <= start <= max(state["asked"], promised), \
                    "starts at %d, was promised %d, asked for %d" % (start, promised,
                                                                    state["asked"])
                fetched = client.fetch("shrinks", 0, start)
                if fetched.error == 1:  # it moved on meanwhile
                    assert client.list_offset("shrinks", 0, -2)[2] > start, start
                else:
                    assert fetched.error == NONE and fetched.log_start >= promised, fetched.error
                if promised > 0:
                    assert client.fetch("shrinks", 0, 0).error == 1  # OFFSET_OUT_OF_RANGE

        run_under_kills(broker, [produce, shrink], at_restart=check)
        check()
        broker.restart()
        check()
        print(state)
        assert state["deletes"] > KILLS


def test_producer_ids_are_never_given_twice():
    given, lock = [], threading.Lock()

    def step(client):
        error, identity, epoch = client.init_producer_id()
        assert error in (NONE, 14, 15), error
        if error == NONE:
            assert epoch == 0
            with lock:
                given.append(identity)

    with Broker(SETTINGS) as broker:
        run_under_kills(broker, [step] * 3, KILLS * 2, longest_s=0.4)
    assert len(given) > 1000, len(given)
    assert len(set(given)) == len(given), "%d ids, %d different" % (len(given), len(set(given)))
    print("%d ids up to %d" % (len(given), max(given)))


def test_auto_created_topics_and_unknown_ones():
    """After a kill a topic that never was is still unknown, and not made by asking."""
    with Broker(SETTINGS) as broker:
        broker.kill9()
        broker.start()
        with Client(broker.port) as client:
            assert client.metadata(["nobody"])["nobody"][0] == UNKNOWN_TOPIC


OPTIONS = None
if __name__ == "__main__":
    cases.main("crash", globals())
