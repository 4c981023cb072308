"""What the tests against hostile clients share: a broker that is watched from the side.

Happy path: `with Watched(..) as w:` starts a broker with one topic; w.raw() is a bare socket;
w.gone(sock, words) waits until the broker has closed it and the log says why; at the end a second
client, connected all the time, must have been served throughout, and the broker's memory must be
within its bound.
"""
import os
import socket
import struct
import threading
import time

from client import LOST, Client, batch, wait_for
from ottla import Broker

MIB = 1 << 20


class Bystander(threading.Thread):
    """A well-behaved client on one connection that must never notice anything."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.client = Client(port)
        self.stopping, self.error = False, None
        self.rounds, self.longest_s = 0, 0.0

    def run(self):
        data = batch([b"bystander"])
        try:
            while not self.stopping:
                begin = time.monotonic()
                error, offset = self.client.produce("watched", 0, data)
                assert error == 0 and offset == self.rounds, (error, offset, self.rounds)
                self.longest_s = max(self.longest_s, time.monotonic() - begin)
                self.rounds += 1
                time.sleep(0.01)
        except (AssertionError, *LOST) as error:
            self.error = error


class Watched:
    def __init__(self, overrides=None, memory_mib=200, slowest_s=5.0):
        self.broker = Broker({"num.partitions": 1, **(overrides or {})})
        self.memory_mib, self.slowest_s = memory_mib, slowest_s
        self.read_up_to = 0

    def __enter__(self):
        self.broker.start()
        self.port = self.broker.port
        with Client(self.port) as client:
            client.create_topic("watched")
        self.bystander = Bystander(self.port)
        self.bystander.start()
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.check()
                self.broker.stop()
        except BaseException:
            kind = True
            raise
        finally:
            if kind is not None:
                self.broker.failed = True
                print(self.broker.log_tail(20))
            self.broker.close()
        return False

    def check(self):
        """The broker lives, the bystander was served, and memory is bounded."""
        rounds = self.bystander.rounds
        wait_for("another round of the bystander",
                 lambda: self.bystander.rounds > rounds or self.bystander.error)
        self.bystander.stopping = True
        self.bystander.join(30)
        assert self.bystander.error is None, "another client suffered: %r" % self.bystander.error
        assert self.bystander.longest_s < self.slowest_s, \
            "another client waited %.1f s" % self.bystander.longest_s
        assert self.broker.alive(), "the broker died"
        peak = self.memory("VmHWM")
        print("peak %d MiB, bystander %d rounds, slowest %.2f s" % (
            peak, self.bystander.rounds, self.bystander.longest_s))
        assert peak < self.memory_mib, "memory rose to %d MiB" % peak

    def memory(self, line="VmRSS"):
        with open("/proc/%d/status" % self.broker.pid) as status:
            for words in map(str.split, status):
                if words[0] == line + ":":
                    return int(words[1]) // 1024

    def raw(self, data=b"", timeout_s=20, receive_bytes=None):
        sock = socket.socket()
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.settimeout(timeout_s)
        sock.connect(("127.0.0.1", self.port))
        if data:
            sock.sendall(data)
        return sock

    def gone(self, sock, *words):
        """The broker closes this connection, and a new line of the log says why."""
        address = "%s:%d" % sock.getsockname()
        try:
            got = sock.recv(1 << 16)
        except ConnectionResetError:
            got = b""
        sock.close()
        assert got == b"", "an answer instead of an end: %r" % got[:80]

        def logged():
            with open(self.broker.log_path, errors="replace") as log:
                return [line for line in log if address in line and "closing" in line]
        line, = wait_for("a reason in the log for " + address, logged)
        for word in words:
            assert word in line, "%r is not in %r" % (word, line)
        return line


def header(api, version, correlation=1, client=b"\0\1h"):
    return struct.pack(">hhi", api, version, correlation) + client


def framed(data):
    return struct.pack(">i", len(data)) + data


def received_exactly(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        assert more, "closed after %d of %d bytes" % (len(data), count)
        data += more
    return data


def open_files_suffice(count):
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        if hard < count:
            return False
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    return True


assert os.name == "posix"
