#!/usr/bin/env python3
"""Who votes on the metadata, when machines change: voters that come back at another address, one or
all at once; voters that lost their disk; dead ones that are replaced.
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import NONE, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402
from test_quorum import (VOTER_NOT_FOUND, add_voter, addresses, controller_of,  # noqa: E402
                         described, directory_id, format_node, growing_cluster, guarded,
                         leader_of, members, move, remove_voter, wait_members)


def voting_cluster(count, voters=None):
    """Nodes of which the first `voters` (default: all) vote."""
    cluster = growing_cluster(count)
    try:
        cluster.start_all()
        for node in range(2, (count if voters is None else voters) + 1):
            assert add_voter(cluster, 1, node)["errorCode"] == NONE
    except BaseException:
        cluster.close(failed=True)
        raise
    return cluster


def create(cluster, node, name, replicas):
    with cluster.connect(node, 30.0) as client:
        answer = client.call("CreateTopics", 7, timeoutMs=25000, topics=[
            {"name": name, "numPartitions": 1, "replicationFactor": replicas}])["topics"][0]
    assert answer["errorCode"] == NONE, answer


def wait_address(cluster, *nodes):
    """Until every node that runs says that the nodes are reached where they are."""
    for node in nodes:
        wait_for("the address of %d" % node, lambda: all(
            addresses(cluster, one)[node] == controller_of(cluster, node)
            for one in cluster.running()), 20)


def wait_directory(cluster, node):
    """Until the metadata knows the node by the directory that it has now."""
    wait_for("the directory of %d" % node, lambda: directory_told(cluster, node) ==
             directory_id(cluster[node]), 20)


def directory_told(cluster, node):
    part = described(cluster, cluster.running()[0])["topics"][0]["partitions"][0]
    found = [one["replicaDirectoryId"] for one in part["currentVoters"]
             if one["replicaId"] == node]
    return found[0] if found else None


def set_bootstrap(cluster):
    """All nodes are told, with their next start, where all controllers are by now."""
    places = ",".join("%s:%d" % controller_of(cluster, node) for node in cluster)
    for node in cluster:
        cluster[node].overrides["controller.quorum.bootstrap.servers"] = places


def wipe(cluster, node):
    """The node, which is down, loses its disk; its new one is formatted."""
    shutil.rmtree(cluster[node].data_dir)
    format_node(cluster[node], cluster.cluster_id, "-N")


def test_of_two_voters_one_moves():
    """First the one that leads, then the other one: neither has a majority without it."""
    def case(cluster):
        leader = leader_of(cluster, 1)
        for node in (leader, 3 - leader):
            cluster.kill(node)
            move(cluster, node)
            cluster.start(node)
            wait_address(cluster, node)
            create(cluster, node, "with-%d" % node, 2)
            cluster.restart(3 - node)  # it has kept the address
            create(cluster, node, "again-%d" % node, 2)

    guarded(voting_cluster(2), case)


def all_move(cluster):
    for node in cluster:
        cluster.kill(node)
    for node in cluster:
        move(cluster, node)
    set_bootstrap(cluster)
    cluster.start_all()
    wait_address(cluster, *cluster)
    create(cluster, 1, "there", len(cluster))


def test_both_of_two_voters_move():
    guarded(voting_cluster(2), all_move)


def test_all_of_three_voters_move():
    guarded(voting_cluster(3), all_move)


def test_the_only_voter_moves():
    def case(cluster):
        cluster.kill(1)
        move(cluster, 1)
        cluster.start(1)
        wait_address(cluster, 1)
        create(cluster, 2, "there", 3)

    guarded(voting_cluster(3, voters=1), case)


def test_a_fixed_voter_moves():
    """The others are told where it is with their next restart; until then it is reached too."""
    def case(cluster):
        cluster.start_all()
        cluster.stop(3)
        before = "%s:%d" % controller_of(cluster, 3)
        move(cluster, 3)
        settings = cluster[3].overrides
        settings["controller.quorum.voters"] = settings["controller.quorum.voters"].replace(
            before, "%s:%d" % controller_of(cluster, 3))
        cluster.start(3)
        cluster.wait_brokers(3)
        cluster.kill(1)  # what comes now needs the vote of the one that moved
        create(cluster, 3, "with", 2)
        cluster.start(1)

    guarded(Cluster(3), case)


def voter_is_wiped(cluster, elsewhere):
    leader = leader_of(cluster, 1)
    others = [node for node in cluster if node != leader]
    for node in (leader, others[0]):
        cluster.kill(node)
        before = directory_id(cluster[node])
        wipe(cluster, node)
        if elsewhere:
            move(cluster, node)
            set_bootstrap(cluster)
        cluster.start(node)
        assert directory_id(cluster[node]) != before
        wait_directory(cluster, node)
        wait_address(cluster, node)
        wait_members(cluster, sorted(cluster), [])
        create(cluster, node, "with-%d" % node, len(cluster))
        cluster.wait_led("with-%d" % node, 1)
    if len(cluster) > 2:
        other = others[-1]
        cluster.kill(other)  # what comes now needs the votes of those that were wiped
        create(cluster, leader, "without-%d" % other, 2)
        cluster.start(other)
    assert remove_voter(cluster, 1, node, before)["errorCode"] == VOTER_NOT_FOUND
    wait_for("the others to keep up, so that voter %d is spared" % node,
             lambda: remove_voter(cluster, 1, node)["errorCode"] == NONE)
    wait_members(cluster, sorted(set(cluster) - {node}), [node])
    assert add_voter(cluster, 1, node)["errorCode"] == NONE
    wait_members(cluster, sorted(cluster), [])


def test_one_of_two_voters_is_wiped():
    guarded(voting_cluster(2), lambda cluster: voter_is_wiped(cluster, False))


def test_one_of_two_voters_is_wiped_and_moves():
    guarded(voting_cluster(2), lambda cluster: voter_is_wiped(cluster, True))


def test_one_of_three_voters_is_wiped():
    guarded(voting_cluster(3), lambda cluster: voter_is_wiped(cluster, False))


def test_one_of_three_voters_is_wiped_and_moves():
    guarded(voting_cluster(3), lambda cluster: voter_is_wiped(cluster, True))


def test_the_only_voter_is_wiped():
    """What it had is elsewhere too, but nobody may say so: it begins no second history."""
    def case(cluster):
        create(cluster, 1, "kept", 2)
        cluster.wait_led("kept", 1)
        cluster.kill(1)
        wipe(cluster, 1)
        cluster.start(1, wait=False)

        def said():
            with open(cluster[1].log_path) as log:
                return "was the only voter on metadata" in log.read()

        wait_for("node 1 to say what it lacks", said, 20)
        cluster.kill(2)
        cluster.start(2, wait=False)
        wait_for("node 2 to be linked", lambda: linked(cluster[1], 2), 20)
        with open(cluster[1].log_path) as log:
            assert "a new cluster" not in log.read()
        cluster.kill(1)
        cluster.kill(2)

    guarded(voting_cluster(2, voters=1), case)


def linked(broker, node):
    with open(broker.log_path) as log:
        return "linked to node %d" % node in log.read()


def test_a_dead_voter_is_replaced_by_another_node():
    """As Kafka's tools do: the new one comes in, then the dead one goes, by the directory that
    DescribeQuorum tells."""
    cluster = growing_cluster(4)
    try:
        for node in (1, 2, 3):
            cluster.start(node, wait=False)
        cluster.wait_brokers(3)
        for node in (2, 3):
            assert add_voter(cluster, 1, node)["errorCode"] == NONE
        leader = leader_of(cluster, 1)
        left = [node for node in (1, 2, 3) if node != leader]
        cluster.kill(leader)
        cluster.start(4)
        assert add_voter(cluster, left[0], 4)["errorCode"] == NONE
        dead = directory_told(cluster, leader)
        assert dead == directory_id(cluster[leader])
        assert remove_voter(cluster, left[0], leader, dead)["errorCode"] == NONE
        wait_members(cluster, sorted([*left, 4]), [leader])
        cluster.kill(left[0])  # what comes now needs the vote of the new one
        create(cluster, 4, "with", 2)
        assert members(cluster, 4)[0] == sorted([*left, 4])
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()


if __name__ == "__main__":
    cases.main("cluster", globals())
