#!/usr/bin/env python3
"""Many connections, greedy and slow ones: bounds hold, memory stays small, others are served."""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import FETCH, LOST, Client, batch, fetch_body, wait_for  # noqa: E402
from hostile import MIB, Watched, framed, header, open_files_suffice, received_exactly  # noqa: E402

API_VERSIONS_0 = framed(header(18, 0))


def served(sock):
    try:
        sock.sendall(API_VERSIONS_0)
        size, = struct.unpack(">i", received_exactly(sock, 4))
        received_exactly(sock, size)
        return True
    except (AssertionError, *LOST):
        return False


def test_1000_connections_that_announce_100_mib_and_send_nothing():
    if not open_files_suffice(4000):
        raise cases.Skip("fewer than 4000 open files are allowed")
    with Watched(memory_mib=200) as watched:
        begin = time.monotonic()
        before = watched.memory()
        socks = [watched.raw(struct.pack(">i", 100 * MIB - 10)) for _ in range(1000)]
        took = time.monotonic() - begin
        assert took < 20, "1000 connections took %.1f s" % took
        with Client(watched.port) as client:
            client.metadata()
        time.sleep(1)
        grown = watched.memory() - before
        assert grown < 100, "memory grew by %d MiB" % grown
        for sock in socks:
            sock.close()
        wait_for("a new client is served", lambda: served(watched.raw()))


def test_frames_waiting_in_memory_are_bounded_together():
    """queued.max.request.bytes: half-sent large frames of many connections stop being read."""
    with Watched({"queued.max.request.bytes": 32 * MIB}, memory_mib=200) as watched:
        socks = []
        for _ in range(40):
            sock = watched.raw(struct.pack(">i", 90 * MIB))
            sock.setblocking(False)
            socks.append(sock)
        chunk, sent = bytes(MIB), [0] * len(socks)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            for i, sock in enumerate(socks):
                try:
                    if sent[i] < 20 * MIB:
                        sent[i] += sock.send(chunk)
                except OSError:
                    pass
        print("took %d MiB, resident %d MiB" % (sum(sent) // MIB, watched.memory()))
        for sock in socks:
            sock.close()


def test_max_connections_refuses_with_a_line_in_the_log():
    with Watched({"max.connections": 20}) as watched:
        socks = [watched.raw(timeout_s=5) for _ in range(40)]
        good = [sock for sock in socks if served(sock)]
        assert 10 <= len(good) <= 20, "%d of 40 are served" % len(good)
        wait_for("a line in the log",
                 lambda: "max.connections is reached" in open(watched.broker.log_path).read())
        for sock in socks:
            sock.close()
        wait_for("room again", lambda: served(watched.raw(timeout_s=5)))


def test_max_connections_per_ip_bounds_one_address_only():
    with Watched({"max.connections.per.ip": 20}) as watched:
        socks = [watched.raw(timeout_s=5) for _ in range(40)]
        good = [sock for sock in socks if served(sock)]
        assert 10 <= len(good) <= 20, "%d of 40 are served" % len(good)
        other = socket.socket()
        other.settimeout(5)
        other.bind(("127.0.0.2", 0))
        other.connect(("127.0.0.1", watched.port))
        assert served(other), "another address is refused too"
        assert "max.connections.per.ip is reached" in open(watched.broker.log_path).read()


def test_reader_that_never_reads_its_answers():
    """Pipelined fetches of much data by clients that take nothing: memory stays bounded."""
    with Watched({"message.max.bytes": 2 * MIB}, memory_mib=300, slowest_s=10) as watched:
        with Client(watched.port) as client:
            client.create_topic("much")
            data = batch([os.urandom(MIB)])
            for _ in range(40):
                assert client.produce("much", 0, data)[0] == 0
        body = fetch_body([("much", 0, 0)], max_bytes=40 * MIB, partition_bytes=40 * MIB)
        request = framed(header(FETCH, 5) + body)
        socks = []
        for _ in range(30):
            sock = watched.raw(receive_bytes=4096)
            sock.setblocking(False)
            try:
                for _ in range(200):
                    sock.send(request)
            except OSError:
                pass
            socks.append(sock)
        time.sleep(4)
        print("resident %d MiB with 30 stuck readers" % watched.memory())
        for sock in socks:
            sock.close()


def test_reader_that_never_reads_large_answers_from_memory():
    """Tiny pipelined requests with large answers, none of which is taken."""
    with Watched(memory_mib=300, slowest_s=10) as watched:
        with Client(watched.port) as client:
            client.create_topic("wide", 2000)
        request = framed(header(3, 5) + struct.pack(">i", -1) + b"\0")
        socks = []
        for _ in range(20):
            sock = watched.raw(receive_bytes=4096)
            sock.setblocking(False)
            try:
                for _ in range(500):
                    sock.send(request)
            except OSError:
                pass
            socks.append(sock)
        time.sleep(4)
        print("resident %d MiB with 20 stuck readers" % watched.memory())
        for sock in socks:
            sock.close()


def test_open_files_run_out_and_come_back():
    """Out of descriptors the broker waits, says so, and goes on when some are free."""
    import resource
    with Watched(slowest_s=30) as watched:
        in_use = len(os.listdir("/proc/%d/fd" % watched.broker.pid))
        limit = in_use + 20
        resource.prlimit(watched.broker.pid, resource.RLIMIT_NOFILE, (limit, limit))
        socks = [watched.raw() for _ in range(60)]
        wait_for("a line in the log",
                 lambda: "cannot accept a connection" in open(watched.broker.log_path).read())
        for sock in socks:
            sock.close()
        wait_for("accepting again", lambda: served(watched.raw(timeout_s=5)), 30)


OPTIONS = None
if __name__ == "__main__":
    cases.main("limits", globals())
