#!/usr/bin/env python3
"""The checker of chaos: a good history passes, and each kind of broken promise is found."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import cases  # noqa: E402
import toolchains  # noqa: E402
from history import History  # noqa: E402
from register import DONE, GONE, UNKNOWN, Operation, judge  # noqa: E402

PART = ("t", 0)


def good():
    history = History()
    for line in ("ack 0 0 0", "ack 0 1 2", "ack 0 2 3", "sent 0 3", "left 0"):
        history.take_line(line.split(), "p", "t", None)
    for line in ("ack 0 0 1", "sent 0 1", "left 0"):
        history.take_line(line.split(), "q", "t", None)
    for line in ("read 0 0 p/0/0", "read 0 1 q/0/0", "committed 10 0 2", "found 20 0 2",
                 "committed 30 0 4", "found 25 0 4"):
        history.take_line(line.split(), "c", "t", "g")
    history.logs[PART] = ["p/0/0", "q/0/0", "p/0/1", "p/0/2"]
    history.replicas[PART] = {1: b"same", 2: b"same", 3: b"same"}
    return history


def finds(words, change):
    """The change makes a history in which exactly this is wrong."""
    history = good()
    change(history)
    wrong = history.check()
    assert wrong, "not found: %s" % words
    assert any(words in line for line in wrong), "%s is not in %s" % (words, wrong)


def put(log):
    def change(history):
        history.logs[PART] = log
        history.reads = []
    return change


def take(line, name="p", group=None):
    return lambda history: history.take_line(line.split(), name, "t", group)


def test_a_good_history_passes():
    assert good().check() == [], good().check()


def test_a_lost_record_is_found():
    finds("2 was acknowledged at 3 and is gone", put(["p/0/0", "q/0/0", "p/0/1"]))


def test_a_record_that_was_not_acknowledged_may_not_be_left_out():
    def change(history):
        take("sent 0 4")(history)
    finds("3 is missing", change)


def test_a_double_is_found():
    def change(history):
        put(["p/0/0", "q/0/0", "p/0/1", "p/0/2", "p/0/1"])(history)
        history.batches[PART] = {4: "epoch 7"}
    finds("1 is at 2 and at 4 (epoch 7)", change)


def test_another_order_is_found():
    finds("1 comes behind 2", put(["p/0/0", "q/0/0", "p/0/2", "p/0/1"]))


def test_another_offset_is_found():
    finds("1 was acknowledged at 2 and is at 1", put(["p/0/0", "p/0/1", "q/0/0", "p/0/2"]))


def test_values_of_nobody_are_found():
    finds("values of x", put(["p/0/0", "q/0/0", "p/0/1", "p/0/2", "x/0/0"]))


def test_what_was_read_and_is_not_there_is_found():
    finds("the log ends at 4", take("read 0 4 p/0/3"))
    finds("the log has q/0/0 there", take("read 0 1 p/0/9"))


def test_an_offset_that_goes_back_is_found():
    finds("had committed 4, then 2 was found", take("found 31 0 2", group="g"))


def test_replicas_that_differ_are_found():
    def change(history):
        history.replicas[PART][3] = b"sane"
    finds("nodes 1 and 3 differ from byte 2 on", change)

    def shorter(history):
        history.replicas[PART][2] = b"sam"
    finds("nodes 1 and 2 differ from byte 3 on", shorter)


def test_failures_and_silence_are_found():
    finds("p 7 failed: why", take("failed 0 7 why"))
    finds("p: 3 values were never answered", take("left 3"))


# ---- registers
def done(kind, call, ret, value, at):
    return Operation(kind, 0, call, ret, DONE, value, at)


def good_operations():
    return [done("write", 10, 20, "a", 0), done("read", 5, 12, "-", 0),
            done("read", 15, 30, "a", 1),
            Operation("write", 0, 32, 40, UNKNOWN, "b", None),  # takes effect after its last word
            Operation("write", 0, 33, 40, UNKNOWN, "never", None),
            Operation("write", 0, 34, 40, GONE, "no", None),
            done("read", 50, 60, "a", 1), done("read", 61, 70, "?", 2),
            done("write", 62, 80, "c", 2), done("read", 75, 90, "b", 2),
            done("read", 91, 95, "c", 3)]


def judged(operations, log):
    try:
        toolchains.linear()
    except toolchains.Unavailable as why:
        raise cases.Skip("porcupine cannot be had: %s" % why)
    with tempfile.TemporaryDirectory(prefix="ottla-registers-") as folder:
        return judge(operations, {0: log}, os.path.join(folder, "history"))


def refused(words, operations, log=("a", "b", "c")):
    wrong = judged(operations, log)
    assert any(words in line for line in wrong), "%s is not in %s" % (words, wrong)


def test_a_linearizable_register_passes():
    assert judged(good_operations(), ("a", "b", "c")) == []


def test_a_stale_read_of_a_register_is_refused():
    refused("no place for read of b, end 2", good_operations() + [done("read", 96, 97, "b", 2)])
    refused("no place for read of -, end 0",
            [done("write", 1, 2, "a", 0), done("read", 3, 4, "-", 0)], ("a",))


def test_a_read_before_the_write_is_refused():
    """Of something uncommitted that came to be in the end, and of a value that never was there."""
    refused("no place for", [done("read", 1, 2, "a", 1), done("write", 3, 4, "a", 0)], ("a",))
    refused("no place for", [done("write", 1, 2, "a", 0), done("read", 3, 4, "x", 1)], ("a",))


def test_writes_in_another_order_than_they_were_made_are_refused():
    refused("no place for", [done("write", 1, 2, "b", 1), done("write", 3, 4, "a", 0)],
            ("a", "b"))


def test_a_write_twice_or_refused_or_lost_is_found():
    refused("b is there 2 times", good_operations(), ("a", "b", "c", "b"))
    refused("no was refused and is at 3", good_operations(), ("a", "b", "c", "no"))
    refused("c was acknowledged at 2 and is at None", good_operations(), ("a", "b"))


if __name__ == "__main__":
    cases.main("chaos", globals())
