"""Field cases G1 G2 G3 G4 G6 G7 G8 G9: members, static members, commits, restarts."""
import subprocess
import threading
import time

import clients
import ottla
from calls import (commit, committed, connect, coordinator, create, delete, fetch_offsets,
                   heartbeat, join, join_request, leave, name, put, same, sync, sync_request, until)

UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCING, FENCED = 25, 22, 27, 82


def describe(conn, group):
    return conn.call("DescribeGroups", 5, groups=[group])["groups"][0]


def stable_member(conn, group, **options):
    """A member alone in its group, after its sync: (member id, generation)."""
    coordinator(conn, group)
    joined = join(conn, group, **options)
    same(joined["errorCode"], 0, "join")
    synced = sync(conn, group, joined["generationId"], joined["memberId"],
                  [(joined["memberId"], b"all")], instance=options.get("instance"))
    same((synced["errorCode"], synced["assignment"]), (0, b"all"))
    return joined["memberId"], joined["generationId"]


def case_g1_a_second_member_joins(bootstrap):
    """The first's heartbeat says rebalance; one new generation; only the leader sees the list."""
    group = name("g1")
    with connect(bootstrap) as a, connect(bootstrap) as b:
        first, generation = stable_member(a, group)
        same(heartbeat(a, group, generation, first), 0)
        second = b.call("JoinGroup", 7, **join_request(group))["memberId"]
        b.send("JoinGroup", 7, **join_request(group, second))
        until(lambda: heartbeat(a, group, generation, first) == REBALANCING, "the rebalance")
        same(describe(a, group)["groupState"], "PreparingRebalance")
        joined_a = join(a, group, first)
        joined_b = b.receive("JoinGroup", 7)
        for answer in (joined_a, joined_b):
            same((answer["errorCode"], answer["generationId"]), (0, generation + 1))
            same(answer["leader"], first, "the leader stays")
        same(sorted(m["memberId"] for m in joined_a["members"]), sorted([first, second]))
        same({m["metadata"] for m in joined_a["members"]}, {b"subscription"})
        same(joined_b["members"], [], "a follower's list")
        b.send("SyncGroup", 5, **sync_request(group, generation + 1, second))
        synced = sync(a, group, generation + 1, first, [(first, b"one"), (second, b"two")])
        same(synced["assignment"], b"one")
        same(b.receive("SyncGroup", 5)["assignment"], b"two")
        same(heartbeat(b, group, generation + 1, second), 0)
        same(describe(a, group)["groupState"], "Stable")
        leave(b, group, (second, None))
        until(lambda: heartbeat(a, group, generation + 1, first) == REBALANCING, "it left")


def case_g1_a_silent_member_is_dropped(bootstrap):
    """No heartbeat within the session: the group goes on without it."""
    group = name("g1")
    with connect(bootstrap) as a, connect(bootstrap) as b:
        coordinator(a, group)
        first, generation = stable_member(a, group, session_ms=6000)
        until(lambda: describe(b, group)["groupState"] == "Empty", "the end of the session", 30)
        same(heartbeat(a, group, generation, first), UNKNOWN_MEMBER)


def case_g1_members_of_real_clients(bootstrap):
    for client in ("franz-go", "kafkajs", "aiokafka"):
        clients.run(client, bootstrap, "rebalance", name("g1"))


def case_g1_protocols_must_agree(bootstrap):
    """The protocol that all can do is chosen; a member without a common one gets 23."""
    group = name("g1")
    with connect(bootstrap) as a, connect(bootstrap) as b:
        coordinator(a, group)
        both = (("sticky", b"s"), ("range", b"r"))
        joined = join(a, group, protocols=both)
        same(joined["protocolName"], "sticky", "the first of its list")
        answer = b.call("JoinGroup", 4, groupId=group, sessionTimeoutMs=10000,
                        rebalanceTimeoutMs=10000, memberId="", protocolType="consumer",
                        protocols=[{"name": "other", "metadata": b""}])
        if answer["errorCode"] == 79:
            answer = b.call("JoinGroup", 4, groupId=group, sessionTimeoutMs=10000,
                            rebalanceTimeoutMs=10000, memberId=answer["memberId"],
                            protocolType="consumer", protocols=[{"name": "other", "metadata": b""}])
        same(answer["errorCode"], 23, "no common protocol")
        answer = b.call("JoinGroup", 3, groupId=group, sessionTimeoutMs=10000,
                        rebalanceTimeoutMs=10000, memberId="", protocolType="connect",
                        protocols=[{"name": "range", "metadata": b""}])
        same(answer["errorCode"], 23, "another protocol type")


def case_g1_session_timeouts_have_bounds(bootstrap):
    """Outside group.min/max.session.timeout.ms: error 26."""
    group = name("g1")
    with connect(bootstrap) as conn:
        coordinator(conn, group)
        for session_ms in (10, 10 ** 9):
            answer = conn.call("JoinGroup", 7, **join_request(group, session_ms=session_ms))
            same(answer["errorCode"], 26, session_ms)
        same(conn.call("JoinGroup", 7, **join_request(""))["errorCode"], 24, "an empty group id")
        same(conn.call("JoinGroup", 7, **join_request(group, "made-up"))["errorCode"],
             UNKNOWN_MEMBER)


def case_g2_followers_wait_for_the_leader(bootstrap):
    """A follower's sync is held until the leader's comes; its bytes go through unread."""
    group = name("g2")
    with connect(bootstrap) as a, connect(bootstrap) as b:
        coordinator(a, group)
        first, second, generation = two_members(a, b, group)
        b.send("SyncGroup", 5, **sync_request(group, generation, second))
        b.socket.settimeout(0.5)
        try:
            b.receive_raw()
            assert False, "the follower was answered before the leader"
        except TimeoutError:
            b.socket.settimeout(15)
        blob = bytes(range(256)) * 40
        same(sync(a, group, generation, first, [(second, blob)])["assignment"], b"",
             "present and empty")
        same(b.receive("SyncGroup", 5)["assignment"], blob)
        same(sync(a, group, generation + 5, first)["errorCode"], ILLEGAL_GENERATION)
        same(sync(a, group, generation, "nobody")["errorCode"], UNKNOWN_MEMBER)
        same(sync(b, group, generation, second)["assignment"], blob, "asked again")


def two_members(a, b, group, rebalance_ms=10000):
    """Two members that have joined and not synced: (leader, follower, generation)."""
    first = join(a, group, rebalance_ms=rebalance_ms)["memberId"]
    second = b.call("JoinGroup", 7, **join_request(group, rebalance_ms=rebalance_ms))["memberId"]
    b.send("JoinGroup", 7, **join_request(group, second, rebalance_ms=rebalance_ms))
    until(lambda: describe(a, group)["groupState"] == "PreparingRebalance", "the rebalance")
    joined = join(a, group, first, rebalance_ms=rebalance_ms)
    same(joined["errorCode"], 0)
    same(b.receive("JoinGroup", 7)["errorCode"], 0)
    return first, second, joined["generationId"]


def case_g2_a_leader_that_dies_before_its_sync(bootstrap):
    """The waiting follower is told to join again, and the group goes on with it alone."""
    group = name("g2")
    with connect(bootstrap) as a, connect(bootstrap) as b:
        coordinator(a, group)
        first, second, generation = two_members(a, b, group, rebalance_ms=3000)
        a.socket.close()
        b.socket.settimeout(40)
        answer = sync(b, group, generation, second)
        assert answer["errorCode"] in (REBALANCING, UNKNOWN_MEMBER), answer
        joined = join(b, group, second if answer["errorCode"] == REBALANCING else "",
                      rebalance_ms=3000)
        same((joined["errorCode"], joined["leader"]), (0, joined["memberId"]))
        same([m["memberId"] for m in joined["members"]], [joined["memberId"]])


def case_g2_a_real_leader_process_is_killed(bootstrap):
    """aiokafka: the leader is killed inside its assignor; the other member gets everything."""
    group = name("g2")
    with connect(bootstrap) as conn:
        create(conn, group, 4)
    script = """
import asyncio, sys, time
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
slow = sys.argv[3] == "slow"
class Assignor(RoundRobinPartitionAssignor):
    name = "roundrobin"
    @classmethod
    def assign(cls, cluster, members):
        if slow:
            print("assigning", flush=True)
            time.sleep(60)
        return super().assign(cluster, members)
async def main():
    c = AIOKafkaConsumer(sys.argv[2], bootstrap_servers=sys.argv[1], group_id=sys.argv[2],
        session_timeout_ms=6000, heartbeat_interval_ms=500, rebalance_timeout_ms=6000,
        max_poll_interval_ms=6000, partition_assignment_strategy=(Assignor,))
    await c.start()
    while len(c.assignment()) != 4: await c.getmany(timeout_ms=100)
    print("all", flush=True)
    await c.stop()
asyncio.run(main())
"""
    argv = [clients.layer().toolchains.python(), "-c", script, bootstrap, group]
    leader = subprocess.Popen([*argv, "slow"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    same(leader.stdout.readline(), b"assigning\n")
    leader.kill()
    leader.wait()
    done = subprocess.run([*argv, "quick"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60)
    same(done.stdout, b"all\n", done.stderr[-500:])


def case_g3_members_that_come_together_share_one_generation():
    """group.initial.rebalance.delay.ms: five kcat members, one generation."""
    with ottla.new_broker(overrides={"group.initial.rebalance.delay.ms": 3000},
                          name="g3") as broker:
        with connect(broker.bootstrap) as conn:
            create(conn, "g3", 5)
            coordinator(conn, "g3")
            start = time.monotonic()
            members = [join_thread(broker.bootstrap, "g3") for _ in range(5)]
            answers = [member() for member in members]
            took = time.monotonic() - start
            same([a["errorCode"] for a in answers], [0] * 5)
            same([a["generationId"] for a in answers], [1] * 5, "one generation")
            same(sorted(len(a["members"]) for a in answers), [0, 0, 0, 0, 5])
            assert took > 2.5, "the delay was not waited for: %.1f s" % took


def join_thread(bootstrap, group):
    """Joins on a connection of its own; the function returned waits for the answer."""
    answers = []

    def work():
        with connect(bootstrap) as conn:
            answers.append(join(conn, group))
    thread = threading.Thread(target=work)
    thread.start()

    def wait():
        thread.join(30)
        assert answers, "no answer to JoinGroup"
        return answers[0]
    return wait


def case_g3_without_the_delay_the_first_record_comes_at_once(bootstrap):
    topic = name("g3")
    with connect(bootstrap) as conn:
        create(conn, topic)
        put(conn, topic, [b"v"])
        coordinator(conn, topic)
        start = time.monotonic()
        stable_member(conn, topic)
        assert time.monotonic() - start < 1, "joining an empty group took a second"


def case_g3_five_kcats(bootstrap):
    """Five real members settle, and all ten partitions are read."""
    topic = name("g3")
    with connect(bootstrap) as conn:
        create(conn, topic, 10)
        members = [subprocess.Popen(
            ["kcat", "-b", bootstrap, "-G", topic, "-X", "auto.offset.reset=earliest", "-u", "-q",
             topic], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(5)]
        try:
            until(lambda: settled(describe(conn, topic), 5), "five members", 40)
            for partition in range(10):
                put(conn, topic, [b"%d" % partition], partition)
            until(lambda: sum(committed(conn, topic, topic, p) == 1 for p in range(10)) == 10,
                  "ten commits", 30)
        finally:
            for member in members:
                member.terminate()
        same(sorted(sum((m.communicate()[0].split() for m in members), [])),
             [b"%d" % p for p in range(10)], "each record once")


def settled(group, members):
    return group["groupState"] == "Stable" and len(group["members"]) == members


def case_g4_a_member_id_is_required(bootstrap):
    """v4+ without an id: 79 and an id to come back with; older versions join at once."""
    with connect(bootstrap) as conn:
        group = name("g4")
        coordinator(conn, group)
        for version in (4, 5, 6, 7, 8, 9):
            request = {**join_request(group)}
            if version < 5:
                del request["groupInstanceId"]
            answer = conn.call("JoinGroup", version, **request)
            same(answer["errorCode"], 79, "v%d" % version)
            assert answer["memberId"].startswith("field-"), answer["memberId"]
        for version in (0, 1, 2, 3):
            old = name("g4-old")
            request = {**join_request(old)}
            del request["groupInstanceId"]
            if version == 0:
                del request["rebalanceTimeoutMs"]
            answer = conn.call("JoinGroup", version, **request)
            same((answer["errorCode"], answer["generationId"]), (0, 1), "v%d" % version)


def case_g4_a_static_member_comes_back_without_a_rebalance(bootstrap):
    """The same instance again: same generation and assignment, new id, the old one fenced."""
    group = name("g4")
    with connect(bootstrap) as a, connect(bootstrap) as b:
        create(a, group)
        first, generation = stable_member(a, group, instance="one", session_ms=30000)
        again = b.call("JoinGroup", 7, **join_request(group, instance="one", session_ms=30000))
        same((again["errorCode"], again["generationId"]), (0, generation), "no new generation")
        assert again["memberId"] != first, "a new member id"
        back = sync(b, group, generation, again["memberId"], instance="one")
        same((back["errorCode"], back["assignment"]), (0, b"all"), "the assignment is kept")
        same(heartbeat(a, group, generation, first, "one"), FENCED, "the old id")
        same(heartbeat(b, group, generation, again["memberId"], "one"), 0)
        same(commit(a, group, group, 1, generation=generation, member=first,
                    groupInstanceId="one"), FENCED)
        same(describe(a, group)["members"][0]["groupInstanceId"], "one")
        left = leave(a, group, ("", "one"), ("", "absent"), ("nobody", None))
        same([m["errorCode"] for m in left["members"]], [0, UNKNOWN_MEMBER, UNKNOWN_MEMBER])
        same(describe(a, group)["groupState"], "Empty")


def case_g4_confluent_static_member_restarts(bootstrap):
    """confluent-kafka with group.instance.id: generation unchanged; a double is fenced."""
    group = name("g4")
    with connect(bootstrap) as conn:
        create(conn, group, 2)
        script = """
import sys
from confluent_kafka import Consumer, KafkaError
c = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "group.instance.id": "a",
              "session.timeout.ms": 30000, "heartbeat.interval.ms": 300})
c.subscribe([sys.argv[2]])
while len(c.assignment()) != 2: c.poll(0.1)
print("assigned", flush=True)
if sys.argv[3] == "stay":
    while True:
        m = c.poll(0.2)
        if m is not None and m.error() and m.error().code() == KafkaError._FATAL:
            print("fatal", flush=True)
            break
sys.stdout.flush()
import os; os._exit(0)
"""
        argv = [clients.layer().toolchains.python(), "-c", script, bootstrap, group]
        generations = []
        for _ in range(2):
            done = subprocess.run([*argv, "go"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=60)
            same(done.stdout, b"assigned\n", done.stderr[-500:])
            generations.append(generation_of(conn, group))
        same(generations[0], generations[1], "the generation after a restart")
        old = subprocess.Popen([*argv, "stay"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        same(old.stdout.readline(), b"assigned\n")
        done = subprocess.run([*argv, "go"], stdout=subprocess.PIPE, timeout=60)
        same(done.stdout, b"assigned\n")
        same(old.stdout.readline(), b"fatal\n", "the older of two is fenced")
        same(old.wait(20), 0)


def generation_of(conn, group):
    """The generation, as the one that a heartbeat of the only member accepts."""
    member = describe(conn, group)["members"][0]
    for generation in range(1, 50):
        code = heartbeat(conn, group, generation, member["memberId"], member["groupInstanceId"])
        if code != ILLEGAL_GENERATION:
            same(code, 0)
            return generation
    raise AssertionError("no generation fits")


def case_g6_unknown_things_are_not_errors(bootstrap):
    """OffsetFetch of an unknown group, topic, partition: 0, -1, -1, "" in every version."""
    group, topic = name("g6"), name("g6")
    with connect(bootstrap) as conn:
        coordinator(conn, group)
        for version in range(1, 8):
            answer = conn.call("OffsetFetch", version, groupId=group, topics=[
                {"name": topic, "partitionIndexes": [0, 7]}])
            if version >= 2:
                same(answer["errorCode"], 0)
            same([(p["partitionIndex"], p["committedOffset"], p["metadata"], p["errorCode"])
                  for p in answer["topics"][0]["partitions"]],
                 [(0, -1, "", 0), (7, -1, "", 0)], "v%d" % version)
        for version in (8, 9):
            answer = conn.call("OffsetFetch", version, groups=[{"groupId": group, "topics": [
                {"name": topic, "partitionIndexes": [0]}]}])["groups"][0]
            part = answer["topics"][0]["partitions"][0]
            same((answer["errorCode"], part["committedOffset"], part["committedLeaderEpoch"],
                  part["metadata"], part["errorCode"]), (0, -1, -1, "", 0), "v%d" % version)
        same(fetch_offsets(conn, group)["topics"], [], "all topics of an unknown group")
        same(describe(conn, group)["groupState"], "Dead", "asking made no group")


def case_g7_all_topics_many_groups_many_keys(bootstrap):
    """topics=null is every committed partition; v8 takes many groups, FindCoordinator many keys."""
    groups, topic = [name("g7"), name("g7"), name("g7")], name("g7")
    with connect(bootstrap) as conn:
        create(conn, topic, 3)
        for group in groups:
            coordinator(conn, group)
        for partition in range(3):
            same(commit(conn, groups[0], topic, 10 + partition, partition), 0)
        same(commit(conn, groups[1], topic, 5, 0), 0)
        for version in range(2, 8):
            answer = conn.call("OffsetFetch", version, groupId=groups[0], topics=None)
            same({p["partitionIndex"]: p["committedOffset"]
                  for t in answer["topics"] for p in t["partitions"]}, {0: 10, 1: 11, 2: 12})
        answer = conn.call("OffsetFetch", 8, groups=[{"groupId": g, "topics": None}
                                                     for g in groups])
        same({g["groupId"]: sum(len(t["partitions"]) for t in g["topics"])
              for g in answer["groups"]}, dict(zip(groups, (3, 1, 0))))
        found = conn.call("FindCoordinator", 4, keyType=0, coordinatorKeys=groups)["coordinators"]
        same([c["key"] for c in found], groups)
        for version in range(4):
            one = conn.call("FindCoordinator", version, key=groups[0])
            assert one["errorCode"] == 0 and one["port"] > 0, one


def case_g7_consumer_groups_tool(bootstrap):
    clients.run("kafka-tools", bootstrap, "groups", name("g7"))


def case_g7_describing_all_groups_at_once():
    """kafka-consumer-groups --describe --all-groups shows every committed partition's lag."""
    with ottla.new_broker(name="g7", overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
        with connect(broker.bootstrap) as conn:
            create(conn, "g7", 3)
            put(conn, "g7", [b"v"] * 20)
            for group in ("a", "b"):
                coordinator(conn, group)
                for partition in range(3):
                    same(commit(conn, group, "g7", 0 if partition else 13, partition), 0)
        clients.run("kafka-tools", broker.bootstrap, "all_groups", "g7")


def case_g8_shapes_of_offset_commit(bootstrap):
    """Simple commits while the group is empty; the right error else; epoch and metadata kept."""
    group, topic = name("g8"), name("g8")
    with connect(bootstrap) as conn:
        create(conn, topic)
        coordinator(conn, group)
        for version in range(2, 10):
            more = {"retentionTimeMs": -1} if version < 5 else {}
            same(commit(conn, group, topic, version, version=version, epoch=0, **more), 0,
                 "a simple commit, v%d" % version)
            same(committed(conn, group, topic), version)
        same(commit(conn, group, topic, 7, epoch=0, metadata="seven"), 0)
        part = fetch_offsets(conn, group, {topic: [0]})["topics"][0]["partitions"][0]
        same((part["committedOffset"], part["committedLeaderEpoch"], part["metadata"]),
             (7, 0, "seven"))
        same(commit(conn, group, topic, 1, metadata="x" * 5000), 12, "metadata too large")
        same(commit(conn, group, topic, 1, partition=99), 3, "an unknown partition")
        member, generation = stable_member(conn, group)
        same(commit(conn, group, topic, 8, generation=generation, member=member), 0)
        same(commit(conn, group, topic, 9, generation=generation + 1, member=member),
             ILLEGAL_GENERATION)
        same(commit(conn, group, topic, 9, generation=generation, member="nobody"), UNKNOWN_MEMBER)
        same(commit(conn, group, topic, 9), UNKNOWN_MEMBER, "a simple commit beside members")
        same(committed(conn, group, topic), 8, "nothing but the right ones was kept")


def case_g8_clients_commit(bootstrap):
    """sarama's second run reads nothing; kafka-go and kcat find their offsets again."""
    for client in ("sarama", "kafka-go", "kcat"):
        tag = name("g8")
        clients.run(client, bootstrap, "committed_write", tag)
        clients.run(client, bootstrap, "committed_read", tag)


def case_g8_groups_are_deleted_and_offsets_too(bootstrap):
    group, topic = name("g8"), name("g8")
    with connect(bootstrap) as conn:
        create(conn, topic, 2)
        coordinator(conn, group)
        for partition in (0, 1):
            same(commit(conn, group, topic, 5, partition), 0)

        def delete_group():
            return conn.call("DeleteGroups", 2, groupsNames=[group])["results"][0]["errorCode"]

        def offset_delete(partition):
            answer = conn.call("OffsetDelete", 0, groupId=group, topics=[
                {"name": topic, "partitions": [{"partitionIndex": partition}]}])
            return answer["errorCode"] or answer["topics"][0]["partitions"][0]["errorCode"]
        same(offset_delete(0), 0)
        same((committed(conn, group, topic, 0), committed(conn, group, topic, 1)), (-1, 5))
        member, _ = stable_member(conn, group)
        same(delete_group(), 68, "not empty")
        leave(conn, group, (member, None))
        same(delete_group(), 0)
        same(committed(conn, group, topic, 1), -1)
        same(delete_group(), 69, "gone")


def case_g9_commits_survive_kill9():
    """Commit, kill -9, restart, ten times: never below the last acknowledged commit."""
    with ottla.new_broker(name="g9", overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
        with connect(broker.bootstrap) as conn:
            create(conn, "g9")
            coordinator(conn, "g9")
        last = 0
        for turn in range(10):
            with connect(broker.bootstrap) as conn:
                coordinator(conn, "g9")
                same(committed(conn, "g9", "g9"), last if turn else -1, "turn %d" % turn)
                for _ in range(100):
                    last += 1
                    same(commit(conn, "g9", "g9", last, metadata="m%d" % last), 0)
            broker.kill9()
            broker.start()


def case_g9_members_join_again_after_a_restart():
    """A member from before: 25 or 22, or 0 where the membership was kept; offsets unchanged."""
    with ottla.new_broker(name="g9", overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
        with connect(broker.bootstrap) as conn:
            create(conn, "g9")
            member, generation = stable_member(conn, "g9", session_ms=30000)
            same(commit(conn, "g9", "g9", 42, generation=generation, member=member), 0)
        for how in (broker.kill9, broker.stop):
            how()
            broker.start()
            with connect(broker.bootstrap) as conn:
                coordinator(conn, "g9")
                same(committed(conn, "g9", "g9"), 42)
                code = heartbeat(conn, "g9", generation, member)
                assert code in (0, UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCING), code
                rejoined = join(conn, "g9", member if code == 0 else "", session_ms=30000,
                                rebalance_ms=2000)
                same(rejoined["errorCode"], 0)
                member, generation = rejoined["memberId"], rejoined["generationId"]
                synced = sync(conn, "g9", generation, member, [(member, b"all")])
                same(synced["errorCode"], 0)
                same(commit(conn, "g9", "g9", 42, generation=generation, member=member), 0)


def case_g9_kafkajs_commits_survive():
    """A kafkajs consumer's commits are there after kill -9."""
    with ottla.new_broker(name="g9-js", overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
        for client in ("kafkajs", "confluent-kafka"):
            clients.run(client, broker.bootstrap, "committed_write", "g9-" + client)
        broker.kill9()
        broker.start()
        for client in ("kafkajs", "confluent-kafka"):
            clients.run(client, broker.bootstrap, "committed_read", "g9-" + client)


def case_g_offsets_go_with_their_topic(bootstrap):
    """A topic made anew under an old name is not read from the old topic's offsets."""
    topic, other, group = name("gone"), name("stays"), name("g")
    with connect(bootstrap) as conn:
        create(conn, topic, 3)
        create(conn, other)
        coordinator(conn, group)
        for partition in range(3):
            same(commit(conn, group, topic, 7 + partition, partition), 0)
        same(commit(conn, group, other, 5), 0)
        same(committed(conn, group, topic, 2), 9)
        same(delete(conn, topic)["errorCode"], 0)
        until(lambda: committed(conn, group, topic, 2) == -1, "the offsets to go")
        create(conn, topic, 3)
        same([committed(conn, group, topic, p) for p in range(3)], [-1, -1, -1])
        same(committed(conn, group, other), 5, "another topic's offset")
