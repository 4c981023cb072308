"""confluent-kafka (librdkafka in Python) through every client scenario; see scenario.py."""
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from scenario import BASE_TIME, BIG, main, matrix_values, until

BOOTSTRAP = sys.argv[1]


def create(topic, partitions=1):
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)
    return topic


def send(topic, records, **settings):
    """records: list of dicts for produce(); returns the delivered messages in order."""
    done, errors = [], []

    def delivered(error, message):
        errors.append(error) if error else done.append(message)

    producer = Producer({"bootstrap.servers": BOOTSTRAP, "message.max.bytes": 20000000,
                         "linger.ms": 50, **{k.replace("_", "."): v for k, v in settings.items()}})
    for record in records:
        producer.produce(topic, on_delivery=delivered, **record)
    assert producer.flush(40) == 0, "not all delivered in 40 s"
    assert not errors, errors[0]
    assert all(m.offset() >= 0 for m in done)
    return done


def consumer(group="none", **settings):
    return Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": group, "enable.auto.commit": False,
                     "auto.offset.reset": "earliest", "session.timeout.ms": 6000,
                     "heartbeat.interval.ms": 500, "fetch.message.max.bytes": 20000000,
                     **{k.replace("_", "."): v for k, v in settings.items()}})


def take(c, count):
    """The next `count` messages."""
    messages = []

    def more():
        message = c.poll(0.2)
        if message is not None:
            assert not message.error(), message.error()
            messages.append(message)
        return len(messages) >= count

    until(more, "%d messages, got fewer" % count)
    return messages


def read(topic, count, partitions=1):
    c = consumer()
    c.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
    messages = take(c, count)
    c.close()
    return messages


def scenario_produce_consume(tag):
    topic = create(tag, 3)
    sent = send(topic, [{"key": b"k%d" % (i % 7), "value": b"v%d" % i} for i in range(300)])
    assert len(sent) == 300
    got = read(topic, 300, 3)
    for partition in range(3):
        mine = [m for m in got if m.partition() == partition]
        assert [m.offset() for m in mine] == list(range(len(mine)))
        want = [m.value() for m in sent if m.partition() == partition]
        assert [m.value() for m in mine] == want, "order in partition %d" % partition


def scenario_compression(tag, codec):
    topic = create(tag)
    values = matrix_values(codec, 200)
    send(topic, [{"value": v} for v in values], compression_type=codec)
    assert [m.value() for m in read(topic, 200)] == values


def scenario_sizes(tag):
    topic = create(tag)
    values = [b"x", b"y" * BIG, b"z"]
    send(topic, [{"value": v} for v in values])
    assert [m.value() for m in read(topic, 3)] == values


def scenario_headers(tag):
    topic = create(tag)
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None), ("\u00fc", b"\x00\xff")]
    send(topic, [{"value": b"v", "headers": headers}, {"value": b"w"}])
    first, second = read(topic, 2)
    assert first.headers() == headers, first.headers()
    assert second.headers() is None, second.headers()


def scenario_nulls(tag):
    topic = create(tag)
    send(topic, [{"value": b"v"}, {"key": b"k"}, {}, {"key": b"", "value": b""}])
    got = [(m.key(), m.value()) for m in read(topic, 4)]
    assert got == [(None, b"v"), (b"k", None), (None, None), (b"", b"")], got


def scenario_offsets_by_time(tag):
    topic = create(tag)
    send(topic, [{"value": b"v%d" % i, "timestamp": BASE_TIME + 1000 * i} for i in range(10)])
    c = consumer()

    def at(time_ms):
        return c.offsets_for_times([TopicPartition(topic, 0, time_ms)], 10)[0].offset

    assert at(BASE_TIME) == 0 and at(BASE_TIME + 1) == 1 and at(BASE_TIME + 5000) == 5
    assert at(BASE_TIME + 8999) == 9
    assert at(BASE_TIME + 9001) == -1, "-1 is librdkafka's end of the log"
    assert c.get_watermark_offsets(TopicPartition(topic, 0), 10) == (0, 10)
    c.close()


def scenario_rebalance(tag):
    """A second member takes half of the partitions; every record is consumed once; it leaves."""
    topic = create(tag, 4)
    first, second = consumer(tag), consumer(tag)
    members, got = [first], []

    def owned(*counts):
        for member in members:
            message = member.poll(0.02)
            if message is not None:
                assert not message.error(), message.error()
                got.append(message.value())
                member.commit(message, asynchronous=False)
        return [len(member.assignment()) for member in members] == list(counts)

    first.subscribe([topic])
    until(lambda: owned(4), "the first owns all")
    members.append(second)
    second.subscribe([topic])
    until(lambda: owned(2, 2), "each owns half")
    for partition in range(4):
        send(topic, [{"value": b"%d-%d" % (partition, i), "partition": partition}
                     for i in range(10)])
    until(lambda: owned(2, 2) and len(got) >= 40, "40 records")
    members.pop().close()
    until(lambda: owned(4), "the first owns all again")
    first.close()
    assert len(got) == 40 and len(set(got)) == 40, "each record once"


def scenario_committed_write(tag):
    topic = create(tag)
    send(topic, [{"value": b"v%d" % i} for i in range(20)])
    c = consumer(tag)
    c.subscribe([topic])
    last = take(c, 7)[-1]
    c.commit(last, asynchronous=False)
    c.close()


def committed(c, topic):
    """The committed offset; None while the coordinator is still loading after a start."""
    try:
        return c.committed([TopicPartition(topic, 0)], 20)[0]
    except KafkaException as error:
        assert error.args[0].code() in (KafkaError.NOT_COORDINATOR,
                                        KafkaError.COORDINATOR_LOAD_IN_PROGRESS), error
        return None


def scenario_committed_read(tag):
    c = consumer(tag)
    assert until(lambda: committed(c, tag), "a coordinator").offset == 7
    c.subscribe([tag])
    assert [m.value() for m in take(c, 13)] == [b"v%d" % i for i in range(7, 20)]
    c.close()


def scenario_write(tag, codec):
    send(tag, [{"value": v, "partition": 0} for v in matrix_values(codec, 50)],
         compression_type=codec)


def scenario_read(tag, *topics):
    for topic in topics:
        codec = topic.rsplit("-", 1)[1]
        assert [m.value() for m in read(topic, 50)] == matrix_values(codec, 50), topic


sys.exit(main(globals()))
