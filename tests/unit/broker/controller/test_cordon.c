/* A cordoned broker gets no new replicas and keeps those that it has (KIP-1066). */
#include "broker/controller/controller.h"

#include <stdio.h>

#include "broker/config/describe.h"
#include "broker/controller/broker_change.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/placement.h"
#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

static struct world world;
static struct command command;
static struct partition_groups_record record;

static void set_up(void)
{
    world_start(&world, NO_SETTINGS);
    world_add_brokers(&world, 3);
}

static void tear_down(void)
{
    world_stop(&world);
}

static void begin(void)
{
    ck_assert_int_eq(
        command_start(&command, &world.controller, &world.arena, &world.records), STATUS_OK);
}

/* Sets the value while the broker runs, or takes it back (null). */
static struct refusal set(const char *broker, const char *value)
{
    struct refusal refusal;
    struct config_wish wish = {VIEW_LITERAL("cordoned.log.dirs"), view_text(value),
                               value == NULL ? CONFIG_OPERATION_DELETE : CONFIG_OPERATION_SET};
    begin();
    ck_assert_int_eq(broker_change(&command, view_text(broker), &wish, 1, false, false, &refusal),
                     STATUS_OK);
    world_commit(&world);
    return refusal;
}

static void cordon(const char *broker)
{
    ck_assert_int_eq(set(broker, "*").error, KAFKA_NONE);
}

static int64_t epoch_of(int32_t id)
{
    return image_broker(world.image, id - 1)->broker_epoch;
}

/* The broker itself says so, or that it is not. */
static void say(int32_t id, bool is_cordoned)
{
    struct uuid directory = {{7}};
    struct broker_heartbeat_request request = broker_heartbeat_request_default;
    request.broker_id = id;
    request.broker_epoch = epoch_of(id);
    request.cordoned_log_dirs = &directory;
    request.cordoned_log_dirs_count = is_cordoned ? 1 : 0;
    ck_assert_int_eq(controller_broker_heartbeat(&world.controller, &request, &world.records),
                     KAFKA_NONE);
}

static bool is_cordoned(int32_t id)
{
    struct cluster_broker self = {.id = 99};
    struct cluster_image *image = cluster_image_new(world.image, &self);
    bool here = cluster_image_find(image, id)->is_cordoned;
    cluster_image_unref(image);
    ck_assert_int_eq(image_broker_is_cordoned(world.image, image_broker(world.image, id - 1)),
                     here);
    return here;
}

static int replicas_on(int32_t id, int32_t partitions, int32_t replication)
{
    int found = 0;
    begin();
    ck_assert_int_eq(placement_reach(&command, replication).error, KAFKA_NONE);
    ck_assert_int_eq(placement_spread(&command, NULL, partitions, 1000, replication, &record),
                     STATUS_OK);
    for (int32_t i = 0; i < record.groups_count; i++) {
        for (int32_t j = 0; j < replication; j++) {
            found += record.groups[i].replicas[j] == id ? 1 : 0;
        }
    }
    return found;
}

static void refusal_is(struct refusal refusal, enum kafka_error error, const char *why)
{
    ck_assert_int_eq(refusal.error, error);
    ck_assert_msg(view_is(refusal.why, why), "%.*s", VIEW_PRINT(refusal.why));
}

START_TEST(nothing_new_is_placed_there)
{
    ck_assert_int_eq(replicas_on(3, 12, 2), 8);
    cordon("3");
    ck_assert(is_cordoned(3) && !is_cordoned(2));
    ck_assert_int_eq(replicas_on(3, 12, 2), 0);
    ck_assert_int_eq(replicas_on(1, 12, 2), 12);
    refusal_is(placement_reach(&command, 3), KAFKA_INVALID_REPLICATION_FACTOR,
               "Unable to replicate the partition 3 time(s): The target replication factor of 3 "
               "cannot be reached because only 2 broker(s) are registered or some brokers have all "
               "their log directories cordoned.");
    ck_assert_int_eq(set("3", NULL).error, KAFKA_NONE);
    ck_assert(!is_cordoned(3));
    ck_assert_int_eq(replicas_on(3, 12, 2), 8);
}
END_TEST

START_TEST(an_absent_broker_is_no_substitute_when_it_is_cordoned)
{
    controller_fence_broker(&world.controller, 3, true, &world.records);
    world_commit(&world);
    ck_assert_int_eq(replicas_on(3, 4, 3), 4);
    cordon("3");
    begin();
    ck_assert_int_eq(placement_reach(&command, 3).error, KAFKA_INVALID_REPLICATION_FACTOR);
    cordon("2");
    cordon("1");
    begin();
    refusal_is(placement_reach(&command, 1), KAFKA_INVALID_REPLICATION_FACTOR,
               "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or "
               "have all their log directories cordoned.");
}
END_TEST

START_TEST(absent_brokers_are_all_that_is_left)
{
    controller_fence_broker(&world.controller, 3, true, &world.records);
    world_commit(&world);
    cordon("1");
    cordon("2");
    ck_assert_int_eq(replicas_on(3, 4, 1), 4);
}
END_TEST

START_TEST(nobody_can_name_it)
{
    int32_t ids[] = {1, 3};
    cordon("3");
    begin();
    refusal_is(placement_check(&command, (struct replica_list){ids, 2}, 2),
               KAFKA_INVALID_REPLICA_ASSIGNMENT,
               "The manual partition assignment includes broker 3, but all its log directories are "
               "cordoned.");
    ck_assert_int_eq(placement_check(&command, (struct replica_list){ids, 1}, 1).error, KAFKA_NONE);
    ck_assert(command_has_broker(&command, 3));
}
END_TEST

START_TEST(what_is_there_stays_and_may_leave)
{
    int32_t to[] = {3, 2};
    struct alter_partition_reassignments_request_reassignable_partition wish = {
        .replicas = to, .replicas_count = 2};
    struct alter_partition_reassignments_request_reassignable_topic topic = {
        .name = VIEW_LITERAL("t"), .partitions = &wish, .partitions_count = 1};
    struct alter_partition_reassignments_request request =
        alter_partition_reassignments_request_default;
    struct alter_partition_reassignments_response response;
    request.topics = &topic;
    request.topics_count = 1;
    world_create(&world, "t", 1, 3);
    cordon("3");
    for (int turn = 0; turn < 2; turn++) {
        ck_assert_int_eq(controller_alter_reassignments(&world.controller, &request, &world.arena,
                                                        &world.records, &response), STATUS_OK);
        world_commit(&world);
        ck_assert_int_eq(response.responses[0].partitions[0].error_code,
                         turn == 0 ? KAFKA_INVALID_REPLICA_ASSIGNMENT : KAFKA_NONE);
        to[0] = 1;
    }
    const struct partition_group *group = topic_image_group(world_topic(&world, "t"), 0);
    ck_assert(partition_group_moves(group));
    /* To give it up leads back to the broker. */
    wish.replicas_count = -1;
    ck_assert_int_eq(controller_alter_reassignments(&world.controller, &request, &world.arena,
                                                    &world.records, &response), STATUS_OK);
    ck_assert_int_eq(response.responses[0].partitions[0].error_code, KAFKA_NONE);
}
END_TEST

START_TEST(a_broker_says_so_itself)
{
    say(2, false);
    ck_assert_uint_eq(world.records.count, 0);
    say(2, true);
    ck_assert_uint_eq(world.records.count, 1);
    world_commit(&world);
    ck_assert(is_cordoned(2));
    ck_assert_int_eq(replicas_on(2, 6, 2), 0);
    say(2, true);
    ck_assert_uint_eq(world.records.count, 0);
    /* What is set while it runs counts more, both ways. */
    ck_assert_int_eq(set("2", "").error, KAFKA_NONE);
    ck_assert(!is_cordoned(2));
    ck_assert_int_eq(set("2", NULL).error, KAFKA_NONE);
    ck_assert(is_cordoned(2));
    say(2, false);
    world_commit(&world);
    ck_assert(!is_cordoned(2));
    cordon("2");
    ck_assert(is_cordoned(2));
}
END_TEST

START_TEST(its_next_process_is_cordoned_until_it_says_otherwise)
{
    struct broker_registration_request request = broker_registration_request_default;
    int64_t epoch = -1;
    say(2, true);
    world_commit(&world);
    request.broker_id = 2;
    request.incarnation_id = (struct uuid){{9}};
    ck_assert_int_eq(controller_register_broker(&world.controller, &request, 100, &world.arena,
                                                &world.records, &epoch), STATUS_OK);
    world_commit(&world);
    ck_assert_int_eq(epoch_of(2), 100);
    ck_assert(is_cordoned(2));
    say(2, false);
    world_commit(&world);
    ck_assert(!is_cordoned(2));
}
END_TEST

START_TEST(a_snapshot_keeps_it)
{
    struct image *copy = image_new(world.config);
    struct image_changes changes = {0};
    say(2, true);
    world_commit(&world);
    cordon("3");
    image_snapshot(world.image, &world.records);
    for (size_t i = 0; i < world.records.count; i++) {
        ck_assert_int_eq(image_apply(copy, record_list_get(&world.records, i), &changes),
                         STATUS_OK);
    }
    image_finish(copy, &changes);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(image_broker_is_cordoned(copy, image_broker(copy, i)), i > 0);
    }
    image_changes_free(&changes);
    image_free(copy);
}
END_TEST

START_TEST(it_is_set_for_one_broker)
{
    refusal_is(set("", "*"), KAFKA_INVALID_REQUEST,
               "Cannot update these configs at default cluster level, broker id must be specified: "
               "[cordoned.log.dirs]");
    ck_assert(!is_cordoned(1));
    ck_assert_int_eq(set("9", "*").error, KAFKA_BROKER_ID_NOT_REGISTERED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cordon");
    TCase *tests = tcase_create("cordon");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, nothing_new_is_placed_there);
    tcase_add_test(tests, an_absent_broker_is_no_substitute_when_it_is_cordoned);
    tcase_add_test(tests, absent_brokers_are_all_that_is_left);
    tcase_add_test(tests, nobody_can_name_it);
    tcase_add_test(tests, what_is_there_stays_and_may_leave);
    tcase_add_test(tests, a_broker_says_so_itself);
    tcase_add_test(tests, its_next_process_is_cordoned_until_it_says_otherwise);
    tcase_add_test(tests, a_snapshot_keeps_it);
    tcase_add_test(tests, it_is_set_for_one_broker);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
