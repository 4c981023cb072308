/* IncrementalAlterConfigs and AlterConfigs as a stock Kafka 4.4 answers them. */
#include "broker/controller/controller.h"

#include <string.h>

#include "broker/config/describe.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_change.h"
#include "protocol/codec.h"
#include "tests/unit/broker/controller/world.h"
#include "tests/unit/runner.h"

#define RESOURCE incremental_alter_configs_request_alter_configs_resource
#define ALTERABLE incremental_alter_configs_request_alterable_config

static struct world world;
static struct ALTERABLE settings[8];
static struct RESOURCE resources[2];
static struct incremental_alter_configs_request request;
static struct incremental_alter_configs_response response;

static void fresh_request(const char *topic)
{
    resources[0] = (struct RESOURCE){.resource_type = CONFIG_RESOURCE_TOPIC,
                                     .resource_name = view_text(topic),
                                     .configs = settings};
    request =
        (struct incremental_alter_configs_request){.resources = resources, .resources_count = 1};
}

static void set_up(void)
{
    world_start(&world, NO_SETTINGS);
    world_create(&world, "t", 1, 1);
    fresh_request("t");
}

static void tear_down(void)
{
    world_stop(&world);
}

static void want(const char *name, enum config_operation operation, const char *value)
{
    settings[resources[0].configs_count++] =
        (struct ALTERABLE){view_text(name), (int8_t)operation, view_text(value)};
}

static void send(void)
{
    ck_assert_int_eq(controller_incremental_alter_configs(&world.controller, &request,
                                                          &world.arena, &world.records, &response),
                     STATUS_OK);
    ck_assert_int_eq(response.responses_count, request.resources_count);
    world_commit(&world);
}

static void accepted(void)
{
    send();
    ck_assert_msg(response.responses[0].error_code == KAFKA_NONE, "%.*s",
                  VIEW_PRINT(response.responses[0].error_message));
    ck_assert_ptr_null(response.responses[0].error_message.data);
    fresh_request("t");
}

static void refused(enum kafka_error error, const char *text)
{
    send();
    ck_assert_msg(response.responses[0].error_code == error, "%d",
                  response.responses[0].error_code);
    ck_assert_msg(view_is(response.responses[0].error_message, text), "%.*s",
                  VIEW_PRINT(response.responses[0].error_message));
    ck_assert_uint_eq(world.changes.count, 0);
    fresh_request("t");
}

static void override_is(enum config_key key, const char *value)
{
    const struct topic_image *topic = world_topic(&world, "t");
    const struct topic_override *override =
        topic_override_find(topic->overrides, topic->override_count, key);
    ck_assert(value == NULL ? override == NULL : override != NULL);
    ck_assert_msg(value == NULL || view_is(override->value, value), "%.*s",
                  VIEW_PRINT(override->value));
}

START_TEST(set_and_delete)
{
    want("retention.ms", CONFIG_OPERATION_SET, " 5 ");
    want("cleanup.policy", CONFIG_OPERATION_SET, "compact");
    want("flush.ms", CONFIG_OPERATION_DELETE, NULL);
    accepted();
    override_is(TOPIC_CONFIG_RETENTION_MS, "5");
    override_is(TOPIC_CONFIG_CLEANUP_POLICY, "compact");
    want("retention.ms", CONFIG_OPERATION_DELETE, "x");
    want("never.heard.of", CONFIG_OPERATION_DELETE, NULL);
    accepted();
    override_is(TOPIC_CONFIG_RETENTION_MS, NULL);
    override_is(TOPIC_CONFIG_CLEANUP_POLICY, "compact");
}
END_TEST

START_TEST(lists_are_added_to_and_taken_from)
{
    want("cleanup.policy", CONFIG_OPERATION_APPEND, "compact");
    accepted();
    override_is(TOPIC_CONFIG_CLEANUP_POLICY, "delete,compact");
    want("cleanup.policy", CONFIG_OPERATION_APPEND, "compact,delete");
    accepted();
    override_is(TOPIC_CONFIG_CLEANUP_POLICY, "delete,compact");
    want("cleanup.policy", CONFIG_OPERATION_SUBTRACT, "delete,foo");
    accepted();
    override_is(TOPIC_CONFIG_CLEANUP_POLICY, "compact");
    want("retention.ms", CONFIG_OPERATION_APPEND, "5");
    refused(KAFKA_INVALID_CONFIG, "retention.ms is no list that could be added to or taken from");
    want("cleanup.policy", CONFIG_OPERATION_APPEND, "foo");
    refused(KAFKA_INVALID_CONFIG,
            "Invalid value compact,foo for configuration cleanup.policy: must be a list separated "
            "by commas, one of compact, delete");
}
END_TEST

START_TEST(what_does_not_differ_is_not_recorded)
{
    want("retention.ms", CONFIG_OPERATION_SET, "5");
    accepted();
    want("retention.ms", CONFIG_OPERATION_SET, "5");
    send();
    ck_assert_int_eq(response.responses[0].error_code, KAFKA_NONE);
    ck_assert_uint_eq(world.changes.count, 0);
}
END_TEST

START_TEST(validate_only_changes_nothing)
{
    want("retention.ms", CONFIG_OPERATION_SET, "5");
    request.validate_only = true;
    accepted();
    override_is(TOPIC_CONFIG_RETENTION_MS, NULL);
}
END_TEST

START_TEST(mistakes)
{
    want("retention.ms", CONFIG_OPERATION_SET, NULL);
    refused(KAFKA_INVALID_REQUEST, "retention.ms needs a value");
    want("retention.ms", (enum config_operation)9, "5");
    refused(KAFKA_INVALID_REQUEST, "There is no operation 9");
    want("foo", CONFIG_OPERATION_SET, "5");
    refused(KAFKA_INVALID_CONFIG, "Topics have no configuration foo");
    want("retention.ms", CONFIG_OPERATION_SET, "x");
    refused(KAFKA_INVALID_CONFIG, "Invalid value x for configuration retention.ms: must be a whole "
                                  "number of 64 bits, at least -1");
    want("retention.ms", CONFIG_OPERATION_SET, "5");
    want("retention.ms", CONFIG_OPERATION_SET, "6");
    refused(KAFKA_INVALID_REQUEST, "retention.ms is named more than once");
    want("min.compaction.lag.ms", CONFIG_OPERATION_SET, "6");
    want("max.compaction.lag.ms", CONFIG_OPERATION_SET, "5");
    refused(KAFKA_INVALID_CONFIG,
            "min.compaction.lag.ms (6) must not be above max.compaction.lag.ms (5)");
    fresh_request("nope");
    want("retention.ms", CONFIG_OPERATION_SET, "5");
    refused(KAFKA_UNKNOWN_TOPIC_OR_PARTITION, "There is no topic 'nope'");
    fresh_request("");
    refused(KAFKA_INVALID_TOPIC_EXCEPTION, "Invalid topic name: it is empty");
    fresh_request("");
    resources[0].resource_type = CONFIG_RESOURCE_GROUP;
    refused(KAFKA_INVALID_REQUEST, "Resources of type 32 cannot be changed while the broker runs");
}
END_TEST

static bool rate_is(const char *value)
{
    struct view found =
        image_config(world.image, CONFIG_RESOURCE_BROKER, VIEW_LITERAL("1"),
                     VIEW_LITERAL("follower.replication.throttled.rate"));
    return value == NULL ? found.data == NULL : view_is(found, value);
}

static void want_of_broker(const char *id, const char *name, enum config_operation operation,
                           const char *value)
{
    fresh_request(id);
    resources[0].resource_type = CONFIG_RESOURCE_BROKER;
    want(name, operation, value);
}

START_TEST(rates_of_brokers_are_set_and_taken_back)
{
    const char *rate = "follower.replication.throttled.rate";
    world_add_brokers(&world, 1);
    want_of_broker("1", rate, CONFIG_OPERATION_SET, "5000");
    accepted();
    ck_assert(rate_is("5000"));
    ck_assert(world.changes.brokers_changed);
    struct cluster_broker self = {.id = 7};
    struct cluster_image *cluster = cluster_image_new(world.image, &self);
    ck_assert_int_eq(cluster_image_find(cluster, 1)->follower_rate, 5000);
    ck_assert_int_eq(cluster_image_find(cluster, 1)->leader_rate, 0);
    ck_assert_int_eq(cluster_image_find(cluster, 7)->follower_rate, 0);
    cluster_image_unref(cluster);
    want_of_broker("1", rate, CONFIG_OPERATION_SET, "5000");
    send();
    ck_assert(!world.changes.brokers_changed);
    want_of_broker("1", rate, CONFIG_OPERATION_DELETE, NULL);
    accepted();
    ck_assert(rate_is(NULL));
    want_of_broker("1", rate, CONFIG_OPERATION_DELETE, NULL);
    accepted();
    want_of_broker("9", rate, CONFIG_OPERATION_SET, "1");
    refused(KAFKA_BROKER_ID_NOT_REGISTERED, "There is no broker '9'");
    want_of_broker("nine", rate, CONFIG_OPERATION_SET, "1");
    refused(KAFKA_INVALID_REQUEST, "There is no broker 'nine'");
    want_of_broker("1", rate, CONFIG_OPERATION_APPEND, "1");
    refused(KAFKA_INVALID_CONFIG, "follower.replication.throttled.rate can be set and deleted");
    want_of_broker("1", "log.dirs", CONFIG_OPERATION_SET, "1");
    refused(KAFKA_INVALID_REQUEST, "log.dirs cannot be changed while the broker runs");
    ck_assert(rate_is(NULL));
}
END_TEST

static void set_of_broker(const char *id, const char *name, const char *value)
{
    want_of_broker(id, name, CONFIG_OPERATION_SET, value);
    accepted();
}

static void refused_of_broker(const char *id, const char *name, const char *value,
                              enum kafka_error error, const char *text)
{
    want_of_broker(id, name, CONFIG_OPERATION_SET, value);
    refused(error, text);
}

START_TEST(defaults_of_topics_are_set_for_brokers)
{
    const struct view segment = VIEW_LITERAL("log.segment.bytes");
    world_add_brokers(&world, 1);
    set_of_broker("", "log.segment.bytes", " 3000000 ");
    struct view found = image_config(world.image, CONFIG_RESOURCE_BROKER, VIEW_EMPTY, segment);
    ck_assert(view_is(found, "3000000"));
    ck_assert_int_eq(topic_image_settings(world_topic(&world, "t"))->segment_bytes, 3000000);
    set_of_broker("1", "log.segment.bytes", "4000000");
    ck_assert_int_eq(topic_image_settings(world_topic(&world, "t"))->segment_bytes, 4000000);
    set_of_broker("", "min.insync.replicas", "2");
    ck_assert_int_eq(topic_image_settings(world_topic(&world, "t"))->min_insync_replicas, 2);
    set_of_broker("1", "num.io.threads", "9"); /* accepted as in a file, and without effect */
    want_of_broker("1", "log.segment.bytes", CONFIG_OPERATION_DELETE, NULL);
    accepted();
    want_of_broker("", "log.segment.bytes", CONFIG_OPERATION_DELETE, NULL);
    accepted();
    ck_assert_int_eq(topic_image_settings(world_topic(&world, "t"))->segment_bytes, 1073741824);
}
END_TEST

START_TEST(what_cannot_be_set_for_brokers)
{
    world_add_brokers(&world, 1);
    refused_of_broker("1", "min.insync.replicas", "1", KAFKA_INVALID_CONFIG,
                      "min.insync.replicas cannot be set for one broker, as it is to hold "
                      "whichever leads: set it for all, or for topics");
    refused_of_broker("", "cordoned.log.dirs", "*", KAFKA_INVALID_REQUEST,
                      "Cannot update these configs at default cluster level, broker id must be "
                      "specified: [cordoned.log.dirs]");
    refused_of_broker("", "max.connections", "9", KAFKA_INVALID_REQUEST,
                      "max.connections cannot be changed while the broker runs");
    refused_of_broker("1", "log.retention.hours", "9", KAFKA_INVALID_REQUEST,
                      "log.retention.hours cannot be changed while the broker runs");
    refused_of_broker("", "message.max.bytes", "-1", KAFKA_INVALID_CONFIG,
                      "Invalid value -1 for configuration message.max.bytes: must be a whole "
                      "number of 32 bits, at least 0");
    want_of_broker("", "log.cleanup.policy", CONFIG_OPERATION_APPEND, "compact");
    refused(KAFKA_INVALID_CONFIG, "log.cleanup.policy can be set and deleted");
}
END_TEST

START_TEST(resources_stand_alone)
{
    want("retention.ms", CONFIG_OPERATION_SET, "5");
    resources[1] = resources[0];
    resources[1].resource_name = view_text("nope");
    request.resources_count = 2;
    send();
    ck_assert_int_eq(response.responses[0].error_code, KAFKA_NONE);
    ck_assert_int_eq(response.responses[1].error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    override_is(TOPIC_CONFIG_RETENTION_MS, "5");
    resources[1].resource_name = view_text("t");
    settings[0].value = view_text("6");
    send();
    ck_assert_int_eq(response.responses[0].error_code, KAFKA_INVALID_REQUEST);
    ck_assert_int_eq(response.responses[1].error_code, KAFKA_INVALID_REQUEST);
    override_is(TOPIC_CONFIG_RETENTION_MS, "5");
    resources[1].resource_type = CONFIG_RESOURCE_GROUP;
    send();
    ck_assert_int_eq(response.responses[0].error_code, KAFKA_NONE);
    override_is(TOPIC_CONFIG_RETENTION_MS, "6");
}
END_TEST

START_TEST(the_older_request_replaces_everything)
{
    want("retention.ms", CONFIG_OPERATION_SET, "5");
    want("segment.bytes", CONFIG_OPERATION_SET, "3000000");
    accepted();
    struct alter_configs_request_alterable_config setting = {view_text("segment.bytes"),
                                                             view_text("2000000")};
    struct alter_configs_request_alter_configs_resource resource = {
        .resource_type = CONFIG_RESOURCE_TOPIC,
        .resource_name = view_text("t"),
        .configs = &setting,
        .configs_count = 1};
    struct alter_configs_request older = {.resources = &resource, .resources_count = 1};
    struct alter_configs_response answer;
    ck_assert_int_eq(controller_alter_configs(&world.controller, &older, &world.arena,
                                              &world.records, &answer),
                     STATUS_OK);
    ck_assert_uint_eq(world.records.count, 2);
    world_commit(&world);
    ck_assert_int_eq(answer.responses[0].error_code, KAFKA_NONE);
    override_is(TOPIC_CONFIG_RETENTION_MS, NULL);
    override_is(TOPIC_CONFIG_SEGMENT_BYTES, "2000000");
    setting.value = VIEW_NULL;
    ck_assert_int_eq(controller_alter_configs(&world.controller, &older, &world.arena,
                                              &world.records, &answer),
                     STATUS_OK);
    ck_assert_int_eq(answer.responses[0].error_code, KAFKA_INVALID_REQUEST);
    ck_assert_uint_eq(world.records.count, 0);
}
END_TEST

START_TEST(answers_encode_in_every_version)
{
    for (int16_t version = 0; version <= 1; version++) {
        want("retention.ms", CONFIG_OPERATION_SET, "5");
        send();
        struct buffer buffer = {0};
        ck_assert_int_eq(message_encode_to(&incremental_alter_configs_response_type, version,
                                           &response, &buffer),
                         STATUS_OK);
        buffer_free(&buffer);
        fresh_request("t");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("alter configs");
    TCase *tests = tcase_create("alter configs");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, set_and_delete);
    tcase_add_test(tests, lists_are_added_to_and_taken_from);
    tcase_add_test(tests, what_does_not_differ_is_not_recorded);
    tcase_add_test(tests, validate_only_changes_nothing);
    tcase_add_test(tests, mistakes);
    tcase_add_test(tests, rates_of_brokers_are_set_and_taken_back);
    tcase_add_test(tests, defaults_of_topics_are_set_for_brokers);
    tcase_add_test(tests, what_cannot_be_set_for_brokers);
    tcase_add_test(tests, resources_stand_alone);
    tcase_add_test(tests, the_older_request_replaces_everything);
    tcase_add_test(tests, answers_encode_in_every_version);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
