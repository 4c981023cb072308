"""Brokers on a disk that can be made to fail, to be slow or to stand still (tests/disk/shim.c is
preloaded).

    with Faulty() as broker:
        broker.fault("EIO")           # or "ENOSPC", "EROFS", "EIO sync", "DELAY 500", "STALL"
        broker.fault("EIO read /t-0/")  # reads of such paths; "send": only those by sendfile
        broker.heal()

And brokers with a clock that a test moves on (HeldClock; tests/chaos/clock_shim.c). Each library is
compiled once for each process; without a compiler that raises.
"""
import os
import struct
import subprocess
import tempfile
import time

from ottla import TOP, Broker

DISK_SHIM = os.path.join(TOP, "tests", "disk", "shim.c")
CLOCK_SHIM = os.path.join(TOP, "tests", "chaos", "clock_shim.c")
_built = {}


def shim(source=DISK_SHIM):
    """The library's path."""
    if source not in _built:
        path = os.path.join(tempfile.mkdtemp(prefix="ottla-shim-"), "shim.so")
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O1", "-Wall", "-Wextra",
                        "-shared", "-fPIC", source, "-o", path, "-ldl"], check=True)
        _built[source] = path
    return _built[source]


class HeldClock:
    """The monotonic clock of the processes that have its `env`: from hold() on it stands still, and
    goes on when it is told to. So no delay of the real world counts."""

    def __init__(self):
        self.path = os.path.join(tempfile.mkdtemp(prefix="ottla-clock-"), "clock")
        with open(self.path, "wb") as file:
            file.write(bytes(16))
        self.env = {"LD_PRELOAD": shim(CLOCK_SHIM), "CLOCK_OFFSET": self.path}

    def hold(self):
        self.now_ns = time.monotonic_ns()
        self.move(0)

    def move(self, by_ms):
        self.now_ns += by_ms * 1000000
        with open(self.path, "r+b") as file:
            os.pwrite(file.fileno(), struct.pack("=q", self.now_ns), 8)


class Triggered:
    """A process, started with `env`, whose disk can be made to fail."""

    def preload(self, trigger, under):
        """Files below `under` fail as the file `trigger` says."""
        self.trigger = trigger
        self.env.update(LD_PRELOAD=shim(), DISK_FAULT=trigger, DISK_FAULT_UNDER=under)

    def fault(self, how):
        with open(self.trigger + ".new", "w") as file:
            file.write(how)
        os.rename(self.trigger + ".new", self.trigger)

    def heal(self):
        if os.path.exists(self.trigger):
            os.unlink(self.trigger)


class Faulty(Triggered, Broker):
    """A broker on a disk that can be made to fail."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.preload(os.path.join(self.own_dir, "fault"), self.data_dir)
