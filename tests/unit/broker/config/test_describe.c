/* DescribeConfigs answers as a stock Kafka 4.4 does: kafka_4_4_configs.tsv holds the rows that one
 * gave, "*" where its own set-up differed from the defaults. */
#include "broker/config/describe.h"

#include <stdio.h>
#include <string.h>

#include "broker/config/value.h"
#include "messages/errors.h"
#include "protocol/codec.h"
#include "tests/unit/runner.h"

#define RESOURCE describe_configs_request_describe_configs_resource
#define RESULT describe_configs_response_describe_configs_result
#define ROW describe_configs_response_describe_configs_resource_result

static struct arena arena;
static struct config *config;
static struct topic_override overrides[4];
static uint32_t override_count;
static struct describe_configs_response response;
static struct describe_configs_request request;
static struct RESOURCE resource;
static const char *own_rate, *common_rate; /* set while brokers run, for 1 and for all; or null */
static const char *own_age, *common_age;   /* likewise, log.retention.ms */

static void use_config(const char *setting)
{
    char why[CONFIG_WHY_BYTES];
    struct config_sources sources = {.overrides = &setting, .override_count = setting != NULL};
    config_free(config);
    ck_assert_msg(config_load(&sources, &config, why) == STATUS_OK, "%s", why);
}

static void set_up(void)
{
    arena_init(&arena, 4 << 20);
    config = NULL;
    override_count = 0;
    own_rate = common_rate = own_age = common_age = NULL;
    request = (struct describe_configs_request){.resources = &resource,
                                                .resources_count = 1,
                                                .include_synonyms = true};
    resource = (struct RESOURCE){.configuration_keys_count = -1};
    use_config(NULL);
}

static void tear_down(void)
{
    arena_free(&arena);
    config_free(config);
}

static bool find_topic(void *context, struct view name, const struct topic_override **out,
                       uint32_t *count)
{
    ck_assert_ptr_eq(context, &override_count);
    *out = overrides;
    *count = override_count;
    return view_is(name, "t");
}

static struct view find_setting(void *context, struct view broker, enum config_key key)
{
    ck_assert_ptr_eq(context, &override_count);
    bool is_age = key == CONFIG_LOG_RETENTION_MS;
    bool is_either = is_age || key == CONFIG_LEADER_REPLICATION_THROTTLED_RATE;
    const char *own = is_age ? own_age : own_rate;
    const char *common = is_age ? common_age : common_rate;
    const char *value = broker.length == 0 ? common : view_is(broker, "1") ? own : NULL;
    return is_either && value != NULL ? view_text(value) : VIEW_NULL;
}

static struct RESULT *describe(enum config_resource type, const char *name)
{
    struct describe_sources sources = {find_topic, find_setting, &override_count};
    resource.resource_type = (int8_t)type;
    resource.resource_name = view_text(name);
    ck_assert_int_eq(describe_configs(config, &sources, &request, &arena, &response), STATUS_OK);
    ck_assert_int_eq(response.results_count, 1);
    ck_assert_int_eq(response.results[0].resource_type, type);
    ck_assert(view_is(response.results[0].resource_name, name));
    return &response.results[0];
}

static struct ROW *row_of(struct RESULT *result, const char *name)
{
    for (int32_t i = 0; i < result->configs_count; i++) {
        if (view_is(result->configs[i].name, name)) {
            return &result->configs[i];
        }
    }
    return NULL;
}

static void override(const char *name, const char *value)
{
    struct view why = VIEW_NULL;
    ck_assert_int_eq(topic_override_check(view_text(name), view_text(value), &arena,
                                          &overrides[override_count++], &why),
                     STATUS_OK);
}

/* Keys whose default is Ottla's own. */
static bool is_own_default(const char *name)
{
    return strcmp(name, "log.dir") == 0 || strcmp(name, "metric.reporters") == 0;
}

static void row_is_kafkas(struct RESULT *result, char **fields)
{
    struct ROW *row = row_of(result, fields[1]);
    ck_assert_msg(row != NULL, "%s is missing", fields[1]);
    ck_assert_msg(row->config_type == atoi(fields[2]), "type of %s", fields[1]);
    ck_assert_msg(row->read_only == atoi(fields[3]), "read_only of %s", fields[1]);
    ck_assert_msg(row->is_sensitive == atoi(fields[4]), "sensitive of %s", fields[1]);
    if (strcmp(fields[6], "*") == 0 || is_own_default(fields[1])) {
        return;
    }
    ck_assert_msg(row->config_source == atoi(fields[5]), "source of %s", fields[1]);
    bool is_null = strcmp(fields[6], "(null)") == 0;
    ck_assert_msg(is_null ? row->value.data == NULL : view_is(row->value, fields[6]),
                  "value of %s: %.*s", fields[1], VIEW_PRINT(row->value));
    bool has_synonym = strcmp(fields[7], "-") != 0;
    ck_assert_msg(row->synonyms_count == has_synonym, "synonyms of %s", fields[1]);
    ck_assert_msg(!has_synonym || view_is(row->synonyms[0].name, fields[7]), "synonym of %s",
                  fields[1]);
}

static void resource_is_kafkas(enum config_resource type, const char *label, const char *name,
                               int own_keys)
{
    struct RESULT *result = describe(type, name);
    ck_assert_int_eq(result->error_code, KAFKA_NONE);
    ck_assert(view_is(result->error_message, ""));
    char path[4096];
    snprintf(path, sizeof path, "%s/kafka_4_4_configs.tsv", getenv("OTTLA_TEST_DATA"));
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    int rows = 0;
    char line[4096];
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *fields[8] = {NULL};
        char *rest = line;
        for (int i = 0; i < 8 && rest != NULL; i++) {
            fields[i] = strsep(&rest, "\t");
        }
        if (strcmp(fields[0], label) == 0) {
            row_is_kafkas(result, fields);
            rows++;
        }
    }
    fclose(file);
    ck_assert_int_eq(result->configs_count, rows + own_keys);
}

START_TEST(every_topic_key_is_as_in_kafka)
{
    resource_is_kafkas(CONFIG_RESOURCE_TOPIC, "topic", "t", 1);
}
END_TEST

/* Kafka lists neither internal keys nor replication throttles that are not set; Ottla's own come on
 * top. */
START_TEST(every_broker_key_is_as_in_kafka)
{
    int own = 0;
    for (int i = 0; i < BROKER_CONFIG_COUNT; i++) {
        own += config_keys[i].documentation != NULL &&
               (strncmp(config_keys[i].name, "ottla.", 6) == 0 ||
                strncmp(config_keys[i].name, "journal.", 8) == 0 ||
                strcmp(config_keys[i].name, "cluster.id") == 0 ||
                strcmp(config_keys[i].name, "flush.policy") == 0 ||
                strcmp(config_keys[i].name, "checkpoint.interval.ms") == 0);
    }
    ck_assert_int_gt(own, 0);
    resource_is_kafkas(CONFIG_RESOURCE_BROKER, "broker", "1", own);
}
END_TEST

START_TEST(groups_and_client_metrics_are_as_in_kafka)
{
    resource_is_kafkas(CONFIG_RESOURCE_GROUP, "group", "g", 0);
    resource_is_kafkas(CONFIG_RESOURCE_CLIENT_METRICS, "client-metrics", "s", 0);
}
END_TEST

static void row_is(const struct ROW *row, const char *value, enum config_source source,
                   int32_t synonyms)
{
    ck_assert_msg(view_is(row->value, value), "%.*s", VIEW_PRINT(row->value));
    ck_assert_int_eq(row->config_source, source);
    ck_assert_int_eq(row->synonyms_count, synonyms);
}

static void synonym_is(const struct ROW *row, int32_t at, const char *name, const char *value,
                       enum config_source source)
{
    ck_assert_int_lt(at, row->synonyms_count);
    ck_assert_msg(view_is(row->synonyms[at].name, name), "%.*s",
                  VIEW_PRINT(row->synonyms[at].name));
    ck_assert_msg(view_is(row->synonyms[at].value, value), "%.*s",
                  VIEW_PRINT(row->synonyms[at].value));
    ck_assert_int_eq(row->synonyms[at].source, source);
}

START_TEST(an_override_comes_first_in_the_synonyms)
{
    use_config("log.segment.bytes=4194304");
    override("segment.bytes", "2097152");
    struct ROW *row = row_of(describe(CONFIG_RESOURCE_TOPIC, "t"), "segment.bytes");
    row_is(row, "2097152", CONFIG_SOURCE_TOPIC, 3);
    synonym_is(row, 0, "segment.bytes", "2097152", CONFIG_SOURCE_TOPIC);
    synonym_is(row, 1, "log.segment.bytes", "4194304", CONFIG_SOURCE_STATIC_BROKER);
    synonym_is(row, 2, "log.segment.bytes", "1073741824", CONFIG_SOURCE_DEFAULT);
}
END_TEST

START_TEST(what_is_set_while_brokers_run_is_listed)
{
    static const char key[] = "leader.replication.throttled.rate";
    int32_t unset = describe(CONFIG_RESOURCE_BROKER, "1")->configs_count;
    own_rate = "1000";
    struct RESULT *result = describe(CONFIG_RESOURCE_BROKER, "1");
    ck_assert_int_eq(result->configs_count, unset + 1);
    struct ROW *row = row_of(result, key);
    row_is(row, "1000", CONFIG_SOURCE_DYNAMIC_BROKER, 1);
    ck_assert_int_eq(row->config_type, CONFIG_TYPE_LONG);
    ck_assert(!row->read_only && !row->is_sensitive);
    ck_assert_int_eq(describe(CONFIG_RESOURCE_BROKER, "")->configs_count, 0);
    common_rate = "2000";
    row = row_of(describe(CONFIG_RESOURCE_BROKER, "1"), key);
    row_is(row, "1000", CONFIG_SOURCE_DYNAMIC_BROKER, 2);
    synonym_is(row, 1, key, "2000", CONFIG_SOURCE_DYNAMIC_DEFAULT);
    own_rate = NULL;
    row_is(row_of(describe(CONFIG_RESOURCE_BROKER, "1"), key), "2000",
           CONFIG_SOURCE_DYNAMIC_DEFAULT, 1);
    result = describe(CONFIG_RESOURCE_BROKER, "");
    ck_assert_int_eq(result->configs_count, 1);
    ck_assert(view_is(result->configs[0].name, key));
    row_is(&result->configs[0], "2000", CONFIG_SOURCE_DYNAMIC_DEFAULT, 1);
}
END_TEST

/* As Kafka 4.4 shows them, log.retention.hours=168 being in its file. */
START_TEST(topics_show_what_is_set_for_brokers)
{
    use_config("log.retention.hours=168");
    struct ROW *row = row_of(describe(CONFIG_RESOURCE_TOPIC, "t"), "retention.ms");
    ck_assert(view_is(row->value, "604800000"));
    ck_assert_int_eq(row->synonyms_count, 0);
    common_age = "3600000";
    row = row_of(describe(CONFIG_RESOURCE_TOPIC, "t"), "retention.ms");
    row_is(row, "3600000", CONFIG_SOURCE_DYNAMIC_DEFAULT, 3);
    synonym_is(row, 0, "log.retention.ms", "3600000", CONFIG_SOURCE_DYNAMIC_DEFAULT);
    synonym_is(row, 1, "log.retention.hours", "168", CONFIG_SOURCE_STATIC_BROKER);
    synonym_is(row, 2, "log.retention.hours", "168", CONFIG_SOURCE_DEFAULT);
    own_age = "-5";
    row = row_of(describe(CONFIG_RESOURCE_BROKER, "1"), "log.retention.ms");
    row_is(row, "-5", CONFIG_SOURCE_DYNAMIC_BROKER, 4);
    synonym_is(row, 0, "log.retention.ms", "-5", CONFIG_SOURCE_DYNAMIC_BROKER);
    synonym_is(row, 1, "log.retention.ms", "3600000", CONFIG_SOURCE_DYNAMIC_DEFAULT);
    synonym_is(row, 2, "log.retention.hours", "168", CONFIG_SOURCE_STATIC_BROKER);
    override("retention.ms", "9000");
    row = row_of(describe(CONFIG_RESOURCE_TOPIC, "t"), "retention.ms");
    row_is(row, "9000", CONFIG_SOURCE_TOPIC, 5);
    synonym_is(row, 1, "log.retention.ms", "-5", CONFIG_SOURCE_DYNAMIC_BROKER);
    row_is(row_of(describe(CONFIG_RESOURCE_BROKER, ""), "log.retention.ms"), "3600000",
           CONFIG_SOURCE_DYNAMIC_DEFAULT, 1);
}
END_TEST

START_TEST(synonyms_only_when_asked)
{
    override("segment.bytes", "2097152");
    request.include_synonyms = false;
    struct ROW *row = row_of(describe(CONFIG_RESOURCE_TOPIC, "t"), "segment.bytes");
    ck_assert_int_eq(row->synonyms_count, 0);
    ck_assert_int_eq(row->config_source, CONFIG_SOURCE_TOPIC);
}
END_TEST

START_TEST(documentation_only_when_asked)
{
    struct ROW *row = row_of(describe(CONFIG_RESOURCE_BROKER, "1"), "flush.policy");
    ck_assert_ptr_null(row->documentation.data);
    request.include_documentation = true;
    row = row_of(describe(CONFIG_RESOURCE_BROKER, "1"), "flush.policy");
    ck_assert_uint_gt(row->documentation.length, 20);
}
END_TEST

START_TEST(keys_are_filtered_and_an_empty_filter_means_all)
{
    struct view keys[] = {view_text("retention.ms"), view_text("nope"), view_text("segment.bytes")};
    resource.configuration_keys = keys;
    resource.configuration_keys_count = 3;
    ck_assert_int_eq(describe(CONFIG_RESOURCE_TOPIC, "t")->configs_count, 2);
    resource.configuration_keys_count = 0;
    ck_assert_int_eq(describe(CONFIG_RESOURCE_TOPIC, "t")->configs_count, 38);
}
END_TEST

static void refused(enum config_resource type, const char *name, enum kafka_error error,
                    const char *text)
{
    struct RESULT *result = describe(type, name);
    ck_assert_int_eq(result->error_code, error);
    ck_assert_msg(view_is(result->error_message, text), "%.*s", VIEW_PRINT(result->error_message));
    ck_assert_int_eq(result->configs_count, 0);
}

START_TEST(clients_mistakes_are_error_codes)
{
    refused(CONFIG_RESOURCE_TOPIC, "nope", KAFKA_UNKNOWN_TOPIC_OR_PARTITION, "");
    refused(CONFIG_RESOURCE_TOPIC, "", KAFKA_INVALID_TOPIC_EXCEPTION,
            "Invalid topic name: it is empty");
    refused(CONFIG_RESOURCE_BROKER, "7", KAFKA_INVALID_REQUEST,
            "This is broker 1: a broker resource is named 1 or empty here, not 7");
    refused(CONFIG_RESOURCE_BROKER, "x", KAFKA_INVALID_REQUEST,
            "A broker resource is named by its number, not by 'x'");
    refused(CONFIG_RESOURCE_BROKER, "", KAFKA_NONE, "");
    refused(CONFIG_RESOURCE_BROKER_LOGGER, "1", KAFKA_NONE, "");
    refused((enum config_resource)5, "x", KAFKA_INVALID_REQUEST,
            "There are no resources of type 5");
}
END_TEST

START_TEST(secrets_are_never_shown)
{
    use_config("ssl.key.password=hunter2");
    struct ROW *row = row_of(describe(CONFIG_RESOURCE_BROKER, "1"), "ssl.key.password");
    ck_assert_ptr_null(row->value.data);
    ck_assert(row->is_sensitive);
    ck_assert_int_eq(row->synonyms_count, 1);
    ck_assert_ptr_null(row->synonyms[0].value.data);
}
END_TEST

START_TEST(the_answer_encodes_in_every_version)
{
    describe(CONFIG_RESOURCE_BROKER, "1");
    for (int16_t version = 1; version <= 4; version++) {
        struct buffer buffer = {0};
        ck_assert_int_eq(
            message_encode_to(&describe_configs_response_type, version, &response, &buffer),
            STATUS_OK);
        ck_assert_uint_gt(buffer.length, 1000);
        buffer_free(&buffer);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("describe");
    TCase *tests = tcase_create("describe");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_topic_key_is_as_in_kafka);
    tcase_add_test(tests, every_broker_key_is_as_in_kafka);
    tcase_add_test(tests, groups_and_client_metrics_are_as_in_kafka);
    tcase_add_test(tests, an_override_comes_first_in_the_synonyms);
    tcase_add_test(tests, what_is_set_while_brokers_run_is_listed);
    tcase_add_test(tests, topics_show_what_is_set_for_brokers);
    tcase_add_test(tests, synonyms_only_when_asked);
    tcase_add_test(tests, documentation_only_when_asked);
    tcase_add_test(tests, keys_are_filtered_and_an_empty_filter_means_all);
    tcase_add_test(tests, clients_mistakes_are_error_codes);
    tcase_add_test(tests, secrets_are_never_shown);
    tcase_add_test(tests, the_answer_encodes_in_every_version);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
