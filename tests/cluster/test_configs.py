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
from cluster import Cluster  # noqa: E402

REASSIGN = "reassign.ReassignPartitionsCommand"


def controllers(cluster):
    """The listeners of controllers, as --bootstrap-controller wants them."""
    quorum = cluster[1].overrides["controller.quorum.voters"]
    return ",".join(voter.split("@")[1] for voter in quorum.split(","))


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
        where = ("--bootstrap-controller", controllers(cluster))
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


if __name__ == "__main__":
    cases.main("cluster", globals())
