"""A client for tests that put a broker under load or in trouble: short calls over tests/lib/wire.py.

Happy path: `Client(port)` is one connection to a broker, on loopback or `host`; a call sends one request, waits for its
answer and returns what matters of it. `send_body` and `answer` are the halves, for pipelining.
Produce and Fetch are packed by hand and checksums of long values are worked out once (Tail), since
a load makes thousands of them a second.

Failure modes: LOST is what a connection that ends raises (OSError, EOFError; a time limit is an
OSError). Kafka's error codes are returned, never raised; only create_topic raises.
"""
import socket
import struct
import time
from dataclasses import dataclass

import wire

LOST = (OSError, EOFError)
PRODUCE, FETCH = 0, 1
NONE, UNKNOWN_TOPIC, NOT_LEADER, TOPIC_EXISTS, STORAGE_ERROR = 0, 3, 6, 36, 56
COORDINATOR_BUSY = (14, 15, 16)  # loading, not available, moved
ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE, DUPLICATE_SEQUENCE = 22, 25, 27, 46
# What a client tries again for: the broker starts, a group is being loaded, a disk is away.
RETRIABLE = {-1, 3, 5, 6, 7, 8, 9, 14, 15, 16, 19, 20, 41, 56, 74, 75, 76, 100}
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")


# ---- CRC-32C, fast where only the beginning of long data changes
def crc_raw(state, data):
    table = wire.CRC
    for byte in data:
        state = table[(state ^ byte) & 255] ^ (state >> 8)
    return state


def shift_tables(length):
    """Four tables that advance a state by `length` zero bytes."""
    zeroes = bytes(length)
    columns = [crc_raw(1 << bit, zeroes) for bit in range(32)]
    tables = []
    for part in range(4):
        table = [0] * 256
        for byte in range(256):
            for bit in range(8):
                if byte >> bit & 1:
                    table[byte] ^= columns[part * 8 + bit]
        tables.append(table)
    return tables


class Tail:
    """Bytes that end many batches, with what their checksum needs worked out."""
    _shifts = {}

    def __init__(self, data):
        self.data = bytes(data)
        self.state = crc_raw(0, self.data)
        if len(data) not in self._shifts:
            self._shifts[len(data)] = shift_tables(len(data))
        self.shift = self._shifts[len(data)]


def crc32c(data, tail=None):
    """CRC-32C of data, then of a Tail."""
    state = crc_raw(0xFFFFFFFF, data)
    if tail is not None:
        a, b, c, d = tail.shift
        state = (a[state & 255] ^ b[state >> 8 & 255] ^ c[state >> 16 & 255] ^ d[state >> 24] ^
                 tail.state)
    return state ^ 0xFFFFFFFF


# ---- record batches
def record(delta, value, tail_bytes=0):
    """A record without key; its last tail_bytes are left to a Tail (value's end, header count)."""
    length = len(value) + max(tail_bytes - 1, 0)
    body = b"\0\0" + wire.zigzag(delta) + b"\x01" + wire.zigzag(length) + value
    if tail_bytes == 0:
        body += b"\0"
    return wire.zigzag(len(body) + tail_bytes) + body


def batch(values, producer=(-1, -1), sequence=-1, tail=None, timestamp_ms=None, codec="none",
          records=None):
    """One record batch. tail: a Tail after the last value, whose final byte is 0.

    records: the records' bytes as they are (compressed), instead of encoding the values.
    """
    now = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    if records is None:
        last = len(values) - 1
        records = b"".join(record(i, v, len(tail.data) if tail and i == last else 0)
                           for i, v in enumerate(values))
    body = struct.pack(">hiqqqhii", CODECS[codec], len(values) - 1, now, now, *producer, sequence,
                       len(values)) + records
    end = tail.data if tail else b""
    head = struct.pack(">qiibI", 0, len(body) + len(end) + 9, -1, 2, crc32c(body, tail))
    return b"".join((head, body, end))


@dataclass
class Batch:
    base_offset: int
    count: int
    attributes: int
    values: list  # empty when compressed
    epoch: int = -1            # of the leader that took it
    producer: tuple = (-1, -1)  # id and epoch
    sequence: int = -1


def read_zigzag(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def read_batches(data):
    """All whole batches in a fetched record set."""
    at, found = 0, []
    while at + 61 <= len(data):
        fields = BATCH_HEADER.unpack_from(data, at)
        end = at + 12 + fields[1]
        if end > len(data):
            break
        assert fields[3] == 2, "magic %d" % fields[3]
        values, pos = [], at + 61
        for _ in range(fields[12] if fields[5] & 7 == 0 else 0):
            length, pos = read_zigzag(data, pos)
            after = pos + length
            _, pos = read_zigzag(data, pos + 1)
            _, pos = read_zigzag(data, pos)
            key, pos = read_zigzag(data, pos)
            size, pos = read_zigzag(data, pos + max(key, 0))
            values.append(bytes(data[pos:pos + size]))
            pos = after
        found.append(Batch(fields[0], fields[6] + 1, fields[5], values, fields[2], fields[9:11],
                           fields[11]))
        at = end
    return found


# ---- Produce 7 and Fetch 5 by hand
def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def produce_body(topic, partition, data, acks=-1, timeout_ms=30000):
    return b"".join((struct.pack(">hhii", -1, acks, timeout_ms, 1), text(topic),
                     struct.pack(">iii", 1, partition, len(data)), data))


def read_produce(data):
    """(error, base offset) of an answer with one partition."""
    at = 4 + 2 + struct.unpack_from(">h", data, 4)[0] + 4
    return struct.unpack_from(">hq", data, at + 4)


@dataclass
class Fetched:
    error: int
    high_watermark: int
    log_start: int
    records: bytes


def fetch_body(parts, max_wait_ms=0, max_bytes=1 << 25, partition_bytes=1 << 22, min_bytes=1):
    """parts: [(topic, partition, offset)]"""
    topics = [text(t) + struct.pack(">iiqqi", 1, p, offset, -1, partition_bytes)
              for t, p, offset in parts]
    return struct.pack(">iiiibi", -1, max_wait_ms, min_bytes, max_bytes, 0,
                       len(topics)) + b"".join(topics)


def read_fetch(data):
    """{(topic, partition): Fetched}"""
    reader, found = wire.Reader(data), {}
    reader.take(4)
    for _ in range(reader.fixed("i")):
        topic = reader.take(reader.fixed("h")).decode()
        for _ in range(reader.fixed("i")):
            partition, error, high, _, start, aborted = struct.unpack(">ihqqqi", reader.take(34))
            reader.take(16 * max(aborted, 0))
            found[topic, partition] = Fetched(error, high, start,
                                              reader.take(max(reader.fixed("i"), 0)))
    return found


def by_partition(topics, *names):
    """{(topic, partition): value(s)} of the usual array of topics."""
    return {(topic["name"], one["partitionIndex"]):
            tuple(one[name] for name in names) if len(names) > 1 else one[names[0]]
            for topic in topics for one in topic["partitions"]}


class Client(wire.Conn):
    """One connection to a broker."""

    def __init__(self, port, timeout_s=30.0, host="127.0.0.1"):
        super().__init__("%s:%d" % (host, port), timeout_s, "test")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        self.socket.close()

    def exactly(self, count):
        data = bytearray(count)
        view, have = memoryview(data), 0
        while have < count:
            got = self.socket.recv_into(view[have:])
            if got == 0:
                raise EOFError("the broker closed the connection")
            have += got
        return bytes(data)

    def answer(self, correlation):
        """The body of the next answer, which must be the one of that request."""
        data = self.receive_raw()
        got = struct.unpack_from(">i", data)[0]
        assert got == correlation, "answer %d came, %d is due" % (got, correlation)
        return data[4:]

    # ---- topics
    def metadata(self, topics=None):
        """{topic: (error, [(partition error, partition, leader)])}; all topics for None"""
        names = None if topics is None else [{"name": name} for name in topics]
        answer = self.call("Metadata", 5, topics=names, allowAutoTopicCreation=False)
        return {t["name"]: (t["errorCode"], [(p["errorCode"], p["partitionIndex"], p["leaderId"])
                                             for p in t["partitions"]])
                for t in answer["topics"]}

    def create_topics(self, topics, timeout_ms=30000):
        """topics: [(name, partitions, {config: value})]; {name: error}"""
        wanted = [{"name": name, "numPartitions": partitions, "replicationFactor": 1,
                   "configs": [{"name": k, "value": str(v)} for k, v in configs.items()]}
                  for name, partitions, configs in topics]
        answer = self.call("CreateTopics", 2, topics=wanted, timeoutMs=timeout_ms)
        return {topic["name"]: topic["errorCode"] for topic in answer["topics"]}

    def create_topic(self, name, partitions=1, **configs):
        """Creates a topic and raises when that fails; config names with _ for the dots."""
        fixed = {key.replace("_", "."): value for key, value in configs.items()}
        error = self.create_topics([(name, partitions, fixed)])[name]
        assert error == 0, "CreateTopics %s: error %d" % (name, error)

    def delete_topics(self, names, timeout_ms=30000):
        answer = self.call("DeleteTopics", 1, topicNames=list(names), timeoutMs=timeout_ms)
        return {topic["name"]: topic["errorCode"] for topic in answer["responses"]}

    # ---- records
    def produce(self, topic, partition, data, acks=-1):
        """(error, base offset)"""
        return read_produce(self.answer(
            self.send_body(PRODUCE, 7, produce_body(topic, partition, data, acks), False)))

    def fetch_many(self, parts, **options):
        """{(topic, partition): Fetched}"""
        return read_fetch(self.answer(self.send_body(FETCH, 5, fetch_body(parts, **options),
                                                     False)))

    def fetch(self, topic, partition, offset, **options):
        return self.fetch_many([(topic, partition, offset)], **options)[topic, partition]

    def list_offset(self, topic, partition, timestamp=-1):
        """(error, timestamp, offset); -1 is the end, -2 the start"""
        answer = self.call("ListOffsets", 1, replicaId=-1, topics=[
            {"name": topic, "partitions": [{"partitionIndex": partition, "timestamp": timestamp}]}])
        return by_partition(answer["topics"], "errorCode", "timestamp", "offset")[topic, partition]

    def delete_records(self, topic, partition, offset):
        """(low watermark, error)"""
        answer = self.call("DeleteRecords", 0, timeoutMs=30000, topics=[
            {"name": topic, "partitions": [{"partitionIndex": partition, "offset": offset}]}])
        return by_partition(answer["topics"], "lowWatermark", "errorCode")[topic, partition]

    def init_producer_id(self):
        """(error, producer id, epoch)"""
        answer = self.call("InitProducerId", 0, transactionalId=None, transactionTimeoutMs=60000)
        return answer["errorCode"], answer["producerId"], answer["producerEpoch"]

    # ---- groups
    def find_coordinator(self, group):
        """error; the first one makes __consumer_offsets"""
        return self.call("FindCoordinator", 1, key=group, keyType=0)["errorCode"]

    def commit(self, group, offsets, generation=-1, member=""):
        """offsets: {(topic, partition): offset}; {(topic, partition): error}"""
        topics = [{"name": t, "partitions": [{"partitionIndex": p, "committedOffset": offset,
                                              "committedMetadata": ""}]}
                  for (t, p), offset in offsets.items()]
        answer = self.call("OffsetCommit", 2, groupId=group, generationIdOrMemberEpoch=generation,
                           memberId=member, topics=topics)
        return by_partition(answer["topics"], "errorCode")

    def committed(self, group, partitions):
        """{(topic, partition): (offset, error)}"""
        answer = self.call("OffsetFetch", 1, groupId=group, topics=[
            {"name": t, "partitionIndexes": [p]} for t, p in partitions])
        return by_partition(answer["topics"], "committedOffset", "errorCode")

    def join(self, group, member="", session_ms=6000):
        """(error, generation, member id) of a group with one protocol"""
        answer = self.call("JoinGroup", 2, groupId=group, sessionTimeoutMs=session_ms,
                           rebalanceTimeoutMs=session_ms, memberId=member, protocolType="consumer",
                           protocols=[{"name": "one", "metadata": b""}])
        return answer["errorCode"], answer["generationId"], answer["memberId"]

    def sync(self, group, generation, member):
        """error; assigns itself everything"""
        answer = self.call("SyncGroup", 1, groupId=group, generationId=generation, memberId=member,
                           assignments=[{"memberId": member, "assignment": b"all"}])
        return answer["errorCode"]


def wait_for(what, check, timeout_s=20.0, every_s=0.02):
    """Calls check until it returns something true, which is returned; AssertionError when the time
    is over. A connection that fails counts as not yet."""
    end = time.monotonic() + timeout_s
    last = None
    while time.monotonic() < end:
        try:
            last = check()
            if last:
                return last
        except LOST as error:
            last = error
        time.sleep(every_s)
    raise AssertionError("%s: not in %g s (last: %r)" % (what, timeout_s, last))
