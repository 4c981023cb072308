#!/usr/bin/env python3
"""A disk whose writes or syncs fail (a preloaded library makes them): clients get
KAFKA_STORAGE_ERROR, nothing acknowledged is lost, the log says what to do, and the broker goes on by
itself when the disk does.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import cases  # noqa: E402
from account import Account, log_says  # noqa: E402
from client import STORAGE_ERROR, Client  # noqa: E402
from ottla import Broker  # noqa: E402


def build_shim():
    folder = tempfile.mkdtemp(prefix="ottla-shim-")
    path = os.path.join(folder, "shim.so")
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O1", "-Wall", "-Wextra", "-shared",
                    "-fPIC", os.path.join(HERE, "shim.c"), "-o", path, "-ldl"], check=True)
    return path


SHIM = None


class Faulty(Broker):
    """A broker on a disk that can be made to fail."""

    def __init__(self, **arguments):
        global SHIM
        SHIM = SHIM or build_shim()
        super().__init__(**arguments)
        self.trigger = os.path.join(self.own_dir, "fault")
        self.env.update(LD_PRELOAD=SHIM, DISK_FAULT=self.trigger, DISK_FAULT_UNDER=self.data_dir)

    def fault(self, how):
        with open(self.trigger + ".new", "w") as file:
            file.write(how)
        os.rename(self.trigger + ".new", self.trigger)

    def heal(self):
        os.unlink(self.trigger)


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
