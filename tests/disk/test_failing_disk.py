#!/usr/bin/env python3
"""A disk whose writes or syncs fail (a preloaded library makes them): clients get
KAFKA_STORAGE_ERROR, nothing acknowledged is lost, the log says what to do, and the broker goes on by
itself when the disk does.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from account import Account, log_says  # noqa: E402
from client import STORAGE_ERROR, Client  # noqa: E402
from faulty import Faulty  # noqa: E402


def fail_and_heal(how, advice):
    with Faulty(overrides={"checkpoint.interval.ms": 1000}) as broker:
        account = Account(broker.port)
        account.put_many(300)
        broker.fault(how)
        error = account.put_until_error()
        assert error in (STORAGE_ERROR, None), "error %d" % error
        with Client(broker.port) as client:
            for _ in range(20):
                error = account.put(client)
                assert error == STORAGE_ERROR, "error %d on a disk that fails" % error
            error, _ = client.metadata(["kept"])["kept"]
            assert error == 0, "metadata: error %d" % error
        log_says(broker, "ERROR", "cannot be written")
        log_says(broker, "ERROR", advice)
        assert broker.alive()
        broker.heal()
        account.wait_until_it_accepts()
        account.put_many(100)
        account.check()
        broker.kill9()
        broker.start()
        account.check()


def test_write_errors():
    fail_and_heal("EIO", "Look at the disk")


def test_sync_errors():
    """A failed sync is final: what it should have written is never taken for written."""
    with Faulty(overrides={"checkpoint.interval.ms": 1000}) as broker:
        account = Account(broker.port)
        account.put_many(300)
        broker.fault("EIO sync")
        try:
            account.put_until_error(limit=20000)
        except AssertionError:
            pass  # the journal's direct writes need no sync; checkpoints do
        log_says(broker, "ERROR", "cannot be written")
        broker.heal()
        account.wait_until_it_accepts()
        account.check()


def test_no_space():
    fail_and_heal("ENOSPC", "Free some space")


def test_read_only_errors():
    fail_and_heal("EROFS", "writable")


def test_fails_again_and_again():
    with Faulty() as broker:
        account = Account(broker.port)
        for _ in range(4):
            account.put_many(50)
            broker.fault("EIO")
            account.put_until_error()
            broker.heal()
            account.wait_until_it_accepts()
        account.check()


def test_failing_disk_and_kill_at_once():
    with Faulty() as broker:
        account = Account(broker.port)
        account.put_many(200)
        broker.fault("EIO")
        account.put_until_error()
        broker.kill9()
        broker.heal()
        broker.start()
        account.check()


def test_stops_cleanly_while_the_disk_fails():
    """SIGTERM ends the broker also then, and a later start has everything."""
    broker = Faulty()
    try:
        broker.start()
        account = Account(broker.port)
        account.put_many(200)
        broker.fault("EIO")
        account.put_until_error()
        broker.process.terminate()
        status = broker.process.wait(10)
        print("status %d" % status)
        broker.process = None
        broker.heal()
        broker.start()
        account.check()
        broker.stop()
    finally:
        broker.close()


OPTIONS = None
if __name__ == "__main__":
    cases.main("disk", globals())
