#!/usr/bin/env python3
"""Leaders and replicas are moved by operators: elections of preferred leaders, reassignments of
partitions with their data, under load and through failures, by requests and by Kafka's own tools.
"""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import LOST, NONE, batch, read_batches, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402
from faulty import Faulty  # noqa: E402

TIMED_OUT = 7
UNKNOWN_TOPIC, INVALID_ASSIGNMENT, INVALID_FACTOR = 3, 39, 38
PREFERRED_AWAY, NO_ELIGIBLE, NOT_NEEDED, NO_REASSIGNMENT = 80, 83, 84, 85
PREFERRED, UNCLEAN = 0, 1


def reassign(cluster, topic, plan, node=None, **more):
    """plan: {partition: replicas or None}; returns {partition: error code}."""
    wanted = [{"partitionIndex": partition, "replicas": replicas}
              for partition, replicas in plan.items()]
    answer = {"errorCode": TIMED_OUT}
    while answer["errorCode"] == TIMED_OUT:  # the metadata's leader was just lost: asked again
        with cluster.connect(node, 20.0) as client:
            answer = client.call("AlterPartitionReassignments", 1, timeoutMs=20000,
                                 topics=[{"name": topic, "partitions": wanted}],
                                 allowReplicationFactorChange=more.get("resize", True))
    assert answer["errorCode"] == NONE, answer
    return {one["partitionIndex"]: one["errorCode"]
            for one in answer["responses"][0]["partitions"]}


def ongoing(cluster, node=None, topics=None):
    """{(topic, partition): (replicas, adding, removing)}"""
    with cluster.connect(node) as client:
        answer = client.call("ListPartitionReassignments", 0, timeoutMs=10000, topics=topics)
    assert answer["errorCode"] == NONE, answer
    return {(topic["name"], one["partitionIndex"]):
            (one["replicas"], one["addingReplicas"], one["removingReplicas"])
            for topic in answer["topics"] for one in topic["partitions"]}


def elect(cluster, kind, topics, node=None):
    """{(topic, partition): error code}"""
    with cluster.connect(node, 20.0) as client:
        answer = client.call("ElectLeaders", 2, electionType=kind, timeoutMs=20000,
                             topicPartitions=topics)
    assert answer["errorCode"] == NONE, answer
    return {(topic["topic"], one["partitionId"]): one["errorCode"]
            for topic in answer["replicaElectionResults"] for one in topic["partitionResult"]}


def replicas(cluster, node, topic, partition=0):
    return cluster.partition(node, topic, partition)["replicaNodes"]


def wait_moved(cluster, timeout_s=60, nodes=None):
    wait_for("the end of all moves", lambda: not any(
        ongoing(cluster, node) for node in nodes or cluster.running()), timeout_s)


def has_data(cluster, node, topic, partition=0):
    return os.path.exists(os.path.join(cluster[node].data_dir, "%s-%d" % (topic, partition)))


def values(cluster, topic, partition=0, at_most=1 << 30):
    """All records of the partition, read from its leader."""
    found = []
    while len(found) < at_most:
        node = cluster.wait_leader(topic, partition)
        with cluster.connect(node) as client:
            got = client.fetch(topic, partition, len(found))
        assert got.error == NONE, got.error
        if not got.records:
            assert got.high_watermark == len(found), (got.high_watermark, len(found))
            return found
        for one in read_batches(got.records):
            assert one.base_offset <= len(found), "a gap below %d" % one.base_offset
            found += one.values[len(found) - one.base_offset:]
    return found


def test_a_partition_moves_with_its_data():
    with Cluster(4, voters=3) as cluster:
        cluster.create_topic("t", 1, 3)
        before = replicas(cluster, 1, "t")
        for i in range(50):
            cluster.produce("t", 0, batch([b"%d" % i]))
        new = ({1, 2, 3, 4} - set(before)).pop()
        target = [new] + before[:2]
        assert reassign(cluster, "t", {0: target}) == {0: NONE}
        wait_moved(cluster)
        for node in cluster:
            assert replicas(cluster, node, "t") == target
        wait_for("no data on the node that is left", lambda: not has_data(cluster, before[2], "t"))
        wait_for("data on the new node", lambda: has_data(cluster, new, "t"))
        assert elect(cluster, PREFERRED, None) == {("t", 0): NONE}
        assert cluster.wait_leader("t") == new
        assert cluster.produce("t", 0, batch([b"x"])) == 50
        cluster.kill(before[0])
        cluster.wait_leader("t", other_than=before[0])
        assert cluster.produce("t", 0, batch([b"x"])) == 51


def test_a_large_partition_moves_by_its_log():
    """More than the leader keeps in memory for others, and more than one segment."""
    with Cluster(4, voters=3) as cluster:
        cluster.create_topic("t", 1, 1, segment_bytes=1 << 20)
        old = replicas(cluster, 1, "t")[0]
        data = batch([bytes(100000)] * 2)
        with cluster.connect(old) as client:
            for i in range(40):
                assert client.produce("t", 0, data) == (NONE, 2 * i)
        new = 1 + old % 4
        assert reassign(cluster, "t", {0: [new]}) == {0: NONE}
        wait_moved(cluster)
        assert replicas(cluster, new, "t") == [new]
        assert cluster.wait_leader("t") == new
        assert values(cluster, "t") == [bytes(100000)] * 80
        wait_for("no data on the old node", lambda: not has_data(cluster, old, "t"))
        assert reassign(cluster, "t", {0: [old, new]}) == {0: NONE}
        wait_moved(cluster)
        assert reassign(cluster, "t", {0: [old]}) == {0: NONE}
        wait_moved(cluster)
        cluster.restart(old)
        assert cluster.wait_leader("t") == old
        assert values(cluster, "t") == [bytes(100000)] * 80


class Load:
    """Produces numbered records to a partition, and reads them, until it is stopped."""

    def __init__(self, cluster, topic, partition):
        self.cluster, self.topic, self.partition = cluster, topic, partition
        self.acked, self.read, self.error = [], [], None
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(work,))
                        for work in (self.produce, self.consume)]
        for thread in self.threads:
            thread.start()

    def run(self, work):
        try:
            work()
        except BaseException as error:
            self.error = error

    def with_leader(self, work):
        """Calls work(client of the leader) again and again until it returns False."""
        while not self.stopping.is_set():
            try:
                node = self.cluster.leader(self.topic, self.partition)
                if node not in self.cluster.running():
                    continue
                with self.cluster.connect(node, 5.0) as client:
                    while not self.stopping.is_set() and work(client):
                        pass
            except LOST:
                continue

    def produce(self):
        number = [0]

        def one(client):
            value = b"%d" % number[0]
            number[0] += 1
            if client.produce(self.topic, self.partition, batch([value]))[0] != NONE:
                return False
            self.acked.append(value)
            return True

        self.with_leader(one)

    def consume(self):
        def one(client):
            got = client.fetch(self.topic, self.partition, len(self.read), max_wait_ms=100)
            for found in read_batches(got.records):
                assert found.base_offset <= len(self.read), "a gap below %d" % found.base_offset
                self.read += found.values[len(self.read) - found.base_offset:]
            return got.error == NONE

        self.with_leader(one)

    def stop(self):
        """Everything that was acknowledged is there, once and in order."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        assert self.error is None, self.error
        found = values(self.cluster, self.topic, self.partition)
        assert self.read == found[:len(self.read)], "what was read is not what is there"
        acked = set(self.acked)
        assert [value for value in found if value in acked] == self.acked, "lost or out of order"
        return len(self.acked)


def test_moves_under_load():
    with Cluster(5, voters=3, overrides={"ottla.shards": 2}) as cluster:
        cluster.create_topic("t", 2, 3, segment_bytes=1 << 20)
        loads = [Load(cluster, "t", partition) for partition in range(2)]
        for target in ([3, 4, 5], [1, 2], [5, 4, 3, 2, 1], [2], [4, 5, 1]):
            plan = {0: target, 1: target[::-1]}
            assert set(reassign(cluster, "t", plan).values()) == {NONE}
            wait_moved(cluster)
            assert replicas(cluster, 1, "t", 1) == target[::-1]
            for load in loads:
                count = len(load.acked)
                wait_for("more records", lambda: load.error or len(load.acked) > count)
        print("%d records" % sum(load.stop() for load in loads))
        for node in (2, 3):
            wait_for("no data left behind",
                     lambda: not any(has_data(cluster, node, "t", one) for one in (0, 1)))


def test_a_move_that_cannot_go_on_is_given_up():
    with Cluster(4, voters=3, overrides={"broker.session.timeout.ms": 60000}) as cluster:
        cluster.create_topic("t", 1, 2)
        before = replicas(cluster, 1, "t")
        others = [node for node in cluster if node not in before]
        cluster.freeze(others[0])
        assert reassign(cluster, "t", {0: others}) == {0: NONE}
        assert ongoing(cluster) == {("t", 0): (others + before, others, before)}
        assert ongoing(cluster, topics=[{"name": "t", "partitionIndexes": [0]}])
        assert not ongoing(cluster, topics=[{"name": "t", "partitionIndexes": [1]}])
        node = cluster.running()[0]
        assert sorted(replicas(cluster, node, "t")) == [1, 2, 3, 4]
        assert set(cluster.partition(node, "t", 0)["isrNodes"]) <= set(before)
        assert cluster.produce("t", 0, batch([b"x"])) == 0
        assert reassign(cluster, "t", {0: None}) == {0: NONE}
        wait_moved(cluster)
        assert replicas(cluster, node, "t") == before
        assert reassign(cluster, "t", {0: None}) == {0: NO_REASSIGNMENT}
        cluster.resume(others[0])
        wait_for("no data on the others",
                 lambda: not any(has_data(cluster, one, "t") for one in others))
        assert cluster.produce("t", 0, batch([b"x"])) == 1


def test_moves_go_on_after_failures():
    """The target is away when the move begins, then leader and metadata's leader are killed."""
    with Cluster(5, voters=3) as cluster:
        cluster.create_topic("t", 1, 3)
        assert reassign(cluster, "t", {0: [1, 2, 3]}) == {0: NONE}
        wait_moved(cluster)
        load = Load(cluster, "t", 0)
        cluster.stop(5)
        assert reassign(cluster, "t", {0: [5, 4, 3]}) == {0: NONE}
        for node in (1, 2, 3):
            cluster.kill(node)
            cluster.wait_leader("t", other_than=node)
            cluster.start(node)
            cluster.wait_leader("t")
        assert ongoing(cluster)
        cluster.start(5)
        wait_moved(cluster)
        assert replicas(cluster, 1, "t") == [5, 4, 3]
        for node in (1, 2):
            wait_for("no data on node %d" % node, lambda: not has_data(cluster, node, "t"))
        print("%d records" % load.stop())


def test_all_nodes_are_killed_while_they_move():
    with Cluster(4, voters=3) as cluster:
        cluster.create_topic("t", 4, 2)
        for partition in range(4):
            for i in range(20):
                cluster.produce("t", partition, batch([b"%d" % i]))
        for shift in range(4):
            target = [1 + shift, 1 + (shift + 1) % 4]
            assert set(reassign(cluster, "t", {p: target for p in range(4)}).values()) == {NONE}
            for node in cluster:
                cluster.kill(node)
            cluster.start_all()
            wait_moved(cluster)
            cluster.wait_led("t", 4)
            for partition in range(4):
                assert replicas(cluster, 1, "t", partition) == target
                assert len(values(cluster, "t", partition)) == 20
        wait_for("data on two nodes",
                 lambda: sum(has_data(cluster, node, "t", 0) for node in cluster) == 2)


def test_a_partition_comes_back_after_its_node_was_restarted():
    """Nothing of its earlier stay there is taken for its own: the journal knows that it left."""
    with Cluster(4, voters=3) as cluster:
        cluster.create_topic("t", 1, 1)
        expected = []
        for target in ([4], [1], [4], [2], [4]):
            assert reassign(cluster, "t", {0: target}) == {0: NONE}
            wait_moved(cluster)
            for _ in range(5):
                expected.append(b"%d" % len(expected))
                cluster.produce("t", 0, batch(expected[-1:]))
            cluster.kill(4)
            cluster.start(4)
            assert cluster.wait_leader("t") == target[0]
            assert values(cluster, "t") == expected


def test_throttles_hold_who_is_listed_on_either_side():
    """4 MB at 400 kB a second take ten seconds, where the rate of a side and its list agree."""
    rate, names = "400000", ("leader", "follower")
    with Cluster(4, voters=3, overrides={"ottla.shards": 1}) as cluster:
        cluster.create_topic("t", 1, 1, segment_bytes=1 << 20)
        here = replicas(cluster, 1, "t")[0]
        for _ in range(40):
            cluster.produce("t", 0, batch([bytes(50000)] * 2))

        def moved(side, listed_side, listed):
            """The seconds that it takes; `listed` makes the entry from (old, new)."""
            new = 1 + moved.here % 4
            cluster.alter_configs(4, "", {
                name + ".replication.throttled.rate": rate if name == side else None
                for name in names})
            cluster.alter_configs(2, "t", {
                name + ".replication.throttled.replicas":
                    listed(moved.here, new) if name == listed_side else None for name in names})
            began = time.monotonic()
            assert reassign(cluster, "t", {0: [new]}) == {0: NONE}
            wait_moved(cluster)
            moved.here = new
            return time.monotonic() - began

        moved.here = here
        took = [moved("leader", "leader", lambda old, new: "0:%d" % old),
                moved("follower", "follower", lambda old, new: "7:9,0:%d" % new),
                moved("leader", "leader", lambda old, new: "0:%d" % new),
                moved("follower", "leader", lambda old, new: "*")]
        print("seconds: %s" % ", ".join("%.1f" % one for one in took))
        assert all(one >= 7 for one in took[:2]), took
        assert all(one < 7 for one in took[2:]), took
        assert len(values(cluster, "t")) == 80


def test_committed_offsets_move():
    with Cluster(4, voters=3) as cluster:
        cluster.create_topic("t", 1, 1)
        with cluster.connect(1, 20.0) as client:
            wait_for("a coordinator", lambda: client.call(
                "FindCoordinator", 3, key="g", keyType=0)["errorCode"] == NONE)

        def coordinator():
            with cluster.connect(1) as client:
                return client.call("FindCoordinator", 3, key="g", keyType=0)["nodeId"]

        def commit():
            with cluster.connect(coordinator()) as client:
                return client.commit("g", {("t", 0): 7})[("t", 0)] == NONE

        wait_for("a commit", commit)
        first = coordinator()
        count = len(cluster.metadata(1, ["__consumer_offsets"])["topics"][0]["partitions"])
        target = [node for node in cluster if node != first][:2]
        errors = reassign(cluster, "__consumer_offsets", {p: target for p in range(count)})
        assert set(errors.values()) == {NONE}, errors
        wait_moved(cluster)

        def committed():
            node = coordinator()
            if node not in target:
                return False
            with cluster.connect(node) as client:
                return client.committed("g", [("t", 0)])[("t", 0)] == (7, NONE)

        wait_for("the offset at another coordinator", committed)


def test_elections():
    with Cluster(3, overrides={"broker.session.timeout.ms": 60000}) as cluster:
        cluster.create_topic("t", 6, 3)
        preferred = {p: replicas(cluster, 1, "t", p)[0] for p in range(6)}
        asked = [{"topic": "t", "partitions": list(range(6))}, {"topic": "no", "partitions": [0]}]
        assert elect(cluster, UNCLEAN, asked)["t", 0] == NOT_NEEDED
        away = preferred[0]
        cluster.restart(away)
        for node in cluster:
            cluster.wait_leader("t", 0)
        wait_for("elections", lambda: set(elect(cluster, PREFERRED, asked, away).values()) ==
                 {NOT_NEEDED, UNKNOWN_TOPIC})
        assert {p: cluster.wait_leader("t", p) for p in range(6)} == preferred
        assert elect(cluster, PREFERRED, None) == {}
        cluster.kill(away)
        cluster.wait_leader("t", 0, other_than=away)
        found = elect(cluster, PREFERRED, asked[:1])
        assert {p for p in range(6) if found["t", p] == PREFERRED_AWAY} == {
            p for p in range(6) if preferred[p] == away}, found
        for node in cluster.running()[1:]:
            cluster.kill(node)
        wait_for("no leader that could be elected", lambda: elect(
            cluster, UNCLEAN, asked[:1])["t", 0] == NO_ELIGIBLE)


def create_on(cluster, topic, nodes):
    with cluster.connect(1, 20.0) as client:
        answer = client.call("CreateTopics", 7, timeoutMs=20000, topics=[
            {"name": topic, "numPartitions": -1, "replicationFactor": -1, "assignments": [
                {"partitionIndex": 0, "brokerIds": nodes}]}])
    assert answer["topics"][0]["errorCode"] == NONE, answer


def whole_copy(cluster, node, topic, count):
    """Waits until the node has all in its own directory, and has it after a restart too."""
    path = os.path.join(cluster[node].data_dir, topic + "-0")
    wait_for("all replicas in sync", lambda: len(
        cluster.partition(1, topic, 0)["isrNodes"]) == 3, 30)
    for _ in range(2):
        def found():
            data = b""
            for name in sorted(os.listdir(path) if os.path.exists(path) else ()):
                if name.endswith(".log"):
                    with open(os.path.join(path, name), "rb") as log:
                        data += log.read()
            return sum(len(one.values) for one in read_batches(data))

        wait_for("%d records in %s" % (count, path), lambda: found() == count, 30)
        assert "offline" not in cluster[node].log_tail(1000), cluster[node].log_tail(20)
        cluster.restart(node)


def hold_up(cluster):
    """Node 4 has topic t, and is busy from now on: u leaves it, and its disk stands still."""
    for topic in ("u", "t"):
        create_on(cluster, topic, [1, 2, 4])
    for i in range(20):
        cluster.produce("t", 0, batch([b"%d" % i]))
    wait_for("its files", lambda: has_data(cluster, 4, "t"))
    cluster[4].fault("STALL")
    assert reassign(cluster, "u", {0: [1, 2, 3]}) == {0: NONE}
    wait_moved(cluster, nodes=(1,))


def test_a_partition_leaves_and_comes_back_while_its_node_is_busy():
    """The node learns of both at once, and must not remove what has come back."""
    with Cluster(4, voters=3, kind=Faulty) as cluster:
        hold_up(cluster)
        assert reassign(cluster, "t", {0: [1, 2, 3]}) == {0: NONE}
        wait_moved(cluster, nodes=(1,))
        assert reassign(cluster, "t", {0: [1, 2, 4]}) == {0: NONE}
        for i in range(20, 30):
            cluster.produce("t", 0, batch([b"%d" % i]))
        cluster[4].heal()
        wait_moved(cluster)
        whole_copy(cluster, 4, "t", 30)


def spoil(path, position):
    """What a power cut leaves where a page was not written and a later one was."""
    with open(path, "r+b") as log:
        assert log.seek(0, os.SEEK_END) > position + 8192
        log.seek(position)
        log.write(bytes(4096))


def test_a_copy_that_was_cut_off_begins_again():
    """Nothing of it was synced and nobody was promised anything: what is spoiled is copied anew."""
    with Cluster(4, voters=3, overrides={"ottla.shards": 1}) as cluster:
        create_on(cluster, "t", [1, 2, 3])
        for _ in range(40):
            cluster.produce("t", 0, batch([bytes(50000)] * 2))
        cluster.alter_configs(4, "", {"follower.replication.throttled.rate": "400000"})
        cluster.alter_configs(2, "t", {"follower.replication.throttled.replicas": "*"})
        assert reassign(cluster, "t", {0: [1, 2, 4]}) == {0: NONE}
        path = os.path.join(cluster[4].data_dir, "t-0", "%020d.log" % 0)
        wait_for("a beginning of the copy", lambda: os.path.exists(path) and
                 os.path.getsize(path) > 500000)
        cluster.kill(4)
        spoil(path, 150000)
        cluster.start(4)
        cluster.alter_configs(4, "", {"follower.replication.throttled.rate": None})
        wait_moved(cluster)
        whole_copy(cluster, 4, "t", 80)


def test_a_node_that_hears_nothing_does_not_say_that_nothing_moves():
    """An operator would take the broker away."""
    with Cluster(4, voters=3, kind=Faulty) as cluster:
        cluster.create_topic("t", 1, 3)
        assert reassign(cluster, "t", {0: [1, 2, 3]}) == {0: NONE}
        wait_moved(cluster)
        cluster[4].fault("STALL")
        assert reassign(cluster, "t", {0: [1, 2, 4]}) == {0: NONE}
        assert ongoing(cluster, 1)["t", 0][1:] == ([4], [3])
        try:
            with cluster.connect(4, 3.0) as client:
                answer = client.call("ListPartitionReassignments", 0, timeoutMs=2000, topics=None)
            assert answer["errorCode"] != NONE or answer["topics"], answer
        except LOST:
            pass  # it cannot say until it has heard what the others know
        cluster[4].heal()
        wait_moved(cluster)


def test_leaders_are_balanced():
    with Cluster(3, overrides={"leader.imbalance.check.interval.seconds": 1}) as cluster:
        cluster.create_topic("t", 9, 3)
        preferred = {p: replicas(cluster, 1, "t", p)[0] for p in range(9)}
        cluster.restart(2)
        wait_for("preferred leaders", lambda: all(
            cluster.leader("t", p) == preferred[p] for p in range(9)), 30)


if __name__ == "__main__":
    cases.main("cluster", globals())
