"""Reads a broker's journal files as they are on the disk, for tests that damage them on purpose.

frames(folder) gives the frames in the order of their sequences, each with its pieces. Only what the
tests need is looked at; checks are not verified. The layout is storage/journal_format.h's.
"""
import os
import struct
from dataclasses import dataclass

PAGE = 4096
FRAME = struct.Struct("<IIQQQQIIIHHQ")
PIECE = struct.Struct("<IIIBBHIiQQQQ")
FRAME_MAGIC = 0x314A544F
ENTRY, VOTE, TRUNCATE, MARK, FORGET = 1, 2, 3, 4, 5


@dataclass
class Piece:
    position: int  # of its header, in the file
    length: int    # payload bytes
    kind: int
    flags: int
    group: int
    term: int
    index: int


@dataclass
class Frame:
    path: str
    position: int
    length: int
    sequence: int
    generation: int
    oldest: int
    pieces: list


def frames_of(path):
    with open(path, "rb") as file:
        data = file.read()
    found, position = [], 0
    while position + FRAME.size <= len(data):
        fields = FRAME.unpack_from(data, position)
        if fields[0] != FRAME_MAGIC or (found and fields[3] != found[0].generation):
            position += PAGE
            continue
        frame = Frame(path, position, fields[6], fields[2], fields[3], fields[4], [])
        at = position + FRAME.size
        for _ in range(fields[7]):
            _, _, length, kind, _, flags, _, _, _, group, term, index = PIECE.unpack_from(data, at)
            frame.pieces.append(Piece(at, length, kind, flags, group, term, index))
            at += PIECE.size + (length + 7) // 8 * 8
        found.append(frame)
        position += (fields[6] + PAGE - 1) // PAGE * PAGE
    return found


def frames(folder):
    everything = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".journal"):
            everything += frames_of(os.path.join(folder, name))
    return sorted(everything, key=lambda frame: frame.sequence)
