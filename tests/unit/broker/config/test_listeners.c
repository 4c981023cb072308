/* Listeners as compose files of the usual images set them. */
#include "broker/config/listeners.h"

#include <string.h>

#include "tests/unit/runner.h"

static struct arena arena;
static struct config *config;
static struct listeners listeners;
static struct view why;

static void set_up(void)
{
    arena_init(&arena, 1 << 20);
    config = NULL;
}

static void tear_down(void)
{
    arena_free(&arena);
    config_free(config);
}

/* Resolves with these settings, "key=value", up to a null. */
static enum status resolve(const char *const *settings)
{
    char text[CONFIG_WHY_BYTES];
    int count = 0;
    while (settings[count] != NULL) {
        count++;
    }
    struct config_sources sources = {.overrides = settings, .override_count = count};
    config_free(config);
    ck_assert_msg(config_load(&sources, &config, text) == STATUS_OK, "%s", text);
    return listeners_resolve(config, "box", &arena, &listeners, &why);
}

static void resolved(const char *const *settings)
{
    enum status status = resolve(settings);
    ck_assert_msg(status == STATUS_OK, "%.*s", VIEW_PRINT(why));
}

static void refused(const char *const *settings, enum status expected, const char *text)
{
    ck_assert_int_eq(resolve(settings), expected);
    ck_assert_msg(view_is(why, text), "%.*s", VIEW_PRINT(why));
}

static void listener_is(int index, const char *name, const char *host, int port,
                        const char *advertised_host, int advertised_port)
{
    struct listener *listener = &listeners.items[index];
    ck_assert_int_lt(index, listeners.count);
    ck_assert(view_is(listener->name, name));
    ck_assert(view_is(listener->host, host));
    ck_assert_int_eq(listener->port, port);
    ck_assert_msg(advertised_host == NULL ? listener->advertised_host.data == NULL
                                          : view_is(listener->advertised_host, advertised_host),
                  "advertised %.*s", VIEW_PRINT(listener->advertised_host));
    ck_assert_int_eq(listener->advertised_port, advertised_port);
}

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(nothing_configured_is_reachable_as_localhost)
{
    resolved((const char *const[]){NULL});
    ck_assert_int_eq(listeners.count, 1);
    listener_is(0, "PLAINTEXT", "", 9092, "localhost", 9092);
    ck_assert_ptr_eq(listeners_inter_broker(&listeners), &listeners.items[0]);
    ck_assert(!listeners.items[0].is_controller);
}
END_TEST

START_TEST(combined_node_of_a_compose_file)
{
    resolved(SETTINGS("listeners=PLAINTEXT://kafka:29092,CONTROLLER://kafka:29093,"
                      "PLAINTEXT_HOST://0.0.0.0:9092",
                      "advertised.listeners=PLAINTEXT://kafka:29092,"
                      "PLAINTEXT_HOST://localhost:39092",
                      "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
                      "PLAINTEXT_HOST:PLAINTEXT",
                      "inter.broker.listener.name=PLAINTEXT",
                      "controller.listener.names=CONTROLLER"));
    ck_assert_int_eq(listeners.count, 3);
    listener_is(0, "PLAINTEXT", "kafka", 29092, "kafka", 29092);
    listener_is(1, "CONTROLLER", "kafka", 29093, NULL, 0);
    listener_is(2, "PLAINTEXT_HOST", "", 9092, "localhost", 39092);
    ck_assert(listeners.items[1].is_controller);
    ck_assert(!listeners.items[0].is_controller);
    ck_assert_ptr_eq(listeners_inter_broker(&listeners), &listeners.items[0]);
}
END_TEST

START_TEST(advertised_alone_is_bound_everywhere)
{
    resolved(SETTINGS("advertised.listeners=INSIDE://kafka:29092, outside://localhost:9092",
                      "listener.security.protocol.map=INSIDE:PLAINTEXT, OUTSIDE:PLAINTEXT",
                      "inter.broker.listener.name=INSIDE"));
    ck_assert_int_eq(listeners.count, 2);
    listener_is(0, "INSIDE", "", 29092, "kafka", 29092);
    listener_is(1, "OUTSIDE", "", 9092, "localhost", 9092);
}
END_TEST

START_TEST(empty_host_means_this_host_name)
{
    resolved(SETTINGS("listeners=PLAINTEXT://:9092,CONTROLLER://:9093"));
    listener_is(0, "PLAINTEXT", "", 9092, "box", 9092);
    resolved(SETTINGS("listeners=PLAINTEXT://0.0.0.0:9092"));
    listener_is(0, "PLAINTEXT", "", 9092, "box", 9092);
    resolved(SETTINGS("listeners=PLAINTEXT://:9092", "advertised.listeners=PLAINTEXT://:19092"));
    listener_is(0, "PLAINTEXT", "", 9092, "box", 19092);
}
END_TEST

START_TEST(old_host_name_settings)
{
    resolved(SETTINGS("advertised.host.name=192.168.1.5", "advertised.port=9094"));
    listener_is(0, "PLAINTEXT", "", 9094, "192.168.1.5", 9094);
    resolved(SETTINGS("advertised.host.name=pc"));
    listener_is(0, "PLAINTEXT", "", 9092, "pc", 9092);
}
END_TEST

START_TEST(ipv6_addresses)
{
    resolved(SETTINGS("listeners=PLAINTEXT://[::1]:9092"));
    listener_is(0, "PLAINTEXT", "::1", 9092, "::1", 9092);
}
END_TEST

START_TEST(unreachable_or_broken_addresses_stop_the_start)
{
    refused(SETTINGS("listeners=PLAINTEXT://:9092",
                     "advertised.listeners=PLAINTEXT://0.0.0.0:9092"),
            STATUS_INVALID,
            "advertised.listeners: PLAINTEXT://0.0.0.0:9092 is no address that a client can reach, "
            "name this machine's host or address");
    refused(SETTINGS("listeners=PLAINTEXT:9092"), STATUS_INVALID,
            "listeners: PLAINTEXT:9092 must look like NAME://host:port");
    refused(SETTINGS("listeners=PLAINTEXT://::1:9092"), STATUS_INVALID,
            "listeners: PLAINTEXT://::1:9092 must look like NAME://host:port");
    refused(SETTINGS("listeners=PLAINTEXT://:70000"), STATUS_INVALID,
            "listeners: PLAINTEXT://:70000 must look like NAME://host:port");
    refused(SETTINGS("listeners=PLAINTEXT://:1,PLAINTEXT://:2"), STATUS_INVALID,
            "listeners: the name PLAINTEXT stands there twice");
    refused(SETTINGS("listeners=PLAINTEXT://:9092", "advertised.listeners=OTHER://x:9092"),
            STATUS_INVALID, "advertised.listeners: OTHER is not one of listeners");
    refused(SETTINGS("listeners=OTHER://:9092"), STATUS_INVALID,
            "listener.security.protocol.map: has no entry for the listener OTHER");
    refused(SETTINGS("listeners=CONTROLLER://:9093"), STATUS_INVALID,
            "listeners: there is none that clients could use");
    refused(SETTINGS("listeners=PLAINTEXT://:9092", "inter.broker.listener.name=X"), STATUS_INVALID,
            "inter.broker.listener.name: X is not one of the advertised listeners");
}
END_TEST

START_TEST(security_is_refused_clearly)
{
    refused(SETTINGS("listeners=SASL_SSL://:9092"), STATUS_UNSUPPORTED,
            "listener SASL_SSL: SASL_SSL is not offered by this version, use PLAINTEXT");
    refused(SETTINGS("listeners=A://:9092", "listener.security.protocol.map=A:SSLX"),
            STATUS_INVALID,
            "listener.security.protocol.map: A:SSLX must end in PLAINTEXT, SSL, SASL_PLAINTEXT or "
            "SASL_SSL");
}
END_TEST

START_TEST(a_controller_alone_needs_no_listener_for_clients)
{
    resolved(SETTINGS("process.roles=controller", "listeners=CONTROLLER://:9093"));
    ck_assert(listeners.items[0].is_controller);
    ck_assert_ptr_null(listeners_inter_broker(&listeners));
}
END_TEST

START_TEST(too_many_listeners_are_refused)
{
    refused(SETTINGS("listeners=A://:1,B://:1,C://:1,D://:1,E://:1,F://:1,G://:1,H://:1,I://:1,"
                     "J://:1,K://:1,L://:1,M://:1,N://:1,O://:1,P://:1,Q://:1"),
            STATUS_LIMIT, "listeners: at most 16 listeners are possible");
}
END_TEST

START_TEST(quorum_voters)
{
    struct quorum_voter *voters = NULL;
    int count = -1;
    resolved(SETTINGS("controller.quorum.voters=1@kafka-1:9093, 2@kafka-2:9093"));
    ck_assert_int_eq(quorum_voters_parse(config, &arena, &voters, &count, &why), STATUS_OK);
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(voters[1].node_id, 2);
    ck_assert(view_is(voters[1].host, "kafka-2"));
    ck_assert_int_eq(voters[1].port, 9093);
    resolved((const char *const[]){NULL});
    ck_assert_int_eq(quorum_voters_parse(config, &arena, &voters, &count, &why), STATUS_OK);
    ck_assert_int_eq(count, 0);
    resolved(SETTINGS("controller.quorum.voters=kafka-1:9093"));
    ck_assert_int_eq(quorum_voters_parse(config, &arena, &voters, &count, &why), STATUS_INVALID);
    ck_assert(view_is(why, "controller.quorum.voters: kafka-1:9093 must look like id@host:port"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("listeners");
    TCase *tests = tcase_create("listeners");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, nothing_configured_is_reachable_as_localhost);
    tcase_add_test(tests, combined_node_of_a_compose_file);
    tcase_add_test(tests, advertised_alone_is_bound_everywhere);
    tcase_add_test(tests, empty_host_means_this_host_name);
    tcase_add_test(tests, old_host_name_settings);
    tcase_add_test(tests, ipv6_addresses);
    tcase_add_test(tests, unreachable_or_broken_addresses_stop_the_start);
    tcase_add_test(tests, security_is_refused_clearly);
    tcase_add_test(tests, a_controller_alone_needs_no_listener_for_clients);
    tcase_add_test(tests, too_many_listeners_are_refused);
    tcase_add_test(tests, quorum_voters);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
