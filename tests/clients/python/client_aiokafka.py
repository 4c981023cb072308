"""aiokafka through every client scenario; see scenario.py."""
import asyncio
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from scenario import BASE_TIME, BIG, main, matrix_values

BOOTSTRAP = sys.argv[1]


async def create(topic, partitions=1):
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    answer = await admin.create_topics([NewTopic(topic, partitions, 1)])
    assert [t[1] for t in answer.topic_errors] == [0], answer
    await admin.close()
    return topic


async def send(topic, records, codec=None):
    producer = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, max_request_size=20000000,
                                compression_type=codec, linger_ms=20, enable_idempotence=True)
    await producer.start()
    futures = [await producer.send(topic, **record) for record in records]
    done = await asyncio.gather(*futures)
    await producer.stop()
    assert all(d.offset >= 0 for d in done)
    return done


def consumer(*topics, group=None):
    return AIOKafkaConsumer(*topics, bootstrap_servers=BOOTSTRAP, group_id=group,
                            auto_offset_reset="earliest", enable_auto_commit=False,
                            session_timeout_ms=6000, heartbeat_interval_ms=300,
                            max_partition_fetch_bytes=20000000)


async def take(c, count, limit_s=30):
    messages, end = [], time.monotonic() + limit_s
    while len(messages) < count:
        assert time.monotonic() < end, "%d of %d messages" % (len(messages), count)
        batches = await c.getmany(timeout_ms=200, max_records=count - len(messages))
        for batch in batches.values():
            messages += batch
    return messages


async def read(topic, count, partitions=1):
    c = consumer()
    await c.start()
    c.assign([TopicPartition(topic, p) for p in range(partitions)])
    messages = await take(c, count)
    await c.stop()
    return messages


async def produce_consume(tag):
    topic = await create(tag, 3)
    records = [{"key": b"k%d" % (i % 7), "value": b"v%d" % i} for i in range(300)]
    sent = await send(topic, records)
    got = await read(topic, 300, 3)
    for partition in range(3):
        mine = [m for m in got if m.partition == partition]
        assert [m.offset for m in mine] == list(range(len(mine)))
        want = [r["value"] for r, d in zip(records, sent) if d.partition == partition]
        assert [m.value for m in mine] == want, "order in partition %d" % partition


async def compression(tag, codec):
    topic = await create(tag)
    values = matrix_values(codec, 200)
    await send(topic, [{"value": v} for v in values], None if codec == "none" else codec)
    assert [m.value for m in await read(topic, 200)] == values


async def sizes(tag):
    topic = await create(tag)
    values = [b"x", b"y" * BIG, b"z"]
    await send(topic, [{"value": v} for v in values])
    assert [m.value for m in await read(topic, 3)] == values


async def headers(tag):
    topic = await create(tag)
    wanted = [("a", b"1"), ("a", b"2"), ("empty", b""), ("\u00fc", b"\x00\xff")]
    await send(topic, [{"value": b"v", "headers": wanted}, {"value": b"w"}])
    first, second = await read(topic, 2)
    assert list(first.headers) == wanted and not second.headers, (first, second)


async def nulls(tag):
    topic = await create(tag)
    await send(topic, [{"value": b"v"}, {"key": b"k"}, {"key": b"", "value": b""}])
    got = [(m.key, m.value) for m in await read(topic, 3)]
    assert got == [(None, b"v"), (b"k", None), (b"", b"")], got


async def offsets_by_time(tag):
    topic = await create(tag)
    await send(topic, [{"value": b"v", "partition": 0, "timestamp_ms": BASE_TIME + 1000 * i}
                       for i in range(10)])
    c = consumer()
    await c.start()
    partition = TopicPartition(topic, 0)
    for time_ms, offset in ((0, 0), (1, 1), (5000, 5), (8999, 9)):
        found = (await c.offsets_for_times({partition: BASE_TIME + time_ms}))[partition]
        assert (found.offset, found.timestamp) == (offset, BASE_TIME + 1000 * offset), found
    assert (await c.offsets_for_times({partition: BASE_TIME + 9001}))[partition] is None
    assert await c.beginning_offsets([partition]) == {partition: 0}
    assert await c.end_offsets([partition]) == {partition: 10}
    await c.stop()


async def rebalance(tag):
    """A second member takes half of the partitions; every record is consumed once; it leaves."""
    topic = await create(tag, 4)
    first = consumer(topic, group=tag)
    await first.start()
    members, got = [first], []

    async def owned(counts, records=0, limit_s=30):
        end = time.monotonic() + limit_s
        while [len(m.assignment()) for m in members] != counts or len(got) < records:
            assert time.monotonic() < end, "not in time: %s" % counts
            for member in members:
                for batch in (await member.getmany(timeout_ms=50)).values():
                    got.extend(m.value for m in batch)
                    await member.commit()

    await owned([4])
    second = consumer(topic, group=tag)
    starting = asyncio.ensure_future(second.start())
    while not starting.done():
        await first.getmany(timeout_ms=50)
    members.append(second)
    await owned([2, 2])
    for partition in range(4):
        await send(topic, [{"value": b"%d-%d" % (partition, i), "partition": partition}
                           for i in range(10)])
    await owned([2, 2], 40)
    await members.pop().stop()
    await owned([4])
    await first.stop()
    assert len(got) == 40 and len(set(got)) == 40, "each record once"


async def committed_write(tag):
    topic = await create(tag)
    await send(topic, [{"value": b"v%d" % i} for i in range(20)])
    c = consumer(topic, group=tag)
    await c.start()
    last = (await take(c, 7))[-1]
    await c.commit({TopicPartition(topic, 0): (last.offset + 1, "seven")})
    await c.stop()


async def committed_read(tag):
    c = consumer(tag, group=tag)
    await c.start()
    assert await c.committed(TopicPartition(tag, 0)) == 7
    assert [m.value for m in await take(c, 13)] == [b"v%d" % i for i in range(7, 20)]
    await c.stop()


async def write(tag, codec):
    await send(tag, [{"value": v, "partition": 0} for v in matrix_values(codec, 50)], codec)


async def read_topics(*topics):
    for topic in topics:
        codec = topic.rsplit("-", 1)[1]
        assert [m.value for m in await read(topic, 50)] == matrix_values(codec, 50), topic


SCENARIOS = {"scenario_" + f.__name__: (lambda *a, f=f: asyncio.run(f(*a))) for f in (
    produce_consume, compression, sizes, headers, nulls, offsets_by_time, rebalance,
    committed_write, committed_read, write)}
SCENARIOS["scenario_read"] = lambda tag, *topics: asyncio.run(read_topics(*topics))
sys.exit(main(SCENARIOS))
