#!/usr/bin/env python3
"""What clients notice when a leader dies or is stopped."""
import os
import select
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import NONE, batch, wait_for  # noqa: E402
from cluster import Cluster, children  # noqa: E402
from ottla import Broker  # noqa: E402

NOT_ENOUGH_REPLICAS, OUT_OF_ORDER = 19, 45

def test_who_asks_at_once_is_told_the_new_leader():
    """librdkafka asks once when a connection breaks and then not again for up to a second."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        for _ in range(4):
            leader = cluster.wait_leader("t")
            asked = [cluster.connect(node) for node in cluster if node != leader]
            cluster.kill(leader)
            for client in asked:
                part = client.call("Metadata", 12, topics=[{"name": "t"}],
                                   allowAutoTopicCreation=False)["topics"][0]["partitions"][0]
                assert part["errorCode"] == NONE and part["leaderId"] != leader, part
                client.close()
            cluster.start(leader)
            cluster.wait_brokers(3)


def produce_until_closed(cluster, leader, topic):
    """Produces to the leader, one record after the other, while it stops; how many were taken."""
    count, stopping = 0, False
    with cluster.connect(leader) as client:
        while True:
            if select.select([client.socket], [], [], 0.003)[0]:
                assert stopping
                return count  # it ends between two requests
            error, offset = client.produce(topic, 0, batch([b"%d" % count]))
            assert error == NONE and offset == count, (error, offset, count)
            count += 1
            if count == 20:
                cluster[leader].process.send_signal(signal.SIGTERM)
                stopping = True


def test_nothing_is_refused_by_a_leader_that_stops():
    """What still comes is passed on to the new leader; then the connection ends."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t")
        count = produce_until_closed(cluster, leader, "t")
        assert count > 20
        cluster[leader].stop_after_signal()
        with cluster.connect(cluster.wait_leader("t", other_than=leader)) as client:
            assert client.list_offset("t", 0)[2] == count
        cluster.start(leader)
        cluster.wait_brokers(3)


def test_what_comes_behind_a_refused_batch_is_refused_alike():
    """With several batches under way, one may be refused while too few replicas are in sync, and
    the next one come when they are. Told of a gap, a producer begins another epoch and sends again
    what is acknowledged late: it would be there twice."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3, min_insync_replicas=3)
        leader = cluster.wait_leader("t")
        follower = next(node for node in cluster if node != leader)
        with cluster.connect(leader) as client:
            producer = client.init_producer_id()[1:]

            def send(sequence):
                return client.produce("t", 0, batch([b"%d" % sequence], producer, sequence))

            assert send(0) == (NONE, 0)
            cluster.kill(follower)
            wait_for("a refusal", lambda: send(1)[0] == NOT_ENOUGH_REPLICAS)
            cluster.start(follower)
            wait_for("all in sync", lambda: len(cluster.partition(leader, "t", 0)["isrNodes"]) == 3)
            assert send(2) == (NOT_ENOUGH_REPLICAS, -1)
            assert send(1)[0] == NONE
            assert send(2)[0] == NONE
            assert send(4) == (OUT_OF_ORDER, -1), "nothing was refused before this one"


def test_a_new_leader_expects_what_is_missing():
    """A producer's next batch may come to it before the one that went to the leader before: it is
    not told of a gap until that one has come, or did not in half a minute."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t")
        with cluster.connect(leader) as client:
            producer = client.init_producer_id()[1:]
            assert client.produce("t", 0, batch([b"0"], producer, 0)) == (NONE, 0)
            assert client.produce("t", 0, batch([b"2"], producer, 2)) == (OUT_OF_ORDER, -1), \
                "all that it sends comes here"
        cluster.kill(leader)
        with cluster.connect(cluster.wait_leader("t", other_than=leader)) as client:
            for sequence, expected in ((2, (NOT_ENOUGH_REPLICAS, -1)), (3, (NOT_ENOUGH_REPLICAS, -1)),
                                       (1, (NONE, 1)), (2, (NONE, 2)), (3, (NONE, 3)),
                                       (1, (NONE, 1)), (5, (OUT_OF_ORDER, -1))):
                answer = client.produce("t", 0, batch([b"%d" % sequence], producer, sequence))
                assert answer == expected, (sequence, answer)
        cluster.start(leader)
        cluster.wait_brokers(3)


def refuses(broker):
    """Whether nobody listens at its port."""
    try:
        socket.create_connection((broker.host, broker.port), 5).close()
        return False
    except ConnectionRefusedError:
        return True


def test_a_leader_that_is_stopped_lets_its_clients_go():
    """The kernel would keep their connections, and they wait for their own timeouts."""
    with Cluster(3) as cluster:
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t")
        with cluster.connect(leader) as client:
            assert client.produce("t", 0, batch([b"before"]))[0] == NONE
            cluster.pause(leader)
            begun = time.monotonic()
            assert client.socket.recv(1) == b"", "a connection that ends"
            seconds = time.monotonic() - begun
        assert seconds < 3, "after %.2f s" % seconds
        wait_for("nobody to listen", lambda: refuses(cluster[leader]))
        cluster.wait_leader("t", other_than=leader)
        cluster.produce("t", 0, batch([b"meanwhile"]))
        cluster.resume(leader)
        cluster.wait_brokers(3)
        with cluster.connect(leader):
            cluster.produce("t", 0, batch([b"after"]))
        print("its connections ended after %.2f s" % seconds)


def test_a_guard_ends_with_its_broker():
    with Cluster(3) as cluster:
        guards = {node: children(cluster[node].pid) for node in cluster}
        assert all(len(found) == 1 for found in guards.values()), guards
        for found in guards.values():
            with open("/proc/%d/cmdline" % found[0], "rb") as words:
                assert words.read().strip(b"\0") == b"ottla-guard", "pgrep finds it for a broker"
        cluster.kill(1)
        cluster.freeze(2)
        cluster.kill(2)
        cluster.stop(3)
        for found in guards.values():
            wait_for("its end", lambda: not os.path.exists("/proc/%d" % found[0]))
        cluster.start_all()


def test_no_guard_where_nobody_wants_one():
    with Broker() as alone:
        assert children(alone.pid) == [], "who would be there for its clients?"
    with Cluster(3, {"ottla.stopped.disconnect.ms": 0}) as cluster:
        assert [children(cluster[node].pid) for node in cluster] == [[], [], []]
        cluster.create_topic("t", 1, 3)
        leader = cluster.wait_leader("t")
        with cluster.connect(leader) as client:
            cluster.pause(leader)
            cluster.wait_leader("t", other_than=leader)
            assert not select.select([client.socket], [], [], 0)[0]
            cluster.resume(leader)
            assert client.call("ApiVersions", 0)["errorCode"] == NONE


if __name__ == "__main__":
    cases.main("cluster", globals())
