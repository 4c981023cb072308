/* The configuration as a whole: which source wins, what is tolerated, what stops the start. */
#include "broker/config/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/config/cordon.h"
#include "tests/unit/runner.h"

static char why[CONFIG_WHY_BYTES];
static char path[] = "/tmp/ottla-test-config-XXXXXX";

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void set_up(void)
{
    close(mkstemp(path));
}

static void tear_down(void)
{
    unlink(path);
}

static enum status load(struct config **config, const char *file, char *const *environment,
                        const char *override)
{
    struct config_sources sources = {.file_path = file,
                                     .environment = environment,
                                     .overrides = &override,
                                     .override_count = override != NULL};
    return config_load(&sources, config, why);
}

static struct config *loaded(const char *file, char *const *environment, const char *override)
{
    struct config *config = NULL;
    enum status status = load(&config, file, environment, override);
    ck_assert_msg(status == STATUS_OK, "%s", why);
    return config;
}

static void refused(const char *override, const char *expected)
{
    struct config *config = NULL;
    ck_assert_int_eq(load(&config, NULL, NULL, override), STATUS_INVALID);
    ck_assert_ptr_null(config);
    ck_assert_str_eq(why, expected);
}

START_TEST(nothing_configured_is_one_node)
{
    struct config *config = loaded(NULL, NULL, NULL);
    ck_assert_int_eq(config_int(config, CONFIG_NODE_ID), 1);
    ck_assert_int_eq(config_int(config, CONFIG_BROKER_ID), 1);
    ck_assert(config_has_role(config, "broker"));
    ck_assert(config_has_role(config, "controller"));
    uint32_t count = 0;
    const struct view *directories = config_data_directories(config, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert(view_is(directories[0], "./data"));
    ck_assert(config_bool(config, CONFIG_AUTO_CREATE_TOPICS_ENABLE));
    ck_assert_str_eq(config_string(config, CONFIG_LISTENERS), "PLAINTEXT://:9092");
    ck_assert_str_eq(config_string(config, CONFIG_FLUSH_POLICY), "durable");
    ck_assert_ptr_null(config_string(config, CONFIG_CLUSTER_ID));
    ck_assert(!config_has(config, CONFIG_LOG_RETENTION_MS));
    ck_assert_int_eq(config_int(config, CONFIG_OTTLA_TOPIC_PARTITION_GROUPS), 64);
    ck_assert_int_eq(config_long(config, CONFIG_CHECKPOINT_INTERVAL_MS), 60000);
    config_free(config);
}
END_TEST

START_TEST(override_beats_environment_beats_file)
{
    write_file("num.partitions=2\nlog.roll.hours=3\nlog.dirs=/a, /b\nbackground.threads=4\n");
    char number[] = "KAFKA_NUM_PARTITIONS=5";
    char hours[] = "KAFKA_CFG_LOG_ROLL_HOURS=6";
    char *environment[] = {number, hours, NULL};
    struct config *config = loaded(path, environment, "num.partitions=7");
    ck_assert_int_eq(config_int(config, CONFIG_NUM_PARTITIONS), 7);
    ck_assert_int_eq(config_origin(config, CONFIG_NUM_PARTITIONS), CONFIG_ORIGIN_OVERRIDE);
    ck_assert_int_eq(config_int(config, CONFIG_LOG_ROLL_HOURS), 6);
    ck_assert_int_eq(config_origin(config, CONFIG_LOG_ROLL_HOURS), CONFIG_ORIGIN_ENVIRONMENT);
    ck_assert_int_eq(config_int(config, CONFIG_BACKGROUND_THREADS), 4);
    ck_assert_int_eq(config_origin(config, CONFIG_BACKGROUND_THREADS), CONFIG_ORIGIN_FILE);
    ck_assert_int_eq(config_origin(config, CONFIG_NUM_IO_THREADS), CONFIG_ORIGIN_DEFAULT);
    uint32_t count = 0;
    const struct view *directories = config_data_directories(config, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert(view_is(directories[1], "/b"));
    config_free(config);
}
END_TEST

START_TEST(what_is_set_while_it_runs_makes_another_one)
{
    struct config *base = loaded(NULL, NULL, "num.partitions=7");
    struct config_setting settings[] = {
        {CONFIG_LOG_RETENTION_MS, CONFIG_ORIGIN_ONE_BROKER, VIEW_LITERAL(" 5 ")},
        {CONFIG_LOG_RETENTION_MS, CONFIG_ORIGIN_ALL_BROKERS, VIEW_LITERAL("6")},
        {CONFIG_MESSAGE_MAX_BYTES, CONFIG_ORIGIN_ALL_BROKERS, VIEW_LITERAL("7")},
        {CONFIG_MESSAGE_MAX_BYTES, CONFIG_ORIGIN_ONE_BROKER, VIEW_LITERAL("of a later version")},
    };
    struct config *with = config_with(base, settings, 4);
    ck_assert_int_eq(config_long(with, CONFIG_LOG_RETENTION_MS), 5);
    ck_assert_str_eq(config_string(with, CONFIG_LOG_RETENTION_MS), "5");
    ck_assert_int_eq(config_origin(with, CONFIG_LOG_RETENTION_MS), CONFIG_ORIGIN_ONE_BROKER);
    ck_assert_int_eq(config_int(with, CONFIG_MESSAGE_MAX_BYTES), 7);
    ck_assert_int_eq(config_origin(with, CONFIG_MESSAGE_MAX_BYTES), CONFIG_ORIGIN_ALL_BROKERS);
    ck_assert_int_eq(config_int(with, CONFIG_NUM_PARTITIONS), 7);
    ck_assert(!config_has(base, CONFIG_LOG_RETENTION_MS));
    config_free(with);
    config_free(base);
}
END_TEST

START_TEST(a_wrong_value_that_is_replaced_does_no_harm)
{
    write_file("num.partitions=many\n");
    config_free(loaded(path, NULL, "num.partitions=3"));
    struct config *config = NULL;
    ck_assert_int_eq(load(&config, path, NULL, NULL), STATUS_INVALID);
}
END_TEST

START_TEST(a_wrong_value_stops_the_start)
{
    refused("num.partitions=0", "Invalid value 0 for configuration num.partitions: must be a whole "
                                "number of 32 bits, at least 1");
    refused("flush.policy=sometimes",
            "Invalid value sometimes for configuration flush.policy: must be a text, one of "
            "durable, interval");
    refused("num.partitions", "--override num.partitions: must be key=value");
    refused("log.dir=", "log.dirs and log.dir name no directory");
}
END_TEST

START_TEST(broken_files_are_told)
{
    struct config *config = NULL;
    ck_assert_int_eq(load(&config, "/nonexistent/x", NULL, NULL), STATUS_IO);
    ck_assert_str_eq(why, "cannot read /nonexistent/x: No such file or directory");
    write_file("a=1\n\nb=\\u1\n");
    ck_assert_int_eq(load(&config, path, NULL, NULL), STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(why, ":3: \\u needs four hexadecimal digits"));
}
END_TEST

START_TEST(broker_id_is_the_old_name_of_node_id)
{
    struct config *config = loaded(NULL, NULL, "broker.id=1001");
    ck_assert_int_eq(config_int(config, CONFIG_NODE_ID), 1001);
    config_free(config);
    config = loaded(NULL, NULL, "node.id=7");
    ck_assert_int_eq(config_int(config, CONFIG_BROKER_ID), 7);
    config_free(config);
    write_file("node.id=1\n");
    ck_assert_int_eq(load(&config, path, NULL, "broker.id=2"), STATUS_INVALID);
    ck_assert_str_eq(why, "node.id 1 and broker.id 2 must be the same");
}
END_TEST

START_TEST(unknown_names_are_tolerated_and_kept)
{
    char known[] = "KAFKA_LISTENER_NAME_X_SASL_JAAS_CONFIG=abc";
    char other[] = "KAFKA_BUFFER_MEMORY=1";
    char cluster[] = "CLUSTER_ID=d7a9c1d0-4b3e-4c55";
    char empty[] = "KAFKA_NUM_PARTITIONS=";
    char *environment[] = {known, other, cluster, empty, NULL};
    struct config *config = loaded(NULL, environment, NULL);
    ck_assert(view_is(config_extra(config, "listener.name.x.sasl.jaas.config"), "abc"));
    ck_assert(view_is(config_extra(config, "buffer.memory"), "1"));
    ck_assert_ptr_null(config_extra(config, "other").data);
    ck_assert_str_eq(config_string(config, CONFIG_CLUSTER_ID), "d7a9c1d0-4b3e-4c55");
    ck_assert_int_eq(config_int(config, CONFIG_NUM_PARTITIONS), 1);
    config_log_notes(config);
    config_free(config);
}
END_TEST

START_TEST(texts_end_with_a_zero)
{
    struct config *config = loaded(NULL, NULL, "broker.rack=  r1  ");
    ck_assert_str_eq(config_string(config, CONFIG_BROKER_RACK), "r1");
    config_free(config);
}
END_TEST

START_TEST(a_cordoned_directory_is_the_one_that_is_used)
{
    char directories[] = "KAFKA_LOG_DIRS=/a,/b";
    char *environment[] = {directories, NULL};
    struct config *config = loaded(NULL, environment, NULL);
    ck_assert(!cordon_is_configured(config));
    config_free(config);
    config = loaded(NULL, environment, "cordoned.log.dirs=*");
    ck_assert(cordon_is_configured(config));
    config_free(config);
    config = loaded(NULL, environment, "cordoned.log.dirs= /a ");
    ck_assert(cordon_is_configured(config));
    config_free(config);
    config = NULL;
    ck_assert_int_eq(load(&config, NULL, environment, "cordoned.log.dirs=/b"), STATUS_INVALID);
    ck_assert_str_eq(why, "cordoned.log.dirs: of log.dirs the first one, /a, is used; /b cannot be "
                          "cordoned");
    refused("cordoned.log.dirs=/nowhere", "All entries in cordoned.log.dirs must be present in "
                                          "log.dirs or log.dir. Missing entries : /nowhere");
    refused("cordoned.log.dirs=*,./data", "When cordoned.log.dirs is set to *, it must not contain "
                                          "other values");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tests = tcase_create("config");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, nothing_configured_is_one_node);
    tcase_add_test(tests, override_beats_environment_beats_file);
    tcase_add_test(tests, what_is_set_while_it_runs_makes_another_one);
    tcase_add_test(tests, a_wrong_value_that_is_replaced_does_no_harm);
    tcase_add_test(tests, a_wrong_value_stops_the_start);
    tcase_add_test(tests, broken_files_are_told);
    tcase_add_test(tests, broker_id_is_the_old_name_of_node_id);
    tcase_add_test(tests, unknown_names_are_tolerated_and_kept);
    tcase_add_test(tests, texts_end_with_a_zero);
    tcase_add_test(tests, a_cordoned_directory_is_the_one_that_is_used);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
