#!/usr/bin/env python3
"""Settings of brokers that are changed while they run, by Kafka's own kafka-configs, at the brokers
or at the controllers.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
import kafka_peer  # noqa: E402
from client import NONE, batch, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402

REASSIGN = "reassign.ReassignPartitionsCommand"
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, DEFAULT = 1, 2, 3, 5
TOO_LARGE, NOT_ENOUGH, UNSUPPORTED_VERSION = 10, (19, 20), 35


def brokers(cluster):
    return "--bootstrap-server", cluster.bootstrap


def controllers(cluster):
    quorum = cluster[1].overrides["controller.quorum.voters"]
    return "--bootstrap-controller", ",".join(voter.split("@")[1] for voter in quorum.split(","))


def tool(where, name, *args, fails=False):
    """What the tool prints; `where`: the option that says whom to ask, with its value."""
    command = kafka_peer.tool_command("org.apache.kafka.tools." + name, *where, *args)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120)
    assert (done.returncode != 0) == fails, "%s %s: status %d\n%s" % (
        name, " ".join(args), done.returncode, done.stdout)
    return done.stdout


def test_controllers_are_asked_by_tools():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        where = controllers(cluster)
        rate = "leader.replication.throttled.rate"
        said = tool(where, "ConfigCommand", "--alter", "--entity-type", "brokers",
                    "--entity-name", "2", "--add-config", rate + "=70000")
        assert "Completed updating config for broker 2" in said, said
        said = tool(where, "ConfigCommand", "--describe", "--entity-type", "brokers")
        assert "%s=70000 sensitive=false" % rate in said, said
        for node in cluster:
            assert "Dynamic configs for broker %d are:" % node in said, said
        said = tool(where, "ConfigCommand", "--describe", "--entity-type", "brokers",
                    "--entity-name", "3", "--all")
        assert "node.id=3 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=3" in said, said
        tool(where, "ConfigCommand", "--alter", "--entity-type", "topics", "--entity-name", "t",
             "--add-config", "retention.ms=7777")
        assert cluster.configs(2, "t", ["retention.ms"]) == {"retention.ms": "7777"}
        assert "No partition reassignments" in tool(where, REASSIGN, "--list")


def listed(cluster, version, **asked):
    """(error, [(type, name)]) of ListConfigResources."""
    with cluster.connect() as client:
        answer = client.call("ListConfigResources", version, **asked)
    return answer["errorCode"], [(one["resourceType"], one["resourceName"])
                                 for one in answer["configResources"]]


def test_what_has_a_configuration():
    with Cluster(3) as cluster:
        cluster.create_topic("b", 1, 3)
        cluster.create_topic("a", 1, 3)
        topics = [(TOPIC, "a"), (TOPIC, "b")]
        ids = [(BROKER, "1"), (BROKER, "2"), (BROKER, "3")]
        loggers = [(LOGGER, name) for _, name in ids]
        wait_for("topics", lambda: listed(cluster, 1, resourceTypes=[]) == (
            NONE, topics + ids + loggers))
        assert listed(cluster, 1, resourceTypes=[BROKER, GROUP, BROKER]) == (NONE, ids)
        assert listed(cluster, 1, resourceTypes=[TOPIC, BROKER, 6]) == (UNSUPPORTED_VERSION, [])
        assert listed(cluster, 0) == (NONE, [])
        assert tool(brokers(cluster), "ClientMetricsCommand", "--list").strip() == ""
        tool(brokers(cluster), "ConfigCommand", "--describe", "--entity-type", "client-metrics")


def alter(cluster, kind, name, wanted, fails=False):
    """kafka-configs --alter; wanted: {key: value}. name "": all brokers."""
    whom = ("--entity-name", name) if name else ("--entity-default",)
    values = ",".join("%s=%s" % one for one in wanted.items())
    return tool(brokers(cluster), "ConfigCommand", "--alter", "--entity-type", kind, *whom,
                "--add-config", values, fails=fails)


def take_back(cluster, name, keys):
    whom = ("--entity-name", name) if name else ("--entity-default",)
    tool(brokers(cluster), "ConfigCommand", "--alter", "--entity-type", "brokers", *whom,
         "--delete-config", keys)


def row(cluster, node, kind, name, key):
    """(value, source) of a configuration, as that node tells it."""
    with cluster.connect(node) as client:
        answer = client.call("DescribeConfigs", 4, includeSynonyms=True, includeDocumentation=False,
                             resources=[{"resourceType": kind, "resourceName": name,
                                         "configurationKeys": [key]}])
    found = answer["results"][0]["configs"]
    return (found[0]["value"], found[0]["configSource"]) if found else None


def everywhere(cluster, kind, name, key, expected):
    """Until each node tells that; brokers are asked for their own."""
    wait_for("%s is %s" % (key, expected), lambda: all(
        row(cluster, node, kind, name or str(node), key) == expected for node in cluster))


def test_defaults_of_topics_change_while_brokers_run():
    with Cluster(3, overrides={"log.segment.bytes": 1 << 20}) as cluster:
        cluster.create_topic("t", 1, 3)
        cluster.create_topic("own", 1, 3)
        alter(cluster, "topics", "own", {"max.message.bytes": 5000})
        large = batch([bytes(3000)])
        with cluster.connect(cluster.wait_leader("t", 0)) as client:
            assert client.produce("t", 0, large)[0] == NONE
        said = alter(cluster, "brokers", "", {"message.max.bytes": 2000})
        assert "Completed updating default config for brokers in the cluster" in said, said
        everywhere(cluster, TOPIC, "t", "max.message.bytes", ("2000", DYNAMIC_DEFAULT))
        everywhere(cluster, TOPIC, "own", "max.message.bytes", ("5000", DYNAMIC_TOPIC))
        everywhere(cluster, BROKER, None, "message.max.bytes", ("2000", DYNAMIC_DEFAULT))
        assert row(cluster, 2, BROKER, "", "message.max.bytes") == ("2000", DYNAMIC_DEFAULT)
        with cluster.connect(cluster.wait_leader("t", 0)) as client:
            assert client.produce("t", 0, large)[0] == TOO_LARGE
        with cluster.connect(cluster.wait_leader("own", 0)) as client:
            assert client.produce("own", 0, large)[0] == NONE
        # It is there again after a start, and holds for what is made later.
        for node in cluster:
            cluster.restart(node)
        cluster.wait_brokers(3)
        cluster.create_topic("later", 1, 3)
        everywhere(cluster, TOPIC, "later", "max.message.bytes", ("2000", DYNAMIC_DEFAULT))
        with cluster.connect(cluster.wait_leader("later", 0)) as client:
            assert client.produce("later", 0, large)[0] == TOO_LARGE
        take_back(cluster, "", "message.max.bytes")
        everywhere(cluster, TOPIC, "t", "max.message.bytes", ("1048588", DEFAULT))
        with cluster.connect(cluster.wait_leader("t", 0)) as client:
            assert client.produce("t", 0, large)[0] == NONE


def test_replicas_in_sync_are_asked_for_in_the_whole_cluster():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t", 0)
        away = next(node for node in cluster if node != leader)
        said = alter(cluster, "brokers", str(leader), {"min.insync.replicas": 3}, fails=True)
        assert "cannot be set for one broker" in said, said
        alter(cluster, "brokers", "", {"min.insync.replicas": 3})
        everywhere(cluster, TOPIC, "t", "min.insync.replicas", ("3", DYNAMIC_DEFAULT))
        cluster.kill(away)

        def refused():
            with cluster.connect(cluster.wait_leader("t", 0)) as client:
                return client.produce("t", 0, batch([b"x"]))[0] in NOT_ENOUGH

        wait_for("too few replicas", refused)
        take_back(cluster, "", "min.insync.replicas")
        cluster.produce("t", 0, batch([b"y"]))


def segments(cluster, node):
    folder = os.path.join(cluster[node].data_dir, "t-0")
    return sum(name.endswith(".log") for name in os.listdir(folder))


def test_one_broker_has_its_own():
    """Retention: each replica removes by its own settings."""
    with Cluster(3, overrides={"log.segment.bytes": 1 << 20,
                               "log.initial.task.delay.ms": 0,
                               "log.retention.check.interval.ms": 200,
                               "log.segment.delete.delay.ms": 0}) as cluster:
        cluster.create_topic("t", 1, 3)
        data = batch([bytes(500000)])
        for _ in range(8):
            cluster.produce("t", 0, data)
        alter(cluster, "brokers", "2", {"log.retention.bytes": -1})
        alter(cluster, "brokers", "", {"log.retention.bytes": 1 << 20})
        wait_for("the others remove",
                 lambda: segments(cluster, 1) < 4 and segments(cluster, 3) < 4)
        assert segments(cluster, 2) == 4
        wait_for("2 keeps all", lambda: row(cluster, 2, TOPIC, "t", "retention.bytes") == (
            "-1", DYNAMIC_BROKER))
        assert row(cluster, 1, TOPIC, "t", "retention.bytes") == (str(1 << 20), DYNAMIC_DEFAULT)
        said = tool(brokers(cluster), "ConfigCommand", "--describe", "--entity-type", "brokers",
                    "--entity-name", "2")
        assert ("log.retention.bytes=-1 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:"
                "log.retention.bytes=-1, DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.bytes=1048576, "
                "DEFAULT_CONFIG:log.retention.bytes=-1}") in said, said


if __name__ == "__main__":
    cases.main("cluster", globals())
