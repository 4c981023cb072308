"""Field cases F1 F2 F3 F4 F7: waiting, limits, the middle of a batch, trimmed logs."""
import re
import subprocess
import threading
import time

from calls import (batch, connect, create, delete_records, fetch, fetch_request, list_offset, name,
                   produce, put, same)
from wire import read_batches


def timed(function):
    start = time.monotonic()
    value = function()
    return value, time.monotonic() - start


def later(seconds, bootstrap, topic, value, partition=0):
    def send():
        with connect(bootstrap) as conn:
            put(conn, topic, [value], partition)
    timer = threading.Timer(seconds, send)
    timer.start()
    return timer


def case_f1_waits_for_data_and_wakes_at_once(bootstrap):
    """Empty: held for max_wait; data that comes ends the wait; min_bytes unmet gives what is there."""
    topic = name("f1")
    with connect(bootstrap) as conn:
        create(conn, topic)
        part, took = timed(lambda: fetch(conn, topic, 0, max_wait_ms=500))
        assert 0.45 < took < 1.5 and part["errorCode"] == 0 and part["records"] == b"", took
        timer = later(0.2, bootstrap, topic, b"hello")
        part, took = timed(lambda: fetch(conn, topic, 0, max_wait_ms=10000))
        timer.join()
        assert took < 5 and part["batches"][0]["records"][0]["value"] == b"hello", took
        part, took = timed(lambda: fetch(conn, topic, 0, max_wait_ms=600, min_bytes=1 << 20))
        assert took > 0.55 and len(part["batches"]) == 1, (took, part)
        part, took = timed(lambda: fetch(conn, topic, 0, max_wait_ms=10000))
        assert took < 5 and part["batches"], "data already waits"


def two_partitions(topic, offsets, min_bytes, max_wait_ms):
    request = fetch_request(topic, 0, max_wait_ms=max_wait_ms, min_bytes=min_bytes)
    request["topics"][0]["partitions"] = [
        {"partition": p, "fetchOffset": o, "partitionMaxBytes": 1 << 20}
        for p, o in enumerate(offsets)]
    return request


def case_f1_min_bytes_counts_over_all_partitions(bootstrap):
    topic = name("f1")
    with connect(bootstrap) as conn:
        create(conn, topic, 2)
        put(conn, topic, [b"x" * 600], 0)
        timer = later(0.2, bootstrap, topic, b"y" * 600, 1)
        answer, took = timed(lambda: conn.call("Fetch", 12, **two_partitions(
            topic, (0, 0), 1000, 10000)))
        timer.join()
        assert took < 5, "two halves make min_bytes: %.1f s" % took
        parts = answer["responses"][0]["partitions"]
        same([len(read_batches(p["records"])) for p in parts], [1, 1])


def case_f1_an_error_answers_at_once(bootstrap):
    """One partition out of range or unknown: no wait for the other."""
    topic = name("f1")
    with connect(bootstrap) as conn:
        create(conn, topic, 2)
        answer, took = timed(lambda: conn.call("Fetch", 12, **two_partitions(
            topic, (0, 77), 1, 10000)))
        codes = {p["partitionIndex"]: p["errorCode"] for p in answer["responses"][0]["partitions"]}
        assert codes == {0: 0, 1: 1} and took < 5, (codes, took)
        part, took = timed(lambda: fetch(conn, name("absent"), 0, max_wait_ms=10000))
        assert part["errorCode"] == 3 and took < 5, (part, took)
        part = fetch(conn, topic, 0, partition=9, max_wait_ms=10000)
        same(part["errorCode"], 3, "a partition that is not there")


def case_f1_a_gone_client_leaves_the_broker_well(bootstrap):
    """A hundred clients that go away while they wait."""
    topic = name("f1")
    with connect(bootstrap) as conn:
        create(conn, topic)
        for _ in range(100):
            gone = connect(bootstrap)
            gone.send("Fetch", 12, **fetch_request(topic, 0, max_wait_ms=5000))
            gone.socket.close()
        put(conn, topic, [b"still here"])
        same(len(fetch(conn, topic, 0)["batches"]), 1)


def case_f2_one_batch_even_beyond_the_limits(bootstrap):
    """A batch larger than both limits comes whole; a second one then does not."""
    topic = name("f2")
    with connect(bootstrap) as conn:
        create(conn, topic)
        for letter in (b"a", b"b"):
            put(conn, topic, [letter * 500000])
        for limits in ({"max_bytes": 2048}, {"partition_bytes": 1024},
                       {"max_bytes": 1, "partition_bytes": 1}):
            part = fetch(conn, topic, 0, **limits)
            same([b["base_offset"] for b in part["batches"]], [0], limits)
            same(part["batches"][0]["records"][0]["value"], b"a" * 500000)
            same(len(fetch(conn, topic, 1, **limits)["batches"]), 1)


def case_f2_every_partition_progresses_under_small_limits(bootstrap):
    """Twelve partitions read in rounds of little: all are read to their end."""
    topic = name("f2")
    with connect(bootstrap) as conn:
        create(conn, topic, 12)
        for partition in range(12):
            for _ in range(3):
                put(conn, topic, [b"x" * 3000], partition)
        offsets, rounds = dict.fromkeys(range(12), 0), 0
        while min(offsets.values()) < 3:
            rounds += 1
            assert rounds < 200, "no progress: %s" % offsets
            order = sorted(offsets, key=lambda p: (p + rounds) % 12)
            request = fetch_request(topic, 0, max_bytes=7000)
            request["topics"][0]["partitions"] = [
                {"partition": p, "fetchOffset": offsets[p], "partitionMaxBytes": 4000}
                for p in order]
            for part in conn.call("Fetch", 12, **request)["responses"][0]["partitions"]:
                for found in read_batches(part["records"]):
                    offsets[part["partitionIndex"]] = found["base_offset"] + found["count"]


def case_f2_kafka_python_with_small_limits(bootstrap):
    """kafka-python with tiny limits reads a 500 kB record and goes on."""
    import clients
    topic = name("f2")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"x" * 500000])
        put(conn, topic, [b"y"])
    script = """
import sys
from kafka import KafkaConsumer, TopicPartition
c = KafkaConsumer(bootstrap_servers=sys.argv[1], max_partition_fetch_bytes=1024,
                  fetch_max_bytes=2048, auto_offset_reset="earliest", consumer_timeout_ms=20000)
c.assign([TopicPartition(sys.argv[2], 0)])
got = [len(next(c).value) for _ in range(2)]
assert got == [500000, 1], got
"""
    python = clients.layer().toolchains.python()
    done = subprocess.run([python, "-c", script, bootstrap, topic], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    same(done.returncode, 0, done.stdout[-500:])


def case_f3_the_middle_of_a_batch_gives_the_whole_batch(bootstrap):
    """Fetching offset 5 of a batch 0-9 gives the batch unchanged, with its headers."""
    topic = name("f3")
    with connect(bootstrap) as conn:
        create(conn, topic)
        sent = batch([b"%d" % i for i in range(10)], headers=[("h", b"x")])
        same(produce(conn, topic, sent)["errorCode"], 0)
        put(conn, topic, [b"10"])
        for offset in (0, 5, 9):
            found = fetch(conn, topic, offset)["batches"]
            same([b["base_offset"] for b in found], [0, 10], "from offset %d" % offset)
            same(found[0]["bytes"][16:], sent[16:])
        same([b["base_offset"] for b in fetch(conn, topic, 10)["batches"]], [10])


def case_f3_clients_drop_what_they_did_not_ask_for(bootstrap):
    """confluent-kafka, from offset 5 of one batch, sees 5 to 9 with their headers."""
    import clients
    topic = name("f3")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"%d" % i for i in range(10)], headers=[("h", b"x")])
    script = """
import sys
from confluent_kafka import Consumer, TopicPartition
c = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "f3", "enable.partition.eof": True})
c.assign([TopicPartition(sys.argv[2], 0, 5)])
got = []
while True:
    m = c.poll(20)
    assert m is not None
    if m.error(): break
    got.append((m.offset(), m.value(), m.headers()))
c.close()
assert got == [(i, b"%d" % i, [("h", b"x")]) for i in range(5, 10)], got
"""
    python = clients.layer().toolchains.python()
    done = subprocess.run([python, "-c", script, bootstrap, topic], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    same(done.returncode, 0, done.stdout[-500:])


def case_f4_deleted_records_leave_no_reader_behind(bootstrap):
    """DeleteRecords in the middle of a batch: below is out of range, the rest is readable."""
    topic = name("f4")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"%d" % i for i in range(10)])
        put(conn, topic, [b"%d" % i for i in range(10, 20)])
        same(delete_records(conn, topic, 4), (0, 4))
        same(fetch(conn, topic, 3)["errorCode"], 1, "below the log start")
        part = fetch(conn, topic, 4)
        same((part["errorCode"], part["logStartOffset"]), (0, 4))
        values = [r["value"] for b in part["batches"] for r in b["records"] if r["offset"] >= 4]
        same(values, [b"%d" % i for i in range(4, 20)])
        same(delete_records(conn, topic, -1), (0, 20), "-1 is the high watermark")
        part = fetch(conn, topic, 20, max_wait_ms=100)
        same((part["errorCode"], part["records"], part["logStartOffset"]), (0, b"", 20))
        same(fetch(conn, topic, 19)["errorCode"], 1)
        same(put(conn, topic, [b"next"]), 20, "offsets go on")
        same(delete_records(conn, topic, 50)[0], 1, "beyond the end")
        same(delete_records(conn, topic, 10), (0, 20), "what is gone already")


def case_f4_clients_reach_the_end_of_a_trimmed_log(bootstrap):
    """After DeleteRecords, readers from the start get what is left, to the high watermark."""
    topic = name("f4")
    with connect(bootstrap) as conn:
        create(conn, topic)
        for _ in range(10):
            put(conn, topic, [b"v"] * 10)
        same(delete_records(conn, topic, 55), (0, 55))
    done = subprocess.run(["kcat", "-C", "-q", "-e", "-b", bootstrap, "-t", topic, "-o",
                           "beginning", "-f", "%o "], stdout=subprocess.PIPE, timeout=30)
    same(done.stdout.split(), [b"%d" % i for i in range(55, 100)])


def case_f4_offsets_out_of_range(bootstrap):
    topic = name("f4")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"v"] * 5)
        for offset, error in ((5, 0), (6, 1), (-1, 1), (1 << 40, 1)):
            same(fetch(conn, topic, offset, max_wait_ms=50)["errorCode"], error, offset)


def case_f7_fields_of_every_fetch_version(bootstrap):
    """Each version decodes to the last byte, with the preferred replica -1 and the log start."""
    topic = name("f7")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"v"] * 5)
        same(delete_records(conn, topic, 2), (0, 2))
        for version in range(4, 13):
            for isolation in (0, 1):
                part = fetch(conn, topic, 2, version=version, isolation=isolation)
                same((part["errorCode"], part["highWatermark"], part["lastStableOffset"]),
                     (0, 5, 5), "v%d" % version)
                if version >= 5:
                    same(part["logStartOffset"], 2, "v%d" % version)
                if version >= 11:
                    same(part["preferredReadReplica"], -1, "v%d" % version)
                assert part["abortedTransactions"] in (None, []), part
                same(len(part["batches"]), 1)


def case_f7_kcat_decodes_fetch(bootstrap):
    topic = name("f7")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"v"])
    done = subprocess.run(["kcat", "-C", "-b", bootstrap, "-t", topic, "-e", "-o", "beginning",
                           "-d", "fetch,protocol"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=20)
    same((done.returncode, done.stdout), (0, b"v\n"))
    said = done.stderr.decode(errors="replace")
    assert "PROTOERR" not in said, re.search(".*PROTOERR.*", said).group(0)


def case_f7_fetch_sessions(bootstrap):
    """A session lists only what changed; a wrong epoch is 71, an unknown session 70."""
    topic = name("f7")
    with connect(bootstrap) as conn:
        create(conn, topic, 2)

        def ask(session, epoch, topics):
            return conn.call("Fetch", 12, maxWaitMs=50, minBytes=1, sessionId=session,
                             sessionEpoch=epoch, topics=topics)
        whole = two_partitions(topic, (0, 0), 1, 50)["topics"]
        first = ask(0, 0, whole)
        same(first["errorCode"], 0)
        if first["sessionId"] == 0:
            return  # no session given: allowed, clients then send everything each time
        same(len(first["responses"][0]["partitions"]), 2, "a full answer")
        same(ask(first["sessionId"], 1, [])["responses"], [], "nothing changed")
        put(conn, topic, [b"v"], 1)
        changed = ask(first["sessionId"], 2, [])["responses"]
        same([p["partitionIndex"] for p in changed[0]["partitions"]], [1], "what changed")
        same(ask(first["sessionId"], 9, [])["errorCode"], 71)
        same(ask(123456789, 1, [])["errorCode"], 70)


def case_f7_a_session_lasts(bootstrap):
    """A reader of one partition that waits for each record keeps its session, and what that knows."""
    topic = name("f7")
    with connect(bootstrap) as writer:
        create(writer, topic, 2)
        for partition in range(2):
            with connect(bootstrap) as conn:
                request = fetch_request(topic, 0, partition, max_wait_ms=5000)
                answer = conn.call("Fetch", 12, sessionId=0, sessionEpoch=0,
                                   **dict(request, maxWaitMs=0))
                session = answer["sessionId"]
                for turn in range(100):
                    put(writer, topic, [b"%d" % turn], partition)
                    request["topics"][0]["partitions"][0]["fetchOffset"] = turn
                    answer = conn.call("Fetch", 12, sessionId=session, sessionEpoch=turn + 1,
                                       **request)
                    same((answer["errorCode"], answer["sessionId"]), (0, session), turn)
                    part, = answer["responses"][0]["partitions"]
                    same([r["value"] for b in read_batches(part["records"])
                          for r in b["records"]], [b"%d" % turn])
                put(writer, topic, [b"last"], partition)
                answer = conn.call("Fetch", 12, sessionId=session, sessionEpoch=101,
                                   **dict(request, topics=[]))
                assert answer["responses"][0]["partitions"], "the partition is remembered"


def case_f7_the_last_offset_of_an_epoch(bootstrap):
    """OffsetForLeaderEpoch: the current epoch ends at the log's end, an unknown one is -1."""
    topic = name("f7")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"v"] * 3)
        epoch = fetch(conn, topic, 0)["batches"][0]["epoch"]

        def ask(current, wanted, version=4):
            answer = conn.call("OffsetForLeaderEpoch", version, replicaId=-1, topics=[
                {"topic": topic, "partitions": [{"partition": 0, "currentLeaderEpoch": current,
                                                 "leaderEpoch": wanted}]}]
                ) if version >= 3 else conn.call("OffsetForLeaderEpoch", version, topics=[
                    {"topic": topic, "partitions": [{"partition": 0, "leaderEpoch": wanted}]}])
            part = answer["topics"][0]["partitions"][0]
            return part["errorCode"], part["leaderEpoch"], part["endOffset"]
        for version in (2, 3, 4):
            same(ask(-1, epoch, version), (0, epoch, 3), "v%d" % version)
        same(ask(epoch, epoch), (0, epoch, 3))
        same(ask(-1, epoch + 10), (0, -1, -1), "an epoch to come")
        same(ask(epoch + 5, epoch)[0], 75, "UNKNOWN_LEADER_EPOCH")
        same(list_offset(conn, topic, -1)[2], 3)
