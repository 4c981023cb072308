/* The follower's side against messages that no sound leader sends, and notices that come late. */
#include "raft/raft.h"

#include "tests/unit/raft/node.h"

static const struct raft_member three[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};

/* A follower of node 2 in term 5, saved, with nothing in its log. */
static void open_follower(struct node *node)
{
    struct raft_config config = node_config(three, 3);
    node_open(node, &config);
    node_start(node);
    node_message(node, (struct raft_message){.kind = RAFT_APPEND, .from = 2, .term = 5});
    node_saved(node, 5, RAFT_NO_NODE);
}

/* An append of entries with these terms (0 ends them) after (index, log_term). */
static void append(struct node *node, int32_t from, uint64_t term, uint64_t index,
                   uint64_t log_term, const uint64_t *terms, uint64_t commit)
{
    struct raft_entry entries[8] = {0};
    size_t count = 0;
    for (; terms[count] != 0; count++) {
        entries[count].index = index + 1 + count;
        entries[count].term = terms[count];
    }
    node_message(node, (struct raft_message){.kind = RAFT_APPEND,
                                             .from = from,
                                             .term = term,
                                             .index = index,
                                             .log_term = log_term,
                                             .commit = commit,
                                             .entries = entries,
                                             .entry_count = count});
}

#define TERMS(...) ((const uint64_t[]){__VA_ARGS__, 0})

START_TEST(answer_waits_for_the_entries_and_for_the_term)
{
    struct raft_config config = node_config(three, 3);
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    append(&node, 2, 5, 0, 0, TERMS(5, 5), 0);
    ck_assert_ptr_nonnull(node_find(&node, RAFT_ACTION_SAVE, 0));
    ck_assert_ptr_null(node_sent(&node, RAFT_APPEND_REPLY, 2));
    node_persisted(&node, 5, 2);
    ck_assert_ptr_null(node_sent(&node, RAFT_APPEND_REPLY, 2)); /* the term is not saved yet */
    node_saved(&node, 5, RAFT_NO_NODE);
    ck_assert_uint_eq(node_sent(&node, RAFT_APPEND_REPLY, 2)->index, 2);
    node_close(&node);
}
END_TEST

START_TEST(what_may_differ_from_the_leaders_log_is_not_acknowledged)
{
    struct node node;
    open_follower(&node);
    append(&node, 2, 5, 0, 0, TERMS(5, 5, 5), 0);
    node_persisted(&node, 5, 3);
    append(&node, 3, 6, 1, 5, (const uint64_t[]){0}, 0); /* an empty one, after index 1 */
    ck_assert_ptr_null(node_sent(&node, RAFT_APPEND_REPLY, 3));
    node_saved(&node, 6, RAFT_NO_NODE);
    ck_assert_uint_eq(node_sent(&node, RAFT_APPEND_REPLY, 3)->index, 1);
    node_close(&node);
}
END_TEST

START_TEST(notice_of_a_write_that_was_cut_away_is_void)
{
    struct node node;
    open_follower(&node);
    append(&node, 2, 5, 0, 0, TERMS(5, 5, 5), 0);
    append(&node, 3, 6, 1, 5, TERMS(6, 6), 0);
    ck_assert_uint_eq(node_find(&node, RAFT_ACTION_TRUNCATE, 0)->index, 2);
    node_persisted(&node, 5, 3);
    ck_assert_uint_eq(raft_durable_index(node.raft), 0);
    node_persisted(&node, 6, 3);
    ck_assert_uint_eq(raft_durable_index(node.raft), 3);
    node_close(&node);
}
END_TEST

START_TEST(malformed_appends_change_nothing)
{
    struct node node;
    open_follower(&node);
    append(&node, 2, 5, 0, 0, TERMS(6), 0); /* from the future */
    ck_assert_int_eq(node.result, RAFT_INVALID);
    append(&node, 2, 5, 0, 0, TERMS(5, 4), 0); /* backwards */
    ck_assert_int_eq(node.result, RAFT_INVALID);
    append(&node, 2, 5, 0, 3, TERMS(5), 0); /* a term before the log */
    ck_assert_int_eq(node.result, RAFT_INVALID);
    struct raft_entry gap = {.index = 2, .term = 5};
    node_message(&node, (struct raft_message){.kind = RAFT_APPEND,
                                              .from = 2,
                                              .term = 5,
                                              .entries = &gap,
                                              .entry_count = 1});
    ck_assert_int_eq(node.result, RAFT_INVALID);
    append(&node, 3, 5, 0, 0, TERMS(5), 0); /* a second leader in the term */
    ck_assert_int_eq(node.result, RAFT_INVALID);
    ck_assert_uint_eq(raft_last_index(node.raft), 0);
    node_close(&node);
}
END_TEST

START_TEST(committed_entries_are_never_replaced)
{
    struct node node;
    open_follower(&node);
    append(&node, 2, 5, 0, 0, TERMS(5, 5), 2);
    ck_assert_uint_eq(raft_commit_index(node.raft), 2);
    append(&node, 2, 5, 0, 0, TERMS(4), 0);
    ck_assert_int_eq(node.result, RAFT_INVALID);
    ck_assert_uint_eq(raft_entry_at(node.raft, 1)->term, 5);
    node_close(&node);
}
END_TEST

START_TEST(entries_below_the_window_are_skipped)
{
    struct node node;
    open_follower(&node);
    append(&node, 2, 5, 0, 0, TERMS(5, 5, 5), 3);
    node_persisted(&node, 5, 3);
    ck_assert_uint_eq(raft_release(node.raft, 3), 3);
    append(&node, 2, 5, 1, 5, TERMS(5, 5, 5), 3);
    ck_assert_int_eq(node.result, RAFT_OK);
    const struct raft_action *action = node_find(&node, RAFT_ACTION_APPEND, 0);
    ck_assert_uint_eq(action->append.first, 4);
    ck_assert_uint_eq(action->append.last, 4);
    node_close(&node);
}
END_TEST

START_TEST(commit_stays_within_what_is_equal)
{
    struct node node;
    open_follower(&node);
    append(&node, 2, 5, 0, 0, TERMS(5, 5, 5), 0);
    append(&node, 3, 6, 1, 5, (const uint64_t[]){0}, 3);
    ck_assert_uint_eq(raft_commit_index(node.raft), 1);
    node_message(&node, (struct raft_message){
                            .kind = RAFT_HEARTBEAT, .from = 3, .term = 6, .commit = 3});
    ck_assert_uint_eq(raft_commit_index(node.raft), 1);
    node_close(&node);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("follower");
    TCase *tests = tcase_create("follower");
    tcase_add_test(tests, answer_waits_for_the_entries_and_for_the_term);
    tcase_add_test(tests, what_may_differ_from_the_leaders_log_is_not_acknowledged);
    tcase_add_test(tests, notice_of_a_write_that_was_cut_away_is_void);
    tcase_add_test(tests, malformed_appends_change_nothing);
    tcase_add_test(tests, committed_entries_are_never_replaced);
    tcase_add_test(tests, entries_below_the_window_are_skipped);
    tcase_add_test(tests, commit_stays_within_what_is_equal);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
