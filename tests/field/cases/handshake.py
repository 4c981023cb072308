"""Field cases H1 H2 H4 H5 H7 H8: the handshake, versions, and where fields and tags stand."""
import re
import struct
import subprocess

import clients
import ottla
from calls import (Conn, batch, connect, coordinator, create, fetch, fetch_offsets, name, put,
                   same)
from wire import MESSAGES, Reader

# The APIs a broker of this kind serves, and the highest versions that stock clients use.
SERVED = ("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch",
          "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup", "DescribeGroups",
          "ListGroups", "ApiVersions", "CreateTopics", "DeleteTopics", "DeleteRecords",
          "InitProducerId", "OffsetForLeaderEpoch", "DescribeConfigs", "CreatePartitions",
          "DeleteGroups", "OffsetDelete", "DescribeCluster")


def versions(conn):
    """API key -> (lowest, highest)"""
    answer = conn.call("ApiVersions", 3, clientSoftwareName="field", clientSoftwareVersion="1.0")
    assert answer["errorCode"] == 0
    return {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in answer["apiKeys"]}


def key(api):
    return MESSAGES[api + "Request"].api


def case_h1_future_api_versions_keep_the_connection(bootstrap):
    """A version nobody knows: error 35 in the v0 layout with key 18, and the socket lives on."""
    for version in (99, 32767):
        with connect(bootstrap) as conn:
            conn.send_body(18, version, b"\x06field\x041.0\x00", True)
            data = conn.receive_raw()
            correlation, error, count = struct.unpack(">ihi", data[:10])
            same((correlation, error), (1, 35), "correlation and error")
            rows = [struct.unpack(">hhh", data[10 + 6 * i:16 + 6 * i]) for i in range(count)]
            same(len(data), 10 + 6 * count, "nothing behind the v0 layout")
            own = [row for row in rows if row[0] == 18]
            assert own and own[0][1] == 0 and own[0][2] >= 3, rows
            assert versions(conn)[18] == own[0][1:], "the same socket still serves"


def case_h1_clients_connect(bootstrap):
    """kafka-python and franz-go negotiate down from what they know."""
    clients.run("kafka-python", bootstrap, "produce_consume", name("h1"))
    clients.run("franz-go", bootstrap, "produce_consume", name("h1"))


def case_h2_api_versions_answer_has_no_header_tags(bootstrap):
    """Versions 3 and 4: a flexible body behind a header of four bytes."""
    for version in (3, 4):
        with connect(bootstrap) as conn:
            answer = conn.call("ApiVersions", version, clientSoftwareName="field",
                               clientSoftwareVersion="1.0")
            assert answer["errorCode"] == 0 and len(answer["apiKeys"]) > 20


def case_h2_bad_software_name_is_an_invalid_request(bootstrap):
    with connect(bootstrap) as conn:
        answer = conn.call("ApiVersions", 3, clientSoftwareName="no spaces!",
                           clientSoftwareVersion="1.0")
        same(answer["errorCode"], 42)


def case_h2_kcat_sees_no_protocol_error(bootstrap):
    done = subprocess.run(["kcat", "-b", bootstrap, "-L", "-d", "protocol,feature"], timeout=20,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    same(done.returncode, 0, done.stdout[-300:])
    assert "PROTOERR" not in done.stdout, re.search(".*PROTOERR.*", done.stdout).group(0)
    assert re.search(r"APIVERSION.*ApiKey", done.stdout), "versions were read"


def case_h4_every_core_api_is_advertised_in_its_full_range(bootstrap):
    """Sarama and others use the version their setting implies, so no range may be cut short."""
    with connect(bootstrap) as conn:
        offered = versions(conn)
    for api in SERVED:
        message = MESSAGES[api + "Request"]
        assert key(api) in offered, api
        low, high = offered[key(api)]
        if api == "Produce":
            low = max(low, message.lowest)  # 0 is advertised for librdkafka's sake, KIP-896
        same(low, message.lowest, api + ": lowest version")
        assert high >= min(message.top, {"InitProducerId": 5}.get(api, message.top)) - 1, \
            "%s ends at %d" % (api, high)


def case_h4_what_is_advertised_is_served(bootstrap):
    """Every advertised version of every API answers a request of defaults in its own layout."""
    with connect(bootstrap) as conn:
        offered = versions(conn)
    names = {m.api: n[:-7] for n, m in MESSAGES.items() if n.endswith("Request")}
    failed = []
    for api_key, (low, high) in sorted(offered.items()):
        api = names[api_key]
        if ottla.REFERENCE and api not in SERVED:
            continue  # Kafka drops some requests of defaults, e.g. those of transactions
        message = MESSAGES[api + "Request"]
        for version in range(max(low, message.lowest), high + 1):
            try:
                with connect(bootstrap, timeout_s=10) as conn:
                    if api == "Produce":
                        conn.call(api, version, acks=-1, timeoutMs=1000)
                    else:
                        conn.call(api, version)
            except (EOFError, ValueError, OSError, AssertionError) as error:
                failed.append("%s v%d: %r" % (api, version, error))
    assert not failed, "; ".join(failed)


def case_h4_an_unknown_api_closes_the_connection_and_nothing_else(bootstrap):
    with connect(bootstrap) as good, connect(bootstrap) as bad:
        bad.send_body(999, 0, b"", False)
        try:
            bad.receive_raw()
            assert False, "an answer to an unknown API"
        except (EOFError, ConnectionError):
            pass
        assert versions(good)


def case_h4_sarama_at_fixed_versions(bootstrap):
    """Topics, a producer, a consumer group and configs at each protocol version (case H4)."""
    for version in ("1.0.0", "2.1.0", "2.8.0", "3.6.0", "4.0.0"):
        for scenario in ("admin", "produce_consume", "committed_write", "committed_read"):
            tag = "h4-%s-%s" % (version, bootstrap.rsplit(":", 1)[1])
            tag += "" if scenario.startswith("committed") else "-" + scenario
            clients.run("sarama-" + version, bootstrap, scenario, tag)


def case_h5_topic_ids_are_stable_and_taken_by_all(bootstrap):
    """Metadata v10+ gives one non-zero id, and Fetch, Produce and group offsets go by it."""
    topic, group = name("h5"), name("h5-group")
    with connect(bootstrap) as conn:
        offered = versions(conn)
        topic_id = create(conn, topic)
        assert topic_id != bytes(16)
        for version in (10, 12):
            found = conn.call("Metadata", version, topics=[{"name": topic}])["topics"][0]
            same(found["topicId"], topic_id, "the id in Metadata v%d" % version)
        by_id = conn.call("Metadata", 12, topics=[{"topicId": topic_id, "name": None}])["topics"][0]
        same((by_id["errorCode"], by_id["name"]), (0, topic), "Metadata by id")
        if offered[0][1] >= 13:
            answer = conn.call("Produce", 13, acks=-1, timeoutMs=5000, topicData=[
                {"topicId": topic_id, "partitionData": [{"index": 0, "records": batch([b"v"])}]}])
            same(answer["responses"][0]["topicId"], topic_id)
            same(answer["responses"][0]["partitionResponses"][0]["errorCode"], 0, "Produce by id")
        else:
            put(conn, topic, [b"v"])
        if offered[1][1] >= 13:
            fetch_by_id(conn, topic_id, offered[1][1])
        if offered[8][1] >= 10 and offered[9][1] >= 10:
            offsets_by_id(conn, group, topic_id)


def fetch_by_id(conn, topic_id, version):
    def ask(wanted):
        return conn.call("Fetch", version, maxWaitMs=100, minBytes=1, topics=[
            {"topicId": wanted, "partitions": [{"partition": 0, "fetchOffset": 0,
                                                "partitionMaxBytes": 1000}]}])["responses"][0]
    found = ask(topic_id)
    same((found["topicId"], found["partitions"][0]["errorCode"]), (topic_id, 0))
    same(found["partitions"][0]["highWatermark"], 1)
    same(ask(b"\x07" * 16)["partitions"][0]["errorCode"], 100, "an unknown id in Fetch")


def offsets_by_id(conn, group, topic_id):
    coordinator(conn, group)
    answer = conn.call("OffsetCommit", 10, groupId=group, topics=[
        {"topicId": topic_id, "partitions": [{"partitionIndex": 0, "committedOffset": 1,
                                              "committedMetadata": ""}]}])
    same(answer["topics"][0]["partitions"][0]["errorCode"], 0, "OffsetCommit by id")
    answer = conn.call("OffsetFetch", 10, groups=[{"groupId": group, "topics": [
        {"topicId": topic_id, "partitionIndexes": [0]}]}])["groups"][0]
    same(answer["topics"][0]["topicId"], topic_id)
    same(answer["topics"][0]["partitions"][0]["committedOffset"], 1, "OffsetFetch by id")


def case_h5_group_consumers_on_a_fresh_topic(bootstrap):
    clients.run("franz-go", bootstrap, "rebalance", name("h5"))
    clients.run("java", bootstrap, "rebalance", name("h5"))


def case_h7_produce_to_many_partitions_in_one_request(bootstrap):
    """Two topics, twelve partitions each, in one Produce of every version; all answered."""
    with connect(bootstrap) as conn:
        topics = [name("h7"), name("h7")]
        for topic in topics:
            create(conn, topic, 12)
        for turn, version in enumerate(range(3, 13)):
            answer = conn.call("Produce", version, acks=-1, timeoutMs=5000, topicData=[
                {"name": topic, "partitionData": [
                    {"index": p, "records": batch([b"a", b"b"])} for p in range(12)]}
                for topic in topics])
            same(sorted(t["name"] for t in answer["responses"]), sorted(topics))
            for part in [p for t in answer["responses"] for p in t["partitionResponses"]]:
                same((part["errorCode"], part["baseOffset"]), (0, 2 * turn), "v%d" % version)


def case_h7_clients_with_many_partitions(bootstrap):
    clients.run("platformatic", bootstrap, "many_partitions", name("h7"))


def case_h7_bytes_behind_a_request_are_passed_over(bootstrap):
    """librdkafka 2.15 leaves three bytes behind its Metadata request for all topics."""
    with connect(bootstrap) as conn:
        conn.send_body(3, 13, b"\x00\x00\x00\x00" + b"\x01\x00\x00", True)
        same(conn.receive("Metadata", 13)["errorCode"], 0)


def case_h7_unknown_tags_are_skipped(bootstrap):
    """Tagged fields that a broker does not know, in the header and in the body."""
    with connect(bootstrap) as conn:
        tags = b"\x02\x0a\x03abc\xe8\x07\x00"  # tag 10 of three bytes, tag 1000 of none
        body = b"\x06field\x041.0" + tags
        conn.correlation += 1
        head = struct.pack(">hhih", 18, 3, conn.correlation, 1) + b"c" + tags
        conn.send_raw(head + body)
        same(conn.receive("ApiVersions", 3)["errorCode"], 0)


def case_h8_fields_that_look_nullable_are_not_null(bootstrap):
    """OffsetFetch metadata "", Fetch records of zero length, a follower's assignment present."""
    topic = name("h8")
    with connect(bootstrap) as conn:
        create(conn, topic)
        coordinator(conn, topic)
        part = fetch_offsets(conn, topic, {topic: [0]})["topics"][0]["partitions"][0]
        same(part["metadata"], "", "OffsetFetch metadata")
        for version in range(4, 13):
            part = fetch(conn, topic, 0, version=version, max_wait_ms=0, min_bytes=0)
            same(part["records"], b"", "records of an empty partition, Fetch v%d" % version)
            assert part["abortedTransactions"] in (None, []), part


def case_h8_kcat_reads_an_empty_topic_to_its_end(bootstrap):
    topic = name("h8")
    with connect(bootstrap) as conn:
        create(conn, topic)
    done = subprocess.run(["kcat", "-C", "-b", bootstrap, "-t", topic, "-e", "-o", "beginning"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
    same((done.returncode, done.stdout), (0, b""))


def case_h8_sarama_group_restarts_after_a_commit(bootstrap):
    tag = name("h8")
    clients.run("sarama", bootstrap, "committed_write", tag)
    clients.run("sarama", bootstrap, "committed_read", tag)


def case_h8_garbage_closes_one_connection_only(bootstrap):
    """Broken frames: a huge size, a negative one, a body cut short; others are served."""
    with connect(bootstrap) as good:
        for data in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", struct.pack(">ihhih", 8, 3, 12, 1, 900),
                     b"GET / HTTP/1.0\r\n\r\n", struct.pack(">i", 14) + b"\x00\x03\x00\x09" + b"\xff" * 10):
            with Conn(bootstrap, timeout_s=5) as bad:
                bad.socket.sendall(data)
                try:
                    rest = bad.socket.recv(100)
                    assert rest == b"", "an answer to garbage: %r" % rest
                except ConnectionError:
                    pass
        assert versions(good)


def case_h8_correlation_ids_come_back_in_order(bootstrap):
    """Fifty requests sent at once on one connection are answered in their order."""
    with connect(bootstrap) as conn:
        sent = [conn.send("Metadata", 12, topics=[]) for _ in range(50)]
        got = [Reader(conn.receive_raw()).fixed("i") for _ in range(50)]
        same(got, sent)
