/* Values are taken as Kafka's ConfigDef takes them, else refused with the reason. */
#include "broker/config/value.h"

#include <string.h>

#include "tests/unit/runner.h"

static struct arena arena;
static struct view why;

static void set_up(void)
{
    arena_init(&arena, 1 << 16);
    why = VIEW_NULL;
}

static void tear_down(void)
{
    arena_free(&arena);
}

static struct config_value good(enum config_key key, const char *text)
{
    struct config_value value = {0};
    enum status status = config_value_parse(key, view_text(text), &arena, &value, &why);
    ck_assert_msg(status == STATUS_OK, "%s: %.*s", text, VIEW_PRINT(why));
    return value;
}

static void bad(enum config_key key, const char *text, const char *expected)
{
    struct config_value value = {0};
    ck_assert_msg(config_value_parse(key, view_text(text), &arena, &value, &why) == STATUS_INVALID,
                  "'%s' was taken", text);
    ck_assert_msg(view_is(why, expected), "%.*s", VIEW_PRINT(why));
}

START_TEST(numbers_and_their_limits)
{
    ck_assert_int_eq(good(CONFIG_NUM_PARTITIONS, " 12 ").number, 12);
    ck_assert_int_eq(good(TOPIC_CONFIG_RETENTION_MS, "-1").number, -1);
    ck_assert_int_eq(good(TOPIC_CONFIG_RETENTION_MS, "9223372036854775807").number, INT64_MAX);
    ck_assert_int_eq(good(TOPIC_CONFIG_RETENTION_BYTES, "-9223372036854775808").number, INT64_MIN);
    bad(CONFIG_NUM_PARTITIONS, "0",
        "Invalid value 0 for configuration num.partitions: must be a whole number of 32 bits, at "
        "least 1");
    bad(CONFIG_NUM_PARTITIONS, "2147483648",
        "Invalid value 2147483648 for configuration num.partitions: must be a whole number of 32 "
        "bits, at least 1");
    bad(TOPIC_CONFIG_RETENTION_MS, "9223372036854775808",
        "Invalid value 9223372036854775808 for configuration retention.ms: must be a whole number "
        "of 64 bits, at least -1");
    bad(TOPIC_CONFIG_RETENTION_MS, "1 day",
        "Invalid value 1 day for configuration retention.ms: must be a whole number of 64 bits, at "
        "least -1");
    bad(TOPIC_CONFIG_RETENTION_MS, "",
        "Invalid value  for configuration retention.ms: must be a whole number of 64 bits, at "
        "least -1");
    bad(CONFIG_OFFSETS_TOPIC_REPLICATION_FACTOR, "32768",
        "Invalid value 32768 for configuration offsets.topic.replication.factor: must be a whole "
        "number of 16 bits, at least 1");
}
END_TEST

/* Keys without a range of their own are still bound by their type. */
START_TEST(numbers_that_their_type_cannot_hold)
{
    bad(CONFIG_OFFSET_METADATA_MAX_BYTES, "2147483648",
        "Invalid value 2147483648 for configuration offset.metadata.max.bytes: must be a whole "
        "number of 32 bits");
    bad(CONFIG_SASL_LOGIN_REFRESH_BUFFER_SECONDS, "-32769",
        "Invalid value -32769 for configuration sasl.login.refresh.buffer.seconds: must be a whole "
        "number of 16 bits");
    bad(CONFIG_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND, "1e999",
        "Invalid value 1e999 for configuration log.cleaner.io.max.bytes.per.second: must be a "
        "number");
}
END_TEST

START_TEST(one_value_outside_a_range)
{
    ck_assert_int_eq(good(TOPIC_CONFIG_COMPRESSION_GZIP_LEVEL, "-1").number, -1);
    ck_assert_int_eq(good(TOPIC_CONFIG_COMPRESSION_GZIP_LEVEL, "9").number, 9);
    bad(TOPIC_CONFIG_COMPRESSION_GZIP_LEVEL, "0",
        "Invalid value 0 for configuration compression.gzip.level: must be a whole number of 32 "
        "bits, 1 to 9, or -1");
}
END_TEST

START_TEST(booleans_in_any_case)
{
    ck_assert(good(CONFIG_AUTO_CREATE_TOPICS_ENABLE, "True").truth);
    ck_assert(!good(CONFIG_AUTO_CREATE_TOPICS_ENABLE, "FALSE").truth);
    ck_assert(view_is(good(CONFIG_AUTO_CREATE_TOPICS_ENABLE, " TRUE").text, "true"));
    bad(CONFIG_AUTO_CREATE_TOPICS_ENABLE, "yes",
        "Invalid value yes for configuration auto.create.topics.enable: must be true or false");
}
END_TEST

START_TEST(reals)
{
    ck_assert_double_eq(good(TOPIC_CONFIG_MIN_CLEANABLE_DIRTY_RATIO, "0.25").real, 0.25);
    good(CONFIG_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND, "1.7976931348623157E308");
    bad(TOPIC_CONFIG_MIN_CLEANABLE_DIRTY_RATIO, "1.1",
        "Invalid value 1.1 for configuration min.cleanable.dirty.ratio: must be a number, 0 to 1");
    bad(TOPIC_CONFIG_MIN_CLEANABLE_DIRTY_RATIO, "nan",
        "Invalid value nan for configuration min.cleanable.dirty.ratio: must be a number, 0 to 1");
}
END_TEST

START_TEST(lists_lose_blanks_around_commas)
{
    struct config_value value = good(CONFIG_SASL_ENABLED_MECHANISMS, " PLAIN , SCRAM-SHA-256");
    ck_assert_uint_eq(value.item_count, 2);
    ck_assert(view_is(value.items[0], "PLAIN"));
    ck_assert(view_is(value.items[1], "SCRAM-SHA-256"));
    ck_assert(view_is(value.text, "PLAIN,SCRAM-SHA-256"));
    ck_assert_uint_eq(good(CONFIG_SASL_ENABLED_MECHANISMS, "  ").item_count, 0);
}
END_TEST

START_TEST(choices)
{
    ck_assert_uint_eq(good(TOPIC_CONFIG_CLEANUP_POLICY, "compact, delete").item_count, 2);
    good(TOPIC_CONFIG_COMPRESSION_TYPE, "zstd");
    good(CONFIG_OTTLA_LOG_LEVEL, "WARN");
    bad(TOPIC_CONFIG_CLEANUP_POLICY, "compress",
        "Invalid value compress for configuration cleanup.policy: must be a list separated "
        "by commas, one of compact, delete");
    ck_assert(view_is(good(TOPIC_CONFIG_CLEANUP_POLICY, "delete,compact,delete").text,
                      "delete,compact"));
    ck_assert(view_is(good(TOPIC_CONFIG_CLEANUP_POLICY, "").text, ""));
    bad(TOPIC_CONFIG_CLEANUP_POLICY, "delete,,compact",
        "Invalid value delete,,compact for configuration cleanup.policy: must be a list separated "
        "by commas, one of compact, delete");
    bad(TOPIC_CONFIG_COMPRESSION_TYPE, "GZIP",
        "Invalid value GZIP for configuration compression.type: must be a text, one of "
        "uncompressed, zstd, lz4, snappy, gzip, producer");
}
END_TEST

START_TEST(throttled_replicas)
{
    good(TOPIC_CONFIG_LEADER_REPLICATION_THROTTLED_REPLICAS, "*");
    good(TOPIC_CONFIG_LEADER_REPLICATION_THROTTLED_REPLICAS, "0:1, 1:2");
    good(TOPIC_CONFIG_LEADER_REPLICATION_THROTTLED_REPLICAS, "");
    bad(TOPIC_CONFIG_LEADER_REPLICATION_THROTTLED_REPLICAS, "0",
        "Invalid value 0 for configuration leader.replication.throttled.replicas: must be a list "
        "separated by commas, * or partition:broker,partition:broker...");
}
END_TEST

START_TEST(a_wrong_password_is_not_shown_and_null_is_null)
{
    struct config_value value = {0};
    ck_assert_int_eq(
        config_value_parse(CONFIG_LOG_RETENTION_MS, VIEW_NULL, &arena, &value, &why), STATUS_OK);
    ck_assert_ptr_null(value.text.data);
    good(CONFIG_SSL_KEY_PASSWORD, "secret");
}
END_TEST

START_TEST(every_default_passes_its_own_check)
{
    for (int i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (config_keys[i].default_text != NULL) {
            good((enum config_key)i, config_keys[i].default_text);
        }
        ck_assert_str_ne(config_keys[i].name, "");
    }
}
END_TEST

START_TEST(names_find_their_key_in_their_scope_only)
{
    enum config_key key = CONFIG_KEY_COUNT;
    ck_assert(config_key_find(CONFIG_SCOPE_TOPIC, view_text("retention.ms"), &key));
    ck_assert_int_eq(key, TOPIC_CONFIG_RETENTION_MS);
    ck_assert(config_key_find(CONFIG_SCOPE_BROKER, view_text("compression.type"), &key));
    ck_assert_int_eq(key, CONFIG_COMPRESSION_TYPE);
    ck_assert(!config_key_find(CONFIG_SCOPE_BROKER, view_text("retention.ms"), &key));
    ck_assert(!config_key_find(CONFIG_SCOPE_TOPIC, view_text("retention"), &key));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config value");
    TCase *tests = tcase_create("value");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, numbers_and_their_limits);
    tcase_add_test(tests, numbers_that_their_type_cannot_hold);
    tcase_add_test(tests, one_value_outside_a_range);
    tcase_add_test(tests, booleans_in_any_case);
    tcase_add_test(tests, reals);
    tcase_add_test(tests, lists_lose_blanks_around_commas);
    tcase_add_test(tests, choices);
    tcase_add_test(tests, throttled_replicas);
    tcase_add_test(tests, a_wrong_password_is_not_shown_and_null_is_null);
    tcase_add_test(tests, every_default_passes_its_own_check);
    tcase_add_test(tests, names_find_their_key_in_their_scope_only);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
