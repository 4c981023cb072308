"""A small account of what a broker acknowledged, for tests in which the disk is in trouble.

Happy path: put() produces one named value and remembers it when it was acknowledged; check() reads
everything back and finds each remembered value at its offset. Values whose fate is unknown (an
error or a lost connection) may be there or not.
"""
from client import LOST, Client, Tail, batch, read_batches, wait_for


class Account:
    def __init__(self, port, topic="kept", partitions=3):
        self.port, self.topic, self.partitions = port, topic, partitions
        self.kept = {}  # (partition, offset) -> value
        self.number, self.tails = 0, {}
        with Client(port) as client:
            client.create_topic(topic, partitions)

    def put(self, client, size=100):
        """The error code of one produce."""
        self.number += 1
        partition = self.number % self.partitions
        name = b"value %d " % self.number
        value = name + b"x" * size
        if size not in self.tails:  # their checksum is worked out once
            self.tails[size] = Tail(b"x" * size + b"\0")
        error, offset = client.produce(self.topic, partition, batch([name], tail=self.tails[size]))
        if error == 0:
            assert (partition, offset) not in self.kept, "offset %d given twice" % offset
            self.kept[partition, offset] = value
        return error

    def put_many(self, count, size=100):
        with Client(self.port) as client:
            for _ in range(count):
                error = self.put(client, size)
                assert error == 0, "produce: error %d" % error

    def put_until_error(self, limit=100000, size=100):
        """Produces until one is refused; its error code, or None when the connection ended."""
        try:
            with Client(self.port) as client:
                for _ in range(limit):
                    error = self.put(client, size)
                    if error != 0:
                        return error
        except LOST:
            return None
        raise AssertionError("%d batches were accepted" % limit)

    def accepts(self):
        with Client(self.port, 5) as client:
            return self.put(client) == 0

    def wait_until_it_accepts(self, timeout_s=30):
        wait_for("the broker to accept records again", self.accepts, timeout_s, 0.2)

    def readable(self, partition, client):
        return client.fetch(self.topic, partition, 0).error == 0

    def check(self):
        with Client(self.port) as client:
            for partition in range(self.partitions):
                wait_for("partition %d to be readable" % partition,
                         lambda p=partition: self.readable(p, client))
                found, at = {}, 0
                while True:
                    fetched = client.fetch(self.topic, partition, at)
                    assert fetched.error == 0, "fetch: error %d" % fetched.error
                    if not fetched.records:
                        break
                    for one in read_batches(fetched.records):
                        for i, value in enumerate(one.values):
                            found[one.base_offset + i] = value
                        at = one.base_offset + one.count
                for (where, offset), value in self.kept.items():
                    if where == partition:
                        assert found.get(offset) == value, "%s-%d offset %d: %r, acknowledged %r" % (
                            self.topic, partition, offset, found.get(offset), value[:30])


def log_says(broker, *words):
    """Waits for a line of the log that has all the words; returns it."""
    def find():
        with open(broker.log_path, errors="replace") as log:
            return next((line for line in log if all(word in line for word in words)), None)
    return wait_for("a line in the log with %s" % (words,), find)
