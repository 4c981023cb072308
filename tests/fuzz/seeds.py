#!/usr/bin/env python3
"""Writes first inputs for a fuzz target, out of the golden vectors: seeds.py TARGET DIRECTORY.

Each target's input begins with bytes that choose what is fuzzed; see the target's opening words.
"""
import gzip
import hashlib
import os
import sys

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'golden')
SEED_LIMIT_BYTES = 2000


def rows(name):
    with gzip.open(os.path.join(GOLDEN, name), 'rt', encoding='utf-8') as file:
        for line in file:
            yield line.rstrip('\n').split('\t')


def message_seeds():
    for name in ('messages-1.txt.gz', 'messages-2.txt.gz'):
        for row in rows(name):
            label = row[0].encode() + b'\0' + bytes([int(row[1])])
            yield label + bytes.fromhex(row[3])


def request_seeds():
    for row in rows('frames.txt.gz'):
        if row[0] == 'request':
            yield bytes.fromhex(row[4])[4:]
    for row in rows('traffic.txt.gz'):
        yield bytes.fromhex(row[4])


def batch_seeds():
    for row in rows('batches.txt.gz'):
        if row[0].startswith('v2'):
            yield bytes.fromhex(row[1])


def unpack_seeds():
    for batch in batch_seeds():
        yield bytes([batch[22] & 7]) + batch[61:]


def storage_seeds():
    yield b'\0{"version": 1, "group": 7, "index": 5, "term": 1, "partitions": [{"topic_id": ' \
        b'"AQIDBAUGBwgJCgsMDQ4PEA", "partition": 0, "next_offset": 9, "log_start": 0}], "crc": 0}'
    yield b'\1' + bytes(range(1, 256)) * 5
    yield b'\3' + b'0\n2\n1 0\n4 17\n'
    yield b'\3' + bytes(9) + b'\1' + bytes(46)
    for batch in batch_seeds():
        for point in (b'\xff', b'\0', b'\3'):
            yield b'\2' + point + batch


def main():
    makers = {'message': message_seeds, 'request': request_seeds, 'batch': batch_seeds,
              'unpack': unpack_seeds, 'storage': storage_seeds}
    os.makedirs(sys.argv[2], exist_ok=True)
    for seed in makers[sys.argv[1]]():
        if len(seed) <= SEED_LIMIT_BYTES:
            name = hashlib.sha1(seed).hexdigest()
            with open(os.path.join(sys.argv[2], name), 'wb') as file:
                file.write(seed)


main()
