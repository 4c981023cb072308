#!/usr/bin/env python3
"""The metadata of a cluster: what is made through any node is everywhere, whoever leads the metadata
log and whoever dies; brokers register, are fenced, come back and leave.
"""
import os
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import NONE, NOT_LEADER, TOPIC_EXISTS, UNKNOWN_TOPIC, batch, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402

TIMED_OUT, INVALID_ASSIGNMENT, NOT_REGISTERED = 7, 39, 102
FAST_FENCE = {"broker.session.timeout.ms": 1500}


def quorum(cluster, node):
    """What the node answers to DescribeQuorum about the metadata log."""
    with cluster.connect(node, 20.0) as client:
        answer = client.call("DescribeQuorum", 2, topics=[
            {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}])
    assert answer["errorCode"] == NONE, answer
    found = answer["topics"][0]["partitions"][0]
    assert found["errorCode"] == NONE, found
    return found


def controller(cluster):
    return quorum(cluster, cluster.running()[0])["leaderId"]


def create(cluster, node, name, partitions=3):
    """Creates the topic through that node; it must be in that node's Metadata at once."""
    with cluster.connect(node, 20.0) as client:
        wanted = {"name": name, "numPartitions": partitions,
                  "replicationFactor": 3}
        answer = client.call("CreateTopics", 7, topics=[wanted], timeoutMs=20000)["topics"][0]
        assert answer["errorCode"] == NONE, answer
        assert answer["numPartitions"] == partitions, answer
        told = client.call("Metadata", 12, topics=[{"name": name}],
                           allowAutoTopicCreation=False)["topics"][0]
        assert told["errorCode"] == NONE and len(told["partitions"]) == partitions, told
        assert all(one["leaderId"] >= 0 for one in told["partitions"]), told


def create_in_the_end(cluster, node, name):
    """While a leader is silent that may have made the topic, the answer is REQUEST_TIMED_OUT."""
    with cluster.connect(node, 20.0) as client:
        errors = []
        while not errors or errors[-1] == TIMED_OUT:
            answer = client.call("CreateTopics", 7, timeoutMs=20000, topics=[
                {"name": name, "numPartitions": 1, "replicationFactor": 3}])
            errors.append(answer["topics"][0]["errorCode"])
    assert errors[-1] == NONE or (len(errors) > 1 and errors[-1] == TOPIC_EXISTS), errors


def topics(cluster, node):
    return {one["name"] for one in cluster.metadata(node)["topics"] if not one["isInternal"]}


def wait_topics(cluster, names):
    """Until every node that runs tells of exactly these."""
    wait_for("topics %s" % sorted(names), lambda: all(
        topics(cluster, node) == set(names) for node in cluster.running()), 30)


def test_topics_made_at_any_node_are_everywhere():
    with Cluster(3) as cluster:
        for node in cluster:
            create(cluster, node, "t%d" % node)
        wait_topics(cluster, {"t1", "t2", "t3"})
        for node in cluster:
            for partition in range(3):
                assert cluster.produce("t%d" % node, partition, batch([b"x"])) == 0
        with cluster.connect(2) as client:
            answer = client.call("DeleteTopics", 6, topics=[{"name": "t1", "topicId": bytes(16)}],
                                 timeoutMs=20000)["responses"][0]
            assert answer["errorCode"] == NONE, answer
        wait_topics(cluster, {"t2", "t3"})
        with cluster.connect(3) as client:
            answer = client.call("CreatePartitions", 3, timeoutMs=20000, validateOnly=False,
                                 topics=[{"name": "t2", "count": 5, "assignments": None}])
            assert answer["results"][0]["errorCode"] == NONE, answer
        cluster.wait_led("t2", 5)


def test_names_that_are_used_come_into_being_at_any_node():
    with Cluster(3) as cluster:
        for node in cluster:
            with cluster.connect(node, 20.0) as client:
                told = client.call("Metadata", 12, topics=[{"name": "auto%d" % node}],
                                   allowAutoTopicCreation=True)["topics"][0]
                assert told["errorCode"] == NONE and told["partitions"][0]["leaderId"] >= 0, told
        wait_topics(cluster, {"auto1", "auto2", "auto3"})


def test_producer_ids_are_given_once():
    with Cluster(3, overrides={"ottla.shards": 2}) as cluster:
        seen = []
        for node in list(cluster) * 4:
            with cluster.connect(node, 20.0) as client:
                answer = client.call("InitProducerId", 4, transactionalId=None, producerId=-1,
                                     producerEpoch=-1, transactionTimeoutMs=1000)
                assert answer["errorCode"] == NONE, answer
                seen.append(answer["producerId"])
        assert len(set(seen)) == len(seen), seen


def test_the_metadata_leader_is_killed_and_comes_back():
    with Cluster(3) as cluster:
        create(cluster, 1, "before")
        leader = controller(cluster)
        cluster.kill(leader)
        begun = time.monotonic()
        wait_for("another leader of the metadata log", lambda: controller(cluster) != leader, 20)
        for node in cluster.running():
            create(cluster, node, "without%d" % node)
        print("another leader and %d topics after %.2f s" % (len(cluster.running()),
                                                            time.monotonic() - begun))
        names = {"before"} | {"without%d" % node for node in cluster.running()}
        cluster.wait_led("before", 3)
        assert cluster.produce("before", 0, batch([b"while it is away"])) == 0
        cluster.start(leader)
        assert topics(cluster, leader) == names, "served clients before it had caught up"
        create(cluster, leader, "after")
        wait_topics(cluster, names | {"after"})


def test_the_metadata_leader_is_paused():
    with Cluster(3) as cluster:
        leader = controller(cluster)
        cluster.freeze(leader)
        begun = time.monotonic()
        for node in cluster.running():
            create_in_the_end(cluster, node, "without%d" % node)
        seconds = time.monotonic() - begun
        cluster.resume(leader)
        wait_topics(cluster, {"without%d" % node for node in cluster if node != leader})
        create(cluster, leader, "after")
        assert seconds < 4, "created after %.2f s" % seconds
        print("another leader and 2 topics after %.2f s" % seconds)


def test_a_node_that_was_away_has_what_came_and_went():
    with Cluster(3) as cluster:
        create(cluster, 1, "kept")
        create(cluster, 1, "gone")
        away = 1 + controller(cluster) % 3
        cluster.stop(away)
        other = cluster.running()[0]
        with cluster.connect(other) as client:
            client.call("DeleteTopics", 6, topics=[{"name": "gone", "topicId": bytes(16)}],
                        timeoutMs=20000)
        create(cluster, other, "gone", 2)
        create(cluster, other, "new")
        cluster.start(away)
        assert topics(cluster, away) == {"kept", "gone", "new"}
        assert len(cluster.metadata(away, ["gone"])["topics"][0]["partitions"]) == 2


def test_a_node_that_was_away_for_a_whole_snapshot():
    """A topic of many partitions that comes and goes fills the log, until a snapshot replaces it;
    nodes that are started anew have nothing else to give to the one that was away."""
    with Cluster(3, overrides={"ottla.topic.partition.groups": 1,
                               "metadata.log.max.record.bytes.between.snapshots": 60000,
                               "broker.session.timeout.ms": 60000}) as cluster:
        create(cluster, 1, "gone")
        leader = controller(cluster)
        away = 1 + leader % 3
        cluster.stop(away)
        create(cluster, leader, "kept")

        def is_written():
            with open(cluster[leader].log_path) as log:
                return "snapshot written" in log.read()

        with cluster.connect(leader, 20.0) as client:
            def remove(name):
                answer = client.call("DeleteTopics", 6, timeoutMs=20000,
                                     topics=[{"name": name, "topicId": bytes(16)}])
                assert answer["responses"][0]["errorCode"] == NONE, answer

            remove("gone")
            for _ in range(6):
                answer = client.call("CreateTopics", 7, timeoutMs=20000, topics=[
                    {"name": "large", "numPartitions": 10000, "replicationFactor": 1}])
                assert answer["topics"][0]["errorCode"] == NONE, answer
                remove("large")
        wait_for("a snapshot", is_written, 20)
        for node in cluster.running():
            cluster.restart(node)
        cluster.start(away)
        assert topics(cluster, away) == {"kept"}
        create(cluster, away, "new")
        wait_topics(cluster, {"kept", "new"})
        assert cluster.produce("kept", 0, batch([b"x"])) == 0


def test_a_node_that_lost_its_disk():
    with Cluster(3) as cluster:
        create(cluster, 1, "t")
        lost = 1 + controller(cluster) % 3
        for partition in range(3):
            assert cluster.produce("t", partition, batch([b"x"] * 10)) == 0
        cluster.stop(lost)
        shutil.rmtree(cluster[lost].data_dir)
        cluster.start(lost)
        assert topics(cluster, lost) == {"t"}
        for node in (1 + lost % 3, 1 + (lost + 1) % 3):
            wait_for("all replicas in sync", lambda: all(
                len(cluster.partition(lost, "t", one)["isrNodes"]) == 3 for one in range(3)), 30)
            cluster.restart(node)
        for partition in range(3):
            assert cluster.produce("t", partition, batch([b"y"])) == 10


def test_all_nodes_at_once():
    with Cluster(3) as cluster:
        create(cluster, 2, "t")
        assert cluster.produce("t", 1, batch([b"x"])) == 0
        for node in cluster:
            cluster.kill(node)
        cluster.start_all()
        wait_topics(cluster, {"t"})
        cluster.wait_led("t", 3)
        assert cluster.produce("t", 1, batch([b"y"])) == 1
        create(cluster, 3, "later")


def test_brokers_that_do_not_vote():
    with Cluster(4, voters=3) as cluster:
        found = quorum(cluster, 4)
        assert sorted(one["replicaId"] for one in found["currentVoters"]) == [1, 2, 3], found
        wait_for("a learner", lambda: [
            one["replicaId"] for one in quorum(cluster, 1)["observers"]] == [4], 20)
        create(cluster, 4, "t", 4)
        cluster.wait_led("t", 4)
        assert 4 in {node for one in cluster.metadata(1, ["t"])["topics"][0]["partitions"]
                     for node in one["replicaNodes"]}
        cluster.kill(4)
        create(cluster, 1, "meanwhile")
        cluster.start(4)
        assert topics(cluster, 4) == {"t", "meanwhile"}


def test_controllers_that_are_no_brokers():
    cluster = Cluster(6, voters=3)
    for node in (1, 2, 3):
        settings = cluster[node].overrides
        address = settings["listeners"].split("CONTROLLER://")[1]
        settings.update({"process.roles": "controller", "listeners": "CONTROLLER://" + address})
        cluster[node].port = int(address.rsplit(":", 1)[1])
    try:
        cluster.start_all(wait=False)
        cluster.wait_brokers(3, [4, 5, 6])
        assert cluster.brokers(4) == [4, 5, 6]
        create(cluster, 5, "t")
        with cluster.connect(4) as client:
            wait_for("a coordinator, of three brokers", lambda: client.call(
                "FindCoordinator", 3, key="g", keyType=0)["errorCode"] == NONE, 10)
        assert len(cluster.partition(5, "__consumer_offsets", 0)["replicaNodes"]) == 3
        found = quorum(cluster, 6)
        assert sorted(one["replicaId"] for one in found["currentVoters"]) == [1, 2, 3], found
        cluster.kill(found["leaderId"])
        create(cluster, 4, "later")
        with cluster.connect(4) as client:
            assert client.produce("t", 0, batch([b"x"]))[0] in (NONE, NOT_LEADER)
        for node in (1, 2, 3):
            if cluster[node].alive():
                cluster.stop(node)
        for node in (4, 5, 6):
            cluster.stop(node)
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()


def test_who_is_not_heard_is_fenced_and_taken_back():
    with Cluster(3, overrides=FAST_FENCE) as cluster:
        away = 1 + controller(cluster) % 3
        cluster.freeze(away)
        paused_ms = time.time() * 1000
        cluster.wait_brokers(2)
        # The voter that is silent: for how long, and since when it may lack something.
        for state in quorum(cluster, controller(cluster))["currentVoters"]:
            for key in ("lastFetchTimestamp", "lastCaughtUpTimestamp"):
                ago = time.time() * 1000 - state[key]
                silent = time.time() * 1000 - paused_ms
                assert ago < (silent if state["replicaId"] == away else 0) + 1000, (key, state)
                assert state["replicaId"] != away or ago > silent - 200, (key, state, silent)
        cluster.resume(away)
        cluster.wait_brokers(3)


def test_what_nobody_can_lead_is_named():
    with Cluster(3) as cluster:
        create(cluster, 1, "t", 1)
        with cluster.connect() as client:
            answer = client.call("ElectLeaders", 2, electionType=0, timeoutMs=10000,
                                 topicPartitions=[{"topic": "nope", "partitions": [0]},
                                                  {"topic": "t", "partitions": [7]}])
        found = [topic["partitionResult"][0] for topic in answer["replicaElectionResults"]]
        assert [(one["errorCode"], one["errorMessage"]) for one in found] == [
            (UNKNOWN_TOPIC, "No such topic as nope"), (UNKNOWN_TOPIC, "No such partition as t-7")]


def test_no_partition_is_given_to_the_dead_alone():
    """kafka-topics --create --replica-assignment: nobody would ever lead it."""
    with Cluster(3, overrides=FAST_FENCE) as cluster:
        cluster.kill(3)
        cluster.wait_brokers(2)

        def assigned(*lists):
            with cluster.connect(timeout_s=20.0) as client:
                answer = client.call("CreateTopics", 7, timeoutMs=20000, topics=[
                    {"name": "u", "numPartitions": -1, "replicationFactor": -1, "assignments": [
                        {"partitionIndex": index, "brokerIds": brokers}
                        for index, brokers in enumerate(lists)]}])
            return answer["topics"][0]["errorCode"]

        assert assigned([1], [3]) == INVALID_ASSIGNMENT
        assert assigned([3, 1, 2], [1, 3, 2]) == NONE
        cluster.wait_led("u", 2)


def test_a_broker_is_unregistered():
    with Cluster(4, voters=3, overrides=FAST_FENCE) as cluster:
        with cluster.connect(2) as client:
            answer = client.call("UnregisterBroker", 0, brokerId=9)
            assert answer["errorCode"] == NOT_REGISTERED
            assert answer["errorMessage"] == "Broker ID 9 is not currently registered"
            cluster.stop(4)
            assert client.call("UnregisterBroker", 0, brokerId=4)["errorCode"] == NONE
        cluster.wait_brokers(3)
        wait_for("no learner", lambda: not quorum(cluster, 1)["observers"], 20)
        # One that runs: no client knows it any more, so that others lead, until it starts anew.
        create(cluster, 1, "t", 6)
        gone = cluster.leader("t", 0)
        others = [node for node in (1, 2, 3) if node != gone]
        with cluster.connect(others[0]) as client:
            assert client.call("UnregisterBroker", 0, brokerId=gone)["errorCode"] == NONE
        cluster.wait_brokers(2, nodes=others)
        for partition in range(6):
            assert cluster.wait_leader("t", partition, nodes=others, timeout_s=10) != gone
        cluster.restart(gone)
        cluster.wait_brokers(3, nodes=(1, 2, 3))


def test_who_stops_is_not_told_of_any_more():
    """Whoever it is, at once and not after broker.session.timeout.ms; also the leader."""
    with Cluster(3) as cluster:
        create(cluster, 1, "t", 6)
        for stopping in cluster:
            begun = time.monotonic()
            cluster.stop(stopping)
            seconds = time.monotonic() - begun
            assert seconds < 2, "stopped after %.2f s" % seconds
            others = [node for node in cluster if node != stopping]
            for node in others:
                assert cluster.brokers(node) == others, (node, cluster.brokers(node))
            create(cluster, others[0], "without%d" % stopping, 1)
            cluster.start(stopping)
            cluster.wait_brokers(3)
            print("node %d stopped after %.2f s" % (stopping, seconds))


def test_a_stop_that_nobody_hears_of():
    with Cluster(3) as cluster:
        cluster.kill(2)
        cluster.kill(3)
        begun = time.monotonic()
        cluster.stop(1)
        assert time.monotonic() - begun < 2, "a stop takes two seconds at most"


def test_a_stop_hands_over_first():
    with Cluster(3) as cluster:
        create(cluster, 1, "t", 6)
        cluster.wait_led("t", 6)
        leader = controller(cluster)
        begun = time.monotonic()
        cluster.stop(leader)
        assert time.monotonic() - begun < 2, "a stop takes two seconds at most"
        cluster.wait_led("t", 6, 5)
        assert controller(cluster) != leader
        print("stopped and led again after %.2f s" % (time.monotonic() - begun))


def test_topics_are_made_during_a_rolling_restart():
    """Each at a node that stays up meanwhile, so that no connection is lost: no error may come."""
    with Cluster(3) as cluster:
        made, slowest = 0, 0.0
        for stopping in cluster:
            stays = 1 + stopping % 3
            restart = threading.Thread(target=cluster.restart, args=(stopping,))
            with cluster.connect(stays, 20.0) as client:
                restart.start()
                before = made
                while restart.is_alive() or made == before:
                    begun = time.monotonic()
                    answer = client.call("CreateTopics", 7, timeoutMs=20000, topics=[
                        {"name": "t%d" % made, "numPartitions": 1, "replicationFactor": 3}])
                    assert answer["topics"][0]["errorCode"] == NONE, answer
                    slowest = max(slowest, time.monotonic() - begun)
                    made += 1
                restart.join()
        wait_topics(cluster, {"t%d" % number for number in range(made)})
        print("%d topics, the slowest took %.2f s" % (made, slowest))


if __name__ == "__main__":
    cases.main("cluster", globals())
