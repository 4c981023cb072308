/* Environment variables of container images name keys as those images do. */
#include "broker/config/environment.h"

#include <string.h>

#include "tests/unit/runner.h"

static void gives(const char *variable, const char *expected_key, const char *expected_value)
{
    struct arena arena;
    arena_init(&arena, 1 << 16);
    struct view key = VIEW_NULL;
    struct view value = VIEW_NULL;
    ck_assert_int_eq(environment_key(variable, &arena, &key, &value), STATUS_OK);
    ck_assert_msg(view_is(key, expected_key), "%s: %.*s", variable, VIEW_PRINT(key));
    ck_assert(view_is(value, expected_value));
    arena_free(&arena);
}

static void gives_nothing(const char *variable)
{
    struct arena arena;
    arena_init(&arena, 1 << 16);
    struct view key = VIEW_NULL;
    struct view value = VIEW_NULL;
    ck_assert_int_eq(environment_key(variable, &arena, &key, &value), STATUS_NOT_FOUND);
    arena_free(&arena);
}

START_TEST(both_prefixes)
{
    gives("KAFKA_LOG_RETENTION_MS=5", "log.retention.ms", "5");
    gives("KAFKA_CFG_LOG_RETENTION_MS=5", "log.retention.ms", "5");
    gives("KAFKA_LISTENERS=A://:1,B=c", "listeners", "A://:1,B=c");
    gives("KAFKA_NODE_ID=", "node.id", "");
}
END_TEST

START_TEST(underscores)
{
    gives("KAFKA_A__B=1", "a_b", "1");
    gives("KAFKA_A___B=1", "a-b", "1");
    gives("KAFKA_A____B=1", "a-.b", "1");
    gives("KAFKA_LISTENER_NAME_X_SCRAM___SHA___256_SASL_JAAS_CONFIG=v",
          "listener.name.x.scram-sha-256.sasl.jaas.config", "v");
}
END_TEST

START_TEST(aliases)
{
    gives("CLUSTER_ID=my-dev-cluster-01", "cluster.id", "my-dev-cluster-01");
    gives("KAFKA_CLUSTER_ID=x", "cluster.id", "x");
    gives("KAFKA_KRAFT_CLUSTER_ID=x", "cluster.id", "x");
    gives("KAFKA_LOG4J_ROOT_LOGLEVEL=WARN", "ottla.log.level", "WARN");
}
END_TEST

START_TEST(others_are_not_ours)
{
    gives_nothing("PATH=/bin");
    gives_nothing("KAFKA=1");
    gives_nothing("KAFKA_=1");
    gives_nothing("KAFKA_CFG_=1");
    gives_nothing("NOT_KAFKA_NODE_ID=1");
    gives_nothing("broken");
}
END_TEST

START_TEST(known_names_without_meaning)
{
    ck_assert_str_eq(environment_excuse(view_text("heap.opts")), "");
    ck_assert_str_eq(environment_excuse(view_text("jmx.port")), "");
    ck_assert_str_ne(environment_excuse(view_text("zookeeper.connect")), "");
    ck_assert_ptr_null(environment_excuse(view_text("zookeeper.")));
    ck_assert_ptr_null(environment_excuse(view_text("optsx")));
    ck_assert_ptr_null(environment_excuse(view_text("buffer.memory")));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("environment");
    TCase *tests = tcase_create("environment");
    tcase_add_test(tests, both_prefixes);
    tcase_add_test(tests, underscores);
    tcase_add_test(tests, aliases);
    tcase_add_test(tests, others_are_not_ours);
    tcase_add_test(tests, known_names_without_meaning);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
