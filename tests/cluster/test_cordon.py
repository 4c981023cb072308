#!/usr/bin/env python3
"""A cordoned broker (KIP-1066, cordoned.log.dirs) keeps what it has and gets nothing new: set while it
runs or in its own configuration, seen through the requests that Kafka's tools send.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import NONE, batch, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402

KEY = "cordoned.log.dirs"
INVALID_FACTOR, INVALID_ASSIGNMENT, INVALID_REQUEST = 38, 39, 42
BROKER, SET, DELETE = 4, 0, 1
DYNAMIC_BROKER, STATIC_BROKER, DEFAULT = 2, 4, 5


def alter(cluster, broker, value, node=None):
    """(error, message) of that broker's value, set (None: taken back) by a request to `node`."""
    wish = {"name": KEY, "configOperation": DELETE if value is None else SET, "value": value}
    with cluster.connect(node or broker) as client:
        answer = client.call("IncrementalAlterConfigs", 1, validateOnly=False, resources=[
            {"resourceType": BROKER, "resourceName": str(broker), "configs": [wish]}])
    return answer["responses"][0]["errorCode"], answer["responses"][0]["errorMessage"]


def create(cluster, name, partitions=-1, replication=-1, assignments=()):
    """The error of CreateTopics."""
    with cluster.connect() as client:
        answer = client.call("CreateTopics", 7, timeoutMs=20000, validateOnly=False, topics=[
            {"name": name, "numPartitions": partitions, "replicationFactor": replication,
             "configs": [], "assignments": [
                 {"partitionIndex": i, "brokerIds": ids} for i, ids in enumerate(assignments)]}])
    return answer["topics"][0]["errorCode"]


def replicas(cluster, name):
    """The brokers that have a replica of the topic."""
    parts = cluster.metadata(1, [name])["topics"][0]["partitions"]
    return {node for part in parts for node in part["replicaNodes"]}


def told(cluster, broker):
    """What DescribeConfigs says there: (value, source)."""
    with cluster.connect(broker) as client:
        answer = client.call("DescribeConfigs", 4, includeSynonyms=True, includeDocumentation=False,
                             resources=[{"resourceType": BROKER, "resourceName": str(broker),
                                         "configurationKeys": [KEY]}])
    row = answer["results"][0]["configs"][0]
    return row["value"], row["configSource"]


def log_dir(cluster, broker):
    """(path, whether it is cordoned)"""
    with cluster.connect(broker) as client:
        answer = client.call("DescribeLogDirs", 5, topics=None)
    return answer["results"][0]["logDir"], answer["results"][0]["isCordoned"]


def test_a_broker_is_cordoned_while_it_runs():
    with Cluster(3) as cluster:
        cluster.create_topic("before", 3, 3)
        assert told(cluster, 3) == ("", DEFAULT) and not log_dir(cluster, 3)[1]
        assert alter(cluster, 3, "*") == (NONE, None)
        # It holds for whoever asks next; each node's picture follows.
        assert create(cluster, "two", 6, 2) == NONE
        wait_for("topic two", lambda: replicas(cluster, "two") == {1, 2})
        assert create(cluster, "three", 1, 3) == INVALID_FACTOR
        assert create(cluster, "named", assignments=[[1, 3]]) == INVALID_ASSIGNMENT
        wait_for("the value on broker 3", lambda: told(cluster, 3) == ("*", DYNAMIC_BROKER))
        assert log_dir(cluster, 3)[1] and not log_dir(cluster, 1)[1]
        # What is there goes on: it leads and takes part.
        led = [part for part in range(3) if cluster.leader("before", part) == 3]
        assert len(led) == 1, led
        cluster.produce("before", led[0], batch([b"still here"]))
        assert alter(cluster, 3, None) == (NONE, None)
        assert create(cluster, "three", 1, 3) == NONE
        wait_for("topic three", lambda: replicas(cluster, "three") == {1, 2, 3})


def test_a_directory_must_be_the_brokers_own():
    with Cluster(3) as cluster:
        path = log_dir(cluster, 3)[0]
        error, why = alter(cluster, 3, "/nowhere")
        assert (error, why) == (INVALID_REQUEST, "All entries in cordoned.log.dirs must be present "
                                "in log.dirs or log.dir. Missing entries : /nowhere"), why
        error, why = alter(cluster, 3, "*," + path)
        assert (error, why) == (INVALID_REQUEST, "When cordoned.log.dirs is set to *, it must not "
                                "contain other values"), why
        assert alter(cluster, 3, path, node=1)[0] == INVALID_REQUEST
        # Of a request with a fault nothing is done.
        wish = {"name": KEY, "configOperation": SET}
        with cluster.connect(3) as client:
            answer = client.call("IncrementalAlterConfigs", 1, validateOnly=False, resources=[
                {"resourceType": BROKER, "resourceName": broker, "configs": [
                    {**wish, "value": value}]} for broker, value in (("1", "*"), ("3", "/no"))])
        assert [one["errorCode"] for one in answer["responses"]] == [INVALID_REQUEST] * 2, answer
        assert answer["responses"][0]["errorMessage"].startswith("Nothing was changed"), answer
        assert create(cluster, "three", 1, 3) == NONE
        assert alter(cluster, 3, path) == (NONE, None)
        assert create(cluster, "more", 1, 3) == INVALID_FACTOR
        wait_for("the directory", lambda: log_dir(cluster, 3) == (path, True))
        assert alter(cluster, 3, "*", node=1) == (NONE, None)


def test_a_broker_is_cordoned_by_its_own_configuration():
    with Cluster(3) as cluster:
        cluster[3].overrides[KEY] = "*"
        cluster.restart(3)
        assert told(cluster, 3) == ("*", STATIC_BROKER) and log_dir(cluster, 3)[1]
        assert create(cluster, "two", 6, 2) == NONE
        wait_for("topic two", lambda: replicas(cluster, "two") == {1, 2})
        # It is remembered while the broker is away.
        cluster.stop(3)
        assert create(cluster, "three", 1, 3) == INVALID_FACTOR
        cluster.start(3)
        assert log_dir(cluster, 3)[1]
        assert create(cluster, "three", 1, 3) == INVALID_FACTOR
        # What is set while it runs counts more.
        assert alter(cluster, 3, "") == (NONE, None)
        assert create(cluster, "three", 1, 3) == NONE
        assert alter(cluster, 3, None) == (NONE, None)
        assert create(cluster, "four", 1, 3) == INVALID_FACTOR
        del cluster[3].overrides[KEY]
        cluster.restart(3)
        assert told(cluster, 3) == ("", DEFAULT) and not log_dir(cluster, 3)[1]
        assert create(cluster, "four", 1, 3) == NONE


if __name__ == "__main__":
    cases.main("cluster", globals())
