/* A topic's settings: overrides first, then the broker's keys, then the defaults. */
#include "broker/config/topic_config.h"

#include <string.h>

#include "tests/unit/runner.h"

static struct arena arena;
static struct config *config;
static struct topic_override overrides[8];
static uint32_t override_count;

static void use_config(const char *first, const char *second)
{
    char why[CONFIG_WHY_BYTES];
    const char *settings[] = {first, second};
    struct config_sources sources = {.overrides = settings,
                                     .override_count = (first != NULL) + (second != NULL)};
    config_free(config);
    ck_assert_msg(config_load(&sources, &config, why) == STATUS_OK, "%s", why);
}

static void set_up(void)
{
    arena_init(&arena, 1 << 20);
    config = NULL;
    override_count = 0;
    use_config(NULL, NULL);
}

static void tear_down(void)
{
    arena_free(&arena);
    config_free(config);
}

static void set(const char *name, const char *value)
{
    struct view why = VIEW_NULL;
    enum status status = topic_override_check(view_text(name), view_text(value), &arena,
                                              &overrides[override_count++], &why);
    ck_assert_msg(status == STATUS_OK, "%.*s", VIEW_PRINT(why));
}

static struct topic_settings resolved(void)
{
    struct topic_settings settings;
    topic_settings_resolve(config, overrides, override_count, &settings);
    return settings;
}

static void effective(enum config_key key, const char *expected, enum config_source expected_source)
{
    struct view value = VIEW_NULL;
    enum config_source source = CONFIG_SOURCE_DEFAULT;
    ck_assert_int_eq(topic_config_effective(config, overrides, override_count, key, &arena, &value,
                                            &source),
                     STATUS_OK);
    ck_assert_msg(view_is(value, expected), "%.*s", VIEW_PRINT(value));
    ck_assert_int_eq(source, expected_source);
}

START_TEST(defaults)
{
    struct topic_settings settings = resolved();
    ck_assert_int_eq(settings.retention_ms, 604800000);
    ck_assert_int_eq(settings.retention_bytes, -1);
    ck_assert_int_eq(settings.segment_ms, 604800000);
    ck_assert_int_eq(settings.segment_jitter_ms, 0);
    ck_assert_int_eq(settings.segment_bytes, 1073741824);
    ck_assert_int_eq(settings.segment_index_bytes, 10485760);
    ck_assert_int_eq(settings.index_interval_bytes, 4096);
    ck_assert_int_eq(settings.max_message_bytes, 1048588);
    ck_assert_int_eq(settings.max_decompressed_bytes, 2147483639);
    ck_assert_int_eq(settings.min_insync_replicas, 1);
    ck_assert_int_eq(settings.partition_groups, 64);
    ck_assert_int_eq(settings.delete_retention_ms, 86400000);
    ck_assert_int_eq(settings.min_compaction_lag_ms, 0);
    ck_assert_int_eq(settings.max_compaction_lag_ms, INT64_MAX);
    ck_assert_int_eq(settings.timestamp_before_max_ms, INT64_MAX);
    ck_assert_int_eq(settings.timestamp_after_max_ms, 3600000);
    ck_assert_int_eq(settings.flush_messages, INT64_MAX);
    ck_assert_int_eq(settings.flush_ms, INT64_MAX);
    ck_assert_int_eq(settings.file_delete_delay_ms, 60000);
    ck_assert_double_eq(settings.min_cleanable_ratio, 0.5);
    ck_assert_int_eq(settings.gzip_level, -1);
    ck_assert_int_eq(settings.lz4_level, 9);
    ck_assert_int_eq(settings.zstd_level, 3);
    ck_assert_int_eq(settings.compression, TOPIC_COMPRESSION_PRODUCER);
    ck_assert(!settings.uses_append_time && !settings.compacts && !settings.preallocates);
    ck_assert(settings.deletes);
}
END_TEST

START_TEST(overrides_win)
{
    use_config("log.retention.ms=5", "log.cleanup.policy=delete");
    set("retention.ms", "7");
    set("cleanup.policy", "compact");
    set("compression.type", "zstd");
    set("message.timestamp.type", "LogAppendTime");
    set("max.message.bytes", "100");
    set("preallocate", "TRUE");
    set("min.cleanable.dirty.ratio", "0.25");
    struct topic_settings settings = resolved();
    ck_assert_int_eq(settings.retention_ms, 7);
    ck_assert(settings.compacts && !settings.deletes);
    ck_assert_int_eq(settings.compression, TOPIC_COMPRESSION_ZSTD);
    ck_assert(settings.uses_append_time && settings.preallocates);
    ck_assert_int_eq(settings.max_message_bytes, 100);
    ck_assert_double_eq(settings.min_cleanable_ratio, 0.25);
    effective(TOPIC_CONFIG_RETENTION_MS, "7", CONFIG_SOURCE_TOPIC);
    effective(TOPIC_CONFIG_PREALLOCATE, "true", CONFIG_SOURCE_TOPIC);
}
END_TEST

START_TEST(both_policies_and_none)
{
    set("cleanup.policy", " compact , delete ");
    ck_assert(resolved().compacts && resolved().deletes);
    override_count = 0;
    set("cleanup.policy", "");
    ck_assert(!resolved().compacts && !resolved().deletes);
}
END_TEST

START_TEST(milliseconds_beat_minutes_beat_hours)
{
    effective(TOPIC_CONFIG_RETENTION_MS, "604800000", CONFIG_SOURCE_DEFAULT);
    use_config("log.retention.hours=2", NULL);
    effective(TOPIC_CONFIG_RETENTION_MS, "7200000", CONFIG_SOURCE_STATIC_BROKER);
    ck_assert_int_eq(resolved().retention_ms, 7200000);
    use_config("log.retention.hours=2", "log.retention.minutes=3");
    ck_assert_int_eq(resolved().retention_ms, 180000);
    use_config("log.retention.ms=4", "log.retention.minutes=3");
    ck_assert_int_eq(resolved().retention_ms, 4);
    use_config("log.retention.hours=-1", NULL);
    ck_assert_int_eq(resolved().retention_ms, -1);
    use_config("log.roll.hours=1", "log.roll.jitter.hours=2");
    ck_assert_int_eq(resolved().segment_ms, 3600000);
    ck_assert_int_eq(resolved().segment_jitter_ms, 7200000);
}
END_TEST

START_TEST(small_segments_for_tests)
{
    set("internal.segment.bytes", "5");
    ck_assert_int_eq(resolved().segment_bytes, 5);
}
END_TEST

static void refused(const char *name, const char *value, enum status expected, const char *text)
{
    struct view why = VIEW_NULL;
    struct topic_override override;
    ck_assert_int_eq(
        topic_override_check(view_text(name), view_text(value), &arena, &override, &why), expected);
    ck_assert_msg(view_is(why, text), "%.*s", VIEW_PRINT(why));
}

START_TEST(wrong_overrides_are_told)
{
    refused("foo", "1", STATUS_NOT_FOUND, "Topics have no configuration foo");
    refused("log.retention.ms", "1", STATUS_NOT_FOUND,
            "Topics have no configuration log.retention.ms");
    refused("retention.ms", NULL, STATUS_INVALID,
            "The topic configuration retention.ms needs a value");
    refused("retention.ms", "x", STATUS_INVALID,
            "Invalid value x for configuration retention.ms: must be a whole number of 64 bits, at "
            "least -1");
}
END_TEST

START_TEST(overrides_that_contradict_each_other)
{
    struct view why = VIEW_NULL;
    set("min.compaction.lag.ms", "10");
    ck_assert_int_eq(topic_overrides_check(config, overrides, override_count, &arena, &why),
                     STATUS_OK);
    set("max.compaction.lag.ms", "5");
    ck_assert_int_eq(topic_overrides_check(config, overrides, override_count, &arena, &why),
                     STATUS_INVALID);
    ck_assert(view_is(why, "min.compaction.lag.ms (10) must not be above "
                           "max.compaction.lag.ms (5)"));
    override_count = 0;
    set("remote.storage.enable", "true");
    ck_assert_int_eq(topic_overrides_check(config, overrides, override_count, &arena, &why),
                     STATUS_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("topic config");
    TCase *tests = tcase_create("topic config");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, defaults);
    tcase_add_test(tests, overrides_win);
    tcase_add_test(tests, both_policies_and_none);
    tcase_add_test(tests, milliseconds_beat_minutes_beat_hours);
    tcase_add_test(tests, small_segments_for_tests);
    tcase_add_test(tests, wrong_overrides_are_told);
    tcase_add_test(tests, overrides_that_contradict_each_other);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
