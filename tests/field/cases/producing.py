"""Field cases P1 P2 P3 P6 P7: idempotent producers, compression, old formats."""
import gzip
import struct
import threading
import time
import zlib

import clients
import ottla
from calls import (batch, connect, create, fetch, list_offset, name, produce, producer_id, put,
                   same)

CODECS = ("gzip", "snappy", "lz4", "zstd")
WRITERS = ("kcat", "librdkafka-c", "confluent-kafka", "aiokafka", "kafka-python", "franz-go",
           "kafka-go", "sarama", "kafkajs", "platformatic", "java")


def case_p1_every_shape_of_init_producer_id(bootstrap):
    """Fresh, unique ids from epoch 0 for every version and shape; a known id gets the next epoch."""
    with connect(bootstrap) as conn:
        ids = [producer_id(conn, version) for version in range(6)]
        same([epoch for _, epoch in ids], [0] * 6)
        more = [producer_id(conn) for _ in range(20)]
        assert len({pid for pid, _ in ids + more}) == 26, "unique"
        for version in (3, 4, 5):
            pid, epoch = producer_id(conn, version, producerId=-1, producerEpoch=-1)
            assert pid >= 0 and epoch == 0
        again = producer_id(conn, 4, producerId=pid, producerEpoch=epoch)
        assert again[0] >= 0 and again[1] >= 0, again


def case_p1_ids_are_unique_across_restarts():
    seen = set()
    with ottla.new_broker(name="p1") as broker:
        for turn in range(4):
            with connect(broker.bootstrap) as conn:
                fresh = {producer_id(conn)[0] for _ in range(10)}
                assert len(fresh) == 10 and not fresh & seen, "ids came again"
                seen |= fresh
            broker.kill9() if turn % 2 else broker.stop()
            broker.start()


def case_p1_console_producer_and_aiokafka(bootstrap):
    clients.run("kafka-tools", bootstrap, "console", name("p1"))
    clients.run("aiokafka", bootstrap, "produce_consume", name("p1"))


def case_p2_duplicates_gaps_and_the_wrap(bootstrap):
    """A resend within the last five answers the first offset; a gap is 45; 2^31-1 wraps to 0."""
    topic, wrapping = name("p2"), name("p2")
    with connect(bootstrap) as conn:
        create(conn, topic)
        create(conn, wrapping)
        pid, epoch = producer_id(conn)

        def send(first, count=1, where=topic):
            answer = produce(conn, where, batch([b"v"] * count, producer=(pid, epoch, first)))
            return answer["errorCode"], answer["baseOffset"]
        same(send(0, 3), (0, 0))
        for first in range(3, 8):
            same(send(first), (0, first))
        for first in range(3, 8):
            same(send(first), (0, first), "a resend of one of the last five")
        same(send(20)[0], 45, "a gap")
        same(send(8), (0, 8), "the right one after the gap")
        same(list_offset(conn, topic, -1)[2], 9, "nothing was written twice")
        same(send(2147483646, 2, wrapping), (0, 0), "no state known: any first sequence")
        same(send(0, 1, wrapping), (0, 2), "wrapped to 0")


def case_p2_an_old_epoch_is_fenced(bootstrap):
    """A batch of a lower producer epoch than the last is refused with 47."""
    topic = name("p2")
    with connect(bootstrap) as conn:
        create(conn, topic)
        pid, _ = producer_id(conn)
        same(produce(conn, topic, batch([b"a"], producer=(pid, 3, 0)))["errorCode"], 0)
        same(produce(conn, topic, batch([b"b"], producer=(pid, 2, 0)))["errorCode"], 47)
        same(produce(conn, topic, batch([b"c"], producer=(pid, 4, 5)))["errorCode"], 45,
             "a new epoch starts at 0")
        same(produce(conn, topic, batch([b"c"], producer=(pid, 4, 0)))["errorCode"], 0)


def case_p2_five_in_flight_at_once(bootstrap):
    """Five batches sent without waiting keep their order."""
    topic = name("p2")
    with connect(bootstrap) as conn:
        create(conn, topic)
        pid, epoch = producer_id(conn)
        for first in range(5):
            conn.send("Produce", 9, acks=-1, timeoutMs=5000, topicData=[
                {"name": topic, "partitionData": [
                    {"index": 0, "records": batch([b"%d" % first], producer=(pid, epoch, first))}]}])
        conn.correlation -= 5
        for first in range(5):
            conn.correlation += 1
            part = conn.receive("Produce", 9)["responses"][0]["partitionResponses"][0]
            same((part["errorCode"], part["baseOffset"]), (0, first))


def case_p2_clients_with_many_small_batches(bootstrap):
    clients.run("sarama", bootstrap, "idempotent", name("p2"))
    clients.run("kafkajs", bootstrap, "idempotent", name("p2"))


def case_p3_producer_state_survives_kill9():
    """After kill -9 a resend is still a duplicate, the next one fits, a gap is still a gap."""
    with ottla.new_broker(name="p3") as broker:
        with connect(broker.bootstrap) as conn:
            create(conn, "p3")
            pid, epoch = producer_id(conn)
            for first in range(8):
                same(put(conn, "p3", [b"v"], producer=(pid, epoch, first)), first)
        for turn in range(3):
            broker.kill9()
            broker.start()
            with connect(broker.bootstrap) as conn:
                last = 7 + turn
                same(list_offset(conn, "p3", -1)[2], last + 1, "every record is there")
                again = produce(conn, "p3", batch([b"v"], producer=(pid, epoch, last)))
                same((again["errorCode"], again["baseOffset"]), (0, last), "a resend")
                gap = produce(conn, "p3", batch([b"v"], producer=(pid, epoch, last + 9)))
                same(gap["errorCode"], 45, "a gap")
                same(put(conn, "p3", [b"v"], producer=(pid, epoch, last + 1)), last + 1)


def case_p3_librdkafka_producer_lives_through_kill9():
    """An idempotent producer keeps sending while the broker is killed: each record once."""
    script = """
import sys, time, threading
from confluent_kafka import Producer
done, errors = [], []
p = Producer({"bootstrap.servers": sys.argv[1], "enable.idempotence": True, "linger.ms": 5,
              "message.timeout.ms": 60000, "reconnect.backoff.max.ms": 500})
def seen(e, m):
    errors.append(e) if e else done.append(m.offset())
for i in range(1500):
    p.produce("p3", b"%d" % i, partition=0, on_delivery=seen)
    p.poll(0)
    if i == 300: print("sending", flush=True)
    time.sleep(0.002)
assert p.flush(60) == 0 and not errors, errors[:3]
print("delivered", len(done), flush=True)
"""
    import subprocess
    python = clients.layer().toolchains.python()
    with ottla.new_broker(name="p3-rdkafka") as broker:
        with connect(broker.bootstrap) as conn:
            create(conn, "p3")
        sender = subprocess.Popen([python, "-c", script, broker.bootstrap], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        same(sender.stdout.readline(), "sending\n")
        broker.kill9()
        broker.start()
        same(sender.stdout.readline(), "delivered 1500\n")
        same(sender.wait(20), 0)
        with connect(broker.bootstrap) as conn:
            same(read_values(conn, "p3"), [b"%d" % i for i in range(1500)], "each once, in order")


def read_values(conn, topic):
    """Every value of partition 0."""
    end, values = list_offset(conn, topic, -1)[2], []
    while len(values) < end:
        for found in fetch(conn, topic, len(values))["batches"]:
            values += [r["value"] for r in found["records"] if r["offset"] >= len(values)]
    return values


def case_p6_batches_are_stored_as_they_came(bootstrap):
    """The bytes after the base offset and the leader epoch come back untouched, for any codec."""
    topic = name("p6")
    with connect(bootstrap) as conn:
        create(conn, topic)
        sent = [batch([b"one", b"two"], headers=[("h", b"x")]),
                batch([b"three"] * 50, codec=1, compress=lambda d: gzip.compress(d, 1)),
                batch([b"four"] * 50, codec=1, compress=lambda d: gzip.compress(d, 9))]
        for one in sent:
            same(produce(conn, topic, one)["errorCode"], 0)
        got = fetch(conn, topic, 0)["batches"]
        same(len(got), 3)
        for was, found in zip(sent, got):
            same(found["bytes"][16:], was[16:], "bytes after the leader epoch")
            assert found["crc_ok"]


def case_p6_a_wrong_crc_is_corrupt(bootstrap):
    """CRC-32C is checked over the bytes as they came; nothing is written."""
    topic = name("p6")
    with connect(bootstrap) as conn:
        create(conn, topic)
        good = bytearray(batch([b"value"], codec=1))
        good[-1] ^= 1
        same(produce(conn, topic, bytes(good))["errorCode"], 2)
        same(list_offset(conn, topic, -1)[2], 0)


def case_p6_batches_that_lie_are_refused(bootstrap):
    """Wrong counts, a wrong length, garbage behind the header, garbage for compressed data."""
    topic = name("p6")
    with connect(bootstrap) as conn:
        create(conn, topic)
        for what, bad in lies():
            answer = produce(conn, topic, bad)
            assert answer["errorCode"] in (2, 87, 76, -1), "%s: %r" % (what, answer)
        same(list_offset(conn, topic, -1)[2], 0, "nothing was written")
        put(conn, topic, [b"v"])


def case_p6_garbage_in_place_of_compressed_records(bootstrap):
    """Refused, or stored unread as the codec's bytes are; lookups by time still answer."""
    topic = name("p6")
    with connect(bootstrap) as conn:
        create(conn, topic)
        for codec in (1, 2, 3, 4):
            bad = batch([b"v"], times=[1000], codec=codec, compress=lambda d: b"not compressed")
            assert produce(conn, topic, bad)["errorCode"] in (0, -1, 2, 87), codec
        put(conn, topic, [b"v"], times=[2000])
        end = list_offset(conn, topic, -1)[2]
        error, _, offset = list_offset(conn, topic, 1500)
        assert (error, offset) == (0, end - 1), (error, offset, end)
        error, _, offset = list_offset(conn, topic, 500)
        assert error != 0 or offset <= end, (error, offset)
        same(list_offset(conn, topic, -2)[2], 0)


def lies():
    good = batch([b"a", b"b"])
    yield "nothing", b""
    yield "cut short", good[:-3]
    yield "half a header", good[:30]
    yield "count of records", with_crc(good[:57] + struct.pack(">i", 5) + good[61:])
    yield "last offset delta", with_crc(good[:23] + struct.pack(">i", 7) + good[27:])
    yield "codec 7", batch([b"v"], codec=7, compress=lambda d: d)


def with_crc(data):
    from wire import crc32c
    return data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]


def case_p6_every_codec_between_all_clients(bootstrap):
    """Each client writes each codec to a topic of its own; every other client reads them all."""
    tag, topics, lock = name("p6"), [], threading.Lock()

    def write(client):
        for codec in CODECS:
            topic = "%s-%s-%s" % (tag, client, codec)
            with connect(bootstrap) as conn:
                create(conn, topic)
            clients.run(client, bootstrap, "write", topic, codec)
            with lock:
                topics.append(topic)
    in_turn(write)
    same(len(topics), len(WRITERS) * len(CODECS))
    in_turn(lambda client: clients.run(client, bootstrap, "read", tag, *sorted(topics)))


def in_turn(work, workers=3):
    """work(client) for every client; the first failure is raised."""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work, client) for client in WRITERS]:
            future.result()


def old_message(magic, value, timestamp_ms=1600000000000):
    """A message set of format 0 or 1 with one message; CRC-32 from after the CRC field."""
    body = struct.pack(">bb", magic, 0)
    if magic == 1:
        body += struct.pack(">q", timestamp_ms)
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(body)) + body


def case_p7_old_formats_are_refused_or_converted(bootstrap):
    """Produce v0-2 are not served, and formats 0 and 1 inside v3+ are an error, nothing else."""
    topic = name("p7")
    with connect(bootstrap) as conn:
        create(conn, topic)
        for magic in (0, 1):
            answer = produce(conn, topic, old_message(magic, b"old"), version=3)
            assert answer["errorCode"] in (2, 42, 43, 87), answer
        same(list_offset(conn, topic, -1)[2], 0)
        put(conn, topic, [b"new"])
    for version in (0, 2):
        with connect(bootstrap, timeout_s=5) as conn:
            body = struct.pack(">hii", -1, 5000, 0)
            conn.send_body(0, version, body, False)
            try:
                conn.receive_raw()
                assert False, "Produce v%d was answered" % version
            except (EOFError, ConnectionError):
                pass


def case_p7_acks_of_every_kind(bootstrap):
    """acks=0 has no answer, 1 and -1 have one, 2 is error 21."""
    topic = name("p7")
    with connect(bootstrap) as conn:
        create(conn, topic)
        conn.send("Produce", 9, acks=0, timeoutMs=1000, topicData=[
            {"name": topic, "partitionData": [{"index": 0, "records": batch([b"0"])}]}])
        same(conn.call("Metadata", 12, topics=[])["topics"], [], "the next answer is Metadata's")
        for acks, error in ((1, 0), (-1, 0), (2, 21)):
            same(produce(conn, topic, batch([b"v"]), acks=acks)["errorCode"], error, acks)
        end = time.monotonic() + 10
        while list_offset(conn, topic, -1)[2] != 3:
            assert time.monotonic() < end, "three records"


def case_p7_too_large_is_10(bootstrap):
    """max.message.bytes of the topic: error 10, and the record before stays."""
    topic = name("p7")
    with connect(bootstrap) as conn:
        create(conn, topic, configs={"max.message.bytes": 1000})
        put(conn, topic, [b"x" * 500])
        same(produce(conn, topic, batch([b"x" * 5000]))["errorCode"], 10)
        same(list_offset(conn, topic, -1)[2], 1)
