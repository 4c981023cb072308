/* Crashes around a snapshot: the checkpoint is durable, the journal still has an older log. */
#include "raft/raft.h"

#include "tests/unit/raft/node.h"

static const struct raft_member three[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};

static void replay(struct node *node, uint64_t index, uint64_t term)
{
    struct raft_entry entry = {.index = index, .term = term};
    ck_assert_int_eq(raft_restore_entry(node->raft, &entry), STATUS_OK);
}

static void open_at(struct node *node, uint64_t index, uint64_t term)
{
    struct raft_config config = node_config(three, 3);
    config.start_index = index;
    config.start_term = term;
    node_open(node, &config);
}

START_TEST(tail_of_another_log_is_dropped_and_voided_at_the_start)
{
    struct node node;
    open_at(&node, 20, 5);
    replay(&node, 19, 2);
    replay(&node, 20, 6); /* not the entry of the checkpoint */
    replay(&node, 21, 6);
    replay(&node, 22, 7);
    node_start(&node);
    ck_assert_uint_eq(raft_last_index(node.raft), 20);
    const struct raft_action *cut = node_find(&node, RAFT_ACTION_TRUNCATE, 0);
    ck_assert_ptr_nonnull(cut);
    ck_assert_uint_eq(cut->index, 21);
    node_close(&node);
}
END_TEST

START_TEST(entries_after_that_truncation_are_found_again)
{
    struct node node;
    open_at(&node, 20, 5);
    replay(&node, 20, 6);
    replay(&node, 21, 6);
    raft_restore_truncate(node.raft, 21);
    replay(&node, 21, 8);
    replay(&node, 22, 8);
    node_start(&node);
    ck_assert_uint_eq(raft_last_index(node.raft), 22);
    ck_assert_uint_eq(raft_last_term(node.raft), 8);
    ck_assert_ptr_null(node_find(&node, RAFT_ACTION_TRUNCATE, 0));
    node_close(&node);
}
END_TEST

START_TEST(journal_that_ends_before_the_checkpoint_goes_on_behind_it)
{
    struct node node;
    open_at(&node, 20, 5);
    replay(&node, 9, 2);
    replay(&node, 10, 2);
    replay(&node, 21, 5);
    node_start(&node);
    ck_assert_uint_eq(raft_last_index(node.raft), 21);
    node_close(&node);
}
END_TEST

START_TEST(entries_of_terms_before_the_checkpoint_are_stale)
{
    struct node node;
    open_at(&node, 20, 5);
    replay(&node, 21, 3); /* 20 was recycled with its file */
    node_start(&node);
    ck_assert_uint_eq(raft_last_index(node.raft), 20);
    node_close(&node);
}
END_TEST

START_TEST(term_of_the_checkpoint_counts)
{
    struct node node;
    open_at(&node, 20, 5);
    node_start(&node);
    ck_assert_uint_eq(raft_term(node.raft), 5);
    ck_assert_int_eq(raft_voted_for(node.raft), RAFT_NO_NODE);
    node_close(&node);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot");
    TCase *tests = tcase_create("snapshot");
    tcase_add_test(tests, tail_of_another_log_is_dropped_and_voided_at_the_start);
    tcase_add_test(tests, entries_after_that_truncation_are_found_again);
    tcase_add_test(tests, journal_that_ends_before_the_checkpoint_goes_on_behind_it);
    tcase_add_test(tests, entries_of_terms_before_the_checkpoint_are_stale);
    tcase_add_test(tests, term_of_the_checkpoint_counts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
