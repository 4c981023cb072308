/* Reassignments: what begins a move, what replaces or ends one, and what is refused. */
#include "broker/controller/controller.h"

#include <string.h>

#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

#define WISH alter_partition_reassignments_request_reassignable_partition

static struct world world;
static struct WISH wishes[4];
static int32_t lists[4][4];
static struct alter_partition_reassignments_request_reassignable_topic topic_wish;
static struct alter_partition_reassignments_request request;
static struct alter_partition_reassignments_response response;

static void fresh_request(const char *topic)
{
    topic_wish = (struct alter_partition_reassignments_request_reassignable_topic){
        .name = view_text(topic), .partitions = wishes};
    request = alter_partition_reassignments_request_default;
    request.topics = &topic_wish;
    request.topics_count = 1;
}

static void set_up(void)
{
    world_start(&world, SETTINGS("ottla.topic.partition.groups=2"));
    world_add_brokers(&world, 5);
    world_create(&world, "t", 3, 3); /* partitions 0 and 2 are one group */
    fresh_request("t");
}

static void tear_down(void)
{
    world_stop(&world);
}

/* `count` brokers of b1, b2, b3; below zero: the move is given up. */
static void want(int32_t partition, int32_t count, int32_t b1, int32_t b2, int32_t b3)
{
    int32_t at = topic_wish.partitions_count++;
    memcpy(lists[at], (int32_t[]){b1, b2, b3}, 3 * sizeof b1);
    wishes[at] = (struct WISH){.partition_index = partition,
                               .replicas = count < 0 ? NULL : lists[at],
                               .replicas_count = count};
}

static int16_t send(void)
{
    ck_assert_int_eq(controller_alter_reassignments(&world.controller, &request, &world.arena,
                                                    &world.records, &response),
                     STATUS_OK);
    ck_assert_int_eq(response.responses_count, 1);
    ck_assert_int_eq(response.responses[0].partitions_count, topic_wish.partitions_count);
    int32_t last = topic_wish.partitions_count - 1;
    world_commit(&world);
    fresh_request("t");
    return response.responses[0].partitions[last].error_code;
}

static const struct partition_group *group_of(int32_t partition)
{
    return topic_image_group(world_topic(&world, "t"), partition);
}

static void numbers_are(const int32_t *list, int32_t count, int32_t expected_count,
                        const int32_t *expected)
{
    ck_assert_int_eq(count, expected_count);
    for (int32_t i = 0; i < count; i++) {
        ck_assert_int_eq(list[i], expected[i]);
    }
}

static void target_is(const struct partition_group *group, int32_t expected_count,
                      const int32_t *expected)
{
    int32_t count = 0;
    const int32_t *list = partition_group_target(group, &count);
    numbers_are(list, count, expected_count, expected);
}

static void original_is(const struct partition_group *group, int32_t expected_count,
                        const int32_t *expected)
{
    int32_t count = 0;
    const int32_t *list = partition_group_original(group, &count);
    numbers_are(list, count, expected_count, expected);
}

/* Brings partition 1 to brokers 1, 2, 3 whatever the placement was. */
static void settle(void)
{
    want(1, 3, 1, 2, 3);
    ck_assert_int_eq(send(), KAFKA_NONE);
    const struct partition_group *group = group_of(1);
    if (partition_group_moves(group)) {
        controller_end_move(&world.controller, world_topic(&world, "t")->id, group->id,
                            partition_group_move(group), &world.records);
        world_commit(&world);
    }
    ck_assert(!partition_group_moves(group_of(1)));
    numbers_are(group_of(1)->replicas, group_of(1)->replica_count, 3, (int32_t[]){1, 2, 3});
}

START_TEST(a_move_begins_and_ends)
{
    settle();
    want(1, 3, 5, 2, 4);
    ck_assert_int_eq(send(), KAFKA_NONE);
    ck_assert_uint_eq(world.changes.count, 1);
    const struct partition_group *group = group_of(1);
    ck_assert(partition_group_moves(group));
    numbers_are(group->replicas, group->replica_count, 5, (int32_t[]){5, 2, 4, 1, 3});
    target_is(group, 3, (int32_t[]){5, 2, 4});
    original_is(group, 3, (int32_t[]){1, 2, 3});
    ck_assert(!partition_group_moves(group_of(0)));
    int32_t move = partition_group_move(group);
    struct uuid topic = world_topic(&world, "t")->id;
    controller_end_move(&world.controller, topic, group->id, move + 1, &world.records);
    controller_end_move(&world.controller, topic, group->id + 1, move, &world.records);
    ck_assert_uint_eq(world.records.count, 0);
    controller_end_move(&world.controller, topic, group->id, move, &world.records);
    world_commit(&world);
    group = group_of(1);
    ck_assert(!partition_group_moves(group));
    numbers_are(group->replicas, group->replica_count, 3, (int32_t[]){5, 2, 4});
    controller_end_move(&world.controller, topic, group->id, move, &world.records);
    ck_assert_uint_eq(world.records.count, 0);
}
END_TEST

START_TEST(nobody_gives_up_a_copy_before_the_end)
{
    settle();
    want(1, 2, 4, 5, 0);
    ck_assert_int_eq(send(), KAFKA_NONE);
    int32_t first = partition_group_move(group_of(1));
    want(1, 1, 3, 0, 0);
    ck_assert_int_eq(send(), KAFKA_NONE);
    const struct partition_group *group = group_of(1);
    numbers_are(group->replicas, group->replica_count, 5, (int32_t[]){3, 4, 5, 1, 2});
    original_is(group, 3, (int32_t[]){1, 2, 3});
    ck_assert_int_ne(partition_group_move(group), first);
    want(1, -1, 0, 0, 0);
    ck_assert_int_eq(send(), KAFKA_NONE);
    group = group_of(1);
    ck_assert(partition_group_moves(group));
    target_is(group, 3, (int32_t[]){1, 2, 3});
    ck_assert_int_eq(group->replica_count, 5);
    int32_t back = partition_group_move(group);
    want(1, -1, 0, 0, 0);
    ck_assert_int_eq(send(), KAFKA_NONE);
    ck_assert_int_eq(partition_group_move(group_of(1)), back);
}
END_TEST

START_TEST(another_order_is_no_move)
{
    settle();
    want(1, 3, 3, 1, 2);
    ck_assert_int_eq(send(), KAFKA_NONE);
    ck_assert(!partition_group_moves(group_of(1)));
    numbers_are(group_of(1)->replicas, group_of(1)->replica_count, 3, (int32_t[]){3, 1, 2});
    want(1, 3, 3, 1, 2);
    ck_assert_int_eq(send(), KAFKA_NONE);
    ck_assert_uint_eq(world.changes.count, 0);
}
END_TEST

START_TEST(partitions_of_a_group_move_together)
{
    want(0, 1, 4, 0, 0);
    want(2, 1, 4, 0, 0);
    ck_assert_int_eq(send(), KAFKA_NONE);
    ck_assert(partition_group_moves(group_of(2)));
    want(0, 1, 5, 0, 0);
    want(2, 1, 3, 0, 0);
    ck_assert_int_eq(send(), KAFKA_INVALID_REPLICA_ASSIGNMENT);
    ck_assert_int_eq(response.responses[0].partitions[0].error_code, KAFKA_NONE);
    ck_assert_int_eq(group_of(2)->replicas[0], 5);
    want(0, -1, 0, 0, 0);
    want(2, -1, 0, 0, 0);
    ck_assert_int_eq(send(), KAFKA_NONE);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    settle();
    want(1, 2, 1, 1, 0);
    ck_assert_int_eq(send(), KAFKA_INVALID_REPLICA_ASSIGNMENT);
    want(1, 2, 1, 9, 0);
    ck_assert_int_eq(send(), KAFKA_INVALID_REPLICA_ASSIGNMENT);
    want(1, 0, 0, 0, 0);
    ck_assert_int_eq(send(), KAFKA_INVALID_REPLICA_ASSIGNMENT);
    want(3, 1, 1, 0, 0);
    ck_assert_int_eq(send(), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    want(1, -1, 0, 0, 0);
    ck_assert_int_eq(send(), KAFKA_NO_REASSIGNMENT_IN_PROGRESS);
    fresh_request("nowhere");
    want(0, 1, 1, 0, 0);
    ck_assert_int_eq(send(), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    request.allow_replication_factor_change = false;
    want(1, 2, 1, 4, 0);
    ck_assert_int_eq(send(), KAFKA_INVALID_REPLICATION_FACTOR);
    ck_assert(!partition_group_moves(group_of(1)));
}
END_TEST

START_TEST(a_snapshot_keeps_moves)
{
    settle();
    want(1, 3, 5, 2, 4);
    ck_assert_int_eq(send(), KAFKA_NONE);
    struct image *copy = image_new(world.config);
    struct image_changes changes = {0};
    image_snapshot(world.image, &world.records);
    for (size_t i = 0; i < world.records.count; i++) {
        ck_assert_int_eq(image_apply(copy, record_list_get(&world.records, i), &changes),
                         STATUS_OK);
    }
    image_finish(copy, &changes);
    const struct partition_group *group = group_of(1);
    const struct partition_group *other =
        topic_image_group(image_topic(copy, VIEW_LITERAL("t")), 1);
    ck_assert_uint_eq(partition_group_numbers(group), partition_group_numbers(other));
    ck_assert_int_eq(group->target_count, other->target_count);
    ck_assert_int_eq(
        memcmp(group->replicas, other->replicas, partition_group_numbers(group) * sizeof(int32_t)),
        0);
    image_changes_free(&changes);
    image_free(copy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moves");
    TCase *tests = tcase_create("moves");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_move_begins_and_ends);
    tcase_add_test(tests, nobody_gives_up_a_copy_before_the_end);
    tcase_add_test(tests, another_order_is_no_move);
    tcase_add_test(tests, partitions_of_a_group_move_together);
    tcase_add_test(tests, what_cannot_be_is_refused);
    tcase_add_test(tests, a_snapshot_keeps_moves);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
