#!/usr/bin/env python3
"""kill -9 at random moments under load, some while the broker is starting: nothing acknowledged is
lost, moved or doubled. --seed N replays the moments, --kills N sets how many.
"""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import Client  # noqa: E402
from load import Load  # noqa: E402
from ottla import Broker  # noqa: E402

LAYER = "crash"
RESTART_LIMIT_S = 5.0
TOPICS = {"one-big": 1, "twelve": 12, "twelve-big": 12, "one": 1}
BROKER = {"num.partitions": 1, "group.initial.rebalance.delay.ms": 0,
          "offsets.topic.num.partitions": 4}
# Everything that happens from time to time happens all the time.
HURRIED = {**BROKER, "checkpoint.interval.ms": 1000, "journal.size.bytes": 33554432,
           "journal.file.bytes": 1048576, "log.segment.bytes": 1048576}


def cycle(broker, load, moments, number):
    """One kill; returns how long the restart took."""
    time.sleep(moments.uniform(0.05, 1.0) if moments.random() < 0.3 else moments.uniform(1.0, 6.0))
    load.check()
    broker.kill9()
    if moments.random() < 0.25:
        broker.spawn()
        time.sleep(moments.uniform(0.0, 0.15))
        broker.kill9()
        print("kill %d: once more while starting" % number)
    begin = time.monotonic()
    broker.start()
    took = time.monotonic() - begin
    print("kill %d: %d batches acknowledged, restart in %.2f s" % (number, load.acked, took))
    return took


def run(overrides, kills, seed):
    moments = random.Random(seed)
    broker = Broker(overrides)
    try:
        broker.start()
        with Client(broker.port) as client:
            for topic, partitions in TOPICS.items():
                client.create_topic(topic, partitions)
        load = Load(broker.port, TOPICS, seed)
        load.start()
        longest = max(cycle(broker, load, moments, i + 1) for i in range(kills))
        load.stop()
        total = load.verify()
        broker.restart()
        assert load.verify() == total, "a clean restart changed something"
        broker.stop()
        assert longest < RESTART_LIMIT_S, "a restart took %.1f s" % longest
        assert all(p.next[0] > kills for p in load.producers), "a producer hardly got anywhere"
        assert all(c.acked > kills for c in load.committers), "a committer hardly got anywhere"
        print("%d values, longest restart %.2f s" % (total, longest))
        for producer in load.producers:
            print("%s: %d refused" % (producer.name, len(producer.refused)))
    except BaseException:
        broker.failed = True
        print(broker.log_tail(40))
        print("broker: %s" % ("alive" if broker.alive() else
                              broker.process and "ended with %s" % broker.process.returncode))
        print("data: %s" % broker.own_dir)
        raise
    finally:
        broker.close()


def test_acknowledged_is_there_with_small_journal_and_segments():
    run(HURRIED, OPTIONS.kills or 22, OPTIONS.seed)


def test_acknowledged_is_there_with_defaults():
    run(BROKER, OPTIONS.kills or 8, OPTIONS.seed)


OPTIONS = None
if __name__ == "__main__":
    cases.main(LAYER, globals(), [("--kills", int, 0, "how many kills")])
