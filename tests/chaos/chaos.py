"""A cluster under load, to which faults are done (faults.py), and the account of it (history.py).

Happy path: `with Chaos(seed, network) as chaos:` starts three brokers, a fourth comes and goes
(membership.py), with what makes their disks and clocks fail preloaded, and the load: idempotent producers and a consumer group of stock clients
(worker.py), clients of registers (register.py), and for each node a reader that follows what this
node says. `run_faults(chaos, ..)`;
then `chaos.finish()` mends everything, waits until all replicas are in sync, everything is
acknowledged and read, stops the brokers and checks the history.

Failure modes: AssertionError with what did not heal in time, or with the contradictions found;
BrokerError when a broker ends by itself. Then data directories and histories are kept.
"""
import errno
import os
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

import membership
import register
import toolchains
from client import LOST, RETRIABLE, Client, read_batches, wait_for
from cluster import Cluster, log_bytes
from faulty import CLOCK_SHIM, Faulty, shim
from faults import SMALL
from history import History, name_of
from leash import on_leash
from register import RegisterClient

HERE = os.path.dirname(os.path.abspath(__file__))
TOPIC, PARTITIONS, GROUP = "chaos", 6, "readers"
PRODUCERS, CONSUMERS, RATE = 3, 2, 250
HEAL_S = 45
SMALL_BYTES = 320 << 20  # of the disk that is filled
OUT_OF_RANGE = 1
HOLD_S = (1.0, 5.0)
SETTINGS = {
    "ottla.shards": 2, "checkpoint.interval.ms": 2000, "offsets.topic.num.partitions": 8,
    "min.insync.replicas": 2, "default.replication.factor": 3, "broker.session.timeout.ms": 4000,
    "group.initial.rebalance.delay.ms": 0, "log.segment.bytes": 1048576,
    "journal.file.bytes": 4194304, "journal.size.bytes": 67108864,
    "log.message.timestamp.after.max.ms": 1 << 62,  # clocks are put back
}
NODES = [*membership.VOTERS, membership.EXTRA]
PARTS = [(TOPIC, partition) for partition in range(PARTITIONS)]


class Node(Faulty):
    """A broker whose disk and clock can be made to fail."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.disk = None
        self.clock = os.path.join(self.own_dir, "clock")
        self.set_clock(0)
        self.env.update(LD_PRELOAD="%s:%s" % (shim(), shim(CLOCK_SHIM)), CLOCK_OFFSET=self.clock)

    def use_small_disk(self):
        """Its data lies on a file system of its own, which can be filled (fill, empty)."""
        self.disk = os.path.join(self.own_dir, "disk")
        os.mkdir(self.disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % SMALL_BYTES, "none", self.disk],
                       check=True)
        self.data_dir = self.env["DISK_FAULT_UNDER"] = os.path.join(self.disk, "data")

    def fill(self):
        try:
            with open(os.path.join(self.disk, "filler"), "wb", buffering=0) as file:
                while file.write(bytes(1 << 16)) > 0:
                    pass
        except OSError as error:
            assert error.errno == errno.ENOSPC, error

    def empty(self):
        if self.disk and os.path.exists(os.path.join(self.disk, "filler")):
            os.unlink(os.path.join(self.disk, "filler"))

    def close(self):
        """The file system ends with the test; what is on it is kept like other data."""
        if self.disk and self.failed and os.path.exists(self.data_dir):
            shutil.copytree(self.data_dir, os.path.join(self.own_dir, "data"))
        super().close()
        if self.disk:
            subprocess.run(["umount", "--lazy", self.disk], check=False)
            subprocess.run(["rm", "-rf"] + ([] if self.failed else [self.own_dir]), check=False)

    def set_clock(self, offset_ms):
        with open(self.clock, "r+b" if os.path.exists(self.clock) else "w+b") as file:
            file.write(struct.pack("=q", offset_ms))


class Reader(threading.Thread):
    """Follows all partitions at one node, leader or not; what it read is for the history."""

    def __init__(self, chaos, node):
        super().__init__(daemon=True)
        self.chaos, self.node, self.error = chaos, node, None
        self.next = [0] * PARTITIONS
        self.reads = []

    def run(self):
        broker = self.chaos.cluster[self.node]
        while not self.chaos.stopping:
            try:
                with Client(broker.port, 3.0, broker.host) as client:
                    while not self.chaos.stopping:
                        self.read_on(client)
            except LOST:
                time.sleep(0.05)
            except BaseException as error:  # reported by check_alive
                self.error = error
                raise

    def read_on(self, client):
        parts = [{"partition": p, "currentLeaderEpoch": -1, "fetchOffset": self.next[p],
                  "partitionMaxBytes": 1 << 20} for p in range(PARTITIONS)]
        answer = client.call("Fetch", 11, replicaId=-1, maxWaitMs=100, minBytes=1,
                             maxBytes=1 << 23, sessionId=0, sessionEpoch=-1, rackId="",
                             topics=[{"topic": TOPIC, "partitions": parts}])
        wait = True
        for topic in answer["responses"]:
            for part in topic["partitions"]:
                if part["errorCode"] == OUT_OF_RANGE:
                    self.check_end(client, part["partitionIndex"])
                else:
                    wait &= not self.take(part)
        if wait:
            time.sleep(0.05)

    def check_end(self, client, number):
        """A replica may lag behind what was read from it before it lost its disk; a leader not."""
        error, _, end = client.list_offset(TOPIC, number)
        assert error != 0 or end >= self.next[number], \
            "node %d leads %s-%d up to %d, and %d was read there" % (
                self.node, TOPIC, number, end, self.next[number])

    def take(self, part):
        """True if there was something."""
        number, error = part["partitionIndex"], part["errorCode"]
        assert error == 0 or error in RETRIABLE, "node %d: %s-%d: fetch error %d at %d" % (
            self.node, TOPIC, number, error, self.next[number])
        before = self.next[number]
        for batch in read_batches(part["records"] or b""):
            for i, value in enumerate(batch.values):
                offset = batch.base_offset + i
                if offset < self.next[number]:
                    continue
                assert offset == self.next[number], "node %d: %s-%d: offset %d comes after %d" % (
                    self.node, TOPIC, number, offset, self.next[number] - 1)
                self.reads.append((number, offset, value_name(value)))
                self.next[number] += 1
        return self.next[number] > before


def value_name(value):
    return value.split(b";", 1)[0].decode()


class Worker:
    """A stock client in a process of its own."""

    def __init__(self, chaos, kind, name, *words):
        self.kind, self.name = kind, name
        self.path = os.path.join(chaos.folder, name + ".history")
        self.log_path = os.path.join(chaos.folder, name + ".log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [toolchains.python(), os.path.join(HERE, "worker.py"), kind,
                 chaos.bootstrap(), TOPIC, str(PARTITIONS), name, *map(str, words),
                 self.path], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=on_leash())

    def check(self):
        assert self.process.poll() is None, "%s ended: %s" % (self.name, self.tail())

    def tail(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()[-500:]

    def ask_to_stop(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout_s):
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError("%s does not come to an end: %s" % (self.name, self.tail()))
        assert status == 0, "%s: status %d: %s" % (self.name, status, self.tail())

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def could_not_start(log):
    """Whether the process ended while it started, with a reason: a disk that fails or is full just
    then is said, and left to who supervises the broker."""
    last = log.rpartition(" starts\n")[2]
    return " ERROR " in last and "ready after" not in last


class Chaos:
    """voters_change: who votes on metadata is told by the metadata, and not by the configuration."""

    def __init__(self, seed, network=None, settings=None, voters_change=False):
        self.chance, self.network = random.Random(seed), network
        self.folder = tempfile.mkdtemp(prefix="ottla-chaos-")
        self.begun, self.stopping = time.monotonic(), False
        self.register_logs = {}
        self.patience = 1.0  # with which faults are held
        self.calm = False  # no more is done to the registers
        self.workers, self.readers, self.registers, self.churned = [], [], [], {}
        place = {node: (network.address(node), network.prefix(node))
                 for node in NODES} if network else None
        self.cluster = Cluster(len(NODES), overrides={**SETTINGS, **(settings or {})}, place=place,
                               kind=Node, voters=len(membership.VOTERS))
        self.members = list(membership.VOTERS)  # those who belong to it now
        self.busy = set()                       # those to whom something is done
        self.voters_change = voters_change
        if network:
            self.cluster[SMALL].use_small_disk()
        if voters_change:
            membership.prepare(self.cluster)

    def __enter__(self):
        try:
            self.start_members()
            self.cluster.create_topic(TOPIC, PARTITIONS, 3)
            self.cluster.create_topic(register.TOPIC, register.COUNT, 3)
            self.start_load()
        except BaseException:
            self.close(failed=True)
            raise
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.say("failed; what there is of it is kept: %s and %s" % (
                self.folder, " ".join(broker.own_dir for broker in self.cluster.nodes.values())))
        self.close(failed=kind is not None)
        return False

    def close(self, failed):
        self.stopping = self.calm = True
        for worker in self.workers:
            worker.kill()
        self.cluster.close(failed)
        if not failed:
            subprocess.run(["rm", "-rf", self.folder], check=False)

    def say(self, text):
        print("%7.2f %s %s" % (time.monotonic() - self.begun,
                               time.strftime("%H:%M:%S", time.gmtime()), text), flush=True)

    def hold(self):
        return self.chance.uniform(*HOLD_S) * self.patience

    def start_members(self):
        for node in self.members:
            self.cluster.start(node, wait=False)
        for node in self.members:
            self.cluster[node].wait_ready()
        self.cluster.wait_brokers(len(self.members))
        if self.voters_change:
            membership.make_voters(self)

    def format(self, node):
        """A new directory, where nodes cannot do without (docs/operations.md)."""
        if self.voters_change:
            membership.format_node(self.cluster[node], self.cluster.cluster_id, "-N")

    def bootstrap(self):
        return ",".join(self.cluster[node].bootstrap for node in membership.VOTERS)

    # ---- the load
    def start_load(self):
        for number in range(PRODUCERS):
            self.workers.append(Worker(self, "producer", "p%d" % number, RATE))
        for number in range(CONSUMERS):
            self.workers.append(Worker(self, "consumer", "c%d" % number, GROUP))
        self.readers = [Reader(self, node) for node in self.cluster]
        self.registers = [RegisterClient(self, number, self.chance.random())
                          for number in range(register.CLIENTS)]
        for thread in self.readers + self.registers:
            thread.start()
        wait_for("the load", lambda: self.check_alive() or
                 sum(self.readers[0].next) > 0, HEAL_S)

    def check_alive(self):
        """Nobody ended who was not told to."""
        for worker in self.workers:
            worker.check()
        for thread in self.readers + self.registers:
            if thread.error is not None:
                raise AssertionError(repr(thread.error)) from thread.error
        for node, broker in self.cluster.nodes.items():
            if broker.process is None or broker.process.poll() is None:
                continue
            if broker.process.returncode != 1 or not could_not_start(broker.log_tail(60)):
                broker.fail("ended by itself with status %s" % broker.process.returncode)
            self.say("node %d could not start; as a supervisor does, it is started again" % node)
            broker.process = None
            self.cluster.start(node, wait=False)

    def churn(self):
        """A topic comes or goes; what became of it is known later."""
        name = "churn%d" % self.chance.randrange(4)
        broker = self.cluster[self.chance.choice(self.members)]
        try:
            with Client(broker.port, 4.0, broker.host) as client:
                if self.chance.random() < 0.6:
                    client.call("CreateTopics", 7, timeoutMs=3000, topics=[
                        {"name": name, "numPartitions": 3, "replicationFactor": 3}])
                else:
                    client.call("DeleteTopics", 6, timeoutMs=3000,
                                topics=[{"name": name, "topicId": bytes(16)}])
        except LOST:
            pass

    # ---- the end
    def mend(self):
        if self.network:
            self.network.heal()
        for node in self.cluster:
            self.cluster[node].heal()
            self.cluster[node].empty()
            self.cluster[node].set_clock(0)
            self.cluster.resume(node)
            if node in self.members and self.cluster[node].process is None:
                self.cluster.start(node, wait=False)

    def out_of_sync(self, ends):
        """What is not as it should be, as the nodes tell; "" when all is well. `ends` keeps how far
        each partition went when its leader was asked first: under load it goes on meanwhile, and a
        follower hears of a commit a moment after its leader."""
        for node in self.members:
            brokers = self.cluster.brokers(node)
            if brokers != sorted(self.members):
                return "node %d tells of brokers %s" % (node, brokers)
            moves = membership.ongoing(self, node)
            if moves:
                return "node %d tells of moves: %s" % (node, moves)
        wanted, held, ids = {}, {}, {}
        for topic in self.cluster.metadata(1)["topics"]:
            ids[topic["name"]] = topic["topicId"]
            for part in topic["partitions"]:
                if part["errorCode"] or part["leaderId"] < 0 or len(part["isrNodes"]) != 3:
                    return "node 1 tells of %s: %s; all tell of leaders %s" % (
                        topic["name"], part, {node: self.cluster.partition(
                            node, topic["name"], part["partitionIndex"])["leaderId"]
                            for node in self.members})
                name = (topic["name"], part["partitionIndex"])
                wanted.setdefault(part["leaderId"], []).append(name)
                for node in part["replicaNodes"]:
                    held.setdefault(node, []).append(name)
        for leader, parts in wanted.items():
            for part, high in self.high_watermarks(leader, parts).items():
                ends.setdefault((ids[part[0]], part), high)
        for node, parts in held.items():
            for part, high in self.high_watermarks(node, parts).items():
                end = ends.get((ids[part[0]], part), high)
                if high < end:
                    return "node %d has %s up to %d of %d" % (node, name_of(part), high, end)
        return ""

    def high_watermarks(self, node, parts):
        """{part: up to where the node has it}"""
        with self.cluster.connect(node, 5.0) as client:
            answer = client.call("Fetch", 11, replicaId=-1, maxWaitMs=0, minBytes=0, maxBytes=1,
                                 sessionId=0, sessionEpoch=-1, rackId="", topics=[
                {"topic": topic, "partitions": [
                    {"partition": partition, "currentLeaderEpoch": -1, "fetchOffset": 0,
                     "partitionMaxBytes": 1}]} for topic, partition in parts])
        return {(topic["topic"], part["partitionIndex"]): part["highWatermark"]
                for topic in answer["responses"] for part in topic["partitions"]}

    def wait_in_sync(self):
        seen, ends = [""], {}

        def is_in_sync():
            seen[0] = "a node does not answer"
            seen[0] = self.out_of_sync(ends)
            return not seen[0]

        try:
            wait_for("all replicas in sync", is_in_sync, HEAL_S)
        except AssertionError as error:
            raise AssertionError("%s: %s" % (error, seen[0]))

    def stop_producers(self):
        producers = [worker for worker in self.workers if worker.kind == "producer"]
        for worker in producers:
            worker.ask_to_stop()
        for worker in producers:
            worker.wait(HEAL_S + 30)
            self.workers.remove(worker)
        return producers

    def ends(self):
        """The log end of each partition, as its leader tells."""
        found = []
        for part in PARTS:
            leader = self.cluster.leader(*part)
            assert leader >= 0, "no leader of %s-%d" % part
            with self.cluster.connect(leader, 5.0) as client:
                error, _, offset = client.list_offset(*part)
            assert error == 0, "ListOffsets of %s-%d at node %d: %d" % (*part, leader, error)
            found.append(offset)
        return found

    def group_offsets(self):
        with self.cluster.connect(None, 5.0) as client:
            node = client.call("FindCoordinator", 1, key=GROUP, keyType=0)["nodeId"]
        if node not in self.cluster.nodes:
            return None
        with self.cluster.connect(node, 5.0) as client:
            return [client.committed(GROUP, [part])[part] for part in PARTS]

    def finish(self):
        """Mends, waits until all is well, stops and checks; returns a line of what there was."""
        self.mend()
        self.say("mended")
        begun = time.monotonic()
        self.wait_in_sync()
        self.say("in sync after %.1f s" % (time.monotonic() - begun))
        self.check_alive()
        self.calm = True
        for client in self.registers:
            client.join()
        self.check_alive()
        done = self.stop_producers()
        ends = self.ends()
        self.say("all is acknowledged: %s" % ends)
        assert self.members == list(membership.VOTERS), self.members
        for reader in self.readers[:len(self.members)]:
            wait_for("everything at node %d, which has %s of %s" % (reader.node, reader.next, ends),
                     lambda r=reader: r.next == ends or r.error is not None, HEAL_S)
        history = History()
        asked = time.monotonic_ns()
        offsets = wait_for("a group that has read all, %s" % ends, lambda: self.all_committed(ends),
                           HEAL_S)
        self.check_alive()
        for worker in self.workers:
            worker.ask_to_stop()
        for worker in self.workers:
            worker.wait(HEAL_S)
        done += self.workers
        self.workers, self.stopping = [], True
        for reader in self.readers:
            reader.join()
        for node in self.cluster:
            self.cluster.stop(node)
        for part, (offset, _) in zip(PARTS, offsets):
            history.found[GROUP, part].append((asked, offset))
        return self.judge(history, done)

    def all_committed(self, ends):
        found = self.group_offsets()
        return found if found and [offset for offset, _ in found] == ends else None

    def judge(self, history, done):
        for worker in done:
            group = GROUP if worker.kind == "consumer" else None
            history.take_worker(worker.path, worker.name, TOPIC, group)
        for reader in self.readers:
            history.reads += [("node %d" % reader.node, (TOPIC, number), offset, value)
                              for number, offset, value in reader.reads]
        for part in PARTS:
            for node in self.members:
                history.replicas[part][node] = log_bytes(self.cluster[node].data_dir, *part)
            history.logs[part] = log_values(history.replicas[part][1])
            history.batches[part] = log_batches(history.replicas[part][1])
        for key in range(register.COUNT):
            part = (register.TOPIC, key)
            for node in self.members:
                history.replicas[part][node] = log_bytes(self.cluster[node].data_dir, *part)
            self.register_logs[key] = log_values(history.replicas[part][1])
        wrong = history.check()
        for line in wrong:
            print(line)
        assert not wrong, "%d contradictions, such as: %s" % (len(wrong), wrong[0])
        return "%d values acknowledged, %d read, %d commits; %s" % (
            sum(map(len, history.acks.values())), len(history.reads),
            sum(map(len, history.commits.values())), register.summary(self.operations()))

    def operations(self):
        """What was done to the registers."""
        return [one for client in self.registers for one in client.operations]


def log_batches(data):
    """{offset: what is to be known of its batch when it should not be there}"""
    return {batch.base_offset + i: "producer %d of epoch %d, sequence %d of %d, taken in epoch %d" % (
        *batch.producer, batch.sequence, batch.count, batch.epoch)
        for batch in read_batches(data) for i in range(batch.count)}


def log_values(data):
    values = []
    for batch in read_batches(data):
        assert batch.base_offset == len(values), "a batch at %d follows offset %d" % (
            batch.base_offset, len(values) - 1)
        values += [value_name(value) for value in batch.values]
    return values
