/* A replica is in sync as long as it keeps up, by what the leader knows of it; what is told follows
 * each change. */
#include "broker/group/in_sync.h"

#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_image.h"
#include "broker/group/directory.h"
#include "broker/group/lag.h"
#include "broker/peer/liveness.h"
#include "broker/peer/peers.h"
#include "io/clock.h"
#include "tests/unit/broker/group/bench.h"

enum { LAG_MS = 30000 };

/* Nodes 1, 2 and 3 hold the group; all are online. */
struct world {
    struct bench *bench;
    struct group *group;
    struct cluster_broker brokers[4];
    struct cluster_image cluster;
    int32_t replicas[8];
    struct partition_group place;
    struct topic_image topic;
    uint64_t now_ms;
};

static void hear(struct world *world, int32_t node)
{
    struct liveness *liveness = &world->bench->broker.liveness;
    uint64_t far_ms = clock_monotonic_ms() + 3600 * 1000; /* it does not fall silent by itself */
    ck_assert(liveness_join(&world->bench->broker, liveness_add(liveness, node),
                            (struct uuid){{1}}, far_ms));
}

static struct world *world_new(void)
{
    struct world *world = calloc(1, sizeof *world);
    struct bench *bench = bench_new(3);
    world->bench = bench;
    world->group = &bench->group;
    for (int32_t i = 0; i < 4; i++) {
        world->brokers[i].id = i + 1;
        world->replicas[i] = i + 1;
    }
    world->cluster = (struct cluster_image){.brokers = world->brokers, .broker_count = 4};
    world->place = (struct partition_group){.replicas = world->replicas, .replica_count = 3};
    world->topic = (struct topic_image){.groups = &world->place, .group_count = 1};
    bench->replicas.cluster = &world->cluster;
    bench->replicas.lag_ms = LAG_MS;
    bench->group.topic = &world->topic;
    directory_add(&bench->broker.directory, 0);
    peers_open(&bench->shard);
    hear(world, 2);
    hear(world, 3);
    bench_elect(bench);
    world->now_ms = clock_monotonic_ms();
    return world;
}

static void lead(struct world *world)
{
    world->group->leads = true;
    in_sync_begin(world->group);
}

static void world_free(struct world *world)
{
    struct broker *broker = &world->bench->broker;
    in_sync_end(world->group);
    peers_close(&world->bench->shard);
    directory_free(&broker->directory);
    bench_free(world->bench);
    free(world);
}

static void tick(struct world *world, uint64_t ms)
{
    world->now_ms += ms;
    in_sync_tick(world->group, world->now_ms);
}

static void has(struct world *world, int32_t node, uint64_t index)
{
    bench_message(world->bench, (struct raft_message){.kind = RAFT_APPEND_REPLY, .from = node,
                                                      .term = 1, .accepted = true,
                                                      .index = index});
}

/* What the directory says of the nodes 2 and 3, a bit each. */
static unsigned told(const struct world *world)
{
    uint64_t lag = lag_of(directory_lag(&world->bench->broker.directory, 0), &world->place);
    return (unsigned)(lag_has(lag, 1) ? 2 : 0) + (lag_has(lag, 2) ? 1 : 0);
}

static int32_t in_sync_count(const struct world *world)
{
    int32_t least = 1;
    while (least < 3 && in_sync_has(world->group, least + 1)) {
        least++;
    }
    return least;
}

/* An entry that nodes 1 and 2 have, so that it is committed. */
static uint64_t commit(struct world *world)
{
    uint64_t index = bench_propose(world->bench, 10);
    bench_persisted(world->bench, 1, index);
    has(world, 2, index);
    ck_assert_uint_eq(raft_commit_index(world->group->raft), index);
    return index;
}

START_TEST(who_does_not_answer_a_new_leader_lags)
{
    struct world *world = world_new();
    lead(world);
    ck_assert_int_eq(in_sync_count(world), 3);
    has(world, 2, 0);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 0);
    tick(world, IN_SYNC_AWAIT_MS);
    ck_assert_uint_eq(told(world), 1);
    ck_assert_int_eq(in_sync_count(world), 2);
    has(world, 3, 0);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 0);
    ck_assert_int_eq(in_sync_count(world), 3);
    world_free(world);
}
END_TEST

START_TEST(who_lacks_something_for_long_lags_until_it_has_what_is_committed)
{
    struct world *world = world_new();
    lead(world);
    has(world, 2, 0);
    has(world, 3, 0);
    tick(world, 50);
    uint64_t first = commit(world);
    tick(world, 50); /* it had everything up to now, and begins to lack it */
    tick(world, LAG_MS);
    ck_assert_uint_eq(told(world), 0);
    tick(world, 1);
    ck_assert_uint_eq(told(world), 1);
    ck_assert_int_eq(in_sync_count(world), 2);
    uint64_t second = commit(world);
    tick(world, 50);
    has(world, 3, first);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 1);
    has(world, 3, second);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 0);
    ck_assert_int_eq(in_sync_count(world), 3);
    tick(world, 2 * LAG_MS); /* nothing is written: it lacks nothing */
    ck_assert_uint_eq(told(world), 0);
    world_free(world);
}
END_TEST

START_TEST(who_always_lacks_a_little_keeps_up)
{
    struct world *world = world_new();
    lead(world);
    has(world, 2, 0);
    has(world, 3, 0);
    tick(world, 50);
    uint64_t before = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t index = commit(world);
        has(world, 3, before);
        before = index;
        tick(world, LAG_MS / 10);
        ck_assert_uint_eq(told(world), 0);
    }
    world_free(world);
}
END_TEST

START_TEST(who_is_lost_lags_until_it_is_back_with_everything)
{
    struct world *world = world_new();
    struct broker *broker = &world->bench->broker;
    lead(world);
    has(world, 2, 0);
    has(world, 3, 0);
    tick(world, 50);
    liveness_left(broker, liveness_add(&broker->liveness, 3));
    bench_step(world->bench, (struct raft_event){.kind = RAFT_EVENT_PEER_LOST, .node = 3});
    in_sync_lost(world->group, 3);
    ck_assert_uint_eq(told(world), 1);
    tick(world, 50);
    has(world, 3, 0); /* this was on its way */
    tick(world, 50);
    ck_assert_uint_eq(told(world), 1);
    commit(world);
    tick(world, 50);
    hear(world, 3);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 1);
    has(world, 3, 1);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 0);
    world_free(world);
}
END_TEST

static uint64_t round_of_heartbeat(struct bench *bench)
{
    for (;;) {
        bench_step(bench, (struct raft_event){.kind = RAFT_EVENT_TICK});
        for (size_t i = 0; i < bench->actions.count; i++) {
            const struct raft_action *action = &bench->actions.list[i];
            if (action->kind == RAFT_ACTION_SEND && action->message.kind == RAFT_HEARTBEAT) {
                return action->message.round;
            }
        }
    }
}

START_TEST(who_is_brought_up_from_the_logs_lags)
{
    struct world *world = world_new();
    struct bench *bench = world->bench;
    lead(world);
    has(world, 2, 0);
    has(world, 3, 0);
    tick(world, 50);
    uint64_t index = commit(world);
    ck_assert_uint_eq(raft_release(world->group->raft, index), index);
    bench_step(bench, (struct raft_event){.kind = RAFT_EVENT_PEER_LOST, .node = 3});
    bench_message(bench, (struct raft_message){.kind = RAFT_HEARTBEAT_REPLY, .from = 3, .term = 1,
                                               .round = round_of_heartbeat(bench)});
    struct raft_peer_info peer;
    ck_assert(raft_peer_info(world->group->raft, 3, &peer));
    ck_assert_int_eq(peer.state, RAFT_PEER_SNAPSHOT);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 1);
    ck_assert_int_eq(in_sync_count(world), 2);
    struct raft_event done = {.kind = RAFT_EVENT_SNAPSHOT_DONE};
    done.snapshot.node = 3;
    done.snapshot.index = index;
    bench_step(bench, done);
    has(world, 3, index);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 0);
    world_free(world);
}
END_TEST

START_TEST(a_new_leader_goes_on_from_what_was_told)
{
    struct world *world = world_new();
    struct broker *broker = &world->bench->broker;
    directory_set_lag(&broker->directory, 0, lag_with(lag_untold(&world->place), 1, true));
    lead(world);
    ck_assert_uint_eq(told(world), 2);
    ck_assert_int_eq(in_sync_count(world), 2);
    has(world, 2, 0);
    tick(world, 50);
    ck_assert_uint_eq(told(world), 0);
    world_free(world);
}
END_TEST

START_TEST(who_is_fenced_or_silent_does_not_count)
{
    struct world *world = world_new();
    struct broker *broker = &world->bench->broker;
    lead(world);
    world->brokers[1].is_fenced = true;
    ck_assert_int_eq(in_sync_count(world), 2);
    ck_assert(!in_sync_is_online(&world->bench->shard, 2));
    ck_assert(in_sync_is_online(&world->bench->shard, 1));
    liveness_left(broker, liveness_add(&broker->liveness, 3));
    ck_assert_int_eq(in_sync_count(world), 1);
    ck_assert_uint_eq(told(world), 0); /* everybody sees that by himself */
    world_free(world);
}
END_TEST

/* The target first, then the others; behind them the replicas before the move, and its number. */
static void begin_move(struct world *world)
{
    static const int32_t numbers[] = {4, 2, 3, 1, 1, 2, 3, 9};
    for (int i = 0; i < 8; i++) {
        world->replicas[i] = numbers[i];
    }
    world->place.replica_count = 4;
    world->place.target_count = 3;
    world->place.original_count = 3;
}

START_TEST(a_newcomer_lags_and_the_others_stay_what_they_were)
{
    struct world *world = world_new();
    lead(world);
    has(world, 2, 0);
    tick(world, IN_SYNC_AWAIT_MS);
    ck_assert_uint_eq(told(world), 1);
    uint64_t before = directory_lag(&world->bench->broker.directory, 0);
    begin_move(world);
    /* Told of the list before: nobody knows of the newcomer yet. */
    ck_assert(lag_has(lag_of(before, &world->place), 0));
    ck_assert(!lag_has(lag_of(before, &world->place), 2));
    in_sync_replicas_changed(world->group);
    uint64_t after = directory_lag(&world->bench->broker.directory, 0);
    ck_assert_uint_eq(lag_of(after, &world->place), after);
    for (int32_t place = 0; place < 4; place++) {
        ck_assert(lag_has(after, place) == (place == 0 || place == 2));
    }
    ck_assert(in_sync_has(world->group, 2) && !in_sync_has(world->group, 3));
    world_free(world);
}
END_TEST

START_TEST(far_places_never_lag)
{
    struct world *world = world_new();
    uint64_t lag = lag_untold(&world->place);
    ck_assert_uint_ne(lag, 0);
    ck_assert_uint_eq(lag_with(lag, LAG_REPLICAS, true), lag);
    ck_assert(!lag_has(UINT64_MAX, LAG_REPLICAS));
    lag = lag_with(lag, LAG_REPLICAS - 1, true);
    ck_assert(lag_has(lag, LAG_REPLICAS - 1) && !lag_has(lag, 0));
    ck_assert_uint_eq(lag_of(lag, &world->place), lag);
    ck_assert_uint_eq(lag_with(lag, LAG_REPLICAS - 1, false), lag_untold(&world->place));
    world_free(world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("in_sync");
    TCase *tests = tcase_create("in_sync");
    tcase_add_test(tests, who_does_not_answer_a_new_leader_lags);
    tcase_add_test(tests, who_lacks_something_for_long_lags_until_it_has_what_is_committed);
    tcase_add_test(tests, who_always_lacks_a_little_keeps_up);
    tcase_add_test(tests, who_is_lost_lags_until_it_is_back_with_everything);
    tcase_add_test(tests, who_is_brought_up_from_the_logs_lags);
    tcase_add_test(tests, a_new_leader_goes_on_from_what_was_told);
    tcase_add_test(tests, who_is_fenced_or_silent_does_not_count);
    tcase_add_test(tests, a_newcomer_lags_and_the_others_stay_what_they_were);
    tcase_add_test(tests, far_places_never_lag);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
