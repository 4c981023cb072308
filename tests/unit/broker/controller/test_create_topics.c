/* CreateTopics as a stock Kafka 4.4 answers it: the same error codes, the same order of checks. */
#include "broker/controller/controller.h"

#include <string.h>

#include "broker/config/value.h"
#include "protocol/codec.h"
#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

#define CREATABLE create_topics_request_creatable_topic
#define ASSIGNMENT create_topics_request_creatable_replica_assignment
#define SETTING create_topics_request_creatable_topic_config
#define RESULT create_topics_response_creatable_topic_result
#define ROW create_topics_response_creatable_topic_configs

static struct world world;
static struct create_topics_response response;
static struct CREATABLE topic;
static struct ASSIGNMENT assignments[4];
static struct SETTING settings[4];

static void fresh_topic(const char *name)
{
    topic = (struct CREATABLE){.name = view_text(name),
                               .num_partitions = -1,
                               .replication_factor = -1,
                               .assignments = assignments,
                               .configs = settings};
}

static void set_up(void)
{
    world_start(&world, NO_SETTINGS);
    fresh_topic("t");
}

static void tear_down(void)
{
    world_stop(&world);
}

static void send(struct CREATABLE *topics, int32_t count, int16_t version, bool validate_only)
{
    struct create_topics_request request = {
        .topics = topics, .topics_count = count, .validate_only = validate_only};
    ck_assert_int_eq(controller_create_topics(&world.controller, &request, version, &world.arena,
                                              &world.records, &response),
                     STATUS_OK);
}

static struct RESULT *answer(void)
{
    send(&topic, 1, 7, false);
    ck_assert_int_eq(response.topics_count, 1);
    return &response.topics[0];
}

static struct RESULT *accepted(void)
{
    struct RESULT *result = answer();
    ck_assert_msg(result->error_code == KAFKA_NONE, "%.*s", VIEW_PRINT(result->error_message));
    world_commit(&world);
    return result;
}

static void refused(enum kafka_error error, const char *text)
{
    struct RESULT *result = answer();
    ck_assert_msg(result->error_code == error, "%d", result->error_code);
    ck_assert_msg(view_is(result->error_message, text), "%.*s", VIEW_PRINT(result->error_message));
    ck_assert_int_eq(result->num_partitions, -1);
    ck_assert_int_eq(result->replication_factor, -1);
    ck_assert_int_eq(result->configs_count, 0);
    ck_assert(uuid_is_zero(result->topic_id));
    ck_assert_uint_eq(world.records.count, 0);
}

static void set(const char *name, const char *value)
{
    settings[topic.configs_count++] = (struct SETTING){view_text(name), view_text(value)};
}

static void assign(int32_t partition, int32_t *brokers, int32_t count)
{
    assignments[topic.assignments_count++] = (struct ASSIGNMENT){partition, brokers, count};
}

#define BROKERS(...) ((int32_t[]){__VA_ARGS__}), (sizeof((int32_t[]){__VA_ARGS__}) / 4)

START_TEST(minus_one_takes_the_brokers_defaults)
{
    tear_down();
    world_start(&world, SETTINGS("num.partitions=3"));
    struct RESULT *result = accepted();
    ck_assert_int_eq(result->num_partitions, 3);
    ck_assert_int_eq(result->replication_factor, 1);
    ck_assert_ptr_null(result->error_message.data);
    const struct topic_image *made = world_topic(&world, "t");
    ck_assert(uuid_equal(made->id, result->topic_id));
    ck_assert_int_eq(made->partition_count, 3);
    ck_assert_uint_eq(made->group_count, 3);
    ck_assert_uint_eq(topic_image_group(made, 0)->id, 1);
    ck_assert_uint_eq(topic_image_group(made, 2)->id, 3);
    ck_assert_int_eq(topic_image_group(made, 0)->replicas[0], 1);
}
END_TEST

START_TEST(beyond_the_cap_partitions_share_groups_round_robin)
{
    topic.num_partitions = 130;
    set("ottla.topic.partition.groups", "4");
    accepted();
    const struct topic_image *made = world_topic(&world, "t");
    ck_assert_uint_eq(made->group_count, 4);
    for (int32_t p = 0; p < 130; p++) {
        ck_assert_uint_eq(made->slots[p], p % 4);
    }
}
END_TEST

START_TEST(preferred_leaders_are_spread_over_the_brokers)
{
    world_add_brokers(&world, 3);
    topic.num_partitions = 6;
    topic.replication_factor = 2;
    accepted();
    int leaders[4] = {0};
    const struct topic_image *made = world_topic(&world, "t");
    for (int32_t p = 0; p < 6; p++) {
        const struct partition_group *group = topic_image_group(made, p);
        ck_assert_int_eq(group->replica_count, 2);
        ck_assert_int_ne(group->replicas[0], group->replicas[1]);
        leaders[group->replicas[0]]++;
    }
    ck_assert_int_eq(leaders[1], 2);
    ck_assert_int_eq(leaders[2], 2);
    ck_assert_int_eq(leaders[3], 2);
}
END_TEST

START_TEST(an_existing_topic_is_told)
{
    accepted();
    refused(KAFKA_TOPIC_ALREADY_EXISTS, "Topic 't' already exists.");
}
END_TEST

START_TEST(names)
{
    fresh_topic("");
    refused(KAFKA_INVALID_TOPIC_EXCEPTION, "Invalid topic name: it is empty");
    fresh_topic("__cluster_metadata");
    refused(KAFKA_INVALID_REQUEST, "__cluster_metadata is the broker's own");
    fresh_topic("p.q");
    accepted();
    refused(KAFKA_TOPIC_ALREADY_EXISTS, "Topic 'p.q' already exists.");
    fresh_topic("p_q");
    refused(KAFKA_INVALID_TOPIC_EXCEPTION,
            "Topic 'p_q' is too much like 'p.q': '.' and '_' are the same in metric names");
}
END_TEST

START_TEST(counts)
{
    topic.num_partitions = 0;
    refused(KAFKA_INVALID_PARTITIONS,
            "The number of partitions must be at least 1, or -1 for the default, not 0");
    topic.num_partitions = -2;
    refused(KAFKA_INVALID_PARTITIONS,
            "The number of partitions must be at least 1, or -1 for the default, not -2");
    topic.replication_factor = 0;
    refused(KAFKA_INVALID_REPLICATION_FACTOR,
            "The replication factor must be at least 1, or -1 for the default, not 0");
    fresh_topic("t");
    topic.replication_factor = 3;
    refused(KAFKA_INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 "
            "cannot be reached because only 1 broker(s) are registered.");
    fresh_topic("t");
    topic.num_partitions = REQUEST_PARTITIONS_MOST + 1;
    refused(KAFKA_POLICY_VIOLATION, "One request may make no more than 100000 partitions");
}
END_TEST

START_TEST(fenced_brokers_are_the_last_replicas)
{
    struct register_broker_record record = register_broker_record_default;
    record.broker_id = 1;
    record.fenced = false;
    record_list_add(&world.records, &register_broker_record_type, 0, &record);
    record.broker_id = 2;
    record.fenced = true;
    record_list_add(&world.records, &register_broker_record_type, 0, &record);
    world_commit(&world);
    topic.replication_factor = 3;
    refused(KAFKA_INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 "
            "cannot be reached because only 2 broker(s) are registered.");
    fresh_topic("t");
    topic.num_partitions = 4;
    topic.replication_factor = 1;
    accepted();
    fresh_topic("u");
    topic.num_partitions = 4;
    topic.replication_factor = 2;
    accepted();
    for (int32_t p = 0; p < 4; p++) {
        ck_assert_int_eq(topic_image_group(world_topic(&world, "t"), p)->replicas[0], 1);
        ck_assert_int_eq(topic_image_group(world_topic(&world, "u"), p)->replicas[0], 1);
        ck_assert_int_eq(topic_image_group(world_topic(&world, "u"), p)->replicas[1], 2);
    }
}
END_TEST

START_TEST(manual_assignment)
{
    world_add_brokers(&world, 3);
    assign(1, BROKERS(3, 1));
    assign(0, BROKERS(2, 3));
    struct RESULT *result = accepted();
    ck_assert_int_eq(result->num_partitions, 2);
    ck_assert_int_eq(result->replication_factor, 2);
    const struct topic_image *made = world_topic(&world, "t");
    ck_assert_int_eq(topic_image_group(made, 0)->replicas[0], 2);
    ck_assert_int_eq(topic_image_group(made, 1)->replicas[0], 3);
    ck_assert_int_eq(topic_image_group(made, 1)->replicas[1], 1);
}
END_TEST

START_TEST(beyond_the_cap_only_partitions_of_the_same_brokers_share_a_group)
{
    world_add_brokers(&world, 3);
    set("ottla.topic.partition.groups", "1");
    assign(0, BROKERS(1));
    assign(1, BROKERS(2));
    assign(2, BROKERS(1));
    assign(3, BROKERS(2));
    accepted();
    const struct topic_image *made = world_topic(&world, "t");
    ck_assert_uint_eq(made->group_count, 2);
    for (int32_t p = 0; p < 4; p++) {
        ck_assert_int_eq(topic_image_group(made, p)->replicas[0], p % 2 == 0 ? 1 : 2);
    }
}
END_TEST

START_TEST(wrong_assignments)
{
    assign(1, BROKERS(1));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT,
            "The assigned partitions must count from 0 without a gap");
    fresh_topic("t");
    assign(0, BROKERS(1));
    assign(0, BROKERS(1));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT, "Partition 0 is assigned more than once");
    fresh_topic("t");
    assign(0, BROKERS(9));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT,
            "A partition is assigned to broker 9, which is not registered");
    fresh_topic("t");
    assign(0, BROKERS(1, 1));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT,
            "A partition is assigned to broker 1 more than once");
    fresh_topic("t");
    assign(0, NULL, 0);
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT, "A partition is assigned to no broker");
    world_add_brokers(&world, 3);
    fresh_topic("t");
    assign(0, BROKERS(1));
    assign(1, BROKERS(1, 2));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT,
            "A partition is assigned to 2 broker(s), those before it to 1");
}
END_TEST

START_TEST(somebody_has_to_be_there)
{
    world_add_brokers(&world, 3);
    controller_fence_broker(&world.controller, 3, true, &world.records);
    world_commit(&world);
    assign(0, BROKERS(1, 3));
    assign(1, BROKERS(3, 2));
    accepted();
    fresh_topic("u");
    assign(0, BROKERS(1));
    assign(1, BROKERS(3));
    refused(KAFKA_INVALID_REPLICA_ASSIGNMENT,
            "A partition is assigned only to brokers that are fenced, or stop");
}
END_TEST

START_TEST(assignments_exclude_counts)
{
    assign(0, BROKERS(1));
    topic.num_partitions = 1;
    refused(KAFKA_INVALID_REQUEST,
            "The number of partitions must be -1 where replicas are assigned by hand");
    topic.replication_factor = 1;
    refused(KAFKA_INVALID_REQUEST,
            "The replication factor must be -1 where replicas are assigned by hand");
}
END_TEST

START_TEST(configurations)
{
    set("foo", "1");
    topic.num_partitions = 0;
    refused(KAFKA_INVALID_CONFIG, "Topics have no configuration foo");
    fresh_topic("t");
    set("retention.ms", "x");
    refused(KAFKA_INVALID_CONFIG, "Invalid value x for configuration retention.ms: must be a whole "
                                  "number of 64 bits, at least -1");
    fresh_topic("t");
    set("retention.ms", NULL);
    refused(KAFKA_INVALID_CONFIG, "The topic configuration retention.ms needs a value");
    fresh_topic("t");
    set("min.compaction.lag.ms", "10");
    set("max.compaction.lag.ms", "5");
    refused(KAFKA_INVALID_CONFIG,
            "min.compaction.lag.ms (10) must not be above max.compaction.lag.ms (5)");
    fresh_topic("t");
    set("segment.bytes", "2000000");
    set("cleanup.policy", " compact , delete ");
    set("segment.bytes", "3000000");
    accepted();
    const struct topic_image *made = world_topic(&world, "t");
    ck_assert_uint_eq(made->override_count, 2);
    ck_assert(view_is(made->overrides[0].value, "compact,delete"));
    ck_assert(view_is(made->overrides[1].value, "3000000"));
}
END_TEST

START_TEST(a_value_too_long_for_a_record_is_refused)
{
    char value[40000];
    memset(value, 'a', sizeof value);
    settings[topic.configs_count++] = (struct SETTING){
        view_text("leader.replication.throttled.replicas"),
        {(const uint8_t *)value, sizeof value}};
    ck_assert_int_eq(answer()->error_code, KAFKA_INVALID_CONFIG);
    for (size_t i = 0; i < sizeof value; i += 4) {
        memcpy(value + i, "0:1,", 4);
    }
    value[sizeof value - 1] = ' ';
    ck_assert_int_eq(answer()->error_code, KAFKA_INVALID_CONFIG);
    ck_assert_uint_eq(world.records.count, 0);
}
END_TEST

static struct ROW *row_of(struct RESULT *result, const char *name)
{
    for (int32_t i = 0; i < result->configs_count; i++) {
        if (view_is(result->configs[i].name, name)) {
            return &result->configs[i];
        }
    }
    ck_abort_msg("no row %s", name);
    return NULL;
}

START_TEST(the_answer_shows_the_configuration_from_version_5)
{
    tear_down();
    world_start(&world, SETTINGS("log.retention.hours=2"));
    set("segment.bytes", "3000000");
    set("segment.bytes", "2000000");
    struct RESULT *result = accepted();
    ck_assert_int_eq(result->configs_count, 38);
    ck_assert(view_is(row_of(result, "segment.bytes")->value, "2000000"));
    ck_assert_int_eq(row_of(result, "segment.bytes")->config_source, 1);
    ck_assert(view_is(row_of(result, "retention.ms")->value, "7200000"));
    ck_assert_int_eq(row_of(result, "retention.ms")->config_source, 4);
    ck_assert_int_eq(row_of(result, "cleanup.policy")->config_source, 5);
    fresh_topic("u");
    send(&topic, 1, 4, false);
    ck_assert_int_eq(response.topics[0].configs_count, 0);
}
END_TEST

START_TEST(topics_without_overrides_share_their_rows)
{
    struct CREATABLE topics[2] = {topic, topic};
    topics[1].name = view_text("u");
    send(topics, 2, 7, false);
    ck_assert_int_eq(response.topics[1].configs_count, 38);
    ck_assert_ptr_eq(response.topics[0].configs, response.topics[1].configs);
}
END_TEST

START_TEST(validate_only_leaves_no_record)
{
    topic.num_partitions = 3;
    send(&topic, 1, 7, true);
    ck_assert_int_eq(response.topics[0].error_code, KAFKA_NONE);
    ck_assert_int_eq(response.topics[0].num_partitions, 3);
    ck_assert_uint_eq(world.records.count, 0);
}
END_TEST

START_TEST(a_name_named_twice_is_answered_once_and_last)
{
    struct CREATABLE topics[4] = {topic, topic, topic, topic};
    topics[0].name = view_text("twice");
    topics[1].name = view_text("once");
    topics[2].name = view_text("twice");
    topics[3].name = view_text("twice");
    send(topics, 4, 7, false);
    ck_assert_int_eq(response.topics_count, 2);
    ck_assert(view_is(response.topics[0].name, "once"));
    ck_assert_int_eq(response.topics[0].error_code, KAFKA_NONE);
    ck_assert(view_is(response.topics[1].name, "twice"));
    ck_assert_int_eq(response.topics[1].error_code, KAFKA_INVALID_REQUEST);
    world_commit(&world);
    ck_assert_uint_eq(image_topic_count(world.image), 1);
}
END_TEST

START_TEST(names_named_twice_are_answered_in_the_order_of_their_first)
{
    struct CREATABLE topics[4] = {topic, topic, topic, topic};
    topics[0].name = topics[3].name = view_text("x");
    topics[1].name = topics[2].name = view_text("y");
    send(topics, 4, 7, false);
    ck_assert_int_eq(response.topics_count, 2);
    ck_assert(view_is(response.topics[0].name, "x"));
    ck_assert(view_is(response.topics[1].name, "y"));
}
END_TEST

START_TEST(group_ids_go_on_within_and_after_a_request)
{
    struct CREATABLE topics[2] = {topic, topic};
    topics[0].num_partitions = 2;
    topics[1].name = view_text("u");
    send(topics, 2, 7, false);
    world_commit(&world);
    ck_assert_uint_eq(topic_image_group(world_topic(&world, "u"), 0)->id, 3);
    world_create(&world, "v", 1, 1);
    ck_assert_uint_eq(topic_image_group(world_topic(&world, "v"), 0)->id, 4);
}
END_TEST

START_TEST(answers_encode_in_every_version)
{
    struct CREATABLE topics[2] = {topic, topic};
    topics[1].name = view_text("");
    for (int16_t version = 2; version <= 7; version++) {
        send(topics, 2, version, true);
        struct buffer buffer = {0};
        ck_assert_int_eq(
            message_encode_to(&create_topics_response_type, version, &response, &buffer),
            STATUS_OK);
        buffer_free(&buffer);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("create topics");
    TCase *tests = tcase_create("create topics");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, minus_one_takes_the_brokers_defaults);
    tcase_add_test(tests, beyond_the_cap_partitions_share_groups_round_robin);
    tcase_add_test(tests, preferred_leaders_are_spread_over_the_brokers);
    tcase_add_test(tests, an_existing_topic_is_told);
    tcase_add_test(tests, names);
    tcase_add_test(tests, counts);
    tcase_add_test(tests, fenced_brokers_are_the_last_replicas);
    tcase_add_test(tests, manual_assignment);
    tcase_add_test(tests, beyond_the_cap_only_partitions_of_the_same_brokers_share_a_group);
    tcase_add_test(tests, wrong_assignments);
    tcase_add_test(tests, somebody_has_to_be_there);
    tcase_add_test(tests, assignments_exclude_counts);
    tcase_add_test(tests, configurations);
    tcase_add_test(tests, a_value_too_long_for_a_record_is_refused);
    tcase_add_test(tests, the_answer_shows_the_configuration_from_version_5);
    tcase_add_test(tests, topics_without_overrides_share_their_rows);
    tcase_add_test(tests, validate_only_leaves_no_record);
    tcase_add_test(tests, a_name_named_twice_is_answered_once_and_last);
    tcase_add_test(tests, names_named_twice_are_answered_in_the_order_of_their_first);
    tcase_add_test(tests, group_ids_go_on_within_and_after_a_request);
    tcase_add_test(tests, answers_encode_in_every_version);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
