#!/usr/bin/env python3
"""A chaos run that is killed leaves no process behind: neither brokers, also those that are stopped
or in a network of their own, nor the clients that put them under load.
"""
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import cases  # noqa: E402
import toolchains  # noqa: E402
from client import wait_for  # noqa: E402
from leash import on_leash  # noqa: E402

WORKERS, BROKERS = 5, 3
START_S = 60


def read(*words):
    """A file below /proc, as text; "" when the process is gone."""
    try:
        with open(os.path.join("/proc", *map(str, words)), errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def children(pid):
    """[(pid, when it started)]: together they are never used again."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        fields = read(name, "stat").rpartition(")")[2].split()
        if fields and int(fields[1]) == pid and fields[0] != "Z":
            found.append((int(name), fields[19]))
    return found


def lives(one):
    fields = read(one[0], "stat").rpartition(")")[2].split()
    return bool(fields) and fields[0] not in "ZX" and fields[19] == one[1]


def folders(found):
    """What a killed run leaves on the disk: the brokers' and the clients' directories."""
    for pid, _ in found:
        words = read(pid, "cmdline").split("\0")
        if "server" in words:
            yield os.readlink("/proc/%d/cwd" % pid)
        elif any(word.endswith("worker.py") for word in words):
            yield os.path.dirname(words[-2])


def killed_run(*options):
    """Starts a run, kills it while a broker is stopped, and gives back what it had started."""
    run = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "test_chaos.py"), "--only", "pause", *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=on_leash())

    def stopped():
        assert run.poll() is None, "the run ended with status %s" % run.returncode
        found = children(run.pid)
        states = [read(pid, "stat").rpartition(")")[2].split()[:1] for pid, _ in found]
        return len(found) == WORKERS + BROKERS and ["T"] in states and found

    found, left = [], []
    try:
        found = wait_for("a run with a broker that is stopped", stopped, START_S)
        left = sorted(set(folders(found)))
    finally:
        run.kill()
        run.wait()
    try:
        for one in found:
            wait_for("the end of process %d" % one[0], lambda o=one: not lives(o))
    finally:
        for one in filter(lives, found):
            os.kill(one[0], signal.SIGKILL)
    for folder in left:
        shutil.rmtree(folder)
    return len(left)


def test_a_killed_run_leaves_no_process():
    try:
        toolchains.python()
    except toolchains.Unavailable as why:
        raise cases.Skip("no stock client: %s" % why)
    count = killed_run("faults_on_loopback")
    assert count == BROKERS + 1, "%d directories" % count


def test_a_killed_run_in_networks_leaves_no_process():
    try:
        toolchains.python()
        import network
        network.run(*network.unshare_words(), "ip", "link", "set", "lo", "up")
    except (toolchains.Unavailable, OSError, network.Unavailable) as why:
        raise cases.Skip("no stock client or no network namespaces: %s" % why)
    killed_run("faults_in_networks")


if __name__ == "__main__":
    cases.main("chaos", globals())
