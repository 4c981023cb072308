/* CreatePartitions as a stock Kafka 4.4 answers it. */
#include "broker/controller/controller.h"

#include <string.h>

#include "protocol/codec.h"
#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

#define WISH create_partitions_request_create_partitions_topic
#define ASSIGNMENT create_partitions_request_create_partitions_assignment
#define RESULT create_partitions_response_create_partitions_topic_result

static struct world world;
static struct create_partitions_response response;
static struct ASSIGNMENT assignments[4];
static struct WISH wish;

static void fresh_wish(const char *name, int32_t count)
{
    wish = (struct WISH){.name = view_text(name),
                         .count = count,
                         .assignments = assignments,
                         .assignments_count = -1};
}

static void set_up(void)
{
    world_start(&world, SETTINGS("ottla.topic.partition.groups=4"));
    world_add_brokers(&world, 2);
    world_create(&world, "t", 2, 1);
}

static void tear_down(void)
{
    world_stop(&world);
}

static void send(struct WISH *wishes, int32_t count, bool validate_only)
{
    struct create_partitions_request request = {
        .topics = wishes, .topics_count = count, .validate_only = validate_only};
    ck_assert_int_eq(controller_create_partitions(&world.controller, &request, &world.arena,
                                                  &world.records, &response),
                     STATUS_OK);
    world_commit(&world);
}

static void refused(enum kafka_error error, const char *text)
{
    send(&wish, 1, false);
    struct RESULT *result = &response.results[0];
    ck_assert_msg(result->error_code == error, "%d", result->error_code);
    ck_assert_msg(text == NULL ? result->error_message.data == NULL
                               : view_is(result->error_message, text),
                  "%.*s", VIEW_PRINT(result->error_message));
    ck_assert_uint_eq(world.changes.count, 0);
}

static void assign(int32_t *brokers, int32_t count)
{
    wish.assignments_count = wish.assignments_count < 0 ? 0 : wish.assignments_count;
    assignments[wish.assignments_count++] = (struct ASSIGNMENT){brokers, count};
}

#define BROKERS(...) ((int32_t[]){__VA_ARGS__}), (sizeof((int32_t[]){__VA_ARGS__}) / 4)

START_TEST(new_partitions_get_groups_up_to_the_cap_then_share)
{
    uint64_t first_group = world_topic(&world, "t")->groups[0].id;
    fresh_wish("t", 7);
    send(&wish, 1, false);
    ck_assert_int_eq(response.results[0].error_code, KAFKA_NONE);
    ck_assert_ptr_null(response.results[0].error_message.data);
    const struct topic_image *topic = world_topic(&world, "t");
    ck_assert_int_eq(topic->partition_count, 7);
    ck_assert_uint_eq(topic->group_count, 4);
    static const uint16_t expected[] = {0, 1, 2, 3, 0, 1, 2};
    ck_assert_mem_eq(topic->slots, expected, sizeof expected);
    ck_assert_uint_eq(topic->groups[0].id, first_group);
    ck_assert_int_eq(topic->groups[3].replica_count, 1);
    ck_assert_uint_eq(world.changes.count, 1);
}
END_TEST

START_TEST(only_more_partitions_are_possible)
{
    fresh_wish("t", 2);
    refused(KAFKA_INVALID_PARTITIONS, "The topic has 2 partition(s) already");
    fresh_wish("t", 1);
    refused(KAFKA_INVALID_PARTITIONS, "The topic has 2 partition(s): 1 would be fewer");
    fresh_wish("t", -1);
    refused(KAFKA_INVALID_PARTITIONS, "The topic has 2 partition(s): -1 would be fewer");
    fresh_wish("nope", 3);
    refused(KAFKA_UNKNOWN_TOPIC_OR_PARTITION, NULL);
    fresh_wish("t", INT32_MAX);
    refused(KAFKA_POLICY_VIOLATION, "One request may make no more than 100000 partitions");
}
END_TEST

START_TEST(validate_only_changes_nothing)
{
    fresh_wish("t", 5);
    send(&wish, 1, true);
    ck_assert_int_eq(response.results[0].error_code, KAFKA_NONE);
    ck_assert_int_eq(world_topic(&world, "t")->partition_count, 2);
}
END_TEST

START_TEST(assigned_by_hand)
{
    fresh_wish("t", 4);
    assign(BROKERS(2));
    assign(BROKERS(1));
    send(&wish, 1, false);
    ck_assert_int_eq(response.results[0].error_code, KAFKA_NONE);
    const struct topic_image *topic = world_topic(&world, "t");
    ck_assert_int_eq(topic_image_group(topic, 2)->replicas[0], 2);
    ck_assert_int_eq(topic_image_group(topic, 3)->replicas[0], 1);
    fresh_wish("t", 5);
    assign(BROKERS(1));
    send(&wish, 1, false);
    ck_assert_uint_eq(world_topic(&world, "t")->group_count, 4);
    ck_assert_int_eq(topic_image_group(world_topic(&world, "t"), 4)->replicas[0], 1);
}
END_TEST

START_TEST(wrong_assignments)
{
    fresh_wish("t", 4);
    assign(BROKERS(1));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT, "2 partition(s) would be added, but 1 are assigned");
    fresh_wish("t", 3);
    wish.assignments_count = 0;
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT, "1 partition(s) would be added, but 0 are assigned");
    fresh_wish("t", 3);
    assign(BROKERS(9));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT,
            "A partition is assigned to broker 9, which is not registered");
    fresh_wish("t", 3);
    assign(BROKERS(1, 2));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT,
            "A partition is assigned to 2 broker(s), those before it to 1");
    fresh_wish("t", 3);
    assign(NULL, 0);
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT, "A partition is assigned to no broker");
    controller_fence_broker(&world.controller, 2, true, &world.records);
    world_commit(&world);
    fresh_wish("t", 3);
    assign(BROKERS(2));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT,
            "A partition is assigned only to brokers that are fenced, or stop");
}
END_TEST

START_TEST(lost_brokers_make_the_replication_impossible)
{
    world_create(&world, "two", 1, 2);
    struct unregister_broker_record gone = {.broker_id = 2};
    record_list_add(&world.records, &unregister_broker_record_type, 0, &gone);
    world_commit(&world);
    fresh_wish("two", 2);
    refused(KAFKA_INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 "
            "cannot be reached because only 1 broker(s) are registered.");
}
END_TEST

START_TEST(a_name_named_twice_is_answered_once_and_first)
{
    struct WISH wishes[3];
    for (int i = 0; i < 3; i++) {
        fresh_wish(i == 0 ? "nope" : "t", 5);
        wishes[i] = wish;
    }
    send(wishes, 3, false);
    ck_assert_int_eq(response.results_count, 2);
    ck_assert(view_is(response.results[0].name, "t"));
    ck_assert_int_eq(response.results[0].error_code, KAFKA_INVALID_REQUEST);
    ck_assert(view_is(response.results[1].name, "nope"));
    ck_assert_int_eq(world_topic(&world, "t")->partition_count, 2);
}
END_TEST

START_TEST(two_topics_in_one_request)
{
    world_create(&world, "u", 1, 1);
    struct WISH wishes[2];
    fresh_wish("t", 3);
    wishes[0] = wish;
    fresh_wish("u", 2);
    wishes[1] = wish;
    send(wishes, 2, false);
    ck_assert_uint_eq(world.changes.count, 2);
    ck_assert_int_eq(world_topic(&world, "t")->partition_count, 3);
    ck_assert_int_eq(world_topic(&world, "u")->partition_count, 2);
}
END_TEST

START_TEST(internal_topics_keep_their_cap)
{
    tear_down();
    world_start(&world, NO_SETTINGS);
    struct view name = view_text("__consumer_offsets");
    struct refusal refusal;
    ck_assert_int_eq(controller_auto_create(&world.controller, 0, &name, 1, &world.arena,
                                            &world.records, &refusal),
                     STATUS_OK);
    world_commit(&world);
    fresh_wish("__consumer_offsets", 60);
    send(&wish, 1, false);
    ck_assert_uint_eq(world_topic(&world, "__consumer_offsets")->group_count, 50);
    ck_assert_int_eq(world_topic(&world, "__consumer_offsets")->partition_count, 60);
}
END_TEST

START_TEST(answers_encode_in_every_version)
{
    fresh_wish("t", 1);
    for (int16_t version = 0; version <= 3; version++) {
        send(&wish, 1, true);
        struct buffer buffer = {0};
        ck_assert_int_eq(
            message_encode_to(&create_partitions_response_type, version, &response, &buffer),
            STATUS_OK);
        buffer_free(&buffer);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("create partitions");
    TCase *tests = tcase_create("create partitions");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, new_partitions_get_groups_up_to_the_cap_then_share);
    tcase_add_test(tests, only_more_partitions_are_possible);
    tcase_add_test(tests, validate_only_changes_nothing);
    tcase_add_test(tests, assigned_by_hand);
    tcase_add_test(tests, wrong_assignments);
    tcase_add_test(tests, lost_brokers_make_the_replication_impossible);
    tcase_add_test(tests, a_name_named_twice_is_answered_once_and_first);
    tcase_add_test(tests, two_topics_in_one_request);
    tcase_add_test(tests, internal_topics_keep_their_cap);
    tcase_add_test(tests, answers_encode_in_every_version);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
