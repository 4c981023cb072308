#!/usr/bin/env python3
"""Compressed batches that grow without end when they are opened: where the broker has to look inside
(ListOffsets by time), it does so within bounds and goes on serving.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
import toolchains  # noqa: E402

try:  # the codecs are packages of the clients' environment
    import cramjam
except ImportError:
    try:
        python = toolchains.python()
    except toolchains.Unavailable as why:
        cases.skip_all("limits", "no Python packages: %s" % why)
    os.execv(python, [python, *sys.argv])

import gzip  # noqa: E402

import wire  # noqa: E402
from client import Client, batch  # noqa: E402
from hostile import MIB, Watched  # noqa: E402

GIB = 1 << 30


def bomb_records(size):
    """One record whose value is `size` zero bytes."""
    head = b"\0\0\0\x01" + wire.zigzag(size)
    return wire.zigzag(len(head) + size + 1) + head, size, b"\0"


def plain(size):
    head, count, end = bomb_records(size)
    return head + bytes(count) + end


PACK = {
    "gzip": lambda data: gzip.compress(data, 9),
    "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),
    "zstd": lambda data: bytes(cramjam.zstd.compress(data, 19)),
}
# Snappy shrinks to a twentieth only.
SIZES = {"gzip": 700 * MIB, "lz4": 450 * MIB, "zstd": GIB, "snappy": 450 * MIB}


def offset_by_time(codec, data):
    with Watched({"message.max.bytes": 32 * MIB}, memory_mib=400, slowest_s=20) as watched:
        with Client(watched.port, 60) as client:
            client.create_topic("bombs")
            made = batch([b""], records=data, codec=codec, timestamp_ms=1700000000000)
            print("%s: a batch of %d bytes" % (codec, len(made)))
            error, offset = client.produce("bombs", 0, made)
            if error != 0:
                print("produce: error %d" % error)
                return
            for _ in range(3):
                error, time_ms, offset = client.list_offset("bombs", 0, 1699999999999)
                print("ListOffsets: error %d, offset %d" % (error, offset))
            with Client(watched.port) as other:
                assert other.list_offset("watched", 0)[0] == 0


def run(codec):
    offset_by_time(codec, PACK[codec](plain(SIZES[codec])))


def test_gzip_bomb():
    run("gzip")


def test_snappy_bomb():
    run("snappy")


def test_lz4_bomb():
    run("lz4")


def test_zstd_bomb():
    run("zstd")


def test_damaged_compressed_data_is_an_error_only():
    for codec in PACK:
        data = bytearray(PACK[codec](plain(10000)))
        data[len(data) // 2] ^= 0xFF
        offset_by_time(codec, bytes(data))


OPTIONS = None
if __name__ == "__main__":
    cases.main("limits", globals())
