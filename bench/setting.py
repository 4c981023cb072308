"""The ground a benchmark stands on: options, compiled programs, directories, broker pairs.

Happy path: `with Setting(options) as setting:` gives a working directory, the programs of this
folder compiled by cc, and setting.ottla() and setting.kafka(). At the end, after SIGTERM too, every
broker it made is stopped and the directory is gone; with --keep it stays.

Failure modes: a program that does not compile or a broker that is not built ends the run with the
compiler's or the shell's message.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from brokers import BrokerError, Kafka, Ottla, end_on_sigterm, running

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
CFLAGS = ["-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]
LIBRARIES = {"load": ["-lrdkafka", "-lpthread"]}
TOUCH_BYTES = 4 << 30
SETTLE_S = 0.5   # after a load: what a broker still does for it (page cache, logs) counts too
SHAPES = {       # how librdkafka batches, how many records, how often they are read
    "big": dict(load=dict(batch=262144, linger_ms=50), records=1000000, passes=2),
    "16k": dict(load=dict(batch=16384, linger_ms=5), records=500000, passes=4),
    "one": dict(load=dict(batch_records=1, linger_ms=0, in_flight=5), records=100000, passes=10),
}


def parser(description, scenarios):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--pairs", type=int, help="runs of either broker, alternating (default 3)")
    p.add_argument("--quick", action="store_true", help="one pair, less of everything")
    if scenarios:
        p.add_argument("--scenario", action="append", choices=scenarios, metavar="NAME",
                       help="only this one; may be repeated; one of " + ", ".join(scenarios))
    p.add_argument("--ottla", default=os.environ.get("OTTLA_BIN", TOP + "/build/ottla"),
                   help="the broker's program (default build/ottla, a release build)")
    p.add_argument("--override", action="append", default=[], metavar="KEY=VALUE",
                   help="a further setting of Ottla, e.g. flush.policy=interval")
    p.add_argument("--dir", default="/var/tmp", help="where the data goes (a real disk)")
    p.add_argument("--commit", help="the commit the program was built from (default: the tree's)")
    p.add_argument("--no-history", action="store_true", help="do not add to history.csv")
    p.add_argument("--keep", action="store_true", help="keep the data and the brokers' logs")
    return p


def measured(broker, action):
    """Runs action(); its result, the broker's CPU seconds and user CPU seconds for it."""
    total, user = broker.usage()
    result = action()
    time.sleep(SETTLE_S)
    total_after, user_after = broker.usage()
    return result, total_after - total, user_after - user


def machine_ticks():
    """All time of all processors, and what the host of a virtual machine kept of it."""
    with open("/proc/stat") as f:
        ticks = [int(word) for word in f.readline().split()[1:9]]
    return sum(ticks), ticks[7]


class Setting:
    """See above."""

    def __init__(self, options):
        self.options, self.brokers = options, []
        self.pairs = options.pairs or (1 if options.quick else 3)
        if not os.access(options.ottla, os.X_OK):
            sys.exit("no broker at %s: meson setup --buildtype=release build && "
                     "ninja -C build ottla" % options.ottla)

    def __enter__(self):
        end_on_sigterm()
        self.home = tempfile.mkdtemp(prefix="ottla-bench-", dir=self.options.dir)
        return self

    def __exit__(self, *_):
        for broker in self.brokers:
            broker.kill()
        if self.options.keep:
            print("kept: " + self.home)
        else:
            shutil.rmtree(self.home, ignore_errors=True)

    def binary(self):
        """A copy of the program: a build meanwhile must not change what is measured."""
        return shutil.copy(self.options.ottla, os.path.join(self.home, "ottla-measured"))

    def ottla(self):
        return self.own(Ottla(os.path.join(self.home, "ottla"), self.binary(),
                              self.options.override))

    def kafka(self):
        cache = os.environ.get("KAFKA_PEER_DIR", os.path.expanduser("~/.cache/kafka-peer"))
        return self.own(Kafka(os.path.join(self.home, "kafka"), cache))

    def own(self, broker):
        self.brokers.append(broker)
        return broker

    def program(self, name):
        """Compiles NAME.c of this folder; the path of the program."""
        path = os.path.join(self.home, name)
        if not os.path.exists(path):
            source = os.path.join(HERE, name + ".c")
            subprocess.run(["cc"] + CFLAGS + [source, "-o", path] + LIBRARIES.get(name, []),
                           check=True)
        return path

    def touch_memory(self, size=TOUCH_BYTES):
        """Writes and removes a file, so that no broker is the first to touch the page cache: the
        first touch of a virtual machine's memory costs system time on whoever writes first. What
        has been free for some seconds may have gone back to the host: then it is first again."""
        path, chunk = os.path.join(self.home, "touch"), bytes(1 << 24)
        with open(path, "wb") as f:
            for _ in range(size // len(chunk)):
                f.write(chunk)
        os.unlink(path)

    def load(self, command, broker, topic, limit_s=300, **options):
        """Runs load.c; what it saw, as a dict."""
        words = ["%s=%d" % item for item in options.items()]
        done = subprocess.run([self.program("load"), command, broker.address, topic] + words,
                              capture_output=True, text=True, timeout=limit_s)
        if done.returncode != 0:
            raise RuntimeError("%s: %s" % (broker.name, done.stderr.strip()))
        return json.loads(done.stdout)

    def sync_load(self, broker, topic, connections, partitions, size, warm_s, counted_s):
        """Runs sync_load.c; what it saw, with the broker's CPU time between its two marks, and how
        much of the machine's time its host kept: the tail of short waits is mostly that."""
        command = [self.program("sync_load"), str(broker.port), topic] + [str(n) for n in (
            connections, partitions, size, warm_s, counted_s)]
        with running(command, stdout=subprocess.PIPE, text=True) as load:
            marks = {}
            for line in load.stdout:
                if line.startswith("{"):
                    seen = json.loads(line)
                else:
                    marks[line.strip()] = (broker.usage()[0],) + machine_ticks()
        if load.returncode != 0:
            raise BrokerError("%s: sync_load failed\n%s" % (broker.name, broker.log_tail()))
        figures = {"records_per_s": seen["records"] / seen["seconds"]}
        figures.update({k: v for k, v in seen.items() if k.endswith("_ms")})
        cpu_s, ticks, stolen = (b - a for a, b in zip(marks["begin"], marks["end"]))
        figures["cpu_s_per_million"] = cpu_s / seen["records"] * 1e6
        figures["stolen_percent"] = 100 * stolen / ticks
        figures["generator_cpu_s_per_million"] = seen["client_cpu_s"] / seen["records"] * 1e6
        return figures
