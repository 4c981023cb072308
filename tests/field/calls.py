"""The requests that the field cases send, each as a short call over wire.Conn.

Calls return the part of the answer that a case looks at; error codes are for the case to judge.
"""
import time
import uuid

from wire import Conn, batch, read_batches

LEADER_COMING = (3, 5, 6)  # a new partition's leader may take a moment (cases M2, M3)
WARMING_UP = (14, 15, 16, 51)  # a coordinator just after the broker's start


def name(prefix):
    return "%s-%s" % (prefix, uuid.uuid4().hex[:8])


def until(state, what, limit_s=20):
    end = time.monotonic() + limit_s
    while True:
        value = state()
        if value:
            return value
        assert time.monotonic() < end, "not within %g s: %s" % (limit_s, what)
        time.sleep(0.02)


def same(got, want, what=""):
    assert got == want, "%s: got %r, want %r" % (what, got, want)


# ---- topics
def create(conn, topic, partitions=1, configs=None):
    """The new topic's id; waits until its leaders answer."""
    answer = conn.call("CreateTopics", 7, timeoutMs=10000, topics=[{
        "name": topic, "numPartitions": partitions, "replicationFactor": 1,
        "configs": [{"name": k, "value": str(v)} for k, v in (configs or {}).items()]}])["topics"][0]
    assert answer["errorCode"] == 0, answer
    until(lambda: all(list_offset(conn, topic, -1, p)[0] not in LEADER_COMING
                      for p in range(partitions)), "a leader")
    return answer["topicId"]


def delete(conn, topic):
    return conn.call("DeleteTopics", 6, timeoutMs=10000, topics=[{"name": topic}])["responses"][0]


def topic_names(conn):
    return [topic["name"] for topic in conn.call("Metadata", 12, topics=None)["topics"]]


# ---- records
def produce(conn, topic, records, partition=0, version=9, acks=-1):
    """The partition's answer to one Produce request."""
    answer = conn.call("Produce", version, acks=acks, timeoutMs=10000, topicData=[
        {"name": topic, "partitionData": [{"index": partition, "records": records}]}])
    return answer["responses"][0]["partitionResponses"][0]


def put(conn, topic, values, partition=0, **options):
    """One batch; returns its base offset."""
    answer = produce(conn, topic, batch(values, **options), partition)
    assert answer["errorCode"] == 0, answer
    return answer["baseOffset"]


def fetch_request(topic, offset, partition=0, max_wait_ms=500, min_bytes=1, max_bytes=1 << 20,
                  partition_bytes=1 << 20, isolation=0):
    return dict(maxWaitMs=max_wait_ms, minBytes=min_bytes, maxBytes=max_bytes,
                isolationLevel=isolation, topics=[{"topic": topic, "partitions": [
                    {"partition": partition, "fetchOffset": offset,
                     "partitionMaxBytes": partition_bytes}]}])


def fetch(conn, topic, offset, version=12, **options):
    """The partition's answer to one Fetch request, with its batches decoded."""
    answer = conn.call("Fetch", version, **fetch_request(topic, offset, **options))
    part = answer["responses"][0]["partitions"][0]
    part["batches"] = read_batches(part["records"])
    return part


def list_offset(conn, topic, time_ms, partition=0, version=7):
    """(error, timestamp, offset)"""
    answer = conn.call("ListOffsets", version, replicaId=-1, topics=[
        {"name": topic, "partitions": [{"partitionIndex": partition, "timestamp": time_ms}]}])
    part = answer["topics"][0]["partitions"][0]
    return part["errorCode"], part["timestamp"], part["offset"]


def delete_records(conn, topic, offset, partition=0):
    """(error, low watermark)"""
    answer = conn.call("DeleteRecords", 2, timeoutMs=10000, topics=[
        {"name": topic, "partitions": [{"partitionIndex": partition, "offset": offset}]}])
    part = answer["topics"][0]["partitions"][0]
    return part["errorCode"], part["lowWatermark"]


def producer_id(conn, version=4, **options):
    """(id, epoch) of a fresh idempotent producer."""
    def ask():
        answer = conn.call("InitProducerId", version, transactionalId=None,
                           transactionTimeoutMs=60000, **options)
        if answer["errorCode"] in WARMING_UP:
            return None
        assert answer["errorCode"] == 0, answer
        return answer["producerId"], answer["producerEpoch"]
    return until(ask, "a producer id")


# ---- groups
def coordinator(conn, group):
    """Waits until the broker coordinates the group."""
    def ready():
        answer = conn.call("FindCoordinator", 4, keyType=0, coordinatorKeys=[group])
        if answer["coordinators"][0]["errorCode"] != 0:
            return False
        return fetch_offsets(conn, group)["errorCode"] not in WARMING_UP
    until(ready, "a coordinator")


def join_request(group, member="", instance=None, session_ms=10000, rebalance_ms=10000,
                 protocols=(("range", b"subscription"),)):
    return dict(groupId=group, memberId=member, groupInstanceId=instance,
                sessionTimeoutMs=session_ms, rebalanceTimeoutMs=rebalance_ms,
                protocolType="consumer",
                protocols=[{"name": n, "metadata": m} for n, m in protocols])


def join(conn, group, member="", **options):
    """A whole JoinGroup: asks for a member id first when there is none."""
    answer = conn.call("JoinGroup", 7, **join_request(group, member, **options))
    if answer["errorCode"] == 79:
        answer = conn.call("JoinGroup", 7, **join_request(group, answer["memberId"], **options))
    return answer


def sync_request(group, generation, member, assignments=(), instance=None):
    return dict(groupId=group, generationId=generation, memberId=member, groupInstanceId=instance,
                protocolType="consumer", protocolName="range",
                assignments=[{"memberId": m, "assignment": a} for m, a in assignments])


def sync(conn, *args, **options):
    return conn.call("SyncGroup", 5, **sync_request(*args, **options))


def heartbeat(conn, group, generation, member, instance=None):
    return conn.call("Heartbeat", 4, groupId=group, generationId=generation, memberId=member,
                     groupInstanceId=instance)["errorCode"]


def leave(conn, group, *members):
    """members: (member id, instance id)"""
    return conn.call("LeaveGroup", 5, groupId=group, members=[
        {"memberId": m, "groupInstanceId": i} for m, i in members])


def commit(conn, group, topic, offset, partition=0, generation=-1, member="", version=8, epoch=-1,
           metadata="", **options):
    """The partition's error code."""
    part = {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": metadata}
    if version >= 6:
        part["committedLeaderEpoch"] = epoch
    answer = conn.call("OffsetCommit", version, groupId=group, memberId=member,
                       generationIdOrMemberEpoch=generation,
                       topics=[{"name": topic, "partitions": [part]}], **options)
    return answer["topics"][0]["partitions"][0]["errorCode"]


def fetch_offsets(conn, group, topics=None):
    """The group's part of an OffsetFetch v8 answer; topics: {name: [partitions]}, None is all."""
    wanted = None if topics is None else [{"name": n, "partitionIndexes": p}
                                          for n, p in topics.items()]
    return conn.call("OffsetFetch", 8, groups=[{"groupId": group, "topics": wanted}])["groups"][0]


def committed(conn, group, topic, partition=0):
    """The committed offset, -1 for none."""
    answer = fetch_offsets(conn, group, {topic: [partition]})
    assert answer["errorCode"] == 0, answer
    part = answer["topics"][0]["partitions"][0]
    assert part["errorCode"] == 0, part
    return part["committedOffset"]


def connect(bootstrap, **options):
    return Conn(bootstrap, **options)
