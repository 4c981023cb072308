"""Kafka's own tools read the files of our logs (DumpLogSegments as auditor)."""
import glob
import os
import re
import subprocess
import time

import kafka_peer
import ottla
from calls import commit, connect, coordinator, create, name, put, same

REFUSALS = re.compile(r"isvalid: false|Mismatches|mismatch|Non-consecutive|not in order|"
                      r"Exception|corrupt|out of order", re.IGNORECASE)


def dump(files, *options):
    """The tool's output; fails when it finds fault with a file."""
    command = kafka_peer.tool_command("DumpLogSegments", "--files", ",".join(files), *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = REFUSALS.search(done.stdout)
    assert not found, "%s in:\n%s" % (found.group(0), done.stdout[:4000])
    return done.stdout


def fill(conn, topic):
    """500 batches of 3 records, some compressed, over several segments."""
    first_ms = int(time.time() * 1000) - 10000  # old ones would leave by retention.ms
    create(conn, topic, configs={"segment.bytes": "1048576", "index.interval.bytes": "1024"})
    for number in range(500):
        put(conn, topic, [b"%d-%d" % (number, i) + os.urandom(3000) for i in range(3)],
            codec=number % 2, times=[first_ms + number * 10 + i for i in range(3)])


def case_audit_kafka_reads_our_segments_and_indexes():
    topic = name("audit")
    with ottla.new_broker() as broker:
        with connect(broker.bootstrap) as conn:
            fill(conn, topic)
        broker.stop()  # everything is in the files then
        folder = os.path.join(broker.data_dir, topic + "-0")
        logs = sorted(glob.glob(folder + "/*.log"))
        assert len(logs) > 2, logs
        text = dump(logs, "--deep-iteration", "--print-data-log")
        same(len(re.findall(r"^baseOffset: ", text, re.M)), 500, "batches")
        same([int(o) for o in re.findall(r"^\| offset: (\d+)", text, re.M)], list(range(1500)))
        same(text.count("isvalid: true"), 500)
        for kind in ("index", "timeindex"):
            files = sorted(glob.glob(folder + "/*." + kind))
            same(len(files), len(logs), kind + " files")
            dump(files)


def case_audit_kafka_decodes_our_group_records():
    topic, group = name("audit"), name("g")
    with ottla.new_broker() as broker:
        with connect(broker.bootstrap) as conn:
            create(conn, topic, 2)
            coordinator(conn, group)
            for partition in range(2):
                same(commit(conn, group, topic, 40 + partition, partition), 0)
        broker.stop()
        logs = [log for log in glob.glob(broker.data_dir + "/__consumer_offsets-*/*.log")
                if os.path.getsize(log) > 0]
        text = dump(logs, "--offsets-decoder")
        for partition in range(2):
            assert re.search(r'"group":"%s","topic":"%s","partition":%d' %
                             (group, topic, partition), text), text[:4000]
            assert '"offset":%d' % (40 + partition) in text, text[:4000]
