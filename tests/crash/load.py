"""The load under which a broker is killed, and the exact account of what it promised.

Happy path: producers send batches of values that name themselves ("P/PARTITION/N;"), a reader
follows all partitions, committers commit offsets; all of them go on across restarts of the broker
by connecting anew. At the end `verify` reads every log from its start and holds it against the
account: what was acknowledged is where it was said to be, once and in order; what a reader saw is
still the same; an idempotent producer's values have no gap and no double, although everything
unanswered at a kill was sent again; a committed offset is not behind what was acknowledged.

Failure modes: any contradiction is an AssertionError that names partition, offset and both sides.
"""
import random
import threading
import time
from collections import deque

from client import (COORDINATOR_BUSY, DUPLICATE_SEQUENCE, ILLEGAL_GENERATION, LOST, PRODUCE,
                    REBALANCE, RETRIABLE, STORAGE_ERROR, UNKNOWN_MEMBER, Client, Tail, batch,
                    produce_body, read_batches, read_produce, wait_for)

WINDOW = 5  # batches of a partition under way; what an idempotent producer may resend


class Sent:
    """One batch: values first .. first+count-1 of a producer in a partition."""
    __slots__ = ("first", "count", "data", "offset")

    def __init__(self, first, count, data):
        self.first, self.count, self.data = first, count, data
        self.offset = None  # None: not acknowledged; -1: acknowledged as a duplicate


class Worker(threading.Thread):
    """A client that connects again and again until it is told to stop."""

    def __init__(self, load, name):
        super().__init__(name=name, daemon=True)
        self.load, self.error = load, None

    def run(self):
        try:
            while not self.load.stopping or not self.finished():
                try:
                    with Client(self.load.port, 20) as client:
                        self.work(client)
                except LOST:
                    self.disconnected()
                    time.sleep(0.01)
        except BaseException as error:  # reported by Load.check
            self.error = error
            raise

    def finished(self):
        return True

    def disconnected(self):
        pass


class Producer(Worker):
    def __init__(self, load, number, topic, partitions, idempotent, tail_bytes, seed):
        super().__init__(load, "producer %d" % number)
        self.number, self.topic, self.partitions = number, topic, partitions
        self.idempotent, self.random = idempotent, random.Random(seed)
        self.tail = Tail(self.random.randbytes(tail_bytes) + b"\0") if tail_bytes else None
        self.identity = (-1, -1)
        self.next = [0] * partitions
        self.unsure = [deque() for _ in range(partitions)]  # idempotent: to be sent again, in order
        self.batches = [[] for _ in range(partitions)]
        self.waiting = deque()  # (correlation, partition, Sent)
        self.under_way = [0] * partitions
        self.refused = []

    def finished(self):
        return not self.idempotent or not any(self.unsure)

    def disconnected(self):
        """Idempotent: everything without an answer is sent again. Else nobody knows."""
        if self.idempotent:
            for partition in range(self.partitions):
                again = [s for c, p, s in self.waiting if p == partition]
                self.unsure[partition].extendleft(reversed(again))
        self.waiting.clear()
        self.under_way = [0] * self.partitions

    def make(self, partition):
        count, first = self.random.randrange(1, 8), self.next[partition]
        values = [b"%d/%d/%d;" % (self.number, partition, first + i) for i in range(count)]
        sequence = first if self.idempotent else -1
        sent = Sent(first, count, batch(values, self.identity, sequence, self.tail))
        self.next[partition] += count
        self.batches[partition].append(sent)
        return sent

    def work(self, client):
        if self.idempotent and self.identity[0] < 0:
            error, *identity = client.init_producer_id()
            if error != 0:
                raise EOFError("InitProducerId: %d" % error)
            self.load.new_producer_id(identity[0])
            self.identity = tuple(identity)
        while True:
            self.send_some(client)
            if not self.waiting:
                if self.load.stopping:
                    return
                continue
            self.take_answer(client)

    def send_some(self, client):
        for partition in self.random.sample(range(self.partitions), min(self.partitions, 4)):
            if self.under_way[partition] >= WINDOW:
                continue
            if self.unsure[partition]:
                sent = self.unsure[partition].popleft()
            elif self.load.stopping:
                continue
            else:
                sent = self.make(partition)
            # On the list before it is on the wire: a send that fails may have arrived.
            self.waiting.append((client.correlation + 1, partition, sent))
            self.under_way[partition] += 1
            client.send_body(PRODUCE, 7, produce_body(self.topic, partition, sent.data), False)

    def take_answer(self, client):
        correlation, partition, sent = self.waiting[0]
        error, offset = read_produce(client.answer(correlation))
        if error != 0 and error != DUPLICATE_SEQUENCE:
            assert error in RETRIABLE, "%s: %s-%d from %d: produce error %d, refused before: %s" % (
                self.name, self.topic, partition, sent.first, error, self.refused[-5:])
            self.refused.append((partition, sent.first, error))
            raise EOFError("produce error %d" % error)
        self.waiting.popleft()
        self.under_way[partition] -= 1
        sent.offset = -1 if error else offset
        sent.data = None
        self.load.acked += 1


class Reader(Worker):
    """Follows every partition; what it has read must never change."""

    def __init__(self, load, partitions):
        super().__init__(load, "reader")
        self.seen = {part: [] for part in partitions}  # values by offset

    def work(self, client):
        while not self.load.stopping:
            wanted = [(t, p, len(seen)) for (t, p), seen in self.seen.items()]
            got = client.fetch_many(wanted, max_wait_ms=100, max_bytes=1 << 23,
                                    partition_bytes=1 << 20)
            for part, fetched in got.items():
                self.take(part, fetched)

    def take(self, part, fetched):
        if fetched.error != 0:
            # 1 is OFFSET_OUT_OF_RANGE: records this reader has seen would be gone.
            assert fetched.error in RETRIABLE, "%s-%d: fetch error %d at %d" % (
                *part, fetched.error, len(self.seen[part]))
            time.sleep(0.02)
            return
        seen = self.seen[part]
        assert fetched.high_watermark >= len(seen), "%s-%d: high watermark %d, seen up to %d" % (
            *part, fetched.high_watermark, len(seen))
        extend(seen, part, fetched.records)


def extend(seen, part, records):
    """Adds what was fetched at offset len(seen), without a gap."""
    for found in read_batches(records):
        for i, value in enumerate(found.values):
            offset = found.base_offset + i
            if offset < len(seen):
                continue
            assert offset == len(seen), "%s-%d: offset %d after %d" % (*part, offset, len(seen))
            seen.append(name_of(value))


def name_of(value):
    return bytes(value[:value.index(b";")])


class Committer(Worker):
    """Commits rising offsets; as a member of a group, or alone."""

    def __init__(self, load, group, part, member):
        super().__init__(load, "committer " + group)
        self.group, self.part, self.is_member = group, part, member
        self.sent, self.acked = 0, 0
        self.member, self.generation = "", -1

    def work(self, client):
        self.refused(client.find_coordinator(self.group))
        while not self.load.stopping:
            if self.is_member and self.generation < 0:
                self.become_member(client)
                continue
            self.sent += 1
            error = client.commit(self.group, {self.part: self.sent}, self.generation,
                                  self.member)[self.part]
            if error == 0:
                self.acked = self.sent
            else:
                self.refused(error)
                time.sleep(0.02)

    def become_member(self, client):
        error, generation, member = client.join(self.group, self.member)
        if error == 0:
            error = client.sync(self.group, generation, member)
            self.member, self.generation = member, generation
        if error != 0:
            self.refused(error)
            time.sleep(0.05)

    def refused(self, error):
        if error == 0:
            return
        if error in (UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCE) and self.is_member:
            self.generation = -1
            self.member = "" if error == UNKNOWN_MEMBER else self.member
            return
        assert error in (*COORDINATOR_BUSY, STORAGE_ERROR), "%s: error %d" % (self.name, error)

    def settled(self, client):
        found = client.committed(self.group, [self.part])[self.part]
        return None if found[1] in COORDINATOR_BUSY else found

    def check(self, client):
        """Between what was acknowledged and what was tried, now that nothing is under way."""
        offset, error = wait_for("the coordinator of " + self.group, lambda: self.settled(client))
        low, high = self.acked, self.sent
        assert error == 0, "%s: OffsetFetch error %d" % (self.group, error)
        assert low <= max(offset, 0) <= high, "%s: committed %d, acknowledged %d, tried %d" % (
            self.group, offset, low, high)


class Load:
    """Everything that runs against one broker. topics: {name: partitions}."""

    def __init__(self, port, topics, seed, tail_bytes=16384):
        self.port, self.topics = port, topics
        self.stopping = False
        self.acked = 0
        self.ids, self.ids_lock = [], threading.Lock()
        self.parts = [(t, p) for t, count in topics.items() for p in range(count)]
        self.producers, number = [], 0
        for topic, count in topics.items():
            for idempotent in (True, False):
                tail = tail_bytes if "big" in topic else 0
                self.producers.append(Producer(self, number, topic, count, idempotent, tail,
                                               seed * 100 + number))
                number += 1
        self.reader = Reader(self, self.parts)
        self.committers = [Committer(self, "members", self.parts[0], True),
                           Committer(self, "alone", self.parts[-1], False)]
        self.workers = [*self.producers, self.reader, *self.committers]

    def new_producer_id(self, identity):
        with self.ids_lock:
            assert identity not in self.ids, "producer id %d was given twice" % identity
            self.ids.append(identity)

    def start(self):
        for worker in self.workers:
            worker.start()

    def check(self):
        """Raises what a worker ran into."""
        for worker in self.workers:
            if worker.error is not None:
                raise AssertionError("%s: %r" % (worker.name, worker.error)) from worker.error

    def stop(self, timeout_s=60):
        """Lets the producers finish what they owe."""
        self.stopping = True
        end = time.monotonic() + timeout_s
        for worker in self.workers:
            worker.join(max(end - time.monotonic(), 0.1))
            assert not worker.is_alive(), "%s does not come to an end" % worker.name
        self.check()

    # ---- the account
    def check_committed(self):
        """The broker runs and the committers are done."""
        with Client(self.port) as client:
            for committer in self.committers:
                committer.check(client)

    def verify(self):
        """After stop: reads everything and compares. Returns how many values there are."""
        total = 0
        with Client(self.port) as client:
            for part in self.parts:
                log = read_all(client, part)
                self.compare_with_reader(part, log)
                for producer in self.producers:
                    if producer.topic == part[0]:
                        compare_with_producer(producer, part[1], log)
                total += len(log)
        self.check_committed()
        return total

    def compare_with_reader(self, part, log):
        seen = self.reader.seen[part]
        assert len(log) >= len(seen), "%s-%d ends at %d, a reader saw %d" % (
            *part, len(log), len(seen))
        for offset, value in enumerate(seen):
            assert log[offset] == value, "%s-%d offset %d was %r, now %r" % (
                *part, offset, value, log[offset])


def read_all(client, part):
    """All values of a partition by offset, up to its high watermark."""
    log, start = [], client.list_offset(*part, -2)
    assert start[0] == 0 and start[2] == 0, "%s-%d starts at %r" % (*part, start)
    while True:
        fetched = client.fetch(*part, len(log))
        assert fetched.error == 0, "%s-%d: fetch error %d at %d" % (*part, fetched.error, len(log))
        if not fetched.records:
            break
        extend(log, part, fetched.records)
    assert len(log) == fetched.high_watermark, "%s-%d: read %d of %d" % (
        *part, len(log), fetched.high_watermark)
    return log


def compare_with_producer(producer, partition, log):
    where = "%s of %s-%d" % (producer.name, producer.topic, partition)
    prefix = b"%d/%d/" % (producer.number, partition)
    offsets = {}
    last = -1
    for offset, value in enumerate(log):
        if not value.startswith(prefix):
            continue
        number = int(value[len(prefix):])
        assert number not in offsets, "%s: %d is at %d and at %d" % (
            where, number, offsets[number], offset)
        assert number > last, "%s: %d after %d at %d" % (where, number, last, offset)
        offsets[number] = offset
        last = number
    for sent in producer.batches[partition]:
        if sent.offset is None:
            continue
        for i in range(sent.count):
            at = offsets.get(sent.first + i)
            assert at is not None, "%s: %d was acknowledged at %d and is gone" % (
                where, sent.first + i, sent.offset + i)
            assert sent.offset < 0 or at == sent.offset + i, \
                "%s: %d was acknowledged at %d and is at %d" % (
                    where, sent.first + i, sent.offset + i, at)
    if producer.idempotent:
        assert len(offsets) == producer.next[partition], "%s: %d of %d values" % (
            where, len(offsets), producer.next[partition])
