#!/usr/bin/env python3
"""docs/operations.md, run as it is written: its sh blocks, in order, in one bash, with Kafka's own
tools; after each section, what it promised is looked at.

Nothing is put between the blocks, and nothing is changed but what is in REPLACED: ports that are
free. The first block has a shell of its own, as the text says. Failure modes: a command that fails
ends the shell, and what it printed is the reason; every process that has the work directory as its
own is ended in the end.
"""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
import kafka_peer  # noqa: E402
from client import Client, batch, wait_for  # noqa: E402
from leash import on_leash  # noqa: E402
from ottla import TOP, free_ports  # noqa: E402

BLOCK_S = 120
OFFSETS = "__consumer_offsets"
TOOLS = {
    "kafka-cluster.sh": "ClusterTool",
    "kafka-configs.sh": "ConfigCommand",
    "kafka-consumer-groups.sh": "consumer.group.ConsumerGroupCommand",
    "kafka-leader-election.sh": "LeaderElectionCommand",
    "kafka-log-dirs.sh": "LogDirsCommand",
    "kafka-metadata-quorum.sh": "MetadataQuorumCommand",
    "kafka-reassign-partitions.sh": "reassign.ReassignPartitionsCommand",
    "kafka-topics.sh": "TopicCommand",
}


BASE = free_ports(7, 1)
VOTERS = free_ports(20, 10)
# What the document names: what is run instead.
REPLACED = {
    **{str(9092 + i): str(BASE + i) for i in range(7)},
    "1920": str(VOTERS // 10),
    "1930": str(VOTERS // 10 + 1),
}


def sections():
    """[(heading, [sh block])] of the document, those that have blocks."""
    with open(os.path.join(TOP, "docs", "operations.md")) as text:
        parts = re.split(r"^## ", text.read(), flags=re.M)[1:]
    found = [(part.split("\n", 1)[0], re.findall(r"^```sh\n(.*?)^```$", part, re.M | re.S))
             for part in parts]
    return [(heading, [replaced(block) for block in blocks]) for heading, blocks in found if blocks]


def replaced(block):
    return re.sub("|".join(REPLACED), lambda match: REPLACED[match.group()], block)


class Shell:
    """A bash that runs one block after the other, in the work directory."""

    def __init__(self, home, env):
        self.path = os.path.join(home, "shell.log")
        self.count = 0
        self.process = subprocess.Popen(
            ["bash"], cwd=home, env=env, text=True, stdin=subprocess.PIPE,
            stdout=open(self.path, "w"), stderr=subprocess.STDOUT, preexec_fn=on_leash())
        self.run("set -eo pipefail\n")

    def output(self):
        with open(self.path, errors="replace") as log:
            return log.read()

    def run(self, block):
        """What the block prints; fails when one of its commands does."""
        self.count += 1
        before, mark = len(self.output()), "-- block %d is done --" % self.count
        self.process.stdin.write(block + "\necho '%s'\n" % mark)
        self.process.stdin.flush()
        end = time.monotonic() + BLOCK_S
        while mark not in self.output()[before:]:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("this failed:\n%s\n--- it said:\n%s" % (
                    block, self.output()[before:]))
            time.sleep(0.05)
        return self.output()[before:]


class Place:
    """The work directory: the tree's scripts, the programs on the PATH, and who was started there."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="ottla-operations-")
        binary = os.environ.get("OTTLA_BIN") or os.path.join(TOP, "build", "ottla")
        programs = os.path.join(self.home, "bin")
        os.makedirs(programs)
        os.symlink(binary, os.path.join(programs, "ottla"))
        os.symlink(os.path.join(TOP, "scripts"), os.path.join(self.home, "scripts"))
        for name, tool in TOOLS.items():
            words = " ".join(map(shlex.quote, kafka_peer.tool_command(
                "org.apache.kafka.tools." + tool)))
            with open(os.path.join(programs, name), "w") as out:
                out.write("#!/bin/sh\nexec %s \"$@\" </dev/null\n" % words)
            os.chmod(os.path.join(programs, name), 0o755)
        self.env = {**os.environ, "PATH": programs + ":" + os.environ["PATH"],
                    "OTTLA_BUILD": os.path.dirname(os.path.abspath(binary)),
                    "OTTLA_PORT": REPLACED["9092"]}

    def processes(self):
        """{pid: command} of all that were started here."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink("/proc/%s/cwd" % pid) == self.home:
                    with open("/proc/%s/cmdline" % pid) as words:
                        found[int(pid)] = words.read().replace("\0", " ")
            except OSError:
                continue
        return found

    def server(self, name):
        """The pid of the broker with these properties; None when it does not run."""
        for pid, command in self.processes().items():
            if command.rstrip().endswith("server %s/%s.properties" % (self.home, name)):
                return pid
        return None

    def close(self, failed):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if not failed:
            shutil.rmtree(self.home, ignore_errors=True)


# ---- What each section promises ------------------------------------------------------------------

def metadata(port, topics=None):
    with Client(port, 20.0) as client:
        return client.call("Metadata", 12, topics=topics, allowAutoTopicCreation=False)


def brokers(place):
    return sorted(one["nodeId"] for one in metadata(BASE, [])["brokers"])


def partitions(topic="orders"):
    found = metadata(BASE, [{"name": topic}])["topics"][0]["partitions"]
    return sorted(found, key=lambda one: one["partitionIndex"])


def are_whole():
    return all(sorted(one["isrNodes"]) == sorted(one["replicaNodes"]) and one["leaderId"] >= 0
               for one in partitions())


def records():
    """How many are there in all partitions."""
    total = 0
    for one in partitions():
        with Client(BASE + 2 * (one["leaderId"] - 1), 20.0) as client:
            answer = client.call("ListOffsets", 7, replicaId=-1, isolationLevel=0, topics=[
                {"name": "orders", "partitions": [{
                    "partitionIndex": one["partitionIndex"], "currentLeaderEpoch": -1,
                    "timestamp": -1}]}])["topics"][0]["partitions"][0]
        assert answer["errorCode"] == 0, answer
        total += answer["offset"]
    return total


def check_started(place, said):
    assert brokers(place) == [1, 2, 3]
    assert [len(one["replicaNodes"]) for one in partitions()] == [3] * 6
    for one in partitions():
        with Client(BASE + 2 * (one["leaderId"] - 1), 20.0) as client:
            assert client.produce("orders", one["partitionIndex"], batch([b"x"] * 10))[0] == 0
    assert records() == 60


def check_seen(place, said):
    for text in ("LeaderId:", "LogEndOffset", "127.0.0.1", "Topic: orders", "logDirs",
                 "No partition reassignments found"):
        assert text in said, (text, said)
    for topic, count in (("orders", 6), (OFFSETS, 50)):
        assert said.count("Topic: %s\tPartition:" % topic) == count, "the missing and offline: none"


def check_set(place, said):
    for text in ("DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=259200000",
                 "DYNAMIC_BROKER_CONFIG:log.retention.bytes=100000000000",
                 "retention.ms=86400000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:",
                 "max.message.bytes=2000000 sensitive=false"):
        assert text in said, (text, said)


def check_grown(place, said):
    assert brokers(place) == [1, 2, 3, 4]
    assert "still in progress" not in said.rsplit("is completed", 1)[-1], said
    for topic in ("orders", OFFSETS):
        assert any(4 in one["replicaNodes"] for one in partitions(topic)), topic
    for one in partitions():
        assert one["leaderId"] == one["replicaNodes"][0], one
    assert are_whole() and records() == 60


def check_taken_away(place, said):
    assert '"partitions":[]' in said, said
    assert place.server("data/4") is None
    wait_for("three brokers", lambda: brokers(place) == [1, 2, 3])
    for topic in ("orders", OFFSETS):
        assert not any(4 in one["replicaNodes"] for one in partitions(topic)), topic
    assert are_whole() and records() == 60


def check_replaced(place, said):
    assert are_whole() and records() == 60
    assert os.path.exists(os.path.join(place.home, "data/3/meta.properties"))


def check_restarted(place, said):
    with open(os.path.join(place.home, "data", "1", "ottla.log")) as log:
        assert "Terminated" in log.read(), "it was told to stop"
    assert all(place.server("data/%d" % node) for node in (1, 2, 3))
    assert are_whole() and records() == 60
    assert said.count("Follower") + said.count("Leader") >= 3, said


def check_voters(place, said):
    with Client(VOTERS + 1, 20.0) as client:
        answer = client.call("DescribeQuorum", 2, topics=[
            {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}])
    voters = answer["topics"][0]["partitions"][0]["currentVoters"]
    assert sorted(one["replicaId"] for one in voters) == [1, 2, 4], answer
    ports = {one["nodeId"]: one["listeners"][0]["port"] for one in answer["nodes"]}
    assert ports == {1: VOTERS + 15, 2: VOTERS + 16, 4: VOTERS + 18}, answer
    assert said.count("Added") + said.count("Removed") >= 6, said


CHECKS = {
    "Start": check_started,
    "See its state": check_seen,
    "Change settings": check_set,
    "Grow": check_grown,
    "Take a broker away": check_taken_away,
    "Replace a dead broker": check_replaced,
    "Rolling restart and upgrade": check_restarted,
    "Change who votes on the metadata": check_voters,
}


def test_the_document_is_run():
    found = sections()
    assert [heading for heading, _ in found] == list(CHECKS), "a check for each section"
    place, failed = Place(), True
    try:
        first = Shell(place.home, place.env)
        first.process.stdin.write(found[0][1].pop(0))
        first.process.stdin.flush()
        wait_for("the brokers' own shell says that they run",
                 lambda: "brokers make cluster" in first.output() or
                 first.process.poll() is not None, 60)
        shell = Shell(place.home, place.env)
        for heading, blocks in found:
            began = time.monotonic()
            said = "".join([shell.run(block) for block in blocks])
            CHECKS[heading](place, said)
            print("%-36s %5.1f s" % (heading, time.monotonic() - began))
        failed = False
    finally:
        place.close(failed)
        if failed:
            print("kept: " + place.home)


if __name__ == "__main__":
    cases.main("cluster", globals())
