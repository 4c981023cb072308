#!/usr/bin/env python3
"""Frames that are wrong or odd: the connection ends with a logged reason and nobody else notices;
what is merely unusual (split, pipelined) is served.
"""
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import Client, wait_for  # noqa: E402
from hostile import Watched, framed, header, received_exactly  # noqa: E402

METADATA, API_VERSIONS = 3, 18
API_VERSIONS_0 = framed(header(API_VERSIONS, 0))


def test_frame_above_socket_request_max_bytes_is_refused():
    with Watched({"socket.request.max.bytes": 100000}) as watched:
        watched.gone(watched.raw(struct.pack(">i", 100001) + b"x" * 1000), "100001",
                     "socket.request.max.bytes")
        with Client(watched.port) as client:  # one at the limit is read to its end
            body = struct.pack(">i", -1) + b"\0"
            head = header(METADATA, 5)
            data = head + body
            client.socket.sendall(struct.pack(">i", 100000) + data + bytes(100000 - len(data)))
            assert struct.unpack(">i", client.exactly(4))[0] > 0


def test_negative_and_tiny_frame_sizes_are_refused():
    with Watched() as watched:
        for size in (-1, -2147483648, 0, 1, 7):
            data = struct.pack(">i", size) + bytes(max(size, 0))
            watched.gone(watched.raw(data), "a frame of")


def test_garbage_is_refused():
    rng = random.Random(OPTIONS.seed)
    with Watched() as watched:
        for _ in range(50):
            sock = watched.raw(framed(rng.randbytes(rng.randrange(8, 200))))
            watched.gone(sock)
        for _ in range(20):  # without a sensible size in front
            watched.gone(watched.raw(b"\xff" + rng.randbytes(100)))


def test_http_request_is_refused_and_the_log_asks_what_it_is():
    with Watched() as watched:
        watched.gone(watched.raw(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n"), "Kafka client")


def test_tls_client_hello_is_refused_and_the_log_names_tls():
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(range(32)) + bytes(160)
    with Watched() as watched:
        watched.gone(watched.raw(hello), "TLS")


def test_unknown_api_key_and_version_are_refused():
    with Watched() as watched:
        for api, version in ((999, 0), (-1, 0), (METADATA, 99), (METADATA, -1), (0, 0), (1, 1)):
            watched.gone(watched.raw(framed(header(api, version) + bytes(40))),
                         "api key %d" % api, "version %d" % version)


def test_future_api_versions_is_answered_in_version_0():
    with Watched() as watched:
        sock = watched.raw(framed(header(API_VERSIONS, 77) + bytes(10)))
        _, correlation, error = struct.unpack(">iih", received_exactly(sock, 10))
        assert (correlation, error) == (1, 35), (correlation, error)


def test_negative_and_huge_counts_are_refused():
    with Watched() as watched:
        cases_of = [
            header(METADATA, 5) + struct.pack(">i", 0x7FFFFFFF) + b"\0",
            header(METADATA, 5) + struct.pack(">i", 1) + struct.pack(">h", -5),
            header(METADATA, 5) + struct.pack(">i", 1) + struct.pack(">h", 0x7FFF) + b"short",
            header(METADATA, 9) + b"\0\xff\xff\xff\xff\x0f\0\0\0\0",  # compact count of 2^32 - 2
            header(METADATA, 9) + b"\0" + b"\xff" * 12,               # varint without end
            header(0, 7) + struct.pack(">hhii", -1, -1, 1000, 500000000),
            header(0, 7) + struct.pack(">hhiihcii", -1, -1, 1000, 1, 1, b"t", 1, 0)
            + struct.pack(">i", 0x7FFFFFFF),                          # records of 2 GiB
            header(1, 5) + struct.pack(">iiiibi", -1, 0, 1, 1, 0, 100000000),
        ]
        for data in cases_of:
            watched.gone(watched.raw(framed(data)))


def test_many_small_structs_do_not_take_much_memory():
    """A frame of a few MiB that decodes to millions of structs."""
    with Watched(memory_mib=400, slowest_s=10) as watched:
        count = 4000000
        body = struct.pack(">iiiibi", -1, 0, 1, 1, 0, 1) + b"\0\1t" + struct.pack(">i", count)
        sock = watched.raw(framed(header(1, 5) + body + bytes(20 * count)), timeout_s=60)
        try:
            sock.recv(1000)
        except ConnectionResetError:
            pass
        sock.close()


def test_truncated_frames_of_clients_that_leave():
    rng = random.Random(OPTIONS.seed)
    whole = framed(header(METADATA, 5) + struct.pack(">i", -1) + b"\0")
    with Watched() as watched:
        for _ in range(200):
            watched.raw(whole[:rng.randrange(1, len(whole))]).close()
        # A frame whose body is too short for what it claims to hold.
        watched.gone(watched.raw(framed(header(METADATA, 5) + b"\0\0")))


def test_request_in_single_bytes_is_answered():
    with Watched() as watched:
        sock = watched.raw()
        for byte in API_VERSIONS_0:
            sock.sendall(bytes([byte]))
            time.sleep(0.001)
        size, correlation, error = struct.unpack(">iih", received_exactly(sock, 10))
        assert (correlation, error) == (1, 0)


def test_200_requests_in_one_write_are_answered_in_order():
    with Watched() as watched:
        sock = watched.raw(b"".join(
            framed(header((METADATA, API_VERSIONS)[i % 2], 0, i) + (bytes(4) if i % 2 == 0 else b""))
            for i in range(200)))
        for i in range(200):
            size, = struct.unpack(">i", received_exactly(sock, 4))
            correlation, = struct.unpack(">i", received_exactly(sock, size)[:4])
            assert correlation == i, (correlation, i)


def test_idle_connections_are_closed_after_their_time():
    with Watched({"connections.max.idle.ms": 1500}) as watched:
        sock = watched.raw(API_VERSIONS_0)
        size, = struct.unpack(">i", received_exactly(sock, 4))
        received_exactly(sock, size)
        begin = time.monotonic()
        watched.gone(sock, "connections.max.idle.ms")
        took = time.monotonic() - begin
        assert 1.0 < took < 6, "closed after %.1f s" % took
        watched.gone(watched.raw(), "connections.max.idle.ms")  # one that never said anything


def test_clients_that_reset_in_the_middle():
    """RST while answers are being made, many times."""
    whole = framed(header(METADATA, 5) + struct.pack(">i", -1) + b"\0")
    with Watched() as watched:
        for _ in range(300):
            sock = watched.raw(whole * 20)
            sock.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: close resets
            sock.close()
        wait_for("a new client is served", lambda: Client(watched.port).metadata() is not None)


OPTIONS = None
if __name__ == "__main__":
    cases.main("limits", globals())
