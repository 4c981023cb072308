/* Reads of logs are held to the rate of the node's side, where the topic lists the replica. */
#include "broker/group/throttle.h"

#include "broker/config/topic_config.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_image.h"
#include "tests/unit/broker/group/bench.h"

START_TEST(lists_name_replicas)
{
    static const struct {
        const char *list;
        bool names;
    } cases[] = {{"", false},          {"*", true},           {"3:1", true},
                 {"3:2", false},       {"1:3", false},        {"0:1,3:1", true},
                 {"0:1,13:1", false},  {"3:11,2:1", false},   {"2:2, 3:1 ,4:4", true},
                 {"3", false},         {":", false},          {"3:", false},
                 {",,", false},        {"x:1,3:1", true},     {"3:1:1", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(throttle_lists(view_text(cases[i].list), 3, 1) == cases[i].names, "'%s'",
                      cases[i].list);
    }
}
END_TEST

struct world {
    struct bench *bench;
    struct cluster_broker self;
    struct cluster_image cluster;
    struct topic_override overrides[2]; /* in the order of their keys */
    struct topic_image topic;
};

static struct world *world_new(void)
{
    struct world *world = calloc(1, sizeof *world);
    world->bench = bench_new(3);
    world->self = (struct cluster_broker){.id = 1, .leader_rate = 200000, .follower_rate = 100000};
    world->cluster = (struct cluster_image){.brokers = &world->self, .broker_count = 1};
    world->overrides[0].key = TOPIC_CONFIG_FOLLOWER_REPLICATION_THROTTLED_REPLICAS;
    world->overrides[0].value = VIEW_LITERAL("3:1");
    world->overrides[1].key = TOPIC_CONFIG_LEADER_REPLICATION_THROTTLED_REPLICAS;
    world->overrides[1].value = VIEW_LITERAL("4:1,4:2");
    world->topic = (struct topic_image){.overrides = world->overrides, .override_count = 2};
    world->bench->replicas.cluster = &world->cluster;
    world->bench->broker.shard_count = 2;
    world->bench->group.topic = &world->topic;
    return world;
}

static void world_free(struct world *world)
{
    bench_free(world->bench);
    free(world);
}

START_TEST(what_was_read_costs_time_on_its_side)
{
    struct world *world = world_new();
    const struct group *group = &world->bench->group;
    ck_assert_uint_eq(throttle_wait_ms(group, 3, THROTTLE_FOLLOWER), 0);
    throttle_count(group, 3, THROTTLE_FOLLOWER, 40000); /* 0.8 s at half of the rate */
    uint64_t wait_ms = throttle_wait_ms(group, 3, THROTTLE_FOLLOWER);
    ck_assert(wait_ms > 0 && wait_ms <= 800);
    ck_assert_uint_eq(throttle_wait_ms(group, 3, THROTTLE_LEADER), 0);
    ck_assert_uint_eq(throttle_wait_ms(group, 4, THROTTLE_FOLLOWER), 0); /* is not listed */
    throttle_count(group, 4, THROTTLE_FOLLOWER, 1 << 30);
    ck_assert_uint_le(throttle_wait_ms(group, 3, THROTTLE_FOLLOWER), 800);
    throttle_count(group, 4, THROTTLE_LEADER, 1 << 30);
    ck_assert_uint_eq(throttle_wait_ms(group, 4, THROTTLE_LEADER), THROTTLE_WAIT_MS_MAX);
    ck_assert_uint_eq(throttle_wait_ms(group, 3, THROTTLE_LEADER), 0);
    world_free(world);
}
END_TEST

START_TEST(without_a_rate_or_a_list_nothing_waits)
{
    struct world *world = world_new();
    const struct group *group = &world->bench->group;
    throttle_count(group, 4, THROTTLE_LEADER, 1 << 30);
    ck_assert_uint_eq(throttle_wait_ms(group, 4, THROTTLE_LEADER), THROTTLE_WAIT_MS_MAX);
    world->self.leader_rate = 0;
    ck_assert_uint_eq(throttle_wait_ms(group, 4, THROTTLE_LEADER), 0);
    world->self.leader_rate = INT64_MAX;
    ck_assert_uint_eq(throttle_bytes(group, 4, THROTTLE_LEADER, 1 << 20), 1 << 20);
    world->self.leader_rate = 1;
    ck_assert_uint_eq(throttle_wait_ms(group, 4, THROTTLE_LEADER), THROTTLE_WAIT_MS_MAX);
    world->topic.override_count = 1;
    ck_assert_uint_eq(throttle_wait_ms(group, 4, THROTTLE_LEADER), 0);
    world->bench->group.topic = NULL;
    ck_assert_uint_eq(throttle_wait_ms(group, 3, THROTTLE_FOLLOWER), 0);
    world_free(world);
}
END_TEST

START_TEST(a_low_rate_makes_small_pieces)
{
    struct world *world = world_new();
    const struct group *group = &world->bench->group;
    ck_assert_uint_eq(throttle_bytes(group, 3, THROTTLE_FOLLOWER, 1 << 20), 50000);
    ck_assert_uint_eq(throttle_bytes(group, 3, THROTTLE_FOLLOWER, 1000), 1000);
    ck_assert_uint_eq(throttle_bytes(group, 4, THROTTLE_FOLLOWER, 1 << 20), 1 << 20);
    world->self.follower_rate = 1;
    ck_assert_uint_eq(throttle_bytes(group, 3, THROTTLE_FOLLOWER, 1 << 20), 16384);
    world_free(world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("throttle");
    TCase *tests = tcase_create("throttle");
    tcase_add_test(tests, lists_name_replicas);
    tcase_add_test(tests, what_was_read_costs_time_on_its_side);
    tcase_add_test(tests, without_a_rate_or_a_list_nothing_waits);
    tcase_add_test(tests, a_low_rate_makes_small_pieces);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
