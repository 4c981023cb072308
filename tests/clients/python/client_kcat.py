"""kcat through the client scenarios; see scenario.py. Topics come into being by auto-creation."""
import re
import subprocess
import sys
import tempfile
import time

from scenario import BIG, main, matrix_values, until

BOOTSTRAP = sys.argv[1]
BIG_SETTINGS = ["-X", "message.max.bytes=20000000", "-X", "fetch.message.max.bytes=20000000"]


def kcat(*args, data=None):
    done = subprocess.run(["kcat", "-b", BOOTSTRAP, *args], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=40)
    assert done.returncode == 0, "kcat %s: %s" % (" ".join(args), done.stderr.decode()[-300:])
    return done.stdout


def produce(topic, lines, *args):
    kcat("-P", "-t", topic, *args, data=b"".join(line + b"\n" for line in lines))


def consume(topic, *args, form="%s"):
    """What `form` prints for each record up to the end of the topic."""
    out = kcat("-C", "-q", "-e", "-t", topic, "-o", "beginning", "-f", form + "\\n", *args)
    return out.split(b"\n")[:-1]


def scenario_produce_consume(tag):
    produce(tag, [b"k%d:v%d" % (i % 7, i) for i in range(300)], "-K", ":")
    got = [line.split() for line in consume(tag, form="%p %o %k %s")]
    assert len(got) == 300, len(got)
    for partition in sorted({line[0] for line in got}):
        mine = [line for line in got if line[0] == partition]
        assert [int(line[1]) for line in mine] == list(range(len(mine)))
        for key in {line[2] for line in mine}:
            numbers = [int(line[3][1:]) for line in mine if line[2] == key]
            assert numbers == sorted(numbers), "order of key %s" % key


def scenario_compression(tag, codec):
    values = matrix_values(codec, 200)
    produce(tag, values, "-z", codec, "-p", "0")
    assert consume(tag) == values


def scenario_sizes(tag):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, value in (("tiny", b"x"), ("big", b"y" * BIG)):
            paths.append(folder + "/" + name)
            with open(paths[-1], "wb") as out:
                out.write(value)
        kcat("-P", "-t", tag, "-p", "0", *BIG_SETTINGS, *paths)
    assert consume(tag, *BIG_SETTINGS) == [b"x", b"y" * BIG]


def scenario_headers(tag):
    produce(tag, [b"v"], "-p", "0", "-H", "a=1", "-H", "a=2", "-H", "empty=", "-H", "null")
    produce(tag, [b"w"], "-p", "0")
    got = consume(tag, form="%h|%s")
    assert got == [b"a=1,a=2,empty=,null=NULL|v", b"|w"], got


def scenario_nulls(tag):
    produce(tag, [b":v", b"k:", b":"], "-p", "0", "-Z", "-K", ":")
    got = consume(tag, form="%K %S")
    assert got == [b"-1 1", b"1 -1", b"-1 -1"], got


def offset_at(topic, when):
    out = kcat("-Q", "-t", "%s:0:%d" % (topic, when)).decode()
    return int(re.search(r"offset (-?\d+)", out).group(1))


def scenario_offsets_by_time(tag):
    """kcat cannot set a record's time, so only what lies before and after all records."""
    produce(tag, [b"v"] * 10, "-p", "0")
    now = int(time.time() * 1000)
    assert offset_at(tag, now - 3600000) == 0
    assert offset_at(tag, now + 3600000) == -1
    assert offset_at(tag, -2) == 0 and offset_at(tag, -1) == 10


class Member:
    """A kcat in a group; prints a value a line, its rebalances go to a file."""

    def __init__(self, group, topic, *args):
        self.output, self.errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["kcat", "-b", BOOTSTRAP, "-G", group, "-X", "auto.offset.reset=earliest", "-X",
             "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=300", "-f", "%s\\n", "-u",
             *args, topic], stdout=self.output, stderr=self.errors)

    def lines(self, stream):
        stream.seek(0)
        return stream.read().split(b"\n")[:-1]

    def owned(self):
        changes = [line for line in self.lines(self.errors) if b"assigned:" in line
                   or b"revoked:" in line]
        if not changes or b"revoked:" in changes[-1]:
            return 0
        return len(re.findall(rb"\[\d+\]", changes[-1]))

    def values(self):
        return self.lines(self.output)

    def leave(self):
        self.process.terminate()
        assert self.process.wait(20) == 0


def scenario_rebalance(tag):
    """A second member takes half of the partitions; every record is consumed once; it leaves."""
    produce(tag, [b"first"], "-p", "0")
    first = Member(tag, tag)
    until(lambda: first.owned() == 4 and first.values(), "the first owns all")
    second = Member(tag, tag)
    until(lambda: first.owned() == 2 and second.owned() == 2, "each owns half")
    for partition in range(4):
        produce(tag, [b"%d-%d" % (partition, i) for i in range(10)], "-p", str(partition))
    until(lambda: len(first.values() + second.values()) >= 41, "40 records")
    second.leave()
    until(lambda: first.owned() == 4, "the first owns all again")
    first.leave()
    got = first.values() + second.values()
    assert len(got) == 41 and len(set(got)) == 41, got


def scenario_committed_write(tag):
    produce(tag, [b"v%d" % i for i in range(20)], "-p", "0")
    member = Member(tag, tag, "-c", "7")
    assert member.process.wait(30) == 0
    assert member.values() == [b"v%d" % i for i in range(7)], member.values()


def scenario_committed_read(tag):
    member = Member(tag, tag, "-c", "13")
    assert member.process.wait(30) == 0
    assert member.values() == [b"v%d" % i for i in range(7, 20)], member.values()


def scenario_write(tag, codec):
    produce(tag, matrix_values(codec, 50), "-z", codec, "-p", "0")


def scenario_read(tag, *topics):
    for topic in topics:
        codec = topic.rsplit("-", 1)[1]
        assert consume(topic, "-p", "0") == matrix_values(codec, 50), topic


if __name__ == "__main__":
    sys.exit(main(globals()))
