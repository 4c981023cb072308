"""Field cases L1 L2: offsets by time and at the ends of a log."""
import clients
from calls import connect, create, delete_records, list_offset, name, put, same

TIMES = [2, 4, 6, 8]
WANTED = {1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 3, 8: 3}


def check(conn, topic, what):
    for time_ms, offset in WANTED.items():
        same(list_offset(conn, topic, time_ms), (0, TIMES[offset], offset),
             "%s, time %d" % (what, time_ms))
    same(list_offset(conn, topic, 9), (0, -1, -1), what + ": no match")


def case_l1_the_first_record_at_or_after_a_time(bootstrap):
    """Per record, inside one batch, a compressed one, and over batches."""
    with connect(bootstrap) as conn:
        for what, batches, codec in (("one batch", [TIMES], 0), ("gzip batch", [TIMES], 1),
                                     ("four batches", [[t] for t in TIMES], 0),
                                     ("two gzip batches", [TIMES[:2], TIMES[2:]], 1)):
            topic = name("l1")
            create(conn, topic)
            for times in batches:
                put(conn, topic, [b"v"] * len(times), times=times, codec=codec)
            check(conn, topic, what)


def case_l1_times_out_of_order(bootstrap):
    """The smallest offset whose time is not below, though later records are older."""
    topic = name("l1")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"v"] * 4, times=[5, 9, 3, 7])
        put(conn, topic, [b"v"] * 2, times=[4, 20])
        for time_ms, offset, found in ((1, 0, 5), (5, 0, 5), (6, 1, 9), (9, 1, 9), (10, 5, 20)):
            same(list_offset(conn, topic, time_ms), (0, found, offset), "time %d" % time_ms)
        same(list_offset(conn, topic, -3)[1:], (20, 5), "the maximum time's offset")


def case_l1_many_batches(bootstrap):
    """A thousand records in a hundred batches, every one found by its time."""
    topic = name("l1")
    with connect(bootstrap) as conn:
        create(conn, topic)
        for first in range(0, 1000, 10):
            put(conn, topic, [b"v" * 200] * 10, times=[1000 + 10 * (first + i) for i in range(10)])
        for offset in range(0, 1000, 7):
            same(list_offset(conn, topic, 1000 + 10 * offset)[2], offset)
            same(list_offset(conn, topic, 1000 + 10 * offset - 1)[2], offset)


def case_l1_clients(bootstrap):
    clients.run("kafka-python", bootstrap, "offsets_by_time", name("l1"))
    clients.run("franz-go", bootstrap, "offsets_by_time", name("l1"))


def case_l2_an_empty_topic(bootstrap):
    with connect(bootstrap) as conn:
        topic = name("l2")
        create(conn, topic)
        for version in range(1, 10):
            same(list_offset(conn, topic, -1, version=version), (0, -1, 0), "latest v%d" % version)
            same(list_offset(conn, topic, -2, version=version), (0, -1, 0), "earliest v%d" % version)
            same(list_offset(conn, topic, 5, version=version), (0, -1, -1), "time v%d" % version)
        same(list_offset(conn, topic, -3), (0, -1, -1), "maximum time of nothing")


def case_l2_a_trimmed_log_never_answers_below_its_start(bootstrap):
    with connect(bootstrap) as conn:
        topic = name("l2")
        create(conn, topic)
        put(conn, topic, [b"v"] * 4, times=TIMES)
        put(conn, topic, [b"v"] * 2, times=[10, 12])
        same(delete_records(conn, topic, 2), (0, 2))
        same(list_offset(conn, topic, -2), (0, -1, 2), "earliest")
        same(list_offset(conn, topic, 1)[2], 2, "an old time")
        same(list_offset(conn, topic, 6)[2], 2)
        same(list_offset(conn, topic, 9)[2], 4)
        same(delete_records(conn, topic, 6), (0, 6))
        same(list_offset(conn, topic, -2)[2], 6)
        same(list_offset(conn, topic, -1)[2], 6)
        same(list_offset(conn, topic, 1), (0, -1, -1), "nothing is left")


def case_l2_errors(bootstrap):
    """Unknown topic and partition are 3; a current leader epoch from the future is 75."""
    with connect(bootstrap) as conn:
        topic = name("l2")
        create(conn, topic)
        same(list_offset(conn, "absent-" + topic, -1)[0], 3)
        same(list_offset(conn, topic, -1, partition=7)[0], 3)
        answer = conn.call("ListOffsets", 7, replicaId=-1, topics=[
            {"name": topic, "partitions": [{"partitionIndex": 0, "timestamp": -1,
                                            "currentLeaderEpoch": 1000}]}])
        same(answer["topics"][0]["partitions"][0]["errorCode"], 75)


def case_l2_kafka_get_offsets(bootstrap):
    clients.run("kafka-tools", bootstrap, "offsets_by_time", name("l2"))
