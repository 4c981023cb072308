#!/usr/bin/env python3
"""The links between the nodes of a cluster: they are made, refused, lost and made again, and a
configuration that cannot work ends the start. Judged by what the nodes say in their logs."""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import cases  # noqa: E402
from client import wait_for  # noqa: E402
from cluster import Cluster  # noqa: E402
from faulty import HeldClock  # noqa: E402
from ottla import Broker, free_port  # noqa: E402

BEAT_MS, SILENT_MS = 100, 500
SENT = re.compile(r"ESTAB +\d+ +\d+ +\S+ +\S+:(\d+) .*pid=(\d+),.* bytes_acked:(\d+)")
API_VERSIONS, PEER_HELLO, PEER_RAFT, PRIVATE_FIRST = 18, 1000, 1001, 1000


class Nodes:
    """The nodes of a cluster as processes that may be not ready yet; ended by SIGKILL."""

    def __init__(self, count=3, overrides=None, each=None, env=None):
        self.cluster = Cluster(count, overrides, each, env=env)

    def __enter__(self):
        for node in self.cluster:
            self.cluster[node].spawn()
        return self

    def __exit__(self, kind, error, trace):
        self.cluster.close(failed=kind is not None)
        return False

    def log(self, node, since=0):
        with open(self.cluster[node].log_path, errors="replace") as file:
            return file.read()[since:]

    def mark(self, node):
        return len(self.log(node))

    def wait_log(self, node, words, since=0, timeout_s=10.0):
        wait_for("node %d says %r" % (node, words), lambda: words in self.log(node, since),
                 timeout_s)

    def wait_linked(self, nodes):
        for node in nodes:
            for other in nodes:
                if other != node:
                    self.wait_log(node, "linked to node %d " % other)
                    self.wait_log(node, "node %d is alive" % other)


    def marks(self):
        return {node: self.mark(node) for node in self.cluster}

    def arrived(self):
        """{(node, other): bytes} that the one has sent to the other and that came there."""
        told = subprocess.run(["ss", "-tinpHO"], check=True, stdout=subprocess.PIPE, text=True)
        ids = {str(self.cluster[node].pid): node for node in self.cluster}
        ports = {self.cluster[node].overrides["listeners"].split(":")[-1]: node
                 for node in self.cluster}
        counts = {}
        for port, pid, count in SENT.findall(told.stdout):
            if port in ports and pid in ids:
                pair = ids[pid], ports[port]
                counts[pair] = counts.get(pair, 0) + int(count)
        return counts

    def beat(self, clock, nodes=(1, 2, 3)):
        """Moves their clock on until something came over each link, by three beats at most: one is
        left out when something else was sent just before. What takes longer is the machine."""
        pairs = [(node, other) for node in nodes for other in nodes if node != other]
        before = self.arrived()

        def is_heard():
            now = self.arrived()
            return all(now[pair] > before[pair] for pair in pairs)

        for _ in range(3):
            clock.move(BEAT_MS)
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                if is_heard():
                    return
        wait_for("a beat from each to each", is_heard)


def ends_at_start(settings, *words):
    """The broker must end with status 1 and say why."""
    broker = Broker(settings, name="refused")
    try:
        broker.spawn()
        status = broker.process.wait(10)
        broker.process = None
        lines = broker.log_tail().splitlines()
        assert status == 1, "status %d: %s" % (status, lines)
        assert any("ERROR" in line and all(word in line for word in words) for line in lines), lines
    finally:
        broker.close()


def test_three_nodes_link_to_each_other():
    with Nodes() as nodes:
        nodes.wait_linked([1, 2, 3])


def test_node_that_is_killed_is_lost_at_once():
    with Nodes() as nodes:
        nodes.wait_linked([1, 2, 3])
        begin = time.monotonic()
        nodes.cluster.kill(3)
        for node in (1, 2):  # and not by its silence
            nodes.wait_log(node, "node 3 is lost: its connections broke")
        took = time.monotonic() - begin
        assert took < 0.4, "it took %.2f s" % took
        since = nodes.mark(1)
        nodes.cluster[3].spawn()
        nodes.wait_log(1, "linked to node 3 ", since)
        nodes.wait_log(1, "node 3 is alive", since)


def held_nodes(nodes, clock):
    """They are linked, their clock stands still, and all have just heard each other."""
    nodes.wait_linked([1, 2, 3])
    clock.hold()
    for _ in range(2):
        nodes.beat(clock)


def test_node_that_is_paused_is_lost_and_comes_back():
    clock = HeldClock()
    with Nodes(env=clock.env) as nodes:
        held_nodes(nodes, clock)
        since = nodes.marks()
        nodes.cluster.freeze(3)
        for _ in range(SILENT_MS // BEAT_MS + 2):
            nodes.beat(clock, (1, 2))
        for node in (1, 2):
            nodes.wait_log(node, "node 3 is lost: nothing came from it for 500 ms", since[node])
        back = nodes.marks()
        nodes.cluster.resume(3)
        for _ in range(2 * SILENT_MS // BEAT_MS):
            nodes.beat(clock)
        for node in (1, 2):
            nodes.wait_log(node, "node 3 is alive", back[node])
        # The one that slept says nothing of the others, who were never gone.
        assert "is lost" not in nodes.log(3, since[3]), nodes.log(3)


def test_idle_nodes_stay_alive():
    clock = HeldClock()
    with Nodes(env=clock.env) as nodes:
        held_nodes(nodes, clock)
        since = nodes.marks()
        for _ in range(4 * SILENT_MS // BEAT_MS):
            nodes.beat(clock)
        for node in (1, 2, 3):
            assert "is lost" not in nodes.log(node, since[node]), nodes.log(node)


def test_node_of_another_cluster_is_refused():
    with Nodes(each={3: {"cluster.id": "another"}}) as nodes:
        nodes.wait_linked([1, 2])
        nodes.wait_log(3, "it refused this node: node 1 belongs to cluster")
        nodes.wait_log(1, "refused the link of a node")
        nodes.wait_log(1, "it refused this node: node 3 belongs to cluster another")
        assert "linked" not in nodes.log(3), nodes.log(3)
        assert "node 3 is alive" not in nodes.log(1), nodes.log(1)


def test_name_without_address_holds_nobody_up():
    ports = [free_port() for _ in range(2)]
    quorum = "1@localhost:%d,2@localhost:%d,3@nobody.invalid:9093" % tuple(ports)
    each = {node: {"listeners": "PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d" %
                                (free_port(), ports[node - 1])} for node in (1, 2)}
    with Nodes(2, {"controller.quorum.voters": quorum}, each) as nodes:
        nodes.wait_linked([1, 2])
        nodes.wait_log(1, "no link to node 3 at nobody.invalid:9093", timeout_s=30.0)


def test_nodes_stop_within_two_seconds():
    with Nodes() as nodes:
        nodes.wait_linked([1, 2, 3])
        begin = time.monotonic()
        for node in (1, 2, 3):
            nodes.cluster[node].process.send_signal(signal.SIGTERM)
        for node in (1, 2, 3):
            assert nodes.cluster[node].process.wait(10) == 0, nodes.log(node)
            nodes.cluster[node].check_log()
            nodes.cluster[node].process = None
        took = time.monotonic() - begin
        assert took < 2.5, "they took %.1f s" % took


def test_configuration_that_cannot_work_ends_the_start():
    voters = "1@127.0.0.1:%d,2@127.0.0.1:%d" % (free_port(), free_port())
    ends_at_start({"controller.quorum.voters": voters}, "cluster.id is not set")
    ends_at_start({"controller.quorum.voters": voters, "cluster.id": "one", "node.id": 3},
                  "does not name this node")
    ends_at_start({"controller.quorum.voters": voters, "cluster.id": "one",
                   "process.roles": "broker"}, "process.roles has no controller")
    ends_at_start({"controller.quorum.voters": voters + "," + voters, "cluster.id": "one"},
                  "names a node twice")


def received(sock):
    """What comes until the other side closes; empty when it says nothing."""
    data = b""
    while True:
        more = sock.recv(4096)
        if not more:
            return data
        data += more


def frame(key, body):
    payload = struct.pack(">hhih", key, 0, 7, -1) + body
    return struct.pack(">i", len(payload)) + payload


def test_stranger_may_not_speak_as_a_node():
    with Broker() as broker:
        for key in (PEER_RAFT, PEER_RAFT + 1):
            with socket.create_connection(("127.0.0.1", broker.port), 10) as sock:
                sock.sendall(frame(key, struct.pack(">i", 0)))
                assert received(sock) == b""
        with open(broker.log_path) as log:
            assert "which say hello first" in log.read()
        with socket.create_connection(("127.0.0.1", broker.port), 10) as sock:
            name = b"another"
            sock.sendall(frame(PEER_HELLO, struct.pack(">h", len(name)) + name +
                               struct.pack(">i16siiihH", 9, bytes(16), 0, 1, 1, 0, 0)))
            size, correlation, error = struct.unpack(">iih", received(sock)[:10])
            assert (correlation, error) == (7, 104), (correlation, error)
        with socket.create_connection(("127.0.0.1", broker.port), 10) as sock:
            sock.sendall(frame(API_VERSIONS, b""))
            size, = struct.unpack(">i", sock.recv(4, socket.MSG_WAITALL))
            answer = sock.recv(size, socket.MSG_WAITALL)
            count, = struct.unpack(">i", answer[6:10])
            keys = [struct.unpack_from(">h", answer, 10 + 6 * i)[0] for i in range(count)]
            assert len(keys) > 20 and max(keys) < PRIVATE_FIRST, keys


if __name__ == "__main__":
    cases.main("cluster", globals())
