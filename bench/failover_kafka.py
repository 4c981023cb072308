"""Three stock Kafka brokers with the interface of tests/lib/cluster.py, for bench/failover and
bench/cluster.

Happy path: KafkaCluster(home) as a context; setup-kafka.sh starts, kills and stops the nodes, with
the jars of the cache and data below `home`. Its nodes end with the context.

Failure modes: BrokerError with what the script said.
"""
import os
import random
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

from cluster import Cluster
from faulty import Triggered
from ottla import BrokerError, free_port

HERE = os.path.dirname(os.path.abspath(__file__))


class Process:
    """A process that another one started: what bench/failover needs of subprocess.Popen."""

    def __init__(self, pid):
        self.pid = pid

    def send_signal(self, number):
        os.kill(self.pid, number)

    def alive(self):
        try:
            with open("/proc/%d/stat" % self.pid) as f:
                return f.read().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False


class KafkaNode:
    """One node; the cluster starts and ends it."""

    def __init__(self, cluster, node, port):
        self.cluster, self.node, self.port, self.process = cluster, node, port, None
        self.home = os.path.join(cluster.home, "run-3", "node%d" % node)
        self.log_path, self.env = os.path.join(self.home, "server.log"), {}
        self.host, self.bootstrap = "127.0.0.1", "127.0.0.1:%d" % port

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process is not None and self.process.alive()

    def started(self):
        with open(os.path.join(self.home, "pid")) as f:
            self.process = Process(int(f.read()))

    def stop_after_signal(self):
        self.cluster.script("stop", "3", str(self.node))


class FaultyKafkaNode(Triggered, KafkaNode):
    """A node on a disk that can be made to fail."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.preload(self.home + ".fault", os.path.join(self.home, "data"))


def install_kafka():
    """Kafka's jars, once for all runs; the directory that has them."""
    cache = os.environ.get("KAFKA_PEER_DIR", os.path.expanduser("~/.cache/kafka-peer"))
    subprocess.run([os.path.join(HERE, "setup-kafka.sh"), "install"], check=True,
                   env=dict(os.environ, KAFKA_PEER_DIR=cache), stdout=subprocess.DEVNULL)
    return cache


def kafka_jars():
    """The class path of Kafka's own clients."""
    cache = install_kafka()
    libraries = [entry for entry in os.listdir(cache) if entry.startswith("lib-")]
    assert len(libraries) == 1, libraries
    return os.path.join(cache, libraries[0], "*")


class KafkaCluster(Cluster):
    """Nodes 1 to 3."""

    def __init__(self, home, kind=KafkaNode):  # pylint: disable=super-init-not-called
        self.home, self.paused, self.first = home, set(), random.randrange(12000, 20000)
        free_port()  # makes sure that there is one at all
        self.nodes = {n: kind(self, n, self.first + n - 1) for n in (1, 2, 3)}

    def install(self):
        """The jars are shared between runs."""
        cache = install_kafka()
        os.makedirs(self.home, exist_ok=True)
        for entry in os.listdir(cache):
            link = os.path.join(self.home, entry)
            if entry.startswith(("lib-", "log4j2-", "kafka-tool")) and not os.path.lexists(link):
                os.symlink(os.path.join(cache, entry), link)

    def script(self, *words, env=None):
        env = dict(os.environ, KAFKA_PEER_DIR=self.home, KAFKA_PORT_CLUSTER=str(self.first),
                   **(env or {}))
        done = subprocess.run([os.path.join(HERE, "setup-kafka.sh")] + list(words), env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise BrokerError("setup-kafka.sh %s: %s" % (words, done.stderr[-2000:]))

    def start_all(self, wait=True):
        """All at once, as none is up before there is a quorum."""
        self.install()
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            try:
                list(pool.map(self.start, self.nodes))
            except BaseException:  # the pool would wait until all are up
                for node in self.nodes:
                    self.script("kill", "3", str(node))
                raise
        if wait:
            self.wait_brokers(3, timeout_s=120)
        return self

    def start(self, node, wait=True):
        self.script("start-node", "3", str(node), env=self.nodes[node].env)
        self.nodes[node].started()
        return self.nodes[node]

    def kill(self, node):
        self.nodes[node].process.send_signal(signal.SIGKILL)
        self.script("kill", "3", str(node))

    def close(self, failed=False):
        for node in list(self.paused):
            self.resume(node)
        self.script("wipe", "3")

    def __exit__(self, kind, error, trace):
        self.close()
        return False
