#!/usr/bin/env python3
"""How a cluster comes into being: directories are formatted, and refused when they belong elsewhere.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import batch  # noqa: E402
from cluster import Cluster, new_cluster_id  # noqa: E402
from ottla import TOP  # noqa: E402


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


if __name__ == "__main__":
    cases.main("cluster", globals())
