"""Layer `suites`: other projects' own tests against this broker, held against a control list.

control-*.tsv says what passed on a stock Apache Kafka 4.4. Every PASS row there has to pass here,
unless expected.tsv lists it with the reason why it is not run; such a row is reported as skipped. A
row that fails without being listed is a failure, and so is one that did not run at all.

usage: run.py [SUITE | NUMBER..]     SUITE: librdkafka or franz-go; NUMBER: librdkafka's, e.g. 0030
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
from ottla import new_broker  # noqa: E402
from results import add_row  # noqa: E402

LAYER = "suites"
SETTINGS = {"num.partitions": 4, "auto.create.topics.enable": "true",
            "group.initial.rebalance.delay.ms": 3000}
PARALLEL = 4  # the tests mostly wait
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
        path = os.path.join(HERE, "run-%s.sh" % self.name)
        done = subprocess.run([path, *args], env={**self.env, **more}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True)
        with self.lock:
            for line in done.stdout.splitlines():
                _, test, result, seconds, note = line.split("\t")
                self.results[test] = (result, float(seconds), note)

    def build(self):
        """False, with a failed row, if the suite cannot be had; one run at a time builds."""
        with open(os.path.join(kafka_peer.cache_dir(), self.name + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run([os.path.join(HERE, "run-%s.sh" % self.name), "--build-only"],
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
        if numbers and number not in numbers:
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


def main(words):
    env = {**toolchains.tool_environment(), "PYTHONPATH": os.path.join(HERE, "..", "lib")}
    numbers = [word for word in words if word.isdigit()]
    suites = [Suite(name, env) for name in ("franz-go", "librdkafka")
              if not words or name in words or (numbers and name == "librdkafka")]
    suites = [suite for suite in suites if suite.build()]
    with new_broker(overrides=SETTINGS, name="broker-suites") as broker:
        jobs = []
        for suite in suites:
            jobs += franz_jobs(suite, broker) if suite.name == "franz-go" else \
                librdkafka_jobs(suite, broker, numbers)
        jobs.sort(key=lambda job: -job[0])
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(lambda job: job[2](), [job for job in jobs if not job[1]]))
        for _, _, run in [job for job in jobs if job[1]]:  # those that measure time
            run()
        for suite in suites:
            suite.judge([test for test in suite.control if not numbers or test[:4] in numbers])


if __name__ == "__main__":
    main(sys.argv[1:])
