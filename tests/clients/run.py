"""Layer `clients`: stock clients, each through every scenario it can do; one row a scenario.

A broker is started with room for big messages; every scenario is a process of its own (see
tests/lib/jobs.py). At the end the broker is killed and started again, and every client has to find
the offset it committed before and the records behind it.

usage: run.py [CLIENT..]        e.g. run.py kcat sarama-2.8.0
"""
import os
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import kafka_peer  # noqa: E402
import toolchains  # noqa: E402
from jobs import Job, run_jobs  # noqa: E402
from ottla import new_broker  # noqa: E402
from results import add_row  # noqa: E402

LAYER = "clients"
SETTINGS = {
    "message.max.bytes": 20000000, "replica.fetch.max.bytes": 20000000,
    "num.partitions": 4, "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": 0,
}
CODECS = ["compression_of_" + codec for codec in ("none", "gzip", "snappy", "lz4", "zstd")]
SCENARIOS = ["produce_consume", *CODECS, "sizes", "headers", "nulls", "offsets_by_time",
             "rebalance"]
TOOL_SCENARIOS = [
    "topics", "topics_describe_unknown", "topics_configs", "console", "console_headers_nulls",
    *CODECS, "groups", "perf", "end_to_end_latency", "offsets_by_time", "delete_records", "configs",
    "cluster", "verifiable"]
SARAMA_VERSIONS = ("1.0.0", "2.1.0", "2.8.0", "3.6.0", "4.0.0")


def script(name):
    return os.path.join(HERE, "python", name)


def java():
    return kafka_peer.java_command("Client", classpath=[toolchains.java_classes()])


def sarama(version):
    return ["env", "SARAMA_VERSION=" + version, toolchains.go_program("sarama")]


# client -> (its command, made when it is needed; its scenarios)
CLIENTS = {
    "kcat": (lambda: [sys.executable, script("client_kcat.py")], SCENARIOS),
    "librdkafka-c": (lambda: [toolchains.c_program()], SCENARIOS),
    "confluent-kafka": (lambda: [toolchains.python(), script("client_confluent.py")], SCENARIOS),
    "aiokafka": (lambda: [toolchains.python(), script("client_aiokafka.py")], SCENARIOS),
    "kafka-python": (lambda: [toolchains.python(), script("client_kafka_python.py")], SCENARIOS),
    "franz-go": (lambda: [toolchains.go_program("franz")], SCENARIOS),
    "kafka-go": (lambda: [toolchains.go_program("kafkago")], SCENARIOS),
    "sarama": (lambda: [toolchains.go_program("sarama")], SCENARIOS + ["idempotent", "admin"]),
    **{"sarama-" + v: (lambda v=v: sarama(v), SCENARIOS + ["idempotent", "admin"])
       for v in SARAMA_VERSIONS},
    "kafkajs": (lambda: [toolchains.node(), toolchains.node_program("kafkajs.js")],
                SCENARIOS + ["idempotent", "describe_unknown"]),
    "platformatic": (lambda: [toolchains.node(), toolchains.node_program("platformatic.js")],
                     SCENARIOS + ["many_partitions"]),
    "java": (java, SCENARIOS + ["rebalance_cooperative"]),
    "kafka-tools": (lambda: [sys.executable, script("client_kafka_tools.py")], TOOL_SCENARIOS),
}


def commands(names):
    """client -> command; a client that cannot be had is a skipped row."""
    found = {}
    for name in names:
        try:
            found[name] = CLIENTS[name][0]()
        except toolchains.Unavailable as why:
            add_row(LAYER, name, "SKIP", 0, why)
    return found


def job(client, command, broker, scenario, tag):
    name, _, argument = scenario.partition("_of_")
    argv = [*command, broker.bootstrap, name, tag, *([argument] if argument else [])]
    return Job("%s:%s" % (client, scenario), argv, timeout_s=120,
               env={"PYTHONPATH": os.path.join(HERE, "..", "lib")})


def main(names):
    found = commands(names)
    run_id = uuid.uuid4().hex[:8]
    with new_broker(overrides=SETTINGS, name="broker-clients") as broker:
        jobs = [job(client, command, broker, scenario, "-".join((run_id, client, scenario)))
                for client, command in found.items() for scenario in CLIENTS[client][1]]
        savers = {client: command for client, command in found.items() if client != "kafka-tools"}
        jobs += [job(client, command, broker, "committed_write", "-".join((run_id, client)))
                 for client, command in savers.items()]
        run_jobs(LAYER, jobs, parallel=3)
        broker.kill9()
        broker.start()
        run_jobs(LAYER, [job(client, command, broker, "committed_read", "-".join((run_id, client)))
                         for client, command in savers.items()], parallel=3)


if __name__ == "__main__":
    main(sys.argv[1:] or list(CLIENTS))
