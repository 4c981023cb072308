"""The five requests the benchmarks speak themselves, on a plain socket, without a client library.

Happy path: Wire(port) connects; each method sends one request and returns the decoded answer.

Failure modes: OSError when the broker is not there or does not answer in time; WireError when it
answers a topic with an error.
"""
import socket
import struct
import time

PRODUCE, LIST_OFFSETS, METADATA, CREATE_TOPICS, DELETE_TOPICS = 0, 2, 3, 19, 20
LATEST = -1


class WireError(Exception):
    """The broker refused a request that the benchmark needs."""


class Reader:
    """A cursor over an answer."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values if len(values) > 1 else values[0]

    def string(self):
        length = max(self.take(">h"), 0)
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def list(self, read):
        return [read(self) for _ in range(self.take(">i"))]


def string(text):
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def array(items):
    return struct.pack(">i", len(items)) + b"".join(items)


class Wire:
    """One connection; requests are answered one by one."""

    def __init__(self, port, timeout_s=60.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, key, version, body):
        frame = struct.pack(">hhi", key, version, 1) + string("bench") + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        answer = self.receive(struct.unpack(">i", self.receive(4))[0])
        return Reader(answer[4:])

    def receive(self, count):
        parts = []
        while count > 0:
            part = self.socket.recv(min(count, 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def metadata(self, topics=None):
        """(broker ids, {topic: {partition: leader or -1}}); topics with an error are left out."""
        asked = struct.pack(">i", -1) if topics is None else array([string(t) for t in topics])
        answer = self.call(METADATA, 1, asked)
        brokers = answer.list(lambda r: (r.take(">i"), r.string(), r.take(">i"), r.string())[0])
        answer.take(">i")

        def partition(r):
            error, index, leader = r.take(">hii")
            r.list(lambda q: q.take(">i")), r.list(lambda q: q.take(">i"))
            return index, leader if error == 0 else -1

        def topic(r):
            error, name, _internal = r.take(">h"), r.string(), r.take(">b")
            return error, name, dict(r.list(partition))

        return brokers, {name: parts for error, name, parts in answer.list(topic) if error == 0}

    def create_topic(self, name, partitions):
        topic = string(name) + struct.pack(">ihii", partitions, -1, 0, 0)
        body = array([topic]) + struct.pack(">ib", 60000, 0)
        answer = self.call(CREATE_TOPICS, 4, body)
        answer.take(">i")
        for error, text in answer.list(lambda r: (r.string(), r.take(">h"), r.string())[1:]):
            if error != 0:
                raise WireError("create %s: error %d %s" % (name, error, text))

    def delete_topics(self, names):
        body = array([string(n) for n in names]) + struct.pack(">i", 60000)
        answer = self.call(DELETE_TOPICS, 1, body)
        answer.take(">i")
        for name, error in answer.list(lambda r: (r.string(), r.take(">h"))):
            if error != 0:
                raise WireError("delete %s: error %d" % (name, error))

    def end_offsets(self, topics):
        """{topic: partition count} -> list of (error, end offset) over all partitions."""
        ask = [string(name) + array([struct.pack(">iq", p, LATEST) for p in range(count)])
               for name, count in topics.items()]
        answer = self.call(LIST_OFFSETS, 1, struct.pack(">i", -1) + array(ask))

        def partition(r):
            _index, error, _time, offset = r.take(">ihqq")
            return error, offset

        parts = answer.list(lambda r: (r.string(), r.list(partition))[1])
        return [p for topic in parts for p in topic]


def answers(port, timeout_s=1.0):
    """True if a Metadata request is answered and names a broker."""
    try:
        with Wire(port, timeout_s) as wire:
            return len(wire.metadata([])[0]) > 0
    except (OSError, struct.error):
        return False


def create(wire, topics):
    """Creates topics ({name: partitions}) and returns when every partition answers."""
    for name, partitions in topics.items():
        wire.create_topic(name, partitions)
    wait_usable(wire, topics)


def wait_usable(wire, topics, limit_s=300):
    """Until each partition has a leader and answers ListOffsets; the end offsets."""
    until = time.monotonic() + limit_s
    expected = sum(topics.values())
    while time.monotonic() < until:
        _, seen = wire.metadata(list(topics))
        leaders = [leader for parts in seen.values() for leader in parts.values()]
        if len(leaders) == expected and min(leaders) >= 0:
            answer = wire.end_offsets(topics)
            if len(answer) == expected and all(error == 0 for error, _ in answer):
                return [offset for _, offset in answer]
        time.sleep(0.002)
    raise WireError("partitions not usable in %d s" % limit_s)
