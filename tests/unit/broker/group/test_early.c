/* Messages that come before their group wait for it, in order, but neither for ever nor without
 * bound. */
#include "broker/group/early.h"

#include "tests/unit/runner.h"

static struct raft_message message_of(uint64_t term)
{
    return (struct raft_message){.kind = RAFT_PRE_VOTE, .from = 2, .to = 1, .term = term};
}

static void add(struct early *early, uint64_t group, uint64_t term, uint64_t now_ms)
{
    struct raft_message message = message_of(term);
    early_add(early, group, &message, now_ms);
}

START_TEST(a_group_gets_its_own_in_order)
{
    struct early early;
    struct raft_message message;
    early_init(&early);
    add(&early, 7, 1, 0);
    add(&early, 8, 2, 0);
    add(&early, 7, 3, 0);
    ck_assert(early_take(&early, 7, &message));
    ck_assert_uint_eq(message.term, 1);
    ck_assert(early_take(&early, 7, &message));
    ck_assert_uint_eq(message.term, 3);
    ck_assert(!early_take(&early, 7, &message));
    ck_assert_uint_eq(early.count, 1);
    early_free(&early);
    ck_assert_uint_eq(early.count, 0);
}
END_TEST

START_TEST(entries_are_not_kept)
{
    struct early early;
    struct raft_entry entry = {.index = 1, .term = 1};
    struct raft_message message = message_of(1);
    message.entries = &entry;
    message.entry_count = 1;
    early_init(&early);
    early_add(&early, 7, &message, 0);
    ck_assert_uint_eq(early.count, 0);
}
END_TEST

START_TEST(the_oldest_leave)
{
    struct early early;
    struct raft_message message;
    early_init(&early);
    for (uint64_t i = 0; i < EARLY_MESSAGES_MAX + 3; i++) {
        add(&early, i, i, i);
    }
    ck_assert_uint_eq(early.count, EARLY_MESSAGES_MAX);
    ck_assert(!early_take(&early, 2, &message));
    ck_assert(early_take(&early, 3, &message));
    early_tick(&early, EARLY_KEEP_MS + 4);
    ck_assert(!early_take(&early, 4, &message));
    ck_assert(early_take(&early, 5, &message));
    early_free(&early);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("early");
    TCase *tests = tcase_create("early");
    tcase_add_test(tests, a_group_gets_its_own_in_order);
    tcase_add_test(tests, entries_are_not_kept);
    tcase_add_test(tests, the_oldest_leave);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
