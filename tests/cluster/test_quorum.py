#!/usr/bin/env python3
"""How a cluster comes into being and changes: directories are formatted, and refused when they
belong elsewhere; the first node stands alone, others find it, learn and vote, and leave again.
"""
import os
import subprocess
import sys
from base64 import urlsafe_b64decode

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import NONE, Client, batch, wait_for  # noqa: E402
from cluster import Cluster, new_cluster_id  # noqa: E402
from ottla import TOP, free_port  # noqa: E402


def ottla(*words):
    """Runs the program to its end: exit code and all that it said."""
    binary = os.environ.get("OTTLA_BIN") or os.path.join(TOP, "build", "ottla")
    done = subprocess.run([binary, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=30)
    return done.returncode, done.stdout


def format_node(broker, cluster_id, *options):
    words = ["format", "--cluster-id", cluster_id, *options]
    for key, value in {**broker.overrides, "log.dirs": broker.data_dir}.items():
        words += ["--override", "%s=%s" % (key, value)]
    code, said = ottla(*words)
    assert code == 0, said


def properties(directory):
    with open(os.path.join(directory, "meta.properties")) as lines:
        return dict(line.strip().split("=", 1) for line in lines if "=" in line)


def refusal(broker):
    """Starts the broker, which must end at once; what it says of errors."""
    at = os.path.getsize(broker.log_path) if os.path.exists(broker.log_path) else 0
    broker.spawn()
    assert broker.process.wait(20) == 1
    broker.process = None
    with open(broker.log_path) as log:
        log.seek(at)
        return [line for line in log if " ERROR " in line]


def test_formatted_nodes_need_no_cluster_id():
    cluster_id = ottla("random-uuid")[1].strip()
    assert len(cluster_id) == 22, cluster_id
    cluster = Cluster(3)
    try:
        for node in cluster:
            del cluster[node].overrides["cluster.id"]
            format_node(cluster[node], cluster_id)
            found = properties(cluster[node].data_dir)
            assert found["cluster.id"] == cluster_id and found["node.id"] == str(node), found
        cluster.start_all()
        with cluster.connect(2) as client:
            assert client.call("DescribeCluster", 0)["clusterId"] == cluster_id
        cluster.create_topic("t")
        assert cluster.produce("t", 0, batch([b"x"])) == 0
        for node in cluster:
            cluster.stop(node)
    finally:
        cluster.close()


def test_directories_of_others_are_refused():
    """With one clear line each; the node's own is taken afterwards."""
    with Cluster(3) as cluster:
        broker = cluster[3]
        cluster.stop(3)
        own = dict(broker.overrides)
        broker.overrides["cluster.id"] = new_cluster_id()
        lines = refusal(broker)
        assert len(lines) == 1 and "belongs to cluster %s, not to %s" % (
            cluster.cluster_id, broker.overrides["cluster.id"]) in lines[0], lines
        broker.overrides = dict(own)
        path, broker.data_dir = broker.data_dir, cluster[2].data_dir
        lines = refusal(broker)
        assert len(lines) == 1 and "in use by another broker" in lines[0], lines
        cluster.stop(2)
        lines = refusal(broker)
        assert len(lines) == 1 and "belongs to node 2, but node.id is 3" in lines[0], lines
        broker.data_dir = os.path.join(broker.own_dir, "empty")
        del broker.overrides["cluster.id"]
        lines = refusal(broker)
        assert len(lines) == 1 and "ottla format --cluster-id" in lines[0], lines
        broker.overrides, broker.data_dir = own, path
        cluster.start(2)
        cluster.start(3)
        cluster.wait_brokers(3)


def test_the_cluster_id_of_container_images():
    names = {1: "CLUSTER_ID", 2: "KAFKA_CLUSTER_ID", 3: "KAFKA_KRAFT_CLUSTER_ID"}
    cluster = Cluster(3)
    try:
        for node, name in names.items():
            del cluster[node].overrides["cluster.id"]
            cluster[node].env[name] = "my-dev-cluster-01"
        cluster.start_all()
        for node in cluster:
            assert properties(cluster[node].data_dir)["cluster.id"] == "my-dev-cluster-01"
            cluster.stop(node)
    finally:
        cluster.close()


def test_what_is_formatted_stays():
    cluster = Cluster(1)
    broker = cluster[1]
    try:
        format_node(broker, "first")
        before = properties(broker.data_dir)
        words = ["--override", "log.dirs=%s,%s2" % (broker.data_dir, broker.data_dir)]
        code, said = ottla("format", "-t", "first", *words)
        assert code == 1 and "is already formatted. Use --ignore-formatted" in said, said
        assert not os.path.exists(broker.data_dir + "2"), "nothing was to be done"
        code, said = ottla("format", "-t", "first", "-g", *words)
        assert code == 0 and said.count("\n") == 1, said
        assert properties(broker.data_dir) == before
        assert properties(broker.data_dir + "2")["cluster.id"] == "first"
        code, said = ottla("format", "-t", "first", "-g", *words)
        assert (code, said) == (0, "All of the log directories are already formatted.\n"), said
        code, said = ottla("format", "-t", "second", "-g", *words)
        assert code == 1 and "belongs to cluster first, not to second" in said, said
        assert ottla("format")[0] == 2
    finally:
        cluster.close()


TIMED_OUT = 7
UNSUPPORTED, DUPLICATE_VOTER, VOTER_NOT_FOUND, WRONG_CLUSTER = 35, 126, 127, 104


def growing_cluster(count):
    """Nodes that know each other's addresses and not who votes; the first is formatted to."""
    cluster = Cluster(count)
    quorum = cluster[1].overrides["controller.quorum.voters"]
    addresses = ",".join(one.split("@")[1] for one in quorum.split(","))
    for node in cluster:
        settings = cluster[node].overrides
        del settings["controller.quorum.voters"], settings["cluster.id"]
        settings["controller.quorum.bootstrap.servers"] = addresses
        format_node(cluster[node], cluster.cluster_id, "--standalone" if node == 1 else "-N")
    return cluster


def described(cluster, node):
    with cluster.connect(node, 20.0) as client:
        answer = client.call("DescribeQuorum", 2, topics=[
            {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}])
    assert answer["errorCode"] == NONE, answer
    return answer


def members(cluster, node):
    """(voters, observers) as the node tells them."""
    found = described(cluster, node)["topics"][0]["partitions"][0]
    assert found["errorCode"] == NONE, found
    return tuple(sorted(one["replicaId"] for one in found[kind])
                 for kind in ("currentVoters", "observers"))


def leader_of(cluster, node):
    """Who leads the metadata, as the node says."""
    return described(cluster, node)["topics"][0]["partitions"][0]["leaderId"]


def wait_members(cluster, voters, observers):
    wait_for("voters %s, observers %s" % (voters, observers), lambda: all(
        members(cluster, node) == (voters, observers) for node in cluster.running()), 20)


def directory_id(broker):
    text = properties(broker.data_dir)["directory.id"]
    return urlsafe_b64decode(text + "==")


def controller_of(cluster, node):
    """Host and port of the node's listener of controllers."""
    address = cluster[node].overrides["listeners"].split("CONTROLLER://")[1]
    host, port = address.rsplit(":", 1)
    return host, int(port)


def add_voter(cluster, asked, node, cluster_id=None, timeout_ms=10000, committed=True):
    host, port = controller_of(cluster, node)
    with cluster.connect(asked, 20.0) as client:
        return client.call("AddRaftVoter", 1, clusterId=cluster_id, timeoutMs=timeout_ms,
                           voterId=node, voterDirectoryId=directory_id(cluster[node]),
                           ackWhenCommitted=committed,
                           listeners=[{"name": "CONTROLLER", "host": host, "port": port}])


def remove_voter(cluster, asked, node, directory=None):
    with cluster.connect(asked, 20.0) as client:
        return client.call("RemoveRaftVoter", 0, clusterId=cluster.cluster_id, voterId=node,
                           voterDirectoryId=directory or directory_id(cluster[node]))


def create(cluster, node, name):
    with cluster.connect(node, 20.0) as client:
        answer = client.call("CreateTopics", 7, timeoutMs=20000, topics=[
            {"name": name, "numPartitions": 3, "replicationFactor": 3}])["topics"][0]
    assert answer["errorCode"] == NONE, answer


def test_a_cluster_grows_and_shrinks():
    cluster = growing_cluster(3)
    try:
        cluster.start_all()
        wait_members(cluster, [1], [2, 3])
        create(cluster, 2, "t")
        assert add_voter(cluster, 3, 2, cluster.cluster_id)["errorCode"] == NONE
        wait_members(cluster, [1, 2], [3])
        assert add_voter(cluster, 2, 3)["errorCode"] == NONE
        wait_members(cluster, [1, 2, 3], [])
        nodes = {one["nodeId"]: one["listeners"][0] for one in described(cluster, 2)["nodes"]}
        for node in cluster:
            address = "%s:%d" % (nodes[node]["host"], nodes[node]["port"])
            assert cluster[node].overrides["listeners"].endswith("CONTROLLER://" + address), nodes
        cluster.kill(1)
        create(cluster, 2, "without")
        cluster.wait_led("without", 3)
        cluster.start(1)
        for node in cluster:
            cluster.kill(node)
        cluster.start_all()
        create(cluster, 1, "again")
        assert remove_voter(cluster, 2, 1)["errorCode"] == NONE
        wait_members(cluster, [2, 3], [1])
        create(cluster, 1, "later")
        cluster.kill(1)
        create(cluster, 3, "last")
        cluster.start(1)
        assert add_voter(cluster, 1, 1)["errorCode"] == NONE
        wait_members(cluster, [1, 2, 3], [])
        for node in cluster:
            cluster.stop(node)
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()


def test_an_answer_means_that_it_is_so():
    """Nothing is waited for after an answer but the node that is asked who votes."""
    cluster = growing_cluster(3)
    try:
        cluster.start_all()
        for node in (2, 3):
            assert add_voter(cluster, 1, node)["errorCode"] == NONE
            assert members(cluster, 1)[0] == list(range(1, node + 1))
        leader = leader_of(cluster, 1)
        asked = 1 + leader % 3
        answer = remove_voter(cluster, asked, leader)
        assert answer["errorCode"] == NONE, answer
        left = [node for node in cluster if node != leader]
        assert members(cluster, asked) == (left, [leader])
        assert leader_of(cluster, asked) in left
        for node in cluster:
            cluster.stop(node)
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()


def guarded(cluster, case):
    """Runs the case, stops the nodes and closes the cluster, which keeps its data when it failed."""
    try:
        case(cluster)
        for node in cluster.running():
            cluster.stop(node)
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()


def test_a_voter_that_is_needed_stays():
    """Of three voters one is away: without one of the others nobody could lead."""
    def case(cluster):
        cluster.start_all()
        for node in (2, 3):
            assert add_voter(cluster, 1, node)["errorCode"] == NONE
        leader = leader_of(cluster, 1)
        away, other = [node for node in cluster if node != leader]
        cluster.kill(away)
        for node in (other, leader):
            answer = remove_voter(cluster, leader, node)
            assert answer["errorCode"] == TIMED_OUT and "Voter %d does not keep up" % away in \
                answer["errorMessage"], answer
        assert members(cluster, leader)[0] == [1, 2, 3]
        assert remove_voter(cluster, leader, away)["errorCode"] == NONE, "the one that is away goes"
        cluster.start(away)
        assert add_voter(cluster, leader, away)["errorCode"] == NONE
        assert remove_voter(cluster, leader, other)["errorCode"] == NONE, "it keeps up"

    guarded(growing_cluster(3), case)


def test_a_voter_that_does_not_catch_up():
    cluster = growing_cluster(3)
    try:
        cluster.start_all()
        wait_members(cluster, [1], [2, 3])
        cluster.kill(3)
        answer = add_voter(cluster, 2, 3, timeout_ms=1500)
        assert answer["errorCode"] == TIMED_OUT and "may still come" in answer["errorMessage"], \
            answer
        assert members(cluster, 1)[0] == [1]
        answer = add_voter(cluster, 1, 2)
        assert answer["errorCode"] == TIMED_OUT and "previous voter change" in \
            answer["errorMessage"], answer
        assert add_voter(cluster, 1, 3, committed=False)["errorCode"] == NONE, "it is on its way"
        assert remove_voter(cluster, 1, 3)["errorCode"] == NONE, "and is given up"
        assert add_voter(cluster, 1, 2)["errorCode"] == NONE
        assert add_voter(cluster, 1, 3, timeout_ms=100)["errorCode"] == TIMED_OUT
        cluster.start(3)
        answer = add_voter(cluster, 1, 3)
        assert answer["errorCode"] in (NONE, DUPLICATE_VOTER), answer
        wait_members(cluster, [1, 2, 3], [])
        for node in cluster:
            cluster.stop(node)
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()


def addresses(cluster, node):
    """Where the voters are reached, as the node says."""
    return {one["nodeId"]: (one["listeners"][0]["host"], one["listeners"][0]["port"])
            for one in described(cluster, node)["nodes"]}


def move(cluster, node):
    """Gives the node, which is down, another port for controllers."""
    host, port = controller_of(cluster, node)
    settings = cluster[node].overrides
    settings["listeners"] = settings["listeners"].replace(
        "CONTROLLER://%s:%d" % (host, port), "CONTROLLER://%s:%d" % (host, free_port()))


def voting_cluster():
    cluster = growing_cluster(3)
    cluster.start_all()
    for node in (2, 3):
        assert add_voter(cluster, 1, node)["errorCode"] == NONE
    return cluster


def test_a_voter_comes_back_elsewhere():
    cluster = voting_cluster()
    try:
        for node in (leader_of(cluster, 1), 1 + leader_of(cluster, 1) % 3):
            cluster.kill(node)
            move(cluster, node)
            cluster.start(node)
            wait_for("the address of %d" % node, lambda: all(
                addresses(cluster, one)[node] == controller_of(cluster, node)
                for one in cluster.running()), 20)
            other = 1 + node % 3
            cluster.stop(other)  # what comes now needs the vote of the one that came back
            with cluster.connect(node, 20.0) as client:
                answer = client.call("CreateTopics", 7, timeoutMs=20000, topics=[
                    {"name": "with-%d" % node, "numPartitions": 1, "replicationFactor": 2}])
            assert answer["topics"][0]["errorCode"] == NONE, answer
            cluster.start(other)
            cluster.wait_brokers(3)
        for node in cluster:
            cluster.stop(node)
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()


FENCED_EPOCH, UNKNOWN_EPOCH, NOT_LEADER, INVALID_REQUEST = 74, 75, 6, 42


def update_voter(cluster, asked, node, **changed):
    """UpdateRaftVoter at the asked node's listener of controllers."""
    host, port = controller_of(cluster, node)
    epoch = described(cluster, asked)["topics"][0]["partitions"][0]["leaderEpoch"]
    fields = {"clusterId": cluster.cluster_id, "currentLeaderEpoch": epoch, "voterId": node,
              "voterDirectoryId": directory_id(cluster[node]),
              "listeners": [{"name": "CONTROLLER", "host": host, "port": port}],
              "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1}}
    fields.update(changed)
    host, port = controller_of(cluster, asked)
    with Client(port, 20.0, host) as client:
        return client.call("UpdateRaftVoter", 0, **fields)


def test_updates_of_voters():
    cluster = voting_cluster()
    try:
        leader = leader_of(cluster, 1)
        node = 1 + leader % 3
        epoch = described(cluster, 1)["topics"][0]["partitions"][0]["leaderEpoch"]
        answer = update_voter(cluster, leader, node)
        assert answer["errorCode"] == NONE, answer
        host, port = controller_of(cluster, leader)
        assert answer["currentLeader"] == {"leaderId": leader, "leaderEpoch": epoch, "host": host,
                                           "port": port}, answer
        answer = update_voter(cluster, node, node)
        assert answer["errorCode"] == NOT_LEADER, answer
        assert answer["currentLeader"]["leaderId"] == leader, answer
        for error, changed in [
                (WRONG_CLUSTER, {"clusterId": "other"}),
                (FENCED_EPOCH, {"currentLeaderEpoch": epoch - 1}),
                (UNKNOWN_EPOCH, {"currentLeaderEpoch": epoch + 1}),
                (VOTER_NOT_FOUND, {"voterId": 9}),
                (VOTER_NOT_FOUND, {"voterDirectoryId": bytes(15) + b"x"}),
                (INVALID_REQUEST, {"voterDirectoryId": bytes(16)}),
                (INVALID_REQUEST, {"listeners": []}),
                (INVALID_REQUEST, {"listeners": [
                    {"name": "CONTROLLER", "host": "a,b", "port": 1}]}),
                (INVALID_REQUEST, {"kRaftVersionFeature": {
                    "minSupportedVersion": 0, "maxSupportedVersion": 0}})]:
            answer = update_voter(cluster, leader, node, **changed)
            assert answer["errorCode"] == error, (changed, answer)
        with cluster.connect(leader) as client:
            keys = [one["apiKey"] for one in client.call("ApiVersions", 0)["apiKeys"]]
        assert 81 in keys and 82 not in keys, "brokers do not serve it"
        elsewhere = [{"name": "CONTROLLER", "host": "127.0.0.2", "port": 1}]
        answer = update_voter(cluster, leader, node, listeners=elsewhere)
        assert answer["errorCode"] == NONE, answer
        wait_for("the node to say where it is", lambda: addresses(cluster, leader)[node] ==
                 controller_of(cluster, node), 20)
        for one in cluster:
            cluster.stop(one)
    except BaseException:
        cluster.close(failed=True)
        raise
    cluster.close()
    with Cluster(2) as cluster:
        leader = leader_of(cluster, 1)
        answer = update_voter(cluster, leader, 1)
        assert answer["errorCode"] == UNSUPPORTED, answer


def test_changes_of_voters_that_are_refused():
    cluster = growing_cluster(2)
    try:
        cluster.start_all()
        answer = add_voter(cluster, 2, 1)
        assert answer["errorCode"] == DUPLICATE_VOTER, answer
        assert answer["errorMessage"].startswith("The voter id for ReplicaKey(id=1, "), answer
        assert add_voter(cluster, 1, 2, "other")["errorCode"] == WRONG_CLUSTER
        answer = remove_voter(cluster, 2, 2)
        assert answer["errorCode"] == VOTER_NOT_FOUND, answer
        assert remove_voter(cluster, 1, 1)["errorCode"] == VOTER_NOT_FOUND, "the only one"
        assert add_voter(cluster, 1, 2)["errorCode"] == NONE
        wait_members(cluster, [1, 2], [])
        assert remove_voter(cluster, 1, 2, bytes(15) + b"x")["errorCode"] == VOTER_NOT_FOUND
        for node in cluster:
            cluster.stop(node)
    finally:
        cluster.close()
    with Cluster(2) as cluster:
        answer = add_voter(cluster, 1, 2)
        assert answer["errorCode"] == UNSUPPORTED, answer
        assert "kraft.version feature is 0" in answer["errorMessage"], answer
        assert remove_voter(cluster, 1, 2)["errorCode"] == UNSUPPORTED


INVALID_UPDATE = 95


def features(client, version=4):
    answer = client.call("ApiVersions", version, clientSoftwareName="t",
                         clientSoftwareVersion="1")
    assert answer["errorCode"] == NONE and answer["finalizedFeaturesEpoch"] >= 0, answer
    supported = {one["name"]: (one["minVersion"], one["maxVersion"])
                 for one in answer["supportedFeatures"]}
    finalized = {one["name"]: one["maxVersionLevel"] for one in answer["finalizedFeatures"]}
    return supported, finalized


def update(client, feature, level, kind=1, version=2):
    answer = client.call("UpdateFeatures", version, timeoutMs=10000, validateOnly=False,
                         featureUpdates=[{"feature": feature, "maxVersionLevel": level,
                                          "allowDowngrade": False, "upgradeType": kind}])
    return answer["errorCode"], answer["errorMessage"], answer.get("results")


def test_features_are_told_and_stay_as_they_are():
    cluster = growing_cluster(1)
    try:
        cluster.start_all()
        with cluster.connect(1) as client:
            assert features(client) == ({"metadata.version": (33, 33), "kraft.version": (0, 1)},
                                        {"metadata.version": 33, "kraft.version": 1})
            assert update(client, "kraft.version", 1)[0] == NONE
        cluster.stop(1)
    finally:
        cluster.close()
    with Cluster(1) as cluster, cluster.connect(1) as client:
        assert features(client)[1] == {"metadata.version": 33}
        assert features(client, 3)[0] == {"metadata.version": (33, 33)}
        error, why, results = update(client, "metadata.version", 33, version=1)
        assert error == NONE and why is None, (error, why)
        assert [one["feature"] for one in results] == ["metadata.version"], results
        start = ("The update failed for all features since the following feature had an error: "
                 "Invalid update version %d for feature %s. ")
        for feature, level, kind, why in [
                ("metadata.version", 32, 2, "Local controller 1 only supports versions 33"),
                ("metadata.version", 33, 0,
                 "The controller does not support the given upgrade type."),
                ("kraft.version", 1, 2, "Can't downgrade to a newer version."),
                ("no.feature", 1, 1, "Local controller 1 does not support this feature.")]:
            found = update(client, feature, level, kind)
            assert found[:2] == (INVALID_UPDATE, start % (level, feature) + why), found


def test_a_node_that_names_itself_alone():
    """As in the stock server.properties: it needs no format, and no other node."""
    cluster = Cluster(1)
    settings = cluster[1].overrides
    address = settings.pop("controller.quorum.voters").split("@")[1]
    settings["controller.quorum.bootstrap.servers"] = address
    del settings["cluster.id"]
    try:
        cluster.start_all()
        cluster.create_topic("t", replication=1)
        cluster.stop(1)
        assert not os.path.exists(os.path.join(cluster[1].data_dir, "quorum.voters"))
    finally:
        cluster.close()


if __name__ == "__main__":
    cases.main("cluster", globals())
