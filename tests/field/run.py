"""Layer `field`: cases that broke Kafka-compatible brokers in the field, each by its id.

A case is a function case_ID_what_breaks in cases/*.py. One that takes an argument gets the
bootstrap address of a broker that all such cases share; one that takes none starts its own. The
scripts in repro/ run as they are against the shared broker.

usage: run.py [WORD..]     only the cases whose name holds one of the words, e.g. run.py g1 f4_
"""
import importlib
import inspect
import os
import pkgutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "cases"), os.path.join(HERE, "..", "lib")]

from jobs import Job, run_jobs  # noqa: E402
from ottla import new_broker  # noqa: E402
from results import add_row  # noqa: E402

LAYER = os.environ.get("OTTLA_LAYER", "field")
SETTINGS = {"num.partitions": 4, "auto.create.topics.enable": "true",
            "group.initial.rebalance.delay.ms": 0}
REPRO = ("h1_apiversions_future", "f1_longpoll", "l1_timestamps", "m4_metadata", "g6_offsetfetch",
         "p2_sequences")
NOT_RUN = {"repro:t1_txn": "needs transactions, which this broker does not have yet"}


def cases():
    """(name, module, function, takes the shared broker)"""
    for info in pkgutil.iter_modules([os.path.join(HERE, "cases")]):
        for name, case in inspect.getmembers(importlib.import_module(info.name),
                                             inspect.isfunction):
            if name.startswith("case_"):
                yield name[5:], info.name, name, bool(inspect.signature(case).parameters)


def jobs(bootstrap):
    lib = os.path.join(HERE, "..", "lib")
    env = {"PYTHONPATH": lib, "B": bootstrap, "PYTHONDONTWRITEBYTECODE": "1"}
    for name, module, function, _ in cases():
        yield Job(name, [sys.executable, os.path.join(HERE, "case.py"), bootstrap, module,
                         function], timeout_s=180, env=env)
    for name in REPRO:
        yield Job("repro:" + name, [sys.executable, os.path.join(HERE, "repro", name + ".py")],
                  timeout_s=60, env=env)


def main(words):
    def wanted(name):
        return not words or any(word in name for word in words)
    with new_broker(overrides=SETTINGS, name="broker-field") as broker:
        run_jobs(LAYER, [job for job in jobs(broker.bootstrap) if wanted(job.test)], parallel=3)
        for name, reason in NOT_RUN.items():
            if wanted(name):
                add_row(LAYER, name, "SKIP", 0, reason)


if __name__ == "__main__":
    main(sys.argv[1:])
