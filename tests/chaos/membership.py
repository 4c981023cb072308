"""Who belongs to the cluster changes while everything else goes on.

broker_comes_and_goes: a broker joins, mostly with an empty directory (process.roles=broker),
partitions of all topics move to it and about, some of that is given up half way, then it is cordoned
(topics are made all the time), drained, stops and is struck off the list. voters_change: a voter of the metadata becomes none, and votes again.
Both are generators like faults (faults.py) and go on beside them: each asks for its next step until it
is taken, and looks until it is seen, since whoever is asked may be away.

prepare(cluster) formats a cluster that changes its voters, as docs/operations.md says;
make_voters(chaos) brings it to its three.

Failure modes: AssertionError with what did not come to be in LIMIT_S.
"""
import os
import shutil
import subprocess
import time
from base64 import urlsafe_b64decode

from client import LOST, NONE, Client
from ottla import TOP

EXTRA = 4  # the broker that comes and goes
VOTERS = (1, 2, 3)
LIMIT_S = 90
UNKNOWN_TOPIC, NO_REASSIGNMENT, NOT_REGISTERED = 3, 85, 102
DUPLICATE_VOTER, VOTER_NOT_FOUND = 126, 127


# ---- a cluster that changes its voters
def format_node(broker, cluster_id, *options):
    words = [os.environ.get("OTTLA_BIN") or os.path.join(TOP, "build", "ottla"), "format",
             "--cluster-id", cluster_id, *options]
    for key, value in {**broker.overrides, "log.dirs": broker.data_dir}.items():
        words += ["--override", "%s=%s" % (key, value)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=30)
    assert done.returncode == 0, done.stdout


def prepare(cluster):
    quorum = cluster[1].overrides["controller.quorum.voters"]
    servers = ",".join(one.split("@")[1] for one in quorum.split(","))
    for node in cluster:
        settings = cluster[node].overrides
        del settings["controller.quorum.voters"], settings["cluster.id"]
        settings["controller.quorum.bootstrap.servers"] = servers
        format_node(cluster[node], cluster.cluster_id, "--standalone" if node == 1 else "-N")


def make_voters(chaos):
    for node in VOTERS[1:]:
        for wait_s in add(chaos, node):
            time.sleep(wait_s)


# ---- asking
def ask(chaos, node, api, version, **body):
    broker = chaos.cluster[node]
    with Client(broker.port, 3.0, broker.host) as client:
        return client.call(api, version, **body)


def anybody(chaos):
    """Of those that can be asked."""
    return chaos.chance.choice([node for node in chaos.members if node in chaos.cluster.running()]
                               or chaos.members)


def until(what, check):
    """Waits until it is so, while time goes on for the others."""
    end, last = time.monotonic() + LIMIT_S, None
    while True:
        try:
            last = check()
            if last is True:
                return
        except LOST as error:
            last = error
        assert time.monotonic() < end, "%s: not in %d s (last: %r)" % (what, LIMIT_S, last)
        yield 0.1


# ---- partitions
def placed(chaos, node):
    """{(topic, partition): replicas} as the node tells."""
    answer = ask(chaos, node, "Metadata", 12, topics=None, allowAutoTopicCreation=False)
    return {(topic["name"], part["partitionIndex"]): part["replicaNodes"]
            for topic in answer["topics"] for part in topic["partitions"]}


def ongoing(chaos, node):
    """What moves; after that the node knows what had moved. Some text when it cannot tell."""
    answer = ask(chaos, node, "ListPartitionReassignments", 0, timeoutMs=2500, topics=None)
    if answer["errorCode"] != NONE:
        return "error %d of node %d" % (answer["errorCode"], node)
    return [(topic["name"], one["partitionIndex"], one["replicas"])
            for topic in answer["topics"] for one in topic["partitions"]]


def ask_for(chaos, plan):
    """plan: {(topic, partition): replicas, or None to give it up}; True when all of it is taken."""
    topics = {}
    for (topic, partition), replicas in plan.items():
        topics.setdefault(topic, []).append({"partitionIndex": partition, "replicas": replicas})
    answer = ask(chaos, anybody(chaos), "AlterPartitionReassignments", 1, timeoutMs=2500,
                 topics=[{"name": name, "partitions": parts} for name, parts in topics.items()],
                 allowReplicationFactorChange=False)
    errors = {one["errorCode"] for topic in answer["responses"] for one in topic["partitions"]}
    # Topics come and go; what is to be given up may have come to its end.
    good = {NONE, UNKNOWN_TOPIC} | ({NO_REASSIGNMENT} if None in plan.values() else set())
    return (answer["errorCode"] == NONE and errors <= good) or (answer["errorCode"], errors)


def nothing_moves(chaos):
    return ongoing(chaos, anybody(chaos)) == [] or "something moves"


def shuffled(chaos, nodes):
    """Replicas of a partition; who is first is to lead."""
    return chaos.chance.sample(nodes, 3)


def partitions_move(chaos, nodes):
    parts = []
    yield from until("the partitions", lambda: parts.extend(
        sorted(placed(chaos, anybody(chaos)))) or len(parts) > 0)
    plan = {part: shuffled(chaos, nodes) for part in parts if chaos.chance.random() < 0.7}
    yield from until("a plan of %d moves" % len(plan), lambda: ask_for(chaos, plan))
    if chaos.chance.random() < 0.3:
        yield chaos.chance.uniform(0, 0.5)
        up = {part: None for part in plan if chaos.chance.random() < 0.5}
        yield from until("the end of %d moves" % len(up), lambda: ask_for(chaos, up))
    yield from until("the end of all moves", lambda: nothing_moves(chaos))


def cordoned(chaos, value):
    """The broker gets nothing new from now on, or (None) may again; an earlier stay's value counts
    still."""
    wish = {"name": "cordoned.log.dirs", "configOperation": 1 if value is None else 0,
            "value": value}
    yield from until("cordoned.log.dirs of broker %d" % EXTRA, lambda: ask(
        chaos, anybody(chaos), "IncrementalAlterConfigs", 1, validateOnly=False, resources=[
            {"resourceType": 4, "resourceName": str(EXTRA), "configs": [wish]}]
    )["responses"][0]["errorCode"] == NONE)


def drained(chaos):
    """Nothing is left on the broker, on the list and on its disk."""
    left = [node for node in chaos.members if node != EXTRA]

    def is_empty():
        node = anybody(chaos)
        moves = ongoing(chaos, node)
        if moves:
            return moves
        plan = {part: shuffled(chaos, left) for part, replicas in placed(chaos, node).items()
                if EXTRA in replicas}
        return not plan or ask_for(chaos, plan) and "%d partitions are still there" % len(plan)

    yield from until("nothing on broker %d" % EXTRA, is_empty)
    yield from until("no data on broker %d" % EXTRA, lambda: data_of(chaos.cluster[EXTRA]) == [] or
                     data_of(chaos.cluster[EXTRA]))


def data_of(broker):
    """The partitions that have a directory there, the metadata's apart."""
    return [name for name in os.listdir(broker.data_dir)
            if name.rpartition("-")[2].isdigit() and not name.startswith("__cluster_metadata")]


def broker_comes_and_goes(chaos, _):
    broker = chaos.cluster[EXTRA]
    chaos.cluster.start(EXTRA, wait=False)
    chaos.members.append(EXTRA)
    yield from until("broker %d on the list" % EXTRA, lambda: EXTRA in [
        one["nodeId"] for one in ask(chaos, anybody(chaos), "Metadata", 12, topics=[],
                                     allowAutoTopicCreation=False)["brokers"]])
    yield from cordoned(chaos, None)
    for _ in range(2):
        chaos.say("partitions move")
        yield from partitions_move(chaos, list(chaos.members))
        yield chaos.hold() / 4
    chaos.say("broker %d is drained" % EXTRA)
    yield from cordoned(chaos, "*")
    yield from drained(chaos)
    # Who has a fault done to it now stays until that is over.
    yield from until("broker %d at peace" % EXTRA, lambda: EXTRA not in chaos.busy and
                     broker.alive())
    chaos.members.remove(EXTRA)
    broker.wait_ready()
    chaos.cluster.stop(EXTRA)
    yield from until("broker %d off the list" % EXTRA, lambda: ask(
        chaos, anybody(chaos), "UnregisterBroker", 0, brokerId=EXTRA)["errorCode"] in (
            NONE, NOT_REGISTERED))
    if chaos.chance.random() < 0.7:
        shutil.rmtree(broker.data_dir)
        chaos.format(EXTRA)


# ---- voters
def voters(chaos):
    """{node: the id of its directory} of those that vote, as somebody tells."""
    answer = ask(chaos, anybody(chaos), "DescribeQuorum", 2, topics=[
        {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}])
    if answer["errorCode"] != NONE:
        return {}
    found = answer["topics"][0]["partitions"][0]
    return {one["replicaId"]: one["replicaDirectoryId"] for one in found["currentVoters"]}


def directory_id(broker):
    with open(os.path.join(broker.data_dir, "meta.properties")) as lines:
        text = dict(line.strip().split("=", 1) for line in lines if "=" in line)["directory.id"]
    return urlsafe_b64decode(text + "==")


def add(chaos, node):
    def added():
        host, port = chaos.cluster[node].overrides["listeners"].split("CONTROLLER://")[1].split(":")
        error = ask(chaos, anybody(chaos), "AddRaftVoter", 1, clusterId=None, timeoutMs=2500,
                    voterId=node, voterDirectoryId=directory_id(chaos.cluster[node]),
                    ackWhenCommitted=True, listeners=[
                        {"name": "CONTROLLER", "host": host, "port": int(port)}])["errorCode"]
        return error in (NONE, DUPLICATE_VOTER) or error

    yield from until("voter %d" % node, added)
    yield from until("node %d among the voters" % node, lambda: node in voters(chaos))


def remove(chaos, node):
    def removed():
        known = voters(chaos)
        if known and node not in known:
            return True
        return ask(chaos, anybody(chaos), "RemoveRaftVoter", 0, clusterId=None, voterId=node,
                   voterDirectoryId=known.get(node, bytes(16)))["errorCode"]

    yield from until("voter %d away" % node, removed)


def voters_change(chaos, _):
    node = chaos.chance.choice(VOTERS)
    chaos.say("node %d votes no longer" % node)
    yield from remove(chaos, node)
    yield chaos.hold() / 2
    yield from add(chaos, node)
    chaos.say("node %d votes again" % node)
