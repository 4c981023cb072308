#!/usr/bin/env python3
"""Files that are damaged while the broker is down: a torn tail is cut, damage in the middle takes its
group offline and is named, everybody else serves.
"""
import glob
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
import journal_dump  # noqa: E402
from account import Account, log_says  # noqa: E402
from client import STORAGE_ERROR, Client, batch  # noqa: E402
from ottla import Broker  # noqa: E402


def flip(path, position):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 0x5A]))


def entries(broker, at_least=1):
    """Journal entries with a payload, as (frame, piece), oldest first."""
    found = [(frame, piece) for frame in journal_dump.frames(broker.data_dir + "/journal")
             for piece in frame.pieces if piece.kind == journal_dump.ENTRY and piece.length > 1000]
    assert len(found) >= at_least, "only %d entries" % len(found)
    return found


def prepared():
    """A running broker with two accounts, in topics of their own."""
    broker = Broker()
    broker.start()
    return broker, Account(broker.port, "left", 1), Account(broker.port, "right", 1)


def put_and_kill(broker, *accounts):
    for account in accounts:
        account.put_many(60, size=2000)
    broker.kill9()


def finish(broker):
    broker.stop()
    broker.close()


def test_flipped_byte_in_the_middle_of_the_journal():
    broker, left, right = prepared()
    try:
        put_and_kill(broker, left, right)
        frame, piece = entries(broker, 100)[20]  # one of the first account's group
        flip(frame.path, piece.position + journal_dump.PIECE.size + 500)
        broker.start()
        log_says(broker, "ERROR", os.path.basename(frame.path), str(piece.position))
        log_says(broker, "ERROR", "group %d" % piece.group, "offline")
        with Client(broker.port) as client:
            error = left.put(client)
            assert error == STORAGE_ERROR, "the damaged group answers %d" % error
            assert client.fetch("left", 0, 0).error == STORAGE_ERROR
        right.put_many(20)
        right.check()
        # Put right, it has everything: nothing was written over what lies behind the damage.
        broker.kill9()
        flip(frame.path, piece.position + journal_dump.PIECE.size + 500)
        broker.start()
        left.check()
        right.check()
        finish(broker)
    except BaseException:
        print(broker.log_tail())
        broker.failed = True
        broker.close()
        raise


def test_flipped_byte_in_the_header_of_a_frame():
    """Nobody can tell whose records are gone: the broker says so and serves nothing wrong."""
    broker, left, right = prepared()
    try:
        put_and_kill(broker, left, right)
        frame, piece = entries(broker, 100)[20]
        copy = frame.path + ".copy"
        shutil.copy(frame.path, copy)
        flip(frame.path, frame.position + 20)
        broker.spawn()
        log_says(broker, "ERROR", os.path.basename(frame.path), str(frame.position))
        if broker.process.poll() is None:
            broker.kill9()
        broker.process = None
        os.rename(copy, frame.path)
        broker.start()
        left.check()
        right.check()
        finish(broker)
    except BaseException:
        print(broker.log_tail())
        broker.failed = True
        broker.close()
        raise


def test_torn_tail_of_the_journal_is_cut():
    """The last frame, of which nobody was told, is half there."""
    broker, left, right = prepared()
    try:
        put_and_kill(broker, left, right)
        last = journal_dump.frames(broker.data_dir + "/journal")[-1]
        with open(last.path, "r+b") as file:  # as if one more write had stopped in its middle
            data = file.read()
            at = last.position + (last.length + 4095) // 4096 * 4096
            torn = bytearray(data[last.position:last.position + last.length])
            file.seek(at)
            file.write(bytes(torn[:len(torn) // 2]))
        broker.start()
        left.check()
        right.check()
        left.put_many(10)
        broker.restart()
        left.check()
        finish(broker)
    except BaseException:
        print(broker.log_tail())
        broker.failed = True
        broker.close()
        raise


def test_missing_checkpoints_are_made_up_by_a_scan():
    broker = Broker({"checkpoint.interval.ms": 1000})
    try:
        broker.start()
        account = Account(broker.port)
        account.put_many(100)
        broker.stop()
        removed = glob.glob(broker.data_dir + "/groups/*/checkpoint")
        assert removed, "no checkpoint was written"
        for path in removed:
            os.unlink(path)
        broker.start()
        account.put_many(50)
        account.check()
        broker.kill9()
        broker.start()
        account.check()
        finish(broker)
    except BaseException:
        print(broker.log_tail())
        broker.failed = True
        broker.close()
        raise


def test_unreadable_checkpoint_is_made_up_by_a_scan():
    broker = Broker({"checkpoint.interval.ms": 1000})
    try:
        broker.start()
        account = Account(broker.port)
        account.put_many(100)
        broker.stop()
        for path in glob.glob(broker.data_dir + "/groups/*/checkpoint"):
            with open(path, "w") as file:
                file.write("{\"version\": 1, \"gro")
        broker.start()
        account.put_many(50)
        account.check()
        finish(broker)
    except BaseException:
        print(broker.log_tail())
        broker.failed = True
        broker.close()
        raise


def test_flipped_byte_in_a_log():
    """In records that were synced: the partition is offline or the batch fails its check at the
    reader; it is never taken for the end of the log."""
    broker = Broker({"log.segment.bytes": 1048576, "checkpoint.interval.ms": 1000})
    try:
        broker.start()
        account = Account(broker.port, "one", 1)
        account.put_many(200, size=20000)
        broker.stop()
        with open(sorted(glob.glob(broker.data_dir + "/one-0/*.log"))[-1], "rb") as file:
            size = len(file.read())
        path = sorted(glob.glob(broker.data_dir + "/one-0/*.log"))[-1]
        flip(path, size // 2)
        for file in glob.glob(broker.data_dir + "/groups/*/checkpoint"):
            os.unlink(file)  # so that the whole log is looked at
        broker.start()
        log_says(broker, "ERROR", os.path.basename(path), "damaged")
        with Client(broker.port) as client:
            assert client.produce("one", 0, batch([b"x"]))[0] == STORAGE_ERROR
            client.create_topic("other")
            assert client.produce("other", 0, batch([b"x"]))[0] == 0
        assert os.path.getsize(path) == size, "the log was cut"
        finish(broker)
    except BaseException:
        print(broker.log_tail())
        broker.failed = True
        broker.close()
        raise


OPTIONS = None
if __name__ == "__main__":
    cases.main("disk", globals())
