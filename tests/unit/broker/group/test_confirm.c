/* Who asks whether this node leads is told after a round that began later; all that ask meanwhile
 * share the next one. Raft's step is replaced: the test says what becomes of a round. */
#include "broker/group/confirm.h"

#include "broker/group/group_journal.h"
#include "tests/unit/broker/group/bench.h"

struct asker {
    struct confirm confirm;
    struct group *group;
    struct asker *next; /* asked when this one is told */
    int told;
    bool leads;
};

static struct {
    int rounds;
    uint64_t context;        /* of the latest one */
    enum raft_result result;
} steps;

enum raft_result __wrap_group_step(struct group *group, const struct raft_event *event);

enum raft_result __wrap_group_step(struct group *group, const struct raft_event *event)
{
    (void)group;
    ck_assert_int_eq(event->kind, RAFT_EVENT_READ);
    steps.rounds++;
    steps.context = event->read.context;
    return steps.result;
}

static void ask(struct group *group, struct asker *asker, struct asker *next);

static void told(struct confirm *confirm, bool leads)
{
    struct asker *asker = container_of(confirm, struct asker, confirm);
    asker->told++;
    asker->leads = leads;
    if (asker->next != NULL) {
        ask(asker->group, asker->next, NULL);
    }
}

static void ask(struct group *group, struct asker *asker, struct asker *next)
{
    *asker = (struct asker){.confirm.done = told, .group = group, .next = next};
    group_confirm(group, &asker->confirm);
}

static struct bench *bench_leading(size_t voters)
{
    struct bench *bench = bench_new(voters);
    list_init(&bench->group.confirms);
    bench->group.leads = true;
    steps.rounds = 0;
    steps.context = 0;
    steps.result = RAFT_OK;
    return bench;
}

START_TEST(alone_nothing_is_asked)
{
    struct bench *bench = bench_leading(1);
    struct asker one;
    ask(&bench->group, &one, NULL);
    ck_assert_int_eq(one.told, 1);
    ck_assert(one.leads);
    ck_assert_int_eq(steps.rounds, 0);
    bench_free(bench);
}
END_TEST

START_TEST(those_who_ask_meanwhile_share_the_next_round)
{
    struct bench *bench = bench_leading(3);
    struct asker one;
    struct asker two;
    struct asker three;
    ask(&bench->group, &one, NULL);
    uint64_t first = steps.context;
    ask(&bench->group, &two, NULL);
    ask(&bench->group, &three, NULL);
    ck_assert_int_eq(steps.rounds, 1);
    confirms_ready(&bench->group, first, 0);
    ck_assert_int_eq(one.told, 1);
    ck_assert_int_eq(two.told + three.told, 0); /* that answer may be older than their question */
    ck_assert_int_eq(steps.rounds, 2);
    confirms_ready(&bench->group, steps.context, 0);
    ck_assert_int_eq(two.told + three.told, 2);
    ck_assert(two.leads && three.leads);
    ck_assert_int_eq(steps.rounds, 2);
    bench_free(bench);
}
END_TEST

START_TEST(an_answer_waits_until_its_index_is_applied)
{
    struct bench *bench = bench_leading(3);
    struct asker one;
    ask(&bench->group, &one, NULL);
    confirms_ready(&bench->group, steps.context, 7);
    ck_assert_int_eq(one.told, 0);
    bench->group.applied_index = 7;
    confirms_applied(&bench->group);
    ck_assert_int_eq(one.told, 1);
    ck_assert(one.leads);
    bench_free(bench);
}
END_TEST

START_TEST(who_asks_while_others_are_told_has_a_round_of_its_own)
{
    struct bench *bench = bench_leading(3);
    struct asker one;
    struct asker nested;
    ask(&bench->group, &one, &nested);
    uint64_t first = steps.context;
    confirms_ready(&bench->group, first, 0);
    ck_assert_int_eq(one.told, 1);
    ck_assert_int_eq(nested.told, 0);
    ck_assert_int_eq(steps.rounds, 2);
    confirms_failed(&bench->group, first); /* of a round that is over: says nothing */
    ck_assert_int_eq(nested.told, 0);
    confirms_failed(&bench->group, steps.context);
    ck_assert_int_eq(nested.told, 1);
    ck_assert(!nested.leads);
    bench_free(bench);
}
END_TEST

START_TEST(a_failed_round_fails_its_own_alone)
{
    struct bench *bench = bench_leading(3);
    struct asker one;
    struct asker two;
    struct asker nested;
    ask(&bench->group, &one, &nested);
    uint64_t first = steps.context;
    ask(&bench->group, &two, NULL);
    confirms_failed(&bench->group, first);
    ck_assert_int_eq(one.told, 1);
    ck_assert(!one.leads);
    ck_assert_int_eq(two.told + nested.told, 0);
    ck_assert_int_eq(steps.rounds, 2);
    confirms_ready(&bench->group, steps.context, 0);
    ck_assert(two.leads && nested.leads);
    ck_assert_int_eq(steps.rounds, 2);
    bench_free(bench);
}
END_TEST

START_TEST(a_refused_round_is_a_failed_one)
{
    struct bench *bench = bench_leading(3);
    struct asker one;
    steps.result = RAFT_NOT_LEADER;
    ask(&bench->group, &one, NULL);
    ck_assert_int_eq(one.told, 1);
    ck_assert(!one.leads);
    steps.result = RAFT_OK;
    ask(&bench->group, &one, NULL);
    ck_assert_int_eq(one.told, 0);
    confirms_ready(&bench->group, steps.context, 0);
    ck_assert(one.leads);
    bench_free(bench);
}
END_TEST

START_TEST(lost_leadership_ends_all_and_late_answers_say_nothing)
{
    struct bench *bench = bench_leading(3);
    struct asker one;
    struct asker two;
    ask(&bench->group, &one, NULL);
    uint64_t first = steps.context;
    ask(&bench->group, &two, NULL);
    bench->group.leads = false;
    confirms_end(&bench->group);
    ck_assert_int_eq(one.told + two.told, 2);
    ck_assert(!one.leads && !two.leads);
    bench->group.leads = true;
    ask(&bench->group, &two, NULL);
    ck_assert_int_eq(steps.rounds, 2);
    confirms_ready(&bench->group, first, 0);
    ck_assert_int_eq(two.told, 0);
    confirms_ready(&bench->group, steps.context, 0);
    ck_assert(two.leads);
    bench_free(bench);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("confirm");
    TCase *tests = tcase_create("confirm");
    tcase_add_test(tests, alone_nothing_is_asked);
    tcase_add_test(tests, those_who_ask_meanwhile_share_the_next_round);
    tcase_add_test(tests, an_answer_waits_until_its_index_is_applied);
    tcase_add_test(tests, who_asks_while_others_are_told_has_a_round_of_its_own);
    tcase_add_test(tests, a_failed_round_fails_its_own_alone);
    tcase_add_test(tests, a_refused_round_is_a_failed_one);
    tcase_add_test(tests, lost_leadership_ends_all_and_late_answers_say_nothing);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
