"""Kafka's own command-line tools; see scenario.py. Each scenario is one tool or one way of use."""
import json
import re
import subprocess
import sys
import tempfile

import kafka_peer
from scenario import main

BOOTSTRAP = sys.argv[1]
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def tool(name, *args, data=None, fails=False, limit_s=50):
    """What the tool prints; `fails` is true when it has to end with an error, None for either."""
    done = subprocess.run(kafka_peer.tool_command(name, "--bootstrap-server", BOOTSTRAP, *args),
                          input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=limit_s)
    said = done.stdout + done.stderr
    assert fails in (None, done.returncode != 0), "%s %s: status %d\n%s" % (
        name, " ".join(args), done.returncode, said[-1500:])
    return said if fails in (None, True) else done.stdout


def produce(topic, lines, *args):
    tool("ConsoleProducer", "--topic", topic, *args, data="".join(line + "\n" for line in lines))


def consume(topic, count, *args):
    out = tool(CONSUMER, "--topic", topic, "--from-beginning", "--max-messages", str(count),
               "--timeout-ms", "20000", *args)
    return [line for line in out.splitlines() if not line.startswith("Processed a total")]


def scenario_topics(tag):
    """Create with defaults, again with --if-not-exists, too many replicas, alter, delete (M6)."""
    tool("TopicCommand", "--create", "--topic", tag)
    tool("TopicCommand", "--create", "--if-not-exists", "--topic", tag)
    out = tool("TopicCommand", "--create", "--topic", tag, fails=True)
    assert "already exists" in out, out
    out = tool("TopicCommand", "--create", "--topic", tag + "-rf", "--replication-factor", "3",
               fails=True)
    assert "InvalidReplicationFactor" in out, out
    assert tag in tool("TopicCommand", "--list").split()
    out = tool("TopicCommand", "--describe", "--topic", tag)
    assert "PartitionCount: 4" in out and "ReplicationFactor: 1" in out, out
    assert "Leader: " in out and "Isr: " in out
    tool("TopicCommand", "--alter", "--topic", tag, "--partitions", "6")
    assert "PartitionCount: 6" in tool("TopicCommand", "--describe", "--topic", tag)
    tool("TopicCommand", "--delete", "--topic", tag)
    assert tag not in tool("TopicCommand", "--list").split()


def scenario_topics_describe_unknown(tag):
    """An unknown name is a clean error, and describing creates nothing (M4, M2)."""
    out = tool("TopicCommand", "--describe", "--topic", tag, fails=True)
    assert "does not exist" in out, out
    assert tag not in tool("TopicCommand", "--list").split()


def scenario_topics_configs(tag):
    """Settings given at creation come back; a wrong one is refused."""
    tool("TopicCommand", "--create", "--topic", tag, "--partitions", "2", "--config",
         "retention.ms=3600000", "--config", "max.message.bytes=12345")
    out = tool("TopicCommand", "--describe", "--topic", tag)
    assert "retention.ms=3600000" in out and "max.message.bytes=12345" in out, out
    out = tool("TopicCommand", "--create", "--topic", tag + "-bad", "--config",
               "retention.ms=soon", fails=True)
    assert "Invalid value soon" in out, out
    assert tag + "-bad" not in tool("TopicCommand", "--list").split()


def scenario_console(tag):
    lines = ["k%d:v%d" % (i, i) for i in range(50)]
    produce(tag, lines, "--reader-property", "parse.key=true", "--reader-property",
            "key.separator=:")
    got = consume(tag, 50, "--formatter-property", "print.key=true", "--formatter-property",
                  "key.separator=:")
    assert sorted(got) == sorted(lines), got


def scenario_console_headers_nulls(tag):
    produce(tag, ["h1:a,h2:b\tk1\tv1", "NONE\tk2\tNONE"], "--reader-property", "parse.headers=true",
            "--reader-property", "parse.key=true", "--reader-property", "null.marker=NONE",
            "--reader-property", "headers.separator=,")
    got = consume(tag, 2, "--formatter-property", "print.headers=true", "--formatter-property",
                  "print.key=true", "--formatter-property", "null.literal=NIL")
    assert sorted(got) == ["NO_HEADERS\tk2\tNIL", "h1:a,h2:b\tk1\tv1"], got


def scenario_compression(tag, codec):
    lines = ["%s-%d" % (codec, i) * 20 for i in range(100)]
    produce(tag, lines, "--compression-codec", codec)
    assert sorted(consume(tag, 100)) == sorted(lines)


def scenario_groups(tag):
    """Commit by consuming in a group; list, describe, reset, delete (G7)."""
    tool("TopicCommand", "--create", "--topic", tag, "--partitions", "1")
    produce(tag, ["v%d" % i for i in range(20)])
    consume(tag, 7, "--group", tag, "--command-property", "max.poll.records=7")
    assert tag in tool(GROUPS, "--list").split()
    rows = [line.split() for line in tool(GROUPS, "--describe", "--group", tag).splitlines()]
    row = next((r for r in rows if r[:2] == [tag, tag]), rows)
    assert row[2:6] == ["0", "7", "20", "13"], row
    state = tool(GROUPS, "--describe", "--group", tag, "--state")
    assert "Empty" in state, state
    tool(GROUPS, "--group", tag, "--topic", tag, "--reset-offsets", "--to-offset", "3",
         "--execute")
    rows = [line.split() for line in tool(GROUPS, "--describe", "--group", tag).splitlines()]
    assert next(r for r in rows if r[:2] == [tag, tag])[3] == "3", rows
    tool(GROUPS, "--group", tag, "--topic", tag, "--delete-offsets")
    tool(GROUPS, "--group", tag, "--delete")
    assert tag not in tool(GROUPS, "--list").split()


def scenario_all_groups(topic):
    """Two groups that committed three partitions each: six rows with their lag (G7)."""
    rows = [line.split() for line in tool(GROUPS, "--describe", "--all-groups").splitlines()]
    found = sorted(tuple(r[:2] + r[2:6]) for r in rows if len(r) > 5 and r[1] == topic)
    assert found == [(g, topic, p, *("13 20 7" if p == "0" else "0 0 0").split())
                     for g in ("a", "b") for p in ("0", "1", "2")], rows


def scenario_new_groups_refused(tag):
    """group.protocol=consumer on a broker without it: a clear error, at once (G12)."""
    produce(tag, ["v"])
    out = tool(CONSUMER, "--topic", tag, "--group", tag, "--command-property",
               "group.protocol=consumer", "--timeout-ms", "20000", fails=None)
    assert "UnsupportedVersionException" in out, out


def scenario_perf(tag):
    """The producer's and the consumer's performance tools, small."""
    out = tool("ProducerPerformance", "--topic", tag, "--num-records", "50000", "--record-size",
               "100", "--throughput", "-1", "--command-property", "acks=all")
    assert "50000 records sent" in out, out
    out = tool("ConsumerPerformance", "--topic", tag, "--num-records", "50000")
    assert re.search(r"^20\d\d-.*, 50000, ", out, re.M), out


def scenario_end_to_end_latency(tag):
    out = tool("EndToEndLatency", "--topic", tag, "--num-records", "200", "--producer-acks", "all",
               "--record-size", "100")
    assert "Avg latency" in out, out


def scenario_offsets_by_time(tag):
    """GetOffsetShell on an empty topic, then both ends, by time and by maximum time (L2)."""
    tool("TopicCommand", "--create", "--topic", tag, "--partitions", "1")
    assert tag + ":0:0" in tool("GetOffsetShell", "--topic", tag)
    produce(tag, ["v%d" % i for i in range(5)])
    for when, offset in (("latest", 5), ("earliest", 0), ("1000", 0)):
        out = tool("GetOffsetShell", "--topic", tag, "--time", when)
        assert "%s:0:%d" % (tag, offset) in out, (when, out)
    out = tool("GetOffsetShell", "--topic", tag, "--time", "max-timestamp")
    assert re.search(tag + r":0:[0-4]\b", out), out


def scenario_delete_records(tag):
    tool("TopicCommand", "--create", "--topic", tag, "--partitions", "1")
    produce(tag, ["v%d" % i for i in range(10)])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as out:
        json.dump({"version": 1, "partitions": [{"topic": tag, "partition": 0, "offset": 4}]}, out)
        out.flush()
        said = tool("DeleteRecordsCommand", "--offset-json-file", out.name)
    assert "low_watermark: 4" in said, said
    assert consume(tag, 6) == ["v%d" % i for i in range(4, 10)]


def scenario_configs(tag):
    """Every setting of a topic and of the broker is shown with its value (A1)."""
    tool("TopicCommand", "--create", "--topic", tag, "--config", "segment.bytes=1048576")
    out = tool("ConfigCommand", "--describe", "--entity-type", "topics",
               "--entity-name", tag)
    assert "segment.bytes=1048576" in out, out
    out = tool("ConfigCommand", "--describe", "--all", "--entity-type", "topics",
               "--entity-name", tag)
    for key in ("segment.bytes=1048576", "cleanup.policy=delete", "compression.type=producer"):
        assert key in out, (key, out)
    out = tool("ConfigCommand", "--describe", "--all", "--entity-type", "brokers",
               "--entity-name", "1")
    assert "num.partitions=4" in out and "log.retention.hours=" in out, out


def scenario_cluster(tag):
    """The cluster's id and the APIs' versions as the tools print them."""
    out = subprocess.run(kafka_peer.tool_command("ClusterTool", "cluster-id", "--bootstrap-server",
                                                 BOOTSTRAP), stdout=subprocess.PIPE, text=True)
    assert re.search(r"Cluster ID: \S{5,}", out.stdout), out.stdout
    out = tool("BrokerApiVersionsCommand")
    assert "Produce(0)" in out and "Fetch(1)" in out and "ApiVersions(18)" in out, out


def scenario_verifiable(tag):
    """The verifiable producer and consumer, the latter in a group."""
    out = tool("VerifiableProducer", "--topic", tag, "--max-messages", "500", "--acks", "-1")
    assert '"acked":500' in out, out[-500:]
    out = tool("VerifiableConsumer", "--topic", tag, "--group-id", tag, "--max-messages", "500",
               "--reset-policy", "earliest")
    records = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert sum(r["count"] for r in records if r["name"] == "records_consumed") == 500
    assert any(r["name"] == "offsets_committed" and r["success"] for r in records)


sys.exit(main(globals()))
