#!/usr/bin/env python3
"""A benchmark that is told to end (SIGTERM) leaves no broker behind, and no directory: while they
run, and while Kafka is still being started.
"""
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import cases  # noqa: E402
from client import wait_for  # noqa: E402
from leash import on_leash  # noqa: E402
from ottla import TOP  # noqa: E402

# Stands for a script that starts a node, which never answers, and waits for it.
NODE = """#!/bin/sh
mkdir -p "$KAFKA_PEER_DIR/run-1/node1"
[ "$1" = start-node ] || exit 0
setsid sleep 600 & echo $! >"$KAFKA_PEER_DIR/run-1/node1/pid"
exec sleep 600
"""
RUN = """
import argparse, os, sys, time
sys.path.insert(0, "%(top)s/bench")
from setting import Setting, parser
import brokers

class Kafka(brokers.Kafka):
    def run_script(self, env, *words):
        self.script = "%(home)s/start"

options = parser("", []).parse_args(["--ottla", "%(ottla)s", "--dir", "%(home)s"])
with Setting(options) as setting:
    setting.ottla().start()
    if "kafka" in sys.argv:
        setting.own(Kafka(setting.home + "/kafka", "%(home)s")).start()
    print("ready", flush=True)
    time.sleep(600)
"""


def processes(home):
    """Those that work for what is below the directory: by their environment or command line."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline"):
            try:
                with open("/proc/%s/%s" % (pid, name), "rb") as text:
                    if home.encode() in text.read():
                        found.add(int(pid))
            except OSError:
                continue
    return found


def ended(count, *words):
    """Starts a run, ends it when so many processes are there, and sees what is left."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-ends-") as home:
        binary = os.environ.get("OTTLA_BIN") or os.path.join(TOP, "build", "ottla")
        with open(os.path.join(home, "start"), "w") as script:
            script.write(NODE)
        os.chmod(os.path.join(home, "start"), 0o755)
        run = subprocess.Popen(
            [sys.executable, "-c", RUN % {"top": TOP, "home": home, "ottla": binary}, *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=on_leash())
        try:
            if "kafka" not in words:
                assert run.stdout.readline() == b"ready\n"
            wait_for("what the run starts", lambda: len(processes(home)) == count)
            run.terminate()
            assert run.wait(30) == 128 + signal.SIGTERM, run.returncode
            assert processes(home) == set()
            assert os.listdir(home) == ["start"]
        finally:
            for pid in processes(home):
                os.kill(pid, signal.SIGKILL)
            run.wait()
            run.stdout.close()


def test_a_run_that_is_told_to_end_ends_its_broker():
    ended(2)


def test_a_kafka_that_is_being_started_ends_too():
    ended(4, "kafka")


if __name__ == "__main__":
    cases.main("crash", globals())
