#!/usr/bin/env python3
"""What clients are told in a cluster: brokers, leaders, coordinators, who is not the right one to
ask and who is; and reading from the nearest replica.
"""
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
import wire  # noqa: E402
from client import NONE, batch, wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402

UNKNOWN_TOPIC, NOT_LEADER, NOT_COORDINATOR = 3, 6, 16
COORDINATOR_NOT_AVAILABLE = 15
INVALID_REPLICATION_FACTOR, INVALID_REQUEST = 38, 42
FENCED_EPOCH, UNKNOWN_EPOCH, MISMATCHED_ENDPOINT = 74, 75, 114
FENCED_INSTANCE = 82
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = {1: {"broker.rack": "a"}, 2: {"broker.rack": "b"}, 3: {"broker.rack": "c"}}
FAST_FENCE = {"broker.session.timeout.ms": 1500}


def topic_id(cluster, name):
    return cluster.metadata(cluster.running()[0], [name])["topics"][0]["topicId"]


def fetch(cluster, node, topic, partition=0, offset=0, version=16, rack="", epoch=-1, wait_ms=0):
    """(the partition's data, {node: (host, port)} of the answer's endpoints)"""
    part = {"partition": partition, "fetchOffset": offset, "partitionMaxBytes": 1 << 20,
            "currentLeaderEpoch": epoch}
    asked = {"topicId": topic_id(cluster, topic)} if version >= 13 else {"topic": topic}
    values = {"maxWaitMs": wait_ms, "minBytes": 1, "topics": [dict(asked, partitions=[part])]}
    if version >= 11:
        values["rackId"] = rack
    with cluster.connect(node) as client:
        answer = client.call("Fetch", version, **values)
    nodes = {one["nodeId"]: (one["host"], one["port"]) for one in answer.get("nodeEndpoints", [])}
    return answer["responses"][0]["partitions"][0], nodes


def records(data):
    return [one["value"] for found in wire.read_batches(data["records"])
            for one in found["records"]]


def others(cluster, node):
    return [other for other in cluster if other != node]


def only_replica(cluster, name):
    """A topic with one partition and one replica; returns the node that has it."""
    cluster.create_topic(name, 1, 1)
    return cluster.leader(name)


def coordinator(cluster, node, group):
    """(error, node) of FindCoordinator"""
    with cluster.connect(node) as client:
        found = client.call("FindCoordinator", 4, coordinatorKeys=[group],
                            keyType=0)["coordinators"][0]
    if found["errorCode"] == NONE:
        assert (found["host"], found["port"]) == ("127.0.0.1", cluster[found["nodeId"]].port), found
    return found["errorCode"], found["nodeId"]


def wait_coordinator(cluster, group, other_than=-1):
    """Until all that run name the same coordinator."""
    def agreed():
        told = {coordinator(cluster, node, group) for node in cluster.running()}
        error, node = told.pop()
        return node if not told and error == NONE and node != other_than else None

    return wait_for("the coordinator of " + group, agreed, 30)


def test_every_node_tells_of_all_brokers_and_one_controller():
    with Cluster(3, each=RACKS) as cluster:
        seen = []
        for node in cluster:
            told = cluster.metadata(node, [])
            assert told["clusterId"] == cluster.cluster_id, told
            assert [(b["nodeId"], b["host"], b["port"], b["rack"]) for b in told["brokers"]] == [
                (n, "127.0.0.1", cluster[n].port, "abc"[n - 1]) for n in cluster], told
            seen.append(told["controllerId"])
        assert len(set(seen)) == 1 and seen[0] in cluster, seen
        for node in cluster:
            with cluster.connect(node) as client:
                told = client.call("DescribeCluster", 2, endpointType=1)
            assert told["errorCode"] == NONE and told["controllerId"] == seen[0], told
            assert [(b["brokerId"], b["port"], b["rack"], b["isFenced"])
                    for b in told["brokers"]] == [(n, cluster[n].port, "abc"[n - 1], False)
                                                  for n in cluster], told


def test_a_controller_listener_tells_of_the_voters():
    with Cluster(3) as cluster:
        words = cluster[2].overrides["listeners"]
        port = int(words.rsplit(":", 1)[1])
        with wire.Conn("127.0.0.1:%d" % port) as conn:
            told = conn.call("DescribeCluster", 2, endpointType=2)
            assert told["errorCode"] == NONE and told["endpointType"] == 2, told
            assert [b["brokerId"] for b in told["brokers"]] == [1, 2, 3], told
            assert told["brokers"][1]["port"] == port, told
            assert told["controllerId"] in cluster, told
            told = conn.call("DescribeCluster", 2, endpointType=1)
            assert told["errorCode"] == MISMATCHED_ENDPOINT, told
        with wire.Conn("127.0.0.1:%d" % port) as conn:
            try:
                conn.call("Metadata", 12, topics=None)
                raise AssertionError("Metadata is not for a listener of controllers")
            except EOFError:
                pass
        assert cluster.brokers(2) == [1, 2, 3]


def test_leaders_are_spread_and_all_nodes_agree():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 6, 3)
        leaders = []
        for partition in range(6):
            leaders.append(cluster.wait_leader("t", partition))
            for node in cluster:
                told = cluster.partition(node, "t", partition)
                assert told["errorCode"] == NONE and told["leaderEpoch"] > 0, told
                assert sorted(told["replicaNodes"]) == sorted(told["isrNodes"]) == [1, 2, 3], told
                assert told["offlineReplicas"] == [], told
                assert told["leaderId"] == told["replicaNodes"][0], told
        assert sorted(leaders) == [1, 1, 2, 2, 3, 3], leaders


def test_topics_of_one_replica_are_spread():
    with Cluster(3) as cluster:
        leaders = [only_replica(cluster, "t%d" % i) for i in range(6)]
        assert sorted(leaders) == [1, 1, 2, 2, 3, 3], leaders


def test_replicas_are_in_different_racks():
    racks = {1: "a", 2: "a", 3: "b"}
    with Cluster(3, each={n: {"broker.rack": rack} for n, rack in racks.items()}) as cluster:
        cluster.create_topic("t", 12, 2)
        for partition in range(12):
            told = cluster.partition(1, "t", partition)["replicaNodes"]
            assert {racks[node] for node in told} == {"a", "b"}, told


def test_more_replicas_than_brokers_are_refused():
    with Cluster(3) as cluster, cluster.connect(2) as client:
        told = client.call("CreateTopics", 7, timeoutMs=10000, topics=[
            {"name": "t", "numPartitions": 1, "replicationFactor": 4}])["topics"][0]
        assert told["errorCode"] == INVALID_REPLICATION_FACTOR, told
        assert "cannot be reached because only 3 broker(s)" in told["errorMessage"], told


def test_produce_to_another_than_the_leader_names_the_leader():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t")
        epoch = cluster.partition(leader, "t", 0)["leaderEpoch"]
        for node in others(cluster, leader):
            with cluster.connect(node) as client:
                told = client.call("Produce", 11, acks=-1, timeoutMs=5000, topicData=[
                    {"name": "t", "partitionData": [{"index": 0, "records": batch([b"x"])}]}])
            part = told["responses"][0]["partitionResponses"][0]
            assert part["errorCode"] == NOT_LEADER, part
            assert part["currentLeader"] == {"leaderId": leader, "leaderEpoch": epoch}, part
            assert [(one["nodeId"], one["host"], one["port"]) for one in told["nodeEndpoints"]] == [
                (leader, "127.0.0.1", cluster[leader].port)], told
        assert cluster.produce("t", 0, batch([b"x"])) == 0


def test_a_partition_that_is_elsewhere_is_not_led_here():
    with Cluster(3) as cluster:
        holder = only_replica(cluster, "t")
        node = others(cluster, holder)[0]
        cluster.produce("t", 0, batch([b"one"]))
        part, nodes = fetch(cluster, node, "t")
        assert part["errorCode"] == NOT_LEADER, part
        assert part["currentLeader"]["leaderId"] == holder, part
        assert nodes == {holder: ("127.0.0.1", cluster[holder].port)}, nodes
        with cluster.connect(node) as client:
            assert client.produce("t", 0, batch([b"x"]))[0] == NOT_LEADER
            assert client.list_offset("t", 0)[0] == NOT_LEADER
            assert client.delete_records("t", 0, 1)[1] == NOT_LEADER
            assert client.list_offset("t", 1)[0] == UNKNOWN_TOPIC
            told = client.call("OffsetForLeaderEpoch", 4, topics=[{"topic": "t", "partitions": [
                {"partition": 0, "leaderEpoch": 1}]}])["topics"][0]["partitions"][0]
            assert told["errorCode"] == NOT_LEADER, told
        part, nodes = fetch(cluster, holder, "t")
        assert part["errorCode"] == NONE and records(part) == [b"one"] and nodes == {}, part


def test_epochs_that_are_past_or_to_come_are_told():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        cluster.produce("t", 0, batch([b"one"]))
        first = cluster.wait_leader("t")
        epoch = cluster.partition(first, "t", 0)["leaderEpoch"]
        part, _ = fetch(cluster, first, "t", epoch=epoch)
        assert part["errorCode"] == NONE and records(part) == [b"one"], part
        cluster.kill(first)
        second = cluster.wait_leader("t", other_than=first)
        cluster.produce("t", 0, batch([b"two"]))
        now = cluster.partition(second, "t", 0)["leaderEpoch"]
        assert now > epoch
        part, nodes = fetch(cluster, second, "t", epoch=epoch)
        assert part["errorCode"] == FENCED_EPOCH, part
        assert part["currentLeader"] == {"leaderId": second, "leaderEpoch": now}, part
        assert nodes == {second: ("127.0.0.1", cluster[second].port)}, nodes
        part, _ = fetch(cluster, second, "t", epoch=now + 1)
        assert part["errorCode"] == UNKNOWN_EPOCH, part
        with cluster.connect(second) as client:
            told = client.call("OffsetForLeaderEpoch", 4, topics=[{"topic": "t", "partitions": [
                {"partition": 0, "currentLeaderEpoch": now, "leaderEpoch": epoch}]}])
        told = told["topics"][0]["partitions"][0]
        assert (told["errorCode"], told["leaderEpoch"], told["endOffset"]) == (NONE, epoch, 1), told


def test_a_lost_broker_is_out_of_the_replicas_in_sync_and_then_of_the_brokers():
    with Cluster(3, FAST_FENCE) as cluster:
        cluster.create_topic("t", 3, 3)
        lost = cluster.wait_leader("t")
        left = others(cluster, lost)
        cluster.kill(lost)
        for partition in range(3):
            cluster.wait_leader("t", partition, other_than=lost)

        def without():
            told = [cluster.partition(node, "t", p) for node in left for p in range(3)]
            return all(sorted(one["isrNodes"]) == left and one["offlineReplicas"] == [lost] and
                       sorted(one["replicaNodes"]) == [1, 2, 3] for one in told)

        wait_for("replicas in sync without the lost one", without)
        cluster.wait_brokers(2)
        with cluster.connect(left[0]) as client:
            told = client.call("DescribeCluster", 2, endpointType=1, includeFencedBrokers=True)
            assert [(b["brokerId"], b["isFenced"]) for b in told["brokers"]] == [
                (node, node == lost) for node in cluster], told
            told = client.call("DescribeCluster", 2, endpointType=1)
            assert [b["brokerId"] for b in told["brokers"]] == left, told
        cluster.start(lost)
        cluster.wait_brokers(3)
        wait_for("it is in sync again", lambda: all(
            sorted(cluster.partition(node, "t", 0)["isrNodes"]) == [1, 2, 3] for node in cluster))


def test_a_node_that_says_nothing_is_not_told_as_leader():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 3, 3)
        silent = cluster.wait_leader("t")
        cluster.freeze(silent)
        leader = cluster.wait_leader("t", other_than=silent, timeout_s=5)
        cluster.resume(silent)
        assert cluster.wait_leader("t", nodes=list(cluster)) in (leader, silent)
        cluster.produce("t", 0, batch([b"x"]))


def test_who_leads_no_more_is_told_by_nobody():
    """Of two replicas one is gone: the other one has no majority, and says so to those without."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 3, 2)
        leader = cluster.wait_leader("t")
        replicas = cluster.partition(leader, "t", 0)["replicaNodes"]
        cluster.kill(next(node for node in replicas if node != leader))
        for node in cluster.running():
            wait_for("no leader told by node %d" % node,
                     lambda: cluster.partition(node, "t", 0)["leaderId"] == -1)


def test_brokers_that_do_not_vote_on_metadata_are_told_and_lead_like_the_others():
    with Cluster(5, voters=3) as cluster:
        for node in cluster:
            told = cluster.metadata(node, [])
            assert [one["nodeId"] for one in told["brokers"]] == [1, 2, 3, 4, 5], told
            assert told["controllerId"] in (1, 2, 3), told
        cluster.create_topic("t", 10, 3, node=5)
        leaders = sorted(cluster.wait_leader("t", partition) for partition in range(10))
        assert leaders == sorted(2 * [1, 2, 3, 4, 5]), leaders


def test_groups_are_served_by_their_coordinator_alone():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        groups = ["g%d" % i for i in range(12)]
        found = {group: wait_coordinator(cluster, group) for group in groups}
        assert set(found.values()) == {1, 2, 3}, found
        for group, node in found.items():
            with cluster.connect(node) as client:
                wait_for("the group is loaded", lambda: client.commit(
                    group, {("t", 0): 7})["t", 0] == NONE)
            with cluster.connect(others(cluster, node)[0]) as client:
                assert client.commit(group, {("t", 0): 9})["t", 0] == NOT_COORDINATOR
                assert client.join(group)[0] == NOT_COORDINATOR
                assert client.committed(group, [("t", 0)])["t", 0][1] == NOT_COORDINATOR
                told = client.call("DescribeGroups", 5, groups=[group])["groups"][0]
                assert told["errorCode"] == NOT_COORDINATOR, told
                told = client.call("DeleteGroups", 2, groupsNames=[group])["results"][0]
                assert told["errorCode"] == NOT_COORDINATOR, told
        for node in cluster:
            with cluster.connect(node) as client:
                told = client.call("ListGroups", 4)
            assert told["errorCode"] == NONE, told
            assert sorted(one["groupId"] for one in told["groups"]) == sorted(
                group for group in groups if found[group] == node), (node, told)


def test_committed_offsets_are_not_kept_before_all_brokers_are_there():
    cluster = Cluster(3)
    try:
        for node in (1, 2):
            cluster.start(node, wait=False)
        cluster.wait_brokers(2, [1, 2])
        for _ in range(20):
            assert coordinator(cluster, 1, "g")[0] == COORDINATOR_NOT_AVAILABLE
            time.sleep(0.05)
        cluster.start(3)
        wait_coordinator(cluster, "g")
        for partition in range(50):
            told = cluster.partition(2, "__consumer_offsets", partition)
            assert sorted(told["replicaNodes"]) == [1, 2, 3], told
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()


def test_committed_offsets_outlive_their_coordinator():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        first = wait_coordinator(cluster, "g")
        with cluster.connect(first) as client:
            wait_for("the group is loaded", lambda: client.commit(
                "g", {("t", 0): 7})["t", 0] == NONE)
        cluster.kill(first)
        second = wait_coordinator(cluster, "g", other_than=first)
        with cluster.connect(second) as client:
            assert wait_for("the offset", lambda: client.committed("g", [("t", 0)])["t", 0] == (
                7, NONE))


def static_join(client, name, member=""):
    """The answer to a member of the group "g" with group.instance.id."""
    return client.call("JoinGroup", 7, groupId="g", sessionTimeoutMs=30000, protocolType="consumer",
                       rebalanceTimeoutMs=10000, memberId=member, groupInstanceId=name,
                       protocols=[{"name": "range", "metadata": b"m"}])


def static_sync(client, member, name, generation, assignments=()):
    return client.call("SyncGroup", 5, groupId="g", generationId=generation, memberId=member,
                       groupInstanceId=name, protocolType="consumer", protocolName="range",
                       assignments=[{"memberId": one, "assignment": what}
                                    for one, what in assignments])


def beat(client, member, name, generation):
    return client.call("Heartbeat", 4, groupId="g", generationId=generation, memberId=member,
                       groupInstanceId=name)["errorCode"]


def test_members_outlive_their_coordinator():
    """Neither a rebalance nor another assignment, also for one that is started anew meanwhile."""
    with Cluster(3, overrides={"group.initial.rebalance.delay.ms": 0}) as cluster:
        first = wait_coordinator(cluster, "g")
        with cluster.connect(first) as client:
            joined = wait_for("the group is loaded", lambda: [
                one for one in [static_join(client, "a")] if one["errorCode"] == NONE])[0]
            member, generation = joined["memberId"], joined["generationId"]
            told = static_sync(client, member, "a", generation, [(member, b"all")])
            assert (told["errorCode"], told["assignment"]) == (NONE, b"all"), told
        cluster.kill(first)
        second = wait_coordinator(cluster, "g", other_than=first)
        with cluster.connect(second) as client:
            wait_for("the group is loaded", lambda: beat(client, member, "a", generation) == NONE)
            again = static_join(client, "a")
            assert (again["errorCode"], again["generationId"]) == (NONE, generation), again
            assert again["memberId"] != member, again
            told = static_sync(client, again["memberId"], "a", generation)
            assert (told["errorCode"], told["assignment"]) == (NONE, b"all"), told
            assert beat(client, member, "a", generation) == FENCED_INSTANCE
            assert beat(client, again["memberId"], "a", generation) == NONE


def test_followers_serve_consumers_what_is_committed():
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t")
        values = [b"%d" % i for i in range(50)]
        for value in values:
            cluster.produce("t", 0, batch([value]))
        for node in others(cluster, leader):
            part = wait_for("all is applied", lambda: [
                found for found, _ in [fetch(cluster, node, "t")]
                if found["highWatermark"] == len(values)])[0]
            assert part["errorCode"] == NONE and records(part) == values, part
            old, _ = fetch(cluster, node, "t", version=10)
            assert old["errorCode"] == NOT_LEADER, old
            waited, _ = fetch(cluster, node, "t", offset=len(values), wait_ms=100)
            assert waited["errorCode"] == NONE and records(waited) == [], waited
            beyond, _ = fetch(cluster, node, "t", offset=1000)
            assert beyond["errorCode"] == NOT_LEADER, beyond  # who leads knows more
            with ThreadPoolExecutor(1) as pool:
                end = part["highWatermark"]
                waits = pool.submit(fetch, cluster, node, "t", offset=end, wait_ms=20000)
                cluster.produce("t", 0, batch([b"later"]))
                started = time.monotonic()
                waited, _ = waits.result()
                assert records(waited) == [b"later"], waited
                assert time.monotonic() - started < 10, "a follower does not wake its consumers"
            values.append(b"later")


def test_consumers_are_sent_to_the_replica_in_their_rack():
    with Cluster(3, {"replica.selector.class": SELECTOR}, RACKS) as cluster:
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t")
        cluster.produce("t", 0, batch([b"one"]))
        for node in others(cluster, leader):
            rack = "abc"[node - 1]
            part = wait_for("sent to the replica", lambda: [
                found for found, _ in [fetch(cluster, leader, "t", rack=rack)]
                if found["preferredReadReplica"] == node])[0]
            assert part["errorCode"] == NONE and records(part) == [], part
            assert part["highWatermark"] == 1, part
            part = wait_for("read there", lambda: [
                found for found, _ in [fetch(cluster, node, "t", rack=rack)] if records(found)])[0]
            assert records(part) == [b"one"] and part["preferredReadReplica"] == -1, part
        for rack in ("abc"[leader - 1], "nowhere", ""):
            part, _ = fetch(cluster, leader, "t", rack=rack)
            assert records(part) == [b"one"] and part["preferredReadReplica"] == -1, part
        lost = others(cluster, leader)[0]
        cluster.kill(lost)
        wait_for("read at the leader again", lambda: records(
            fetch(cluster, leader, "t", rack="abc"[lost - 1])[0]) == [b"one"])


def test_consumers_at_the_beginning_of_a_long_log_stay_with_the_leader():
    with Cluster(3, {"replica.selector.class": SELECTOR}, RACKS) as cluster:
        cluster.create_topic("t", 1, 3, segment_bytes=1 << 20)
        leader = cluster.wait_leader("t")
        for _ in range(8):
            cluster.produce("t", 0, batch([b"x" * 500000]))
        node = others(cluster, leader)[0]

        def told(offset):
            return fetch(cluster, leader, "t", offset=offset, rack="abc"[node - 1])[0]

        wait_for("sent to the replica", lambda: told(7)["preferredReadReplica"] == node)
        assert told(0)["preferredReadReplica"] == -1 and len(records(told(0))) == 2
        assert told(4)["preferredReadReplica"] == node


def test_a_topic_comes_to_be_at_whichever_node_it_is_asked_for():
    with Cluster(3) as cluster:
        for node in cluster:
            name = "auto%d" % node
            with cluster.connect(node) as client:
                told = client.call("Metadata", 12, topics=[{"name": name}])["topics"][0]
            assert told["errorCode"] == NONE and len(told["partitions"]) == 1, told
            cluster.wait_led(name, 1)
            assert cluster.produce(name, 0, batch([b"x"])) == 0


def test_without_a_selector_nobody_is_sent_elsewhere():
    with Cluster(3, each=RACKS) as cluster:
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t")
        cluster.produce("t", 0, batch([b"one"]))
        for rack in "abc":
            part, _ = fetch(cluster, leader, "t", rack=rack)
            assert records(part) == [b"one"] and part["preferredReadReplica"] == -1, part


def test_a_broker_tells_only_its_own_configuration():
    with Cluster(3) as cluster, cluster.connect(2) as client:
        def described(name):
            return client.call("DescribeConfigs", 4, resources=[
                {"resourceType": 4, "resourceName": name, "configurationKeys": ["node.id"]}])[
                    "results"][0]

        told = described("2")
        assert told["errorCode"] == NONE and told["configs"][0]["value"] == "2", told
        assert described("1")["errorCode"] == INVALID_REQUEST
        assert described("")["errorCode"] == NONE


if __name__ == "__main__":
    cases.main("cluster", globals())
