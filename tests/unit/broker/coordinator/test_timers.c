/* The timer heap: order, ties, moving and stopping, and the bound that keeps a timer that restarts
 * itself from looping. */
#include "broker/coordinator/timers.h"

#include <stdlib.h>

#include "tests/unit/runner.h"

enum { COUNT = 500 };

START_TEST(timers_fire_by_deadline_then_by_start)
{
    struct coordinator_timers timers = {0};
    struct coordinator_timer t[3] = {0};
    coordinator_timer_start(&timers, &t[0], TIMER_SYNC, 20);
    coordinator_timer_start(&timers, &t[1], TIMER_REBALANCE, 10);
    coordinator_timer_start(&timers, &t[2], TIMER_SYNC, 10);
    ck_assert_int_eq(coordinator_timers_next_ms(&timers), 10);
    ck_assert_ptr_null(coordinator_timers_pop(&timers, 9, timers.sequence));
    ck_assert_ptr_eq(coordinator_timers_pop(&timers, 20, timers.sequence), &t[1]);
    ck_assert_ptr_eq(coordinator_timers_pop(&timers, 20, timers.sequence), &t[2]);
    ck_assert_ptr_eq(coordinator_timers_pop(&timers, 20, timers.sequence), &t[0]);
    ck_assert_int_eq(t[1].kind, TIMER_REBALANCE);
    ck_assert_int_eq(coordinator_timers_next_ms(&timers), INT64_MAX);
    coordinator_timers_free(&timers);
}
END_TEST

START_TEST(a_timer_started_again_moves)
{
    struct coordinator_timers timers = {0};
    struct coordinator_timer a = {0};
    struct coordinator_timer b = {0};
    coordinator_timer_start(&timers, &a, TIMER_SYNC, 10);
    coordinator_timer_start(&timers, &b, TIMER_SYNC, 15);
    coordinator_timer_start(&timers, &a, TIMER_SYNC, 30);
    ck_assert_uint_eq(timers.count, 2);
    ck_assert_ptr_eq(coordinator_timers_pop(&timers, 100, timers.sequence), &b);
    coordinator_timer_stop(&timers, &a);
    coordinator_timer_stop(&timers, &a);
    ck_assert(!coordinator_timer_runs(&a));
    coordinator_timers_free(&timers);
}
END_TEST

START_TEST(a_timer_started_while_firing_waits_for_the_next_tick)
{
    struct coordinator_timers timers = {0};
    struct coordinator_timer a = {0};
    coordinator_timer_start(&timers, &a, TIMER_SYNC, 10);
    uint64_t sequence = timers.sequence;
    ck_assert_ptr_eq(coordinator_timers_pop(&timers, 10, sequence), &a);
    coordinator_timer_start(&timers, &a, TIMER_SYNC, 10);
    ck_assert_ptr_null(coordinator_timers_pop(&timers, 10, sequence));
    coordinator_timer_stop(&timers, &a);
    coordinator_timers_free(&timers);
}
END_TEST

START_TEST(moved_timers_fire_as_much_later_in_the_same_order)
{
    struct coordinator_timers timers = {0};
    struct coordinator_timer a = {0};
    struct coordinator_timer b = {0};
    coordinator_timer_start(&timers, &a, TIMER_SYNC, 20);
    coordinator_timer_start(&timers, &b, TIMER_SYNC, 10);
    coordinator_timers_move(&timers, 1000);
    ck_assert_int_eq(coordinator_timers_next_ms(&timers), 1010);
    ck_assert_ptr_null(coordinator_timers_pop(&timers, 1009, timers.sequence));
    ck_assert_ptr_eq(coordinator_timers_pop(&timers, 1020, timers.sequence), &b);
    ck_assert_ptr_eq(coordinator_timers_pop(&timers, 1020, timers.sequence), &a);
    coordinator_timers_move(&timers, -5);
    coordinator_timers_free(&timers);
}
END_TEST

START_TEST(many_random_timers_stay_ordered)
{
    struct coordinator_timers timers = {0};
    struct coordinator_timer *t = calloc(COUNT, sizeof(*t));
    uint32_t state = (uint32_t)_i + 1;
    for (int i = 0; i < COUNT * 4; i++) {
        state = state * 1664525 + 1013904223;
        struct coordinator_timer *timer = &t[(state >> 8) % COUNT];
        if ((state >> 28) < 4) {
            coordinator_timer_stop(&timers, timer);
        } else {
            coordinator_timer_start(&timers, timer, TIMER_SYNC, (int64_t)((state >> 4) % 1000));
        }
    }
    int64_t last_ms = -1;
    for (size_t left = timers.count; left > 0; left--) {
        struct coordinator_timer *timer =
            coordinator_timers_pop(&timers, 1000, timers.sequence);
        ck_assert_ptr_nonnull(timer);
        ck_assert_int_ge(timer->deadline_ms, last_ms);
        last_ms = timer->deadline_ms;
    }
    coordinator_timers_free(&timers);
    free(t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator timers");
    TCase *all = tcase_create("all");
    tcase_add_test(all, timers_fire_by_deadline_then_by_start);
    tcase_add_test(all, a_timer_started_again_moves);
    tcase_add_test(all, a_timer_started_while_firing_waits_for_the_next_tick);
    tcase_add_test(all, moved_timers_fire_as_much_later_in_the_same_order);
    tcase_add_loop_test(all, many_random_timers_stay_ordered, 0, 20);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
