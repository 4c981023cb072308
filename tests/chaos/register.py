"""Registers built on the broker, and whether what clients saw of them is linearizable.

Each partition of the topic is a register: a write is a produce of one record, acknowledged by all; a
read is ListOffsets for the end, then a fetch of the record before it. Both take effect at the leader.
A RegisterClient does both, mostly where a node told that the leader is, often with the patience to wait
for one that is stopped or cut off; every operation is kept with the time of its call and of its
return. No write is ever tried again.

judge(operations, logs) says what of a write of unknown outcome came to be, by the logs of the end:
what is there at an offset was written at some time after the call; what is not there never was.
The rest is the matter of porcupine (linear/), which looks for an order of all operations, register
by register. Contradictions come back as lines of text.

Failure modes: toolchains.Unavailable when the judge cannot be built; AssertionError when it did not
come to a verdict in its time.
"""
import random
import subprocess
import threading
import time
from collections import Counter, namedtuple

import toolchains
from client import LOST, NONE, NOT_LEADER, Client, batch, read_batches

TOPIC, COUNT, CLIENTS, READERS = "registers", 3, 7, 3
NOT_ENOUGH_REPLICAS = 19
REFUSED = (NOT_LEADER, NOT_ENOUGH_REPLICAS)  # a promise that it was not written
MOST = 20000        # operations on a register that one judgement can take
PAUSE_S = 0.03      # of a client between two operations
PATIENCE_S = (0.5, 6.0)
JUDGE_S = 60
DONE, UNKNOWN, GONE = "done", "unknown", "refused"

# at: the offset of a write, the end that a read told
Operation = namedtuple("Operation", "kind key call ret outcome value at")


class RegisterClient(threading.Thread):
    """One that writes and reads in turns, as chance has it, or reads alone."""

    def __init__(self, chaos, number, seed):
        super().__init__(daemon=True)
        self.chaos, self.number, self.chance = chaos, number, random.Random(seed)
        self.operations, self.error, self.written = [], None, 0
        self.connection, self.key = None, 0
        self.writes = number >= READERS  # the others stay where a write would not be answered

    def run(self):
        try:
            while not self.chaos.calm and len(self.operations) < MOST // CLIENTS:
                try:
                    self.one()
                except LOST:
                    self.leave()
                time.sleep(PAUSE_S)
        except BaseException as error:  # reported by check_alive
            self.error = error
            raise
        finally:
            self.leave()

    def one(self):
        if self.connection is None or self.chance.random() < 0.03:
            self.connect()
        if self.writes and self.chance.random() < 0.7:
            self.write(self.key)
        else:
            self.read(self.key)

    def connect(self):
        """To the leader of some register, as somebody tells; now and then to anybody."""
        self.leave()
        self.key = self.chance.randrange(COUNT)
        cluster = self.chaos.cluster
        broker = cluster[self.chance.choice(list(cluster))]
        if self.chance.random() < 0.9:
            with Client(broker.port, 1.0, broker.host) as client:
                leaders = {key: node for _, key, node in client.metadata([TOPIC])[TOPIC][1]}
            broker = cluster.nodes.get(leaders.get(self.key), broker)
        self.connection = Client(broker.port, self.chance.uniform(*PATIENCE_S), broker.host)

    def leave(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def write(self, key):
        value = "%d.%d" % (self.number, self.written)
        self.written += 1
        call, outcome, offset = time.monotonic_ns(), UNKNOWN, None
        try:
            error, offset = self.connection.produce(TOPIC, key, batch([value.encode()]))
            outcome = DONE if error == NONE else GONE if error in REFUSED else UNKNOWN
        except LOST:
            pass
        self.note("write", key, call, outcome, value, offset)

    def read(self, key):
        call = time.monotonic_ns()
        error, _, end = self.connection.list_offset(TOPIC, key)
        returned = time.monotonic_ns()
        if error != NONE:
            self.leave()
            return
        self.note("read", key, call, DONE, self.value_at(key, end - 1), end, returned)

    def value_at(self, key, offset):
        """What never changes once it was told; "?" when it cannot be had now."""
        if offset < 0:
            return "-"
        try:
            got = self.connection.fetch(TOPIC, key, offset, max_wait_ms=500, partition_bytes=1 << 12)
        except LOST:
            self.leave()
            return "?"
        for one in read_batches(got.records) if got.error == NONE else ():
            if one.base_offset == offset:
                return one.values[0].decode()
        return "?"

    def note(self, kind, key, call, outcome, value, at, returned=None):
        self.operations.append(Operation(kind, key, call, returned or time.monotonic_ns(), outcome,
                                         value, at))
        if outcome != DONE:
            self.leave()


# ---- judging
def lines_of(operations, logs):
    """(the judge's input, contradictions that are seen at once)"""
    lines, wrong, places = [], [], {}
    for key, log in logs.items():
        wrong += ["register %d: %s is there %d times" % (key, value, count)
                  for value, count in Counter(log).items() if count > 1]
        places[key] = {value: offset for offset, value in enumerate(log)}
    for one in operations:
        returned, at = one.ret, one.at
        if one.kind == "write":
            at = places[one.key].get(one.value)
            if one.outcome == DONE and at != one.at:
                wrong.append("register %d: %s was acknowledged at %d and is at %s" % (
                    one.key, one.value, one.at, at))
            if one.outcome == GONE and at is not None:
                wrong.append("register %d: %s was refused and is at %d" % (one.key, one.value, at))
            if one.outcome != DONE:
                returned = "-"
        if at is not None:
            lines.append("%s %d %d %s %s %d" % (one.kind, one.key, one.call, returned, one.value,
                                                at))
    return lines, wrong


def judge(operations, logs, path):
    """logs: {key: the values at the end}; path: where the history is kept."""
    lines, wrong = lines_of(operations, logs)
    with open(path, "w") as file:
        file.writelines(line + "\n" for line in lines)
    done = subprocess.run([toolchains.linear(), path, str(JUDGE_S)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=3 * JUDGE_S)
    assert done.returncode in (0, 1), "%s: %s" % (path, done.stdout[-500:])
    return wrong + (done.stdout.splitlines() if done.returncode == 1 else [])


def summary(operations):
    """What there was of each kind and outcome; there has to be some of both kinds."""
    found = Counter((one.kind, one.outcome) for one in operations)
    assert found["write", DONE] and found["read", DONE], found
    return "registers: %s" % ", ".join("%d %ss %s" % (count, *key)
                                       for key, count in sorted(found.items()))
