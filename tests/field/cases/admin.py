"""Field cases A1, and A6 G12 T9: configs as the tools read them, and what is not offered."""
import clients
import ottla
from calls import connect, create, name, same
from wire import MESSAGES

TOPIC, BROKER = 2, 4
# DescribeConfigs v3+: the number of a type, and where a value comes from
BOOLEAN, STRING, INT, LIST = 1, 2, 3, 7
TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5


def describe(conn, kind, resource, keys=None, version=4, **flags):
    answer = conn.call("DescribeConfigs", version, resources=[
        {"resourceType": kind, "resourceName": resource, "configurationKeys": keys}], **flags)
    result = answer["results"][0]
    return result["errorCode"], {c["name"]: c for c in result["configs"]}


def case_a1_topic_configs_are_complete(bootstrap):
    """All keys, not only overrides, with value, source, type; a filter; no null values."""
    topic = name("a1")
    with connect(bootstrap) as conn:
        create(conn, topic, configs={"retention.ms": 12345, "cleanup.policy": "compact"})
        for version in range(1, 5):
            error, configs = describe(conn, TOPIC, topic, version=version)
            same(error, 0)
            assert len(configs) > 20, sorted(configs)
            same((configs["retention.ms"]["value"], configs["retention.ms"]["configSource"]),
                 ("12345", TOPIC_CONFIG), "v%d" % version)
            same(configs["segment.bytes"]["configSource"], DEFAULT_CONFIG)
            assert all(c["value"] is not None for c in configs.values()), configs
            assert not any(c["isSensitive"] for c in configs.values())
            if version >= 3:
                for key, kind in (("segment.bytes", INT), ("cleanup.policy", LIST),
                                  ("compression.type", STRING), ("preallocate", BOOLEAN)):
                    same(configs[key]["configType"], kind, key)
        error, configs = describe(conn, TOPIC, topic, ["retention.ms", "no.such.key"])
        same((error, sorted(configs)), (0, ["retention.ms"]), "the filter")
        same(len(describe(conn, TOPIC, topic, [])[1]), len(describe(conn, TOPIC, topic)[1]),
             "an empty filter is none")
        same(describe(conn, TOPIC, "absent-" + topic)[0], 3)


def case_a1_synonyms_and_documentation(bootstrap):
    """includeSynonyms lists where a value comes from, the own one first; text when asked."""
    topic = name("a1")
    with connect(bootstrap) as conn:
        create(conn, topic, configs={"retention.ms": 12345})
        _, configs = describe(conn, TOPIC, topic, includeSynonyms=True, includeDocumentation=True)
        synonyms = configs["retention.ms"]["synonyms"]
        same((synonyms[0]["name"], synonyms[0]["value"], synonyms[0]["source"]),
             ("retention.ms", "12345", TOPIC_CONFIG))
        assert configs["segment.bytes"]["documentation"], "documentation"
        _, plain = describe(conn, TOPIC, topic)
        same(plain["retention.ms"]["synonyms"], [])
        assert not plain["retention.ms"]["documentation"]


def case_a1_broker_configs(bootstrap):
    """The broker's settings under its own id; another id and a wrong type are errors."""
    with connect(bootstrap) as conn:
        node = conn.call("Metadata", 12, topics=[])["brokers"][0]["nodeId"]
        error, configs = describe(conn, BROKER, str(node))
        same(error, 0)
        assert len(configs) > 30, sorted(configs)
        same(configs["num.partitions"]["value"], "4")
        for key in ("log.retention.hours", "listeners", "message.max.bytes", "node.id"):
            assert key in configs, key
        assert describe(conn, BROKER, "99")[0] != 0, "another broker's id"
        assert describe(conn, BROKER, "one")[0] != 0, "not a number"
        assert describe(conn, 77, "x")[0] != 0, "an unknown type"


def case_a1_kafka_configs_tool(bootstrap):
    clients.run("kafka-tools", bootstrap, "configs", name("a1"))
    clients.run("kafka-tools", bootstrap, "topics_configs", name("a1"))


def offered(conn):
    answer = conn.call("ApiVersions", 3, clientSoftwareName="field", clientSoftwareVersion="1.0")
    return ({row["apiKey"]: row["maxVersion"] for row in answer["apiKeys"]},
            {f["name"]: f["maxVersionLevel"] for f in answer["finalizedFeatures"]})


def case_a6_admin_calls_are_absent_or_answered(bootstrap):
    """DescribeLogDirs, ACLs, quotas, quorum, ElectLeaders: not offered, or a whole answer."""
    with connect(bootstrap) as conn:
        apis, _ = offered(conn)
    for api in ("DescribeLogDirs", "DescribeAcls", "DescribeQuorum", "DescribeClientQuotas",
                "ElectLeaders", "DescribeUserScramCredentials", "ListPartitionReassignments"):
        key = MESSAGES[api + "Request"].api
        if key in apis:
            with connect(bootstrap) as conn:
                try:
                    conn.call(api, apis[key])
                except EOFError:
                    assert ottla.REFERENCE, api + ": no answer"  # Kafka drops DescribeQuorum


def case_a6_replicas_are_put_where_they_are(bootstrap):
    """Plans that lead back from a reassignment name directories: right ones do no harm."""
    topic = name("a6")
    with connect(bootstrap) as conn:
        create(conn, topic)
        path = conn.call("DescribeLogDirs", 4, topics=None)["results"][0]["logDir"]

        def put_into(where, partition):
            answer = conn.call("AlterReplicaLogDirs", 2, dirs=[{"path": where, "topics": [
                {"name": topic, "partitions": [partition]}]}])["results"]
            same([one["topicName"] for one in answer], [topic])
            return [(p["partitionIndex"], p["errorCode"]) for p in answer[0]["partitions"]]

        same(put_into(path, 0), [(0, 0)])
        same(put_into(path, 7), [(7, 3)], "no such partition")
        same(put_into("/nowhere", 0), [(0, 57)], "no such directory")
        same(conn.call("AlterReplicaLogDirs", 1, dirs=[])["results"], [])


def case_g12_kip_848_is_offered_whole_or_not_at_all(bootstrap):
    """Without keys 68 and 69 there is no feature group.version, and clients say so clearly."""
    with connect(bootstrap) as conn:
        apis, features = offered(conn)
    same(68 in apis, 69 in apis, "both keys or none")
    same(68 in apis, features.get("group.version", 0) >= 1, "the feature goes with the keys")
    if 68 in apis:
        return
    clients.run("kafka-tools", bootstrap, "new_groups_refused", name("g12"))
    clients.run("confluent-kafka", bootstrap, "rebalance", name("g12"))


def case_t9_transactions_v2_only_with_its_rules(bootstrap):
    """transaction.version >= 2 promises Produce v12, TxnOffsetCommit v5 and EndTxn v5."""
    with connect(bootstrap) as conn:
        apis, features = offered(conn)
    needs = {0: 12, 28: 5, 26: 5}
    whole = all(apis.get(key, -1) >= version for key, version in needs.items())
    if features.get("transaction.version", 0) >= 2:
        assert whole, "transaction.version without its APIs: %s" % apis
    if 26 not in apis:
        same(features.get("transaction.version", 0), 0, "no EndTxn, no feature")
