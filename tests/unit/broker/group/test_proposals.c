/* Who waits for an entry is told when it is committed, or durable where that is enough; nobody
 * waits beyond the deadline. */
#include "broker/group/proposals.h"

#include "tests/unit/broker/group/bench.h"

struct waiter {
    struct proposal proposal;
    int told;
    enum status status;
};

static void told(struct proposal *proposal, enum status status)
{
    struct waiter *waiter = container_of(proposal, struct waiter, proposal);
    waiter->told++;
    waiter->status = status;
}

static void wait_for(struct bench *bench, struct waiter *waiter, bool durable,
                     uint64_t deadline_ms)
{
    *waiter = (struct waiter){.proposal = {.done = told, .when_durable = durable,
                                           .deadline_ms = deadline_ms}};
    proposals_add(&bench->group, &waiter->proposal, bench_propose(bench, 10));
}

START_TEST(durable_comes_before_committed)
{
    struct bench *bench = bench_new(3);
    struct waiter all;
    struct waiter own;
    bench_elect(bench);
    wait_for(bench, &all, false, 0);
    wait_for(bench, &own, true, 0);
    proposals_complete(&bench->group);
    ck_assert_int_eq(all.told + own.told, 0);
    bench_persisted(bench, 1, 2);
    proposals_complete(&bench->group);
    ck_assert_int_eq(all.told, 0);
    ck_assert_int_eq(own.told, 1);
    ck_assert_int_eq(own.status, STATUS_OK);
    bench->group.applied_index = 1;
    proposals_complete(&bench->group);
    ck_assert_int_eq(all.told, 1);
    ck_assert_int_eq(all.status, STATUS_OK);
    bench_free(bench);
}
END_TEST

START_TEST(what_others_committed_is_enough)
{
    struct bench *bench = bench_new(3);
    struct waiter own;
    bench_elect(bench);
    wait_for(bench, &own, true, 0);
    bench->group.applied_index = 1; /* by the others; the own disk is slow */
    proposals_complete(&bench->group);
    ck_assert_int_eq(own.told, 1);
    bench_free(bench);
}
END_TEST

START_TEST(alone_all_wait_for_the_commit)
{
    struct bench *bench = bench_new(1);
    struct waiter own;
    bench_saved(bench, 1, 1);
    wait_for(bench, &own, true, 5);
    proposals_expire(&bench->group, 10);
    ck_assert_int_eq(own.told, 0);
    bench_persisted(bench, 1, 1);
    bench->group.applied_index = 1;
    proposals_complete(&bench->group);
    ck_assert_int_eq(own.told, 1);
    bench_free(bench);
}
END_TEST

START_TEST(deadlines_pass_in_any_order)
{
    struct bench *bench = bench_new(3);
    struct waiter waiters[4];
    bench_elect(bench);
    wait_for(bench, &waiters[0], false, 30);
    wait_for(bench, &waiters[1], false, 10);
    wait_for(bench, &waiters[2], true, 20);
    wait_for(bench, &waiters[3], false, 0);
    proposals_expire(&bench->group, 9);
    ck_assert_int_eq(waiters[1].told, 0);
    proposals_expire(&bench->group, 20);
    ck_assert_int_eq(waiters[0].told, 0);
    ck_assert_int_eq(waiters[1].status, STATUS_TIMEOUT);
    ck_assert_int_eq(waiters[2].status, STATUS_TIMEOUT);
    ck_assert_uint_eq(bench->group.deadline_ms, 30);
    proposals_expire(&bench->group, 30);
    ck_assert_int_eq(waiters[0].told, 1);
    ck_assert_uint_eq(bench->group.deadline_ms, UINT64_MAX);
    proposals_fail(&bench->group, STATUS_CLOSED);
    ck_assert_int_eq(waiters[3].status, STATUS_CLOSED);
    ck_assert_int_eq(waiters[0].told, 1);
    bench_free(bench);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proposals");
    TCase *tests = tcase_create("proposals");
    tcase_add_test(tests, durable_comes_before_committed);
    tcase_add_test(tests, what_others_committed_is_enough);
    tcase_add_test(tests, alone_all_wait_for_the_commit);
    tcase_add_test(tests, deadlines_pass_in_any_order);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
