#!/usr/bin/env python3
"""Kafka's own tools against a cluster: kafka-reassign-partitions (generate, execute, verify, list,
cancel, throttled too), kafka-leader-election, kafka-topics; a producer and a consumer go on.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
import kafka_peer  # noqa: E402
from client import NONE, batch, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402
from test_moves import Load, elect, has_data, ongoing, replicas, values  # noqa: E402

REPLICAS = ["%s.replication.throttled.replicas" % side for side in ("leader", "follower")]
REASSIGN = "reassign.ReassignPartitionsCommand"


def tool(cluster, name, *args, fails=False):
    """What the tool prints."""
    words = ["--bootstrap-server", cluster.bootstrap]
    words = [args[0], *words, *args[1:]] if name == "ClusterTool" else [*words, *args]
    command = kafka_peer.tool_command("org.apache.kafka.tools." + name, *words)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120)
    assert (done.returncode != 0) == fails, "%s %s: status %d\n%s" % (
        name, " ".join(args), done.returncode, done.stdout)
    return done.stdout


def as_file(value):
    out = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
    json.dump(value, out)
    out.close()
    return out.name


def plan_file(topic, plan):
    return as_file({"version": 1, "partitions": [
        {"topic": topic, "partition": partition, "replicas": target}
        for partition, target in plan.items()]})



def wait_verified(cluster, path, *more):
    said = [""]

    def verified():
        said[0] = tool(cluster, REASSIGN, "--verify", "--reassignment-json-file", path, *more)
        return "still in progress" not in said[0]

    wait_for("the plan is carried out", verified, 60)
    return said[0]


def test_a_plan_is_made_and_carried_out_under_load():
    with Cluster(4, voters=3) as cluster:
        cluster.create_topic("t", 4, 3)
        loads = [Load(cluster, "t", partition) for partition in range(2)]
        topics = as_file({"version": 1, "topics": [{"topic": "t"}]})
        said = tool(cluster, REASSIGN, "--generate", "--topics-to-move-json-file", topics,
                    "--broker-list", "2,3,4")
        plan = json.loads(said.split("Proposed partition reassignment configuration")[1])
        path = as_file(plan)
        said = tool(cluster, REASSIGN, "--execute", "--reassignment-json-file", path)
        assert "Successfully started partition reassignment" in said, said
        back = json.loads(re.search("^{.*}$", said, re.M).group())
        said = wait_verified(cluster, path)
        assert said.count("is completed") == 4, said
        for one in plan["partitions"]:
            assert replicas(cluster, 1, "t", one["partition"]) == one["replicas"]
        wait_for("an empty broker", lambda: not any(
            has_data(cluster, 1, "t", one) for one in range(4)))
        assert "No partition reassignments found" in tool(cluster, REASSIGN, "--list")
        tool(cluster, "LeaderElectionCommand", "--election-type", "preferred",
             "--all-topic-partitions")
        assert elect(cluster, 0, None) == {}
        for one in plan["partitions"]:
            assert cluster.wait_leader("t", one["partition"]) == one["replicas"][0]
        # The plan back, as the tool has printed it, with directories.
        path = as_file(back)
        tool(cluster, REASSIGN, "--execute", "--reassignment-json-file", path)
        said = wait_verified(cluster, path)
        assert said.count("is completed") == 4, said
        assert len(re.findall(r"Reassignment of replica t-\d-\d completed", said)) == 12, said
        for one in back["partitions"]:
            assert replicas(cluster, 2, "t", one["partition"]) == one["replicas"]
        print("%d records" % sum(load.stop() for load in loads))


def test_a_throttled_move_and_its_end():
    with Cluster(4, voters=3) as cluster:
        cluster.create_topic("t", 1, 1, segment_bytes=1 << 20)
        old = replicas(cluster, 1, "t")[0]
        data = batch([bytes(50000)] * 2)
        with cluster.connect(old) as client:
            for _ in range(60):
                assert client.produce("t", 0, data)[0] == NONE
        new = 1 + old % 4
        path = plan_file("t", {0: [new]})
        said = tool(cluster, REASSIGN, "--execute", "--reassignment-json-file", path,
                    "--throttle", "1000000")
        assert "Successfully started" in said, said
        assert cluster.configs(2, "t", REPLICAS) == dict(zip(REPLICAS, (
            "0:%d" % old, "0:%d" % new))), cluster.configs(2, "t", REPLICAS)
        said = tool(cluster, "ConfigCommand", "--describe", "--entity-type", "brokers")
        for side in ("leader", "follower"):
            rate = "%s.replication.throttled.rate=1000000" % side
            row = "  %s sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:%s}\n" % (rate, rate)
            assert said.count(row) == 2, said
        said = tool(cluster, REASSIGN, "--list")
        assert "t-0: replicas: %d,%d. adding: %d. removing: %d." % (new, old, new, old) in said, \
            said
        assert ongoing(cluster)
        said = tool(cluster, REASSIGN, "--execute", "--reassignment-json-file", path,
                    "--additional", "--throttle", "500000000")
        said = wait_verified(cluster, path)
        assert "Clearing broker-level throttles" in said, said
        assert "Clearing topic-level throttles" in said, said
        assert set(cluster.configs(2, "t", REPLICAS).values()) <= {""}
        assert len(values(cluster, "t")) == 120


def test_a_plan_is_given_up():
    with Cluster(4, voters=3, overrides={"broker.session.timeout.ms": 60000}) as cluster:
        cluster.create_topic("t", 1, 2)
        before = replicas(cluster, 1, "t")
        others = [node for node in cluster if node not in before]
        path = plan_file("t", {0: others})
        cluster.kill(others[0])
        said = tool(cluster, REASSIGN, "--execute", "--reassignment-json-file", path)
        assert "Successfully started" in said, said
        said = tool(cluster, REASSIGN, "--verify", "--preserve-throttles",
                    "--reassignment-json-file", path)
        assert "still in progress" in said, said
        said = tool(cluster, REASSIGN, "--cancel", "--preserve-throttles",
                    "--reassignment-json-file", path)
        assert "Successfully cancelled" in said, said
        cluster.start(others[0])
        wait_for("the end of the move", lambda: not ongoing(cluster))
        assert replicas(cluster, cluster.running()[0], "t") == before


def test_a_dead_broker_is_replaced_by_another():
    with Cluster(5, voters=3, overrides={"broker.session.timeout.ms": 1500}) as cluster:
        cluster.create_topic("t", 4, 3)
        old = {p: replicas(cluster, 1, "t", p) for p in range(4)}
        load = Load(cluster, "t", 0)
        cluster.kill(4)
        cluster.wait_brokers(4)
        plan = {p: [5 if one == 4 else one for one in old[p]] for p in old
                if 4 in old[p] and 5 not in old[p]}
        plan.update({p: [one for one in old[p] if one != 4] for p in old
                     if 4 in old[p] and 5 in old[p]})
        path = plan_file("t", plan)
        tool(cluster, REASSIGN, "--execute", "--reassignment-json-file", path)
        wait_verified(cluster, path)
        for partition, target in plan.items():
            assert replicas(cluster, 1, "t", partition) == target
        cluster.start(4)
        wait_for("no data on the broker that came back", lambda: not any(
            has_data(cluster, 4, "t", one) for one in range(4)))
        cluster.stop(4)
        said = tool(cluster, "ClusterTool", "unregister", "--id", "4")
        assert "no longer registered" in said, said
        cluster.wait_brokers(4)
        print("%d records" % load.stop())


def test_elections_by_the_tool():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 3, 3)
        wanted = {p: replicas(cluster, 1, "t", p)[0] for p in range(3)}
        cluster.restart(2)
        cluster.wait_led("t", 3)
        for partition in range(3):
            said = tool(cluster, "LeaderElectionCommand", "--election-type", "preferred",
                        "--topic", "t", "--partition", str(partition))
            assert re.search("Successfully completed|Valid replica already elected", said), said
        assert {p: cluster.wait_leader("t", p) for p in range(3)} == wanted
        said = tool(cluster, "LeaderElectionCommand", "--election-type", "unclean",
                    "--topic", "t", "--partition", "0")
        assert "Valid replica already elected" in said, said


if __name__ == "__main__":
    cases.main("cluster", globals())
