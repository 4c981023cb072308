/* So many elections run at a time; the others begin in their order as those end. */
#include "broker/group/elections.h"

#include "broker/controller/topic_image.h"
#include "broker/group/directory.h"
#include "broker/group/group_journal.h"
#include "broker/peer/liveness.h"
#include "broker/peer/peers.h"
#include "io/clock.h"
#include "tests/unit/broker/group/bench.h"

enum { GROUPS = 5, MOST = 2 };

/* Groups of one shard, whose other voters 2 and 3 are there. */
struct world {
    struct bench *benches[GROUPS];
    struct topic_image topic;
    struct shard *shard;
    struct elections *elections;
};

static void hear(struct world *world, int32_t node)
{
    struct broker *broker = world->shard->broker;
    uint64_t far_ms = clock_monotonic_ms() + 3600 * 1000; /* it does not fall silent by itself */
    ck_assert(liveness_join(broker, liveness_add(&broker->liveness, node), (struct uuid){{1}},
                            far_ms));
}

static struct world *world_new(void)
{
    struct world *world = calloc(1, sizeof *world);
    for (uint64_t i = 0; i < GROUPS; i++) {
        world->benches[i] = bench_new(3);
        struct group *group = &world->benches[i]->group;
        group->id = i;
        group->topic = &world->topic;
        group->shard = &world->benches[0]->shard;
        list_init(&group->installs);
        list_init(&group->confirms);
    }
    world->shard = &world->benches[0]->shard;
    struct replicas *replicas = world->shard->replicas;
    world->elections = &replicas->elections;
    replicas->shard = world->shard;
    list_init(&replicas->ticking);
    list_init(&replicas->moving);
    list_init(&world->shard->after);
    elections_init(world->elections, MOST);
    directory_add(&world->shard->broker->directory, 0);
    peers_open(world->shard);
    hear(world, 2);
    hear(world, 3);
    return world;
}

static void world_free(struct world *world)
{
    for (int i = GROUPS - 1; i >= 0; i--) {
        elections_leave(&world->benches[i]->group);
        if (i == 0) {
            elections_end(world->elections);
            ck_assert_int_eq(world->elections->running, 0);
            peers_close(world->shard);
            directory_free(&world->shard->broker->directory);
        }
        bench_free(world->benches[i]);
    }
    free(world);
}

static struct group *group_of(struct world *world, int number)
{
    return &world->benches[number]->group;
}

static void event(struct world *world, int number, enum raft_event_kind kind)
{
    struct group *group = group_of(world, number);
    group_step(group, &(struct raft_event){.kind = (uint8_t)kind, .hold = elections_hold(group)});
}

static void refuse(struct world *world, int number)
{
    for (int32_t node = 2; node <= 3; node++) {
        struct raft_message no = {.kind = RAFT_PRE_VOTE_REPLY, .from = node, .to = 1, .term = 0};
        group_step(group_of(world, number),
                   &(struct raft_event){.kind = RAFT_EVENT_MESSAGE, .message = &no});
    }
}

/* The end of the turn. */
static void turn(struct world *world)
{
    if (list_contains(&world->elections->begin.link)) {
        list_remove(&world->elections->begin.link);
        world->elections->begin.run(&world->elections->begin);
    }
}

/* Who asks for votes, a digit each. */
static int asking(struct world *world)
{
    int digits = 0;
    for (int i = 0; i < GROUPS; i++) {
        bool asks = raft_role(group_of(world, i)->raft) == RAFT_PRE_CANDIDATE;
        digits = asks ? digits * 10 + i + 1 : digits;
    }
    return digits;
}

static struct world *world_busy(void)
{
    struct world *world = world_new();
    for (int i = 0; i < GROUPS; i++) {
        event(world, i, RAFT_EVENT_CAMPAIGN);
    }
    turn(world);
    ck_assert_int_eq(asking(world), 12);
    return world;
}

START_TEST(the_others_begin_in_their_order)
{
    struct world *world = world_busy();
    refuse(world, 1);
    turn(world);
    ck_assert_int_eq(asking(world), 13);
    refuse(world, 0);
    refuse(world, 2);
    turn(world);
    ck_assert_int_eq(asking(world), 45);
    refuse(world, 4);
    turn(world);
    ck_assert_int_eq(asking(world), 4);
    ck_assert(!elections_hold(group_of(world, 0)));
    world_free(world);
}
END_TEST

START_TEST(who_runs_out_of_time_gives_way)
{
    struct world *world = world_busy();
    for (int i = 0; i < 100 && asking(world) == 12; i++) {
        event(world, 0, RAFT_EVENT_TICK);
    }
    turn(world);
    ck_assert_int_eq(asking(world), 23);
    for (int i = 1; i < 4; i++) {
        refuse(world, i);
        turn(world);
    }
    ck_assert_int_eq(asking(world), 15); /* the first one's second turn, and the last one's first */
    world_free(world);
}
END_TEST

START_TEST(who_follows_meanwhile_has_no_election_any_more)
{
    struct world *world = world_busy();
    struct raft *raft = group_of(world, 2)->raft;
    struct raft_message heartbeat = {.kind = RAFT_HEARTBEAT, .from = 3, .to = 1, .term = 1};
    ck_assert(raft_awaits_election(raft));
    bench_step(world->benches[2],
               (struct raft_event){.kind = RAFT_EVENT_MESSAGE, .message = &heartbeat});
    elections_stepped(group_of(world, 2));
    ck_assert(!raft_awaits_election(raft));
    elections_leave(group_of(world, 3)); /* ends while it waits */
    refuse(world, 0);
    turn(world);
    ck_assert_int_eq(asking(world), 25);
    world_free(world);
}
END_TEST

START_TEST(who_cannot_win_or_must_not_wait_is_not_held)
{
    struct world *world = world_busy();
    struct broker *broker = world->shard->broker;
    struct group *group = group_of(world, 3);
    ck_assert(elections_hold(group));
    group->topic = NULL; /* the metadata log */
    ck_assert(!elections_hold(group));
    group->topic = &world->topic;
    liveness_left(broker, liveness_add(&broker->liveness, 2));
    ck_assert(elections_hold(group));
    liveness_left(broker, liveness_add(&broker->liveness, 3));
    ck_assert(!elections_hold(group));
    event(world, 3, RAFT_EVENT_CAMPAIGN);
    ck_assert_int_eq(asking(world), 124);
    ck_assert_int_eq(world->elections->running, MOST);
    refuse(world, 3);
    ck_assert_int_eq(world->elections->running, MOST);
    world_free(world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("elections");
    TCase *tests = tcase_create("elections");
    tcase_add_test(tests, the_others_begin_in_their_order);
    tcase_add_test(tests, who_runs_out_of_time_gives_way);
    tcase_add_test(tests, who_follows_meanwhile_has_no_election_any_more);
    tcase_add_test(tests, who_cannot_win_or_must_not_wait_is_not_held);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
