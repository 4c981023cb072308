/* Topics that are made by being used, and the broker's own. */
#include "broker/controller/controller.h"

#include <string.h>

#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

static struct world world;
static struct refusal refusals[4];

static void set_up(void)
{
    world_start(&world, NO_SETTINGS);
}

static void tear_down(void)
{
    world_stop(&world);
}

static void create_before(int to_come, size_t count, const char *const *texts)
{
    struct view names[4];
    for (size_t i = 0; i < count; i++) {
        names[i] = view_text(texts[i]);
    }
    ck_assert_int_eq(controller_auto_create(&world.controller, to_come, names, count,
                                            &world.arena, &world.records, refusals),
                     STATUS_OK);
    world_commit(&world);
}

static void create(size_t count, const char *const *texts)
{
    create_before(0, count, texts);
}

START_TEST(defaults_are_the_brokers)
{
    tear_down();
    world_start(&world, SETTINGS("num.partitions=5"));
    create(1, SETTINGS("t"));
    ck_assert_int_eq(refusals[0].error, KAFKA_NONE);
    ck_assert_int_eq(world_topic(&world, "t")->partition_count, 5);
    ck_assert_uint_eq(world_topic(&world, "t")->override_count, 0);
}
END_TEST

START_TEST(what_is_there_or_named_twice_is_made_once)
{
    create(3, SETTINGS("t", "u", "t"));
    ck_assert_uint_eq(image_topic_count(world.image), 2);
    create(1, SETTINGS("t"));
    ck_assert_int_eq(refusals[0].error, KAFKA_NONE);
    ck_assert_uint_eq(world.changes.count, 0);
}
END_TEST

START_TEST(wrong_names_are_refused_one_by_one)
{
    create(3, SETTINGS("a b", "good", "__cluster_metadata"));
    ck_assert_int_eq(refusals[0].error, KAFKA_INVALID_TOPIC_EXCEPTION);
    ck_assert_int_eq(refusals[1].error, KAFKA_NONE);
    ck_assert_int_eq(refusals[2].error, KAFKA_INVALID_TOPIC_EXCEPTION);
    ck_assert_uint_eq(image_topic_count(world.image), 1);
}
END_TEST

START_TEST(a_default_replication_that_cannot_be_is_refused)
{
    tear_down();
    world_start(&world, SETTINGS("default.replication.factor=3"));
    create(1, SETTINGS("t"));
    ck_assert_int_eq(refusals[0].error, KAFKA_INVALID_REPLICATION_FACTOR);
}
END_TEST

START_TEST(consumer_offsets_on_one_node)
{
    create(1, SETTINGS("__consumer_offsets"));
    ck_assert_int_eq(refusals[0].error, KAFKA_NONE);
    const struct topic_image *topic = world_topic(&world, "__consumer_offsets");
    ck_assert(topic->is_internal);
    ck_assert_int_eq(topic->partition_count, 50);
    ck_assert_uint_eq(topic->group_count, 50);
    ck_assert_int_eq(topic_image_group(topic, 0)->replica_count, 1);
    ck_assert(topic_image_settings(topic)->compacts);
    ck_assert(!topic_image_settings(topic)->deletes);
    ck_assert_int_eq(topic_image_settings(topic)->segment_bytes, 104857600);
}
END_TEST

START_TEST(internal_topics_wait_for_the_brokers_to_come)
{
    create_before(3, 1, SETTINGS("__consumer_offsets"));
    ck_assert_int_eq(refusals[0].error, KAFKA_INVALID_REPLICATION_FACTOR);
    world_add_brokers(&world, 1);
    create_before(2, 1, SETTINGS("__consumer_offsets"));
    ck_assert_int_eq(refusals[0].error, KAFKA_INVALID_REPLICATION_FACTOR);
    world_add_brokers(&world, 2);
    create_before(1, 2, SETTINGS("__consumer_offsets", "t"));
    ck_assert_int_eq(refusals[0].error, KAFKA_INVALID_REPLICATION_FACTOR);
    ck_assert_int_eq(refusals[1].error, KAFKA_NONE);
    world_add_brokers(&world, 3);
    create_before(2, 1, SETTINGS("__consumer_offsets")); /* more than the three that it wants */
    ck_assert_int_eq(refusals[0].error, KAFKA_NONE);
    const struct topic_image *topic = world_topic(&world, "__consumer_offsets");
    ck_assert_int_eq(topic_image_group(topic, 0)->replica_count, 3);
}
END_TEST

START_TEST(two_brokers_are_all_that_there_will_be)
{
    world_add_brokers(&world, 2);
    create(1, SETTINGS("__consumer_offsets"));
    const struct topic_image *topic = world_topic(&world, "__consumer_offsets");
    ck_assert_int_eq(topic_image_group(topic, 0)->replica_count, 2);
}
END_TEST

START_TEST(transaction_state_on_five_nodes)
{
    world_add_brokers(&world, 5);
    create(2, SETTINGS("__transaction_state", "__share_group_state"));
    const struct topic_image *topic = world_topic(&world, "__transaction_state");
    ck_assert_int_eq(topic_image_group(topic, 0)->replica_count, 3);
    ck_assert_int_eq(topic_image_settings(topic)->min_insync_replicas, 2);
    ck_assert_int_eq(world_topic(&world, "__share_group_state")->partition_count, 50);
}
END_TEST

START_TEST(min_insync_is_never_above_the_replication)
{
    create(1, SETTINGS("__transaction_state"));
    const struct topic_image *topic = world_topic(&world, "__transaction_state");
    ck_assert_int_eq(topic_image_settings(topic)->min_insync_replicas, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("auto create");
    TCase *tests = tcase_create("auto create");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, defaults_are_the_brokers);
    tcase_add_test(tests, what_is_there_or_named_twice_is_made_once);
    tcase_add_test(tests, wrong_names_are_refused_one_by_one);
    tcase_add_test(tests, a_default_replication_that_cannot_be_is_refused);
    tcase_add_test(tests, consumer_offsets_on_one_node);
    tcase_add_test(tests, internal_topics_wait_for_the_brokers_to_come);
    tcase_add_test(tests, two_brokers_are_all_that_there_will_be);
    tcase_add_test(tests, transaction_state_on_five_nodes);
    tcase_add_test(tests, min_insync_is_never_above_the_replication);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
