"""kafka-python through every client scenario; see scenario.py."""
import sys
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata

from scenario import BASE_TIME, BIG, main, matrix_values

BOOTSTRAP = sys.argv[1]


def create(topic, partitions=1):
    admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    admin.create_topics([NewTopic(topic, partitions, 1)])
    admin.close()
    return topic


def send(topic, records, codec=None):
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, max_request_size=20000000, linger_ms=20,
                             compression_type=codec)
    futures = [producer.send(topic, **record) for record in records]
    done = [future.get(40) for future in futures]
    producer.close()
    assert all(d.offset >= 0 for d in done)
    return done


def consumer(*topics, group=None, **settings):
    return KafkaConsumer(*topics, bootstrap_servers=BOOTSTRAP, group_id=group,
                         auto_offset_reset="earliest", enable_auto_commit=False,
                         session_timeout_ms=6000, heartbeat_interval_ms=300,
                         **{"max_partition_fetch_bytes": 20000000, **settings})


def take(c, count, limit_s=30):
    messages, end = [], time.monotonic() + limit_s
    while len(messages) < count:
        assert time.monotonic() < end, "%d of %d messages" % (len(messages), count)
        for batch in c.poll(200, max_records=count - len(messages)).values():
            messages += batch
    return messages


def read(topic, count, partitions=1):
    c = consumer()
    c.assign([TopicPartition(topic, p) for p in range(partitions)])
    messages = take(c, count)
    c.close()
    return messages


def scenario_produce_consume(tag):
    topic = create(tag, 3)
    records = [{"key": b"k%d" % (i % 7), "value": b"v%d" % i} for i in range(300)]
    sent = send(topic, records)
    got = read(topic, 300, 3)
    for partition in range(3):
        mine = [m for m in got if m.partition == partition]
        assert [m.offset for m in mine] == list(range(len(mine)))
        want = [r["value"] for r, d in zip(records, sent) if d.partition == partition]
        assert [m.value for m in mine] == want, "order in partition %d" % partition


def scenario_compression(tag, codec):
    topic = create(tag)
    values = matrix_values(codec, 200)
    send(topic, [{"value": v} for v in values], None if codec == "none" else codec)
    assert [m.value for m in read(topic, 200)] == values


def scenario_sizes(tag):
    topic = create(tag)
    values = [b"x", b"y" * BIG, b"z"]
    send(topic, [{"value": v} for v in values])
    assert [m.value for m in read(topic, 3)] == values


def scenario_headers(tag):
    topic = create(tag)
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("\u00fc", b"\x00\xff")]
    send(topic, [{"value": b"v", "headers": headers}, {"value": b"w"}])
    first, second = read(topic, 2)
    assert list(first.headers) == headers and not second.headers, (first, second)


def scenario_nulls(tag):
    topic = create(tag)
    send(topic, [{"value": b"v"}, {"key": b"k"}, {"key": b"", "value": b""}])
    got = [(m.key, m.value) for m in read(topic, 3)]
    assert got == [(None, b"v"), (b"k", None), (b"", b"")], got


def scenario_offsets_by_time(tag):
    topic = create(tag)
    send(topic, [{"value": b"v", "partition": 0, "timestamp_ms": BASE_TIME + 1000 * i}
                 for i in range(10)])
    c = consumer()
    partition = TopicPartition(topic, 0)
    for time_ms, offset in ((0, 0), (1, 1), (5000, 5), (8999, 9)):
        found = c.offsets_for_times({partition: BASE_TIME + time_ms})[partition]
        assert (found.offset, found.timestamp) == (offset, BASE_TIME + 1000 * offset), found
    assert c.offsets_for_times({partition: BASE_TIME + 9001})[partition] is None
    assert c.beginning_offsets([partition]) == {partition: 0}
    assert c.end_offsets([partition]) == {partition: 10}
    c.close()


def scenario_rebalance(tag):
    """A second member takes half of the partitions; every record is consumed once; it leaves."""
    topic = create(tag, 4)
    members, got = [consumer(topic, group=tag)], []

    def owned(counts, records=0, limit_s=30):
        end = time.monotonic() + limit_s
        while [len(m.assignment()) for m in members] != counts or len(got) < records:
            assert time.monotonic() < end, "not in time: %s" % counts
            for member in members:
                for batch in member.poll(50).values():
                    got.extend(m.value for m in batch)
                    member.commit()

    owned([4])
    members.append(consumer(topic, group=tag))
    owned([2, 2])
    for partition in range(4):
        send(topic, [{"value": b"%d-%d" % (partition, i), "partition": partition}
                     for i in range(10)])
    owned([2, 2], 40)
    members.pop().close()
    owned([4])
    members.pop().close()
    assert len(got) == 40 and len(set(got)) == 40, "each record once"


def scenario_committed_write(tag):
    topic = create(tag)
    send(topic, [{"value": b"v%d" % i} for i in range(20)])
    c = consumer(topic, group=tag)
    last = take(c, 7)[-1]
    c.commit({TopicPartition(topic, 0): OffsetAndMetadata(last.offset + 1, "seven", -1)})
    c.close()


def scenario_committed_read(tag):
    c = consumer(tag, group=tag)
    assert c.committed(TopicPartition(tag, 0)) == 7
    assert [m.value for m in take(c, 13)] == [b"v%d" % i for i in range(7, 20)]
    c.close()


def scenario_write(tag, codec):
    send(tag, [{"value": v, "partition": 0} for v in matrix_values(codec, 50)], codec)


def scenario_read(tag, *topics):
    for topic in topics:
        codec = topic.rsplit("-", 1)[1]
        assert [m.value for m in read(topic, 50)] == matrix_values(codec, 50), topic


if __name__ == "__main__":
    sys.exit(main(globals()))
