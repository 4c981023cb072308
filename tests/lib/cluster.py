"""Several brokers that make one cluster, for tests: start them, kill, pause, stop and bring back any
of them.

Happy path: `with Cluster(3) as cluster:` starts three brokers on free loopback ports, each voter
and broker at once (controller.quorum.voters with three entries, one cluster.id), and waits until
each of them tells of all three in its Metadata. cluster[1] is the ottla.Broker of node 1, nodes
count from 1; cluster.connect(2) is a client.Client of node 2; at the end all are stopped by SIGTERM.

    cluster.create_topic("t", partitions=6, replication=3)
    leader = cluster.leader("t", 0)
    cluster.kill(leader)                       # SIGKILL; also stop(), pause(), freeze(), resume()
    cluster.wait_leader("t", 0, other_than=leader)
    cluster.start(leader)
    cluster.wait_brokers(3)

The loss of nodes is what a cluster is for, so that asking goes to any node that runs; state is
waited for, never slept for.

Failure modes: BrokerError, as in ottla.py, for a broker that does not start, does not stop or
leaves a sanitizer's report; AssertionError from the waits when the state does not come in time, with
what was seen last. The data directories are kept when something failed.
"""
import os
import signal
import uuid
from base64 import urlsafe_b64encode

from client import LOST, Client, wait_for
from ottla import Broker, free_port

NO_LEADER = -1


def new_cluster_id():
    """A cluster id as kafka-storage makes them: 22 characters."""
    return urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


def log_bytes(data_dir, topic, partition):
    """All segments of a partition's log, one behind the other."""
    folder = os.path.join(data_dir, "%s-%d" % (topic, partition))
    found = b""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".log"):
            with open(os.path.join(folder, name), "rb") as data:
                found += data.read()
    return found


def children(pid):
    """The processes that this one started: a broker's guard."""
    with open("/proc/%d/task/%d/children" % (pid, pid)) as listed:
        return [int(child) for child in listed.read().split()]


class Cluster:
    """Brokers 1 to `count` of one cluster.

    overrides: properties of all nodes; each: {node: properties of that one}.
    kind:      the class of the nodes (faulty.Faulty: on disks that can be made to fail).
    voters:    how many of them vote on metadata (default: all); the others are brokers alone.
    place:     {node: (address, words before its command)}, for nodes that are not on loopback.
    """

    def __init__(self, count=3, overrides=None, each=None, voters=None, env=None, name="node",
                 kind=Broker, place=None):
        self.cluster_id = new_cluster_id()
        self.nodes = {}
        self.paused = set()
        voters = count if voters is None else voters
        ports = {node: free_port() for node in range(1, voters + 1)}
        place = place or {node: ("127.0.0.1", ()) for node in range(1, count + 1)}
        quorum = ",".join("%d@%s:%d" % (node, place[node][0], port)
                          for node, port in ports.items())
        for node in range(1, count + 1):
            port, (host, prefix) = free_port(), place[node]
            settings = {"node.id": node, "cluster.id": self.cluster_id,
                        "controller.quorum.voters": quorum,
                        "listeners": "PLAINTEXT://%s:%d" % (host, port)}
            if node in ports:
                settings["listeners"] += ",CONTROLLER://%s:%d" % (host, ports[node])
            else:
                settings["process.roles"] = "broker"
            settings.update(overrides or {})
            settings.update((each or {}).get(node, {}))
            self.nodes[node] = kind(settings, env=env, port=port, name="%s%d" % (name, node),
                                    host=host, prefix=prefix)

    def __getitem__(self, node):
        return self.nodes[node]

    def __iter__(self):
        return iter(self.nodes)

    def __len__(self):
        return len(self.nodes)

    @property
    def bootstrap(self):
        return ",".join(broker.bootstrap for broker in self.nodes.values())

    # ---- life
    def start_all(self, wait=True):
        for broker in self.nodes.values():
            broker.spawn()
        for broker in self.nodes.values():
            broker.wait_ready()
        if wait:
            self.wait_brokers(len(self.nodes))
        return self

    def start(self, node, wait=True):
        """Brings a node back, on its ports and data; `wait`: until it answers."""
        self.nodes[node].spawn()
        return self.nodes[node].wait_ready() if wait else self.nodes[node]

    def kill(self, node):
        self.nodes[node].kill9()
        self.paused.discard(node)

    def stop(self, node):
        """SIGTERM, and a clean end."""
        self.resume(node)
        self.nodes[node].stop()

    def restart(self, node):
        self.stop(node)
        return self.start(node)

    def pause(self, node):
        """SIGSTOP: it says nothing more, and its guard ends its connections after a while."""
        self.nodes[node].process.send_signal(signal.SIGSTOP)
        self.paused.add(node)

    def freeze(self, node):
        """As when its machine or container stands still: the guard too, and connections stay."""
        for guard in children(self.nodes[node].process.pid):
            os.kill(guard, signal.SIGSTOP)
        self.pause(node)

    def resume(self, node):
        """From either; the guard goes on last, so that it finds no stopped process."""
        if node in self.paused:
            process = self.nodes[node].process
            process.send_signal(signal.SIGCONT)
            for guard in children(process.pid):
                os.kill(guard, signal.SIGCONT)
            self.paused.discard(node)

    def running(self):
        """The nodes that can be asked now."""
        return [node for node in self.nodes
                if self.nodes[node].alive() and node not in self.paused]

    def close(self, failed=False):
        for node in list(self.paused):
            self.resume(node)
        for broker in self.nodes.values():
            broker.failed |= failed
            broker.close()

    def __enter__(self):
        try:
            return self.start_all()
        except BaseException:
            self.close(failed=True)
            raise

    def __exit__(self, kind, error, trace):
        failed = True
        try:
            if kind is None:
                for node in list(self.paused):
                    self.resume(node)
                for broker in self.nodes.values():
                    broker.stop()
                failed = False
        finally:
            self.close(failed)
        return False

    # ---- asking
    def connect(self, node=None, timeout_s=30.0):
        """A client of the node, or of the first that runs."""
        broker = self.nodes[node or self.running()[0]]
        return Client(broker.port, timeout_s, broker.host)

    def metadata(self, node, topics=None):
        """The whole answer of the node to Metadata 12; topics: names, None for all."""
        with self.connect(node, 10.0) as client:
            names = None if topics is None else [{"name": name} for name in topics]
            return client.call("Metadata", 12, topics=names, allowAutoTopicCreation=False)

    def brokers(self, node):
        """The ids of the brokers that the node tells of."""
        return sorted(one["nodeId"] for one in self.metadata(node, [])["brokers"])

    def partition(self, node, topic, partition):
        """What the node's Metadata says of the partition; None while it has none of it."""
        for one in self.metadata(node, [topic])["topics"]:
            for entry in one["partitions"]:
                if entry["partitionIndex"] == partition:
                    return entry
        return None

    def leader(self, topic, partition=0):
        """The leader as the first node that runs tells it; NO_LEADER without one."""
        entry = self.partition(self.running()[0], topic, partition)
        return NO_LEADER if entry is None else entry["leaderId"]

    def metadata_leader(self):
        """The node that leads the metadata log; Metadata itself may name any node as controller."""
        with self.connect(timeout_s=10.0) as client:
            answer = client.call("DescribeQuorum", 2, topics=[
                {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}])
        return answer["topics"][0]["partitions"][0]["leaderId"]

    # ---- changing and waiting
    def wait_brokers(self, count, nodes=None, timeout_s=30.0):
        """Until every node that runs (or these) tells of so many brokers."""
        nodes = nodes or self.running()
        seen = {}

        def agreed():
            for node in nodes:
                seen[node] = self.brokers(node)
            return all(len(found) == count for found in seen.values())

        try:
            wait_for("%d brokers" % count, agreed, timeout_s)
        except AssertionError as error:
            raise AssertionError("%s; seen: %s" % (error, seen))

    def wait_leader(self, topic, partition=0, other_than=NO_LEADER, nodes=None, timeout_s=30.0):
        """Until every node that runs (or these) tells of the same leader, that runs and is not
        `other_than`; returns it."""
        nodes = nodes or self.running()

        def agreed():
            told = {entry["leaderId"] if entry else NO_LEADER for entry in
                    (self.partition(node, topic, partition) for node in nodes)}
            leader = told.pop()
            good = not told and leader not in (NO_LEADER, other_than)
            return leader if good and leader in self.running() else None

        return wait_for("a leader of %s-%d" % (topic, partition), agreed, timeout_s)

    def create_topic(self, name, partitions=1, replication=None, node=None, **configs):
        """Creates a topic and waits until every node that runs has a leader for each partition.
        Config names with _ for the dots."""
        wanted = {"name": name, "numPartitions": partitions,
                  "replicationFactor": replication or min(3, len(self)),
                  "configs": [{"name": key.replace("_", "."), "value": str(value)}
                              for key, value in configs.items()]}
        with self.connect(node) as client:
            answer = client.call("CreateTopics", 7, topics=[wanted], timeoutMs=30000)
        found = answer["topics"][0]
        assert found["errorCode"] == 0, "CreateTopics %s: %s" % (name, found)
        self.wait_led(name, partitions)

    def give_lead(self, topic, partition, node, timeout_s=30.0):
        """Makes the node the first of the partition's replicas, and its leader."""
        def asked():
            entry = self.partition(self.running()[0], topic, partition)
            if entry["leaderId"] == node:
                return True
            order = sorted(entry["replicaNodes"], key=lambda replica: replica != node)
            with self.connect() as client:
                client.call("AlterPartitionReassignments", 1, timeoutMs=20000, topics=[
                    {"name": topic, "partitions": [
                        {"partitionIndex": partition, "replicas": order}]}],
                    allowReplicationFactorChange=False)
                client.call("ElectLeaders", 2, electionType=0, timeoutMs=20000, topicPartitions=[
                    {"topic": topic, "partitions": [partition]}])
            return False

        wait_for("node %d leads %s-%d" % (node, topic, partition), asked, timeout_s, 0.1)
        self.wait_leader(topic, partition)

    def alter_configs(self, kind, name, configs):
        """Sets configurations; kind: Kafka's number, 2 a topic and 4 a broker (or all: ""). A value
        of None takes one back."""
        wanted = {"resourceType": kind, "resourceName": name, "configs": [
            {"name": key, "configOperation": 1 if value is None else 0, "value": value}
            for key, value in configs.items()]}
        with self.connect() as client:
            answer = client.call("IncrementalAlterConfigs", 1, resources=[wanted],
                                 validateOnly=False)
        assert answer["responses"][0]["errorCode"] == 0, answer

    def configs(self, kind, name, keys):
        """{key: value} of those keys."""
        with self.connect() as client:
            answer = client.call("DescribeConfigs", 4, resources=[
                {"resourceType": kind, "resourceName": name, "configurationKeys": list(keys)}])
        assert answer["results"][0]["errorCode"] == 0, answer
        return {one["name"]: one["value"] for one in answer["results"][0]["configs"]}

    def wait_led(self, name, partitions, timeout_s=30.0):
        """Until every node that runs knows a leader for each of the topic's partitions."""
        def led():
            for node in self.running():
                topic = self.metadata(node, [name])["topics"][0]
                if len(topic["partitions"]) != partitions or any(
                        one["errorCode"] or one["leaderId"] < 0 for one in topic["partitions"]):
                    return False
            return True

        wait_for("leaders of %s" % name, led, timeout_s)

    def produce(self, topic, partition, data, acks=-1, timeout_s=30.0):
        """Produces at whoever leads, again while a retriable error or a lost connection comes;
        returns the base offset. A batch may be there twice when a connection was lost."""
        result = []

        def done():
            leader = self.leader(topic, partition)
            if leader not in self.running():
                return False
            try:
                with self.connect(leader, 10.0) as client:
                    result[:] = client.produce(topic, partition, data, acks)
            except LOST:
                return False
            return result[0] == 0

        wait_for("produce to %s-%d" % (topic, partition), done, timeout_s)
        return result[1]
