/* A node lives from the first thing that comes from it until it is silent for too long or its last
 * connection broke; every shard is told once, and once when it is there. */
#include "broker/peer/liveness.h"

#include <stdlib.h>

#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "tests/unit/runner.h"

enum { SHARDS = 2 };

static struct broker *open_world(void)
{
    struct broker *broker = calloc(1, sizeof *broker);
    broker->node_id = 1;
    liveness_init(&broker->liveness);
    broker->shard_count = SHARDS;
    broker->shards = calloc(SHARDS, sizeof *broker->shards);
    for (int i = 0; i < SHARDS; i++) {
        broker->shards[i].number = i;
        broker->shards[i].broker = broker;
    }
    return broker;
}

/* How many shards were told since the last time. */
static int told(struct broker *broker)
{
    int count = 0;
    for (int i = 0; i < SHARDS; i++) {
        struct mail *mail = mailbox_drain(&broker->shards[i].mailbox);
        while (mail != NULL) {
            struct mail *next = mail->next;
            mail->run(&broker->shards[i], mail);
            count++;
            mail = next;
        }
    }
    return count;
}

static void close_world(struct broker *broker)
{
    ck_assert_int_eq(told(broker), 0);
    free(broker->shards);
    free(broker);
}

START_TEST(each_node_has_one_place)
{
    struct broker *broker = open_world();
    ck_assert_ptr_null(liveness_find(&broker->liveness, 0));
    struct liveness_node *zero = liveness_add(&broker->liveness, 0);
    struct liveness_node *seven = liveness_add(&broker->liveness, 7);
    ck_assert_ptr_eq(liveness_add(&broker->liveness, 0), zero);
    ck_assert_ptr_eq(liveness_find(&broker->liveness, 7), seven);
    ck_assert_ptr_ne(zero, seven);
    ck_assert_int_eq(liveness_id(zero), 0);
    ck_assert_int_eq(liveness_id(seven), 7);
    for (int i = 2; i < LIVENESS_NODES; i++) {
        ck_assert_ptr_nonnull(liveness_add(&broker->liveness, 1000 + i));
    }
    ck_assert_ptr_null(liveness_add(&broker->liveness, 5000));
    ck_assert_ptr_null(liveness_find(&broker->liveness, 5000));
    close_world(broker);
}
END_TEST

START_TEST(silence_is_told_once)
{
    struct broker *broker = open_world();
    struct liveness_node *node = liveness_add(&broker->liveness, 2);
    ck_assert(!liveness_is_alive(node, 1000));
    liveness_check(broker, 100000);
    ck_assert_int_eq(told(broker), 0); /* it was never there */
    liveness_heard(node, 1000);
    ck_assert(liveness_is_alive(node, 1000 + LIVENESS_SILENT_MS));
    ck_assert(liveness_is_alive(node, 900)); /* seen by a thread that is behind */
    liveness_check(broker, 1000 + LIVENESS_SILENT_MS);
    ck_assert_int_eq(told(broker), SHARDS); /* that it is there */
    liveness_check(broker, 1000 + LIVENESS_SILENT_MS);
    ck_assert_int_eq(told(broker), 0);
    ck_assert(!liveness_is_alive(node, 1001 + LIVENESS_SILENT_MS));
    liveness_check(broker, 1001 + LIVENESS_SILENT_MS);
    ck_assert_int_eq(told(broker), SHARDS);
    liveness_check(broker, 9000);
    ck_assert_int_eq(told(broker), 0);
    liveness_heard(node, 9000);
    ck_assert(liveness_is_alive(node, 9000));
    liveness_check(broker, 20000);
    ck_assert_int_eq(told(broker), SHARDS);
    close_world(broker);
}
END_TEST

START_TEST(gone_is_who_is_lost_for_long)
{
    struct broker *broker = open_world();
    struct liveness_node *node = liveness_add(&broker->liveness, 2);
    int32_t gone[LIVENESS_NODES];
    ck_assert_int_eq(liveness_gone(&broker->liveness, LIVENESS_GONE_MS + 1, gone), 1);
    liveness_heard(node, 1000);
    ck_assert_int_eq(liveness_gone(&broker->liveness, 100000, gone), 0); /* not seen to be lost */
    liveness_check(broker, 100000);
    ck_assert_int_eq(liveness_gone(&broker->liveness, 1000 + LIVENESS_GONE_MS, gone), 0);
    ck_assert_int_eq(liveness_gone(&broker->liveness, 1001 + LIVENESS_GONE_MS, gone), 1);
    ck_assert_int_eq(gone[0], 2);
    ck_assert_int_eq(told(broker), SHARDS);
    liveness_heard(node, 200000);
    ck_assert_int_eq(liveness_gone(&broker->liveness, 200000, gone), 0);
    liveness_check(broker, 200000);
    ck_assert_int_eq(told(broker), SHARDS); /* those who rested without it wake */
    close_world(broker);
}
END_TEST

START_TEST(the_last_connection_decides)
{
    struct broker *broker = open_world();
    struct liveness_node *node = liveness_add(&broker->liveness, 2);
    struct uuid first = {.bytes = {1}};
    struct uuid second = {.bytes = {2}};
    ck_assert(liveness_join(broker, node, first, 10));
    ck_assert(liveness_join(broker, node, first, 10));
    liveness_left(broker, node);
    ck_assert_int_eq(told(broker), 0);
    ck_assert(liveness_is_alive(node, 11));
    liveness_left(broker, node);
    ck_assert_int_eq(told(broker), SHARDS);
    ck_assert(!liveness_is_alive(node, 11));
    ck_assert(liveness_join(broker, node, second, 12));
    ck_assert(liveness_is_alive(node, 12));
    atomic_store(&broker->stopping, true);
    liveness_left(broker, node);
    ck_assert_int_eq(told(broker), 0); /* nobody is left who would care */
    close_world(broker);
}
END_TEST

START_TEST(two_processes_cannot_be_one_node)
{
    struct broker *broker = open_world();
    struct liveness_node *node = liveness_add(&broker->liveness, 2);
    struct uuid first = {.bytes = {1}};
    struct uuid second = {.bytes = {2}};
    ck_assert(liveness_join(broker, node, first, 10));
    ck_assert(!liveness_join(broker, node, second, 10));
    ck_assert(liveness_join(broker, node, first, 20));
    ck_assert_int_eq(told(broker), 0);
    /* The first was cut off, though its connections are not closed yet. */
    ck_assert(liveness_join(broker, node, second, 21 + LIVENESS_SILENT_MS));
    ck_assert(!liveness_join(broker, node, first, 21 + LIVENESS_SILENT_MS));
    ck_assert_int_eq(told(broker), SHARDS); /* that the first is lost */
    close_world(broker);
}
END_TEST

START_TEST(a_process_is_known_since_it_was_met)
{
    struct broker *broker = open_world();
    struct liveness_node *node = liveness_add(&broker->liveness, 2);
    struct uuid first = {.bytes = {1}};
    struct uuid second = {.bytes = {2}};
    ck_assert_uint_eq(liveness_known_ms(node, 5), 0);
    ck_assert(liveness_join(broker, node, first, 10));
    ck_assert(liveness_join(broker, node, first, 60));
    ck_assert_uint_eq(liveness_known_ms(node, 110), 100);
    ck_assert_uint_eq(liveness_known_ms(node, 61 + LIVENESS_SILENT_MS), 0);
    ck_assert(liveness_join(broker, node, second, 2000));
    ck_assert_uint_eq(liveness_known_ms(node, 2010), 10);
    ck_assert_int_eq(told(broker), SHARDS); /* that the first is lost */
    close_world(broker);
}
END_TEST

START_TEST(this_node_lives)
{
    struct broker *broker = open_world();
    ck_assert(peers_is_alive(broker, 1));
    ck_assert(!peers_is_alive(broker, 2));
    ck_assert(!peers_is_alive(broker, -1));
    ck_assert(!peers_any(broker));
    close_world(broker);
}
END_TEST

/* However quickly it comes: what the process before held is gone. */
START_TEST(another_process_of_a_node_means_that_it_was_lost)
{
    struct broker *broker = open_world();
    struct liveness_node *node = liveness_add(&broker->liveness, 2);
    const struct uuid first = {{1}};
    const struct uuid second = {{2}};
    liveness_heard(node, 10);
    liveness_told(broker, 2, first, true);
    liveness_told(broker, 2, first, true);
    ck_assert_int_eq(told(broker), 0);
    liveness_told(broker, 2, second, true);
    ck_assert_int_eq(told(broker), SHARDS);
    ck_assert(liveness_join(broker, node, second, 11));
    ck_assert(liveness_is_alive(node, 11));
    close_world(broker);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("liveness");
    TCase *tests = tcase_create("liveness");
    tcase_add_test(tests, each_node_has_one_place);
    tcase_add_test(tests, another_process_of_a_node_means_that_it_was_lost);
    tcase_add_test(tests, silence_is_told_once);
    tcase_add_test(tests, gone_is_who_is_lost_for_long);
    tcase_add_test(tests, the_last_connection_decides);
    tcase_add_test(tests, two_processes_cannot_be_one_node);
    tcase_add_test(tests, a_process_is_known_since_it_was_met);
    tcase_add_test(tests, this_node_lives);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
