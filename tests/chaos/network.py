"""A network of this test's own: a bridge in the test's namespace, and a namespace for each node.

Happy path: `enter(before)` runs the script again in a network and a mount namespace that nobody else
sees, so that everything goes away with the process, however it ends. `Network(nodes)` makes
10.77.0.1, .2, ... there, one in a namespace of its own for each node; prefix(node) are the words that
run a command in it. drop(a, b) makes everything from a to b vanish without a word, until allow(a, b);
unplug(node) takes its cable out. Who drops what is a matter of neighbours' hardware addresses: a
packet to one that nobody has is lost on the bridge, as on a switch, and no firewall is needed.

Failure modes: Unavailable says why there can be no such namespaces here.
"""
import os
import subprocess
import sys

INSIDE = "OTTLA_TEST_CHAOS"
NOBODY = "02:00:0a:4d:ff:ff"
HUB = 254


class Unavailable(Exception):
    """No network namespaces here."""


def run(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Unavailable("%s: %s" % (" ".join(words), done.stdout.decode().strip()))


def unshare_words():
    words = ["unshare", "--mount", "--net"]
    return words if os.geteuid() == 0 else words + ["--user", "--map-root-user"]


def enter(before):
    """Runs this script again in namespaces of its own, if that is allowed; else returns. before()
    is called first, for what needs the network outside."""
    if os.environ.get(INSIDE):
        if os.environ[INSIDE] == "yes":
            run("ip", "link", "set", "lo", "up")
        return
    before()
    words = unshare_words()
    try:
        run(*words, "ip", "link", "set", "lo", "up")
        os.environ[INSIDE] = "yes"
    except (Unavailable, OSError) as why:
        os.environ[INSIDE] = "no: %s" % why
        return
    os.execvp(words[0], words + [sys.executable, *sys.argv])


def address(node):
    return "10.77.0.%d" % node


def hardware(node):
    return "02:00:0a:4d:00:%02x" % node


class Network:
    def __init__(self, nodes):
        self.nodes = list(nodes)
        self.names = {node: "ottla-%d-%d" % (os.getpid(), node) for node in self.nodes}
        self.made = []
        if os.environ.get(INSIDE) != "yes":
            raise Unavailable(os.environ.get(INSIDE, "not entered"))
        try:
            self.build()
        except BaseException:
            self.close()
            raise

    def build(self):
        # Names of namespaces are mounts; here they are in nobody's way and vanish with this process.
        os.makedirs("/run/netns", exist_ok=True)
        run("mount", "-t", "tmpfs", "none", "/run/netns")
        run("ip", "link", "add", "br0", "address", hardware(HUB), "type", "bridge")
        run("ip", "address", "add", address(HUB) + "/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        for node in self.nodes:
            name = self.names[node]
            run("ip", "netns", "add", name)
            self.made.append(name)
            run("ip", "link", "add", "port%d" % node, "type", "veth", "peer", "name", "eth0",
                "address", hardware(node), "netns", name)
            run("ip", "link", "set", "port%d" % node, "master", "br0", "up")
            self.inside(node, "link", "set", "lo", "up")
            self.inside(node, "address", "add", address(node) + "/24", "dev", "eth0")
            self.inside(node, "link", "set", "eth0", "up")
        for node in self.nodes:
            run(*self.neighbour(node, hardware(node), "br0"))
            for other in [*self.nodes, HUB]:
                if other != node:
                    self.allow(node, other)

    @staticmethod
    def neighbour(node, where, device):
        return ["ip", "neighbour", "replace", address(node), "lladdr", where, "dev", device,
                "nud", "permanent"]

    def prefix(self, node):
        return ["ip", "netns", "exec", self.names[node]]

    def inside(self, node, *words):
        run("ip", "-n", self.names[node], *words)

    @staticmethod
    def address(node):
        return address(node)

    # ---- faults
    def drop(self, sender, receiver):
        """What the sender says to the receiver is lost from now on."""
        self.inside(sender, *self.neighbour(receiver, NOBODY, "eth0")[1:])

    def allow(self, sender, receiver):
        self.inside(sender, *self.neighbour(receiver, hardware(receiver), "eth0")[1:])

    def unplug(self, node):
        """Nothing goes in or out, from clients neither."""
        run("ip", "link", "set", "port%d" % node, "nomaster")

    def plug(self, node):
        run("ip", "link", "set", "port%d" % node, "master", "br0")

    def heal(self):
        for node in self.nodes:
            self.plug(node)
            for other in self.nodes:
                if other != node:
                    self.allow(node, other)

    def close(self):
        for name in self.made:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "delete", "br0"], stderr=subprocess.DEVNULL)
        subprocess.run(["umount", "/run/netns"], stderr=subprocess.DEVNULL)
        self.made = []
