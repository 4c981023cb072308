"""Layer `suites`: other projects' own tests against this broker, held against a control list.

control-*.tsv says what passed on a stock Apache Kafka 4.4. Every PASS row there has to pass here,
unless expected.tsv lists it with the reason why it is not run; such a row is reported as skipped. A
row that fails without being listed is a failure, and so is one that did not run at all.

Rows whose note says "3 nodes", and the suite franz-go-3node, run against three brokers as one
cluster; all others against one broker.

usage: run.py [SUITE | NUMBER..]
SUITE: librdkafka, franz-go or franz-go-3node; NUMBER: librdkafka's, e.g. 0030
"""
import csv
import fcntl
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import kafka_peer  # noqa: E402
import toolchains  # noqa: E402
from cluster import Cluster  # noqa: E402
from ottla import REFERENCE, new_broker  # noqa: E402
from results import add_row  # noqa: E402

LAYER = "suites"
SETTINGS = {"num.partitions": 4, "auto.create.topics.enable": "true",
            "group.initial.rebalance.delay.ms": 3000}
PARALLEL = 4  # the tests mostly wait
NODES = 3
THREE = "3 nodes"  # in the note of a row: what it was run on
RACKS = {node: {"broker.rack": "RACK%d" % node} for node in range(1, NODES + 1)}
CLUSTER_SETTINGS = {
    **SETTINGS, "default.replication.factor": NODES,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
NOTHING = "ran nothing in this mode"


def table(name):
    with open(os.path.join(HERE, name), newline="") as lines:
        rows = csv.reader((line for line in lines if not line.startswith("#")), delimiter="\t",
                          quoting=csv.QUOTE_NONE)
        return [row for row in rows if row]


def control(suite):
    """test -> its row (suite, test, result, seconds, note) on Kafka, those that passed."""
    return {row[1]: row for row in table("control-%s.tsv" % suite) if row[2] == "PASS"}


def listed(suite, test):
    """The reason why a test is not run, or None."""
    for row_suite, name, reason in table("expected.tsv"):
        same = test.startswith(name[:-1]) if name.endswith("*") else test == name
        if row_suite == suite and same:
            return reason
    return None


def logs(*parts):
    path = os.path.join(os.environ.get("OTTLA_LOG_DIR") or "/tmp", "suites", *parts)
    os.makedirs(path, exist_ok=True)
    return path


class Suite:
    """Collects what a suite's script prints and judges it by the control list."""

    def __init__(self, name, env):
        self.name, self.env = name, env
        self.control = control(name)
        self.results = {}
        self.lock = threading.Lock()

    def script(self, *args, **more):
        """Runs the suite's script and takes its rows."""
        path = os.path.join(HERE, "run-%s.sh" % self.name.removesuffix("-3node"))
        done = subprocess.run([path, *args], env={**self.env, **more}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True)
        with self.lock:
            for line in done.stdout.splitlines():
                _, test, result, seconds, note = line.split("\t")
                self.results[test] = (result, float(seconds), note)

    def build(self):
        """False, with a failed row, if the suite cannot be had; one run at a time builds."""
        name = self.name.removesuffix("-3node") + ".lock"
        with open(os.path.join(kafka_peer.cache_dir(), name), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            script = os.path.join(HERE, "run-%s.sh" % self.name.removesuffix("-3node"))
            done = subprocess.run([script, "--build-only"],
                                  env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            add_row(LAYER, self.name, "FAIL", 0, "cannot be built: " + done.stdout[-200:])
        return done.returncode == 0

    def wanted(self):
        return [test for test in self.control if not listed(self.name, test)]

    def judge(self, tests):
        """One row for every test of the control list among `tests`, and for every surprise."""
        for test in tests:
            reason = listed(self.name, test)
            result, seconds, note = self.results.pop(test, ("absent", 0, ""))
            title = "%s:%s" % (self.name, test)
            # A quick test may be over at once; one that took Kafka a second cannot.
            idle = note == NOTHING and float(self.control[test][3]) >= 1
            if result == "PASS" and not idle:
                add_row(LAYER, title, "PASS", seconds)
            elif reason:
                add_row(LAYER, title, "SKIP", seconds, reason)
            else:
                add_row(LAYER, title, "FAIL", seconds, "%s here, passes on Kafka: %s"
                        % (result, note))
        for test, (result, seconds, note) in self.results.items():
            if result == "FAIL" and not listed(self.name, test):
                add_row(LAYER, "%s:%s" % (self.name, test), "FAIL", seconds, note)


def librdkafka_jobs(suite, broker, numbers):
    """(seconds on Kafka, alone, function): one process a test, in the control's mode."""
    tool = "%s %s" % (sys.executable, os.path.join(HERE, "..", "lib", "kafka_tool.py"))
    found = {}
    for test in suite.wanted():
        _, _, _, seconds, note = suite.control[test]
        number = test[:4]
        if (numbers and number not in numbers) or THREE in note:
            continue
        spec = "%s:%s" % (number, test[test.index("(") + 1:-1]) if "(" in test else number
        flags = "-p1" if note.startswith("full") else "-Q"
        longest = max(float(seconds), found.get(spec, (0,))[0])
        found[spec] = (longest, "alone" in note, flags)

    def job(spec, flags):
        return lambda: suite.script(broker.bootstrap, spec, TEST_FLAGS=flags, KAFKA_TOOL=tool,
                                    LOG_DIR=logs("librdkafka"))

    return [(seconds, alone, job(spec, flags)) for spec, (seconds, alone, flags) in found.items()]


def franz_jobs(suite, broker):
    names = [row[1] for row in table("expected.tsv") if row[0] == suite.name]
    skip = "^(%s)$" % "|".join(n.replace("*", ".*") for n in names if "/" not in n)
    return [(10000, False, lambda: suite.script(broker.bootstrap, skip, LOG_DIR=logs("franz-go")))]


def librdkafka_on_cluster(suite, cluster, numbers, auto_create):
    """Those of the suite's rows that want three brokers, with or without auto-creation."""
    tool = "%s %s" % (sys.executable, os.path.join(HERE, "..", "lib", "kafka_tool.py"))
    rows = [suite.control[test] for test in suite.wanted() if THREE in suite.control[test][4]]
    for scenario in sorted({(row[1][:4], "auto.create.topics.enable=false" in row[4],
                             row[4].startswith("full")) for row in rows}):
        number, no_auto_create, full = scenario
        if no_auto_create == auto_create or (numbers and number not in numbers):
            continue
        suite.script(cluster.bootstrap, number, TEST_FLAGS="-p1" if full else "-Q",
                     SCENARIO="noautocreate" if no_auto_create else "default", KAFKA_TOOL=tool,
                     LOG_DIR=logs("librdkafka"))


def run_on_three(suites, numbers):
    """The rows of three brokers, one suite after the other: three brokers fill two cores."""
    for auto_create in (True, False):
        settings = {**CLUSTER_SETTINGS, "auto.create.topics.enable": str(auto_create).lower()}
        with Cluster(NODES, settings, RACKS) as cluster:
            for suite in suites:
                if suite.name == "librdkafka":
                    librdkafka_on_cluster(suite, cluster, numbers, auto_create)
                elif suite.name == "franz-go-3node" and auto_create:
                    for _, _, run in franz_jobs(suite, cluster):
                        run()


def main(words):
    env = {**toolchains.tool_environment(), "PYTHONPATH": os.path.join(HERE, "..", "lib")}
    numbers = [word for word in words if word.isdigit()]
    three = {**env, "KGO_TEST_RF": str(NODES), "KGO_TEST_RECORDS": "20000"}
    suites = [Suite(name, three if name == "franz-go-3node" else env)
              for name in ("franz-go", "librdkafka", "franz-go-3node")
              if not words or name in words or (numbers and name == "librdkafka")]
    suites = [suite for suite in suites if suite.build()]
    with new_broker(overrides=SETTINGS, name="broker-suites") as broker:
        jobs = []
        for suite in [suite for suite in suites if suite.name != "franz-go-3node"]:
            jobs += franz_jobs(suite, broker) if suite.name == "franz-go" else \
                librdkafka_jobs(suite, broker, numbers)
        jobs.sort(key=lambda job: -job[0])
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(lambda job: job[2](), [job for job in jobs if not job[1]]))
        for _, _, run in [job for job in jobs if job[1]]:  # those that measure time
            run()
    if not REFERENCE:
        run_on_three(suites, numbers)
    for suite in suites:
        suite.judge([test for test in suite.control if (not numbers or test[:4] in numbers) and
                     not (REFERENCE and THREE in suite.control[test][4])])


if __name__ == "__main__":
    main(sys.argv[1:])
