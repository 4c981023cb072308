"""A stock client under chaos: confluent-kafka in a process of its own, which writes down what it was
promised and what it read. Ends on SIGTERM.

usage: worker.py producer BOOTSTRAP TOPIC PARTITIONS NAME RATE HISTORY
       worker.py consumer BOOTSTRAP TOPIC PARTITIONS NAME GROUP HISTORY

The history has a line for each event, times in nanoseconds of the machine's monotonic clock:

    sent PARTITION COUNT             so many values, counted from 0, at the end
    ack PARTITION NUMBER OFFSET      the value with this number was acknowledged
    failed PARTITION NUMBER WHY      it never will be
    left COUNT                       so many were not delivered in the time there was
    read PARTITION OFFSET VALUE
    committed TIME PARTITION OFFSET  a commit of this offset was acknowledged before that time
    found TIME PARTITION OFFSET      asked after that time, the group's offset was this

OTTLA_CHAOS_DEBUG=eos,msg in the environment makes a producer say on stderr what librdkafka does.

An idempotent producer that tries for as long as it takes may not fail, so that every `failed` is a
fault of the broker; likewise whatever the consumer raises other than that it has to wait.
"""
import os
import random
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

FLUSH_S = 60
COMMIT_EVERY = 50
PATIENCE = {"socket.timeout.ms": 3000, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 300,
            "topic.metadata.refresh.interval.ms": 2000,
            "topic.metadata.refresh.fast.interval.ms": 50}
DEBUG = {"debug": os.environ["OTTLA_CHAOS_DEBUG"]} if "OTTLA_CHAOS_DEBUG" in os.environ else {}
stopping = False


def stop(*_):
    global stopping
    stopping = True


class History:
    def __init__(self, path):
        self.file = open(path, "w", buffering=1 << 16)

    def add(self, *words):
        self.file.write(" ".join(map(str, words)) + "\n")

    def close(self):
        self.file.close()


def produce(bootstrap, topic, partitions, name, rate, path):
    history, partitions, rate = History(path), int(partitions), float(rate)
    chance, pad = random.Random(name), "x" * 400
    counts = [0] * partitions
    producer = Producer({**PATIENCE, "bootstrap.servers": bootstrap, "enable.idempotence": True,
                         "message.timeout.ms": 0, "linger.ms": 2, "request.timeout.ms": 3000,
                         "retry.backoff.ms": 20, "retry.backoff.max.ms": 200,
                         **DEBUG,
                         "queue.buffering.max.messages": 2000})

    def answered(partition, number):
        def note(error, message):
            if error is None:
                # Without an offset: a later answer showed that it is there.
                offset = message.offset()
                history.add("ack", partition, number, -1 if offset is None else offset)
            else:
                history.add("failed", partition, number, str(error).replace(" ", "_"))
        return note

    begun, total = time.monotonic(), 0
    while not stopping:
        producer.poll(0.001)
        if total > (time.monotonic() - begun) * rate:
            time.sleep(0.002)
            continue
        partition = chance.randrange(partitions)
        number = counts[partition]
        value = "%s/%d/%d;%s" % (name, partition, number, pad[:chance.randrange(400)])
        try:
            producer.produce(topic, value.encode(), partition=partition,
                             on_delivery=answered(partition, number))
        except BufferError:  # as much is under way as it may be
            producer.poll(0.05)
            begun += 0.05
            continue
        counts[partition] += 1
        total += 1
    left = producer.flush(FLUSH_S)
    for partition, count in enumerate(counts):
        history.add("sent", partition, count)
    history.add("left", left)
    history.close()


def consume(bootstrap, topic, partitions, name, group, path):
    history = History(path)
    consumer = Consumer({**PATIENCE, "bootstrap.servers": bootstrap, "group.id": group,
                         "client.id": name, "enable.auto.commit": False,
                         "auto.offset.reset": "earliest", "session.timeout.ms": 6000,
                         "heartbeat.interval.ms": 500, "fetch.wait.max.ms": 100})

    def assigned(consumer, parts):
        asked = time.monotonic_ns()
        try:
            for part in consumer.committed(parts, timeout=3):
                if part.error is None and part.offset >= 0:
                    history.add("found", asked, part.partition, part.offset)
        except KafkaException as error:
            history.add("note", "committed", error)

    consumer.subscribe([topic], on_assign=assigned)
    unsure = {}
    count = 0
    while not stopping:
        message = consumer.poll(0.1)
        if message is not None and message.error():
            history.add("note", "poll", message.error())
            continue
        if message is not None:
            count += 1
            value = message.value().split(b";", 1)[0].decode()
            history.add("read", message.partition(), message.offset(), value)
            unsure[message.partition()] = message.offset() + 1
        if unsure and (message is None or count % COMMIT_EVERY == 0):
            commit(consumer, topic, unsure, history)
    consumer.close()
    history.close()


def commit(consumer, topic, unsure, history):
    """Commits what was read; what is refused (another has the partition now) is forgotten."""
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in unsure.items()]
    unsure.clear()
    try:
        done = consumer.commit(offsets=wanted, asynchronous=False)
    except KafkaException as error:
        history.add("note", "commit", error)
        return
    now = time.monotonic_ns()
    for part in done:
        if part.error is None:
            history.add("committed", now, part.partition, part.offset)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    {"producer": produce, "consumer": consume}[sys.argv[1]](*sys.argv[2:])
