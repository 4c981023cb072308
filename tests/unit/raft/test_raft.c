/* A group's life: recovery from checkpoint and journal, the single voter's path, and what is
 * refused. */
#include "raft/raft.h"

#include "tests/unit/raft/node.h"

static const struct raft_member one[] = {{1, RAFT_VOTER}};

static struct raft_entry entry_of(uint64_t index, uint64_t term)
{
    return (struct raft_entry){.index = index, .term = term, .kind = RAFT_ENTRY_DATA};
}

/* Leads with an empty log, in term 1. */
static void open_leader(struct node *node)
{
    struct raft_config config = node_config(one, 1);
    node_open(node, &config);
    node_start(node);
    node_saved(node, 1, 1);
    ck_assert_int_eq(raft_role(node->raft), RAFT_LEADER);
}

START_TEST(single_voter_leads_when_its_vote_is_durable_and_spends_no_entry)
{
    struct raft_config config = node_config(one, 1);
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    const struct raft_action *save = node_find(&node, RAFT_ACTION_SAVE, 0);
    ck_assert_ptr_nonnull(save);
    ck_assert_uint_eq(save->save.term, 1);
    ck_assert_int_eq(save->save.voted_for, 1);
    ck_assert_int_eq(raft_role(node.raft), RAFT_CANDIDATE);
    for (int i = 0; i < 100; i++) {
        node_tick(&node); /* a slow disk starts no second election */
        ck_assert_ptr_null(node_find(&node, RAFT_ACTION_SAVE, 0));
    }
    node_saved(&node, 1, 1);
    const struct raft_action *role = node_find(&node, RAFT_ACTION_ROLE, 0);
    ck_assert_int_eq(role->role.role, RAFT_LEADER);
    ck_assert_int_eq(role->role.leader, 1);
    ck_assert_ptr_null(node_find(&node, RAFT_ACTION_APPEND, 0));
    ck_assert(!raft_needs_ticks(node.raft));
    node_close(&node);
}
END_TEST

START_TEST(proposal_gets_its_index_at_once_and_commits_only_when_durable)
{
    struct node node;
    open_leader(&node);
    node_propose(&node, "a");
    ck_assert_int_eq(node.result, RAFT_OK);
    const struct raft_action *append = node_find(&node, RAFT_ACTION_APPEND, 0);
    ck_assert_uint_eq(append->append.first, 1);
    ck_assert_uint_eq(append->append.last, 1);
    ck_assert_uint_eq(append->append.term, 1);
    ck_assert_ptr_null(node_find(&node, RAFT_ACTION_COMMIT, 0));
    node_propose(&node, "b");
    node_persisted(&node, 1, 1);
    const struct raft_action *commit = node_find(&node, RAFT_ACTION_COMMIT, 0);
    ck_assert_uint_eq(commit->commit.first, 1);
    ck_assert_uint_eq(commit->commit.last, 1);
    node_persisted(&node, 1, 2);
    commit = node_find(&node, RAFT_ACTION_COMMIT, 0);
    ck_assert_uint_eq(commit->commit.first, 2);
    ck_assert_uint_eq(commit->commit.last, 2);
    ck_assert(view_is(slice_view(raft_entry_at(node.raft, 2)->payload), "b"));
    node_close(&node);
}
END_TEST

START_TEST(release_gives_the_window_back_but_never_what_is_not_durable)
{
    struct node node;
    open_leader(&node);
    size_t at_rest = raft_memory_bytes(node.raft);
    for (int i = 0; i < 100; i++) {
        node_propose(&node, "payload");
    }
    node_persisted(&node, 1, 60);
    ck_assert_uint_eq(raft_release(node.raft, 1000), 60);
    ck_assert_uint_eq(raft_start_index(node.raft), 60);
    ck_assert_uint_eq(raft_last_index(node.raft), 100);
    node_persisted(&node, 1, 100);
    ck_assert_uint_eq(raft_release(node.raft, 100), 100);
    ck_assert_uint_eq(raft_release(node.raft, 5), 100);
    ck_assert_uint_eq(raft_memory_bytes(node.raft), at_rest);
    ck_assert_uint_lt(at_rest, 500);
    node_propose(&node, "more");
    ck_assert_uint_eq(raft_last_index(node.raft), 101);
    node_close(&node);
}
END_TEST

START_TEST(recovery_commits_what_the_journal_has_under_one_noop)
{
    struct raft_config config = node_config(one, 1);
    config.term = 3;
    config.voted_for = 1;
    config.start_index = 10;
    config.start_term = 2;
    struct node node;
    node_open(&node, &config);
    for (uint64_t index = 9; index <= 12; index++) {
        struct raft_entry entry = entry_of(index, index < 12 ? 2 : 3);
        ck_assert_int_eq(raft_restore_entry(node.raft, &entry), STATUS_OK);
    }
    node_start(&node);
    ck_assert_uint_eq(raft_commit_index(node.raft), 10);
    node_saved(&node, 4, 1);
    const struct raft_action *append = node_find(&node, RAFT_ACTION_APPEND, 0);
    ck_assert_uint_eq(append->append.first, 13);
    ck_assert_int_eq(raft_entry_at(node.raft, 13)->kind, RAFT_ENTRY_NOOP);
    node_persisted(&node, 4, 13);
    const struct raft_action *commit = node_find(&node, RAFT_ACTION_COMMIT, 0);
    ck_assert_uint_eq(commit->commit.first, 11);
    ck_assert_uint_eq(commit->commit.last, 13);
    node_close(&node);
}
END_TEST

START_TEST(recovery_after_a_clean_stop_appends_nothing)
{
    struct raft_config config = node_config(one, 1);
    config.term = 3;
    config.voted_for = 1;
    config.start_index = 10;
    config.start_term = 3;
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    node_saved(&node, 4, 1);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    ck_assert_uint_eq(raft_last_index(node.raft), 10);
    node_close(&node);
}
END_TEST

START_TEST(recovery_takes_rewrites_and_truncations_but_no_gap)
{
    struct raft_config config = node_config(one, 1);
    struct node node;
    node_open(&node, &config);
    struct raft_entry entries[] = {entry_of(1, 1), entry_of(2, 1), entry_of(3, 1), entry_of(2, 4)};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(raft_restore_entry(node.raft, &entries[i]), STATUS_OK);
    }
    ck_assert_uint_eq(raft_last_index(node.raft), 2);
    ck_assert_uint_eq(raft_last_term(node.raft), 4);
    ck_assert_uint_eq(raft_term(node.raft), 4);
    struct raft_entry gap = entry_of(4, 4);
    ck_assert_int_eq(raft_restore_entry(node.raft, &gap), STATUS_CORRUPT);
    struct raft_entry backwards = entry_of(3, 2);
    ck_assert_int_eq(raft_restore_entry(node.raft, &backwards), STATUS_CORRUPT);
    struct raft_entry unknown = entry_of(3, 4);
    unknown.kind = 9;
    ck_assert_int_eq(raft_restore_entry(node.raft, &unknown), STATUS_CORRUPT);
    raft_restore_truncate(node.raft, 2);
    ck_assert_uint_eq(raft_last_index(node.raft), 1);
    raft_restore_vote(node.raft, 6, 3);
    raft_restore_vote(node.raft, 5, 2);
    ck_assert_uint_eq(raft_term(node.raft), 6);
    ck_assert_int_eq(raft_voted_for(node.raft), 3);
    node_close(&node);
}
END_TEST

START_TEST(withdrawn_single_voter_does_not_lead_until_it_rejoins)
{
    struct node node;
    open_leader(&node);
    node_step(&node, (struct raft_event){.kind = RAFT_EVENT_WITHDRAW});
    ck_assert_int_eq(raft_role(node.raft), RAFT_FOLLOWER);
    for (int i = 0; i < 100; i++) {
        node_tick(&node);
        ck_assert_int_eq(raft_role(node.raft), RAFT_FOLLOWER);
    }
    node_propose(&node, "x");
    ck_assert_int_eq(node.result, RAFT_NOT_LEADER);
    node_step(&node, (struct raft_event){.kind = RAFT_EVENT_REJOIN});
    node_saved(&node, 2, 1);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    node_close(&node);
}
END_TEST

START_TEST(uncommitted_bytes_are_bounded)
{
    struct raft_limits limits = raft_limits_default;
    limits.uncommitted_bytes = 200;
    struct raft_config config = node_config(one, 1);
    config.limits = &limits;
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    node_saved(&node, 1, 1);
    int taken = 0;
    do {
        node_propose(&node, "0123456789");
        taken += node.result == RAFT_OK ? 1 : 0;
    } while (node.result == RAFT_OK && taken < 100);
    ck_assert_int_eq(node.result, RAFT_FULL);
    ck_assert_int_eq(taken, 3);
    node_persisted(&node, 1, 3);
    char huge[1000];
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    node_propose(&node, huge);
    ck_assert_int_eq(node.result, RAFT_OK); /* one always fits */
    node_close(&node);
}
END_TEST

START_TEST(events_before_the_start_and_foreign_messages_are_refused)
{
    struct raft_config config = node_config(one, 1);
    struct node node;
    node_open(&node, &config);
    node_propose(&node, "x");
    ck_assert_int_eq(node.result, RAFT_INVALID);
    node_start(&node);
    node_saved(&node, 1, 1);
    node_message(&node, (struct raft_message){.kind = RAFT_HEARTBEAT, .from = 1, .term = 1});
    ck_assert_int_eq(node.result, RAFT_INVALID);
    node_message(&node, (struct raft_message){.kind = RAFT_HEARTBEAT, .from = 2, .term = 1});
    ck_assert_int_eq(node.result, RAFT_INVALID); /* a second leader of the same term */
    node_message(&node, (struct raft_message){.kind = 77, .from = 2, .term = 1});
    ck_assert_int_eq(node.result, RAFT_INVALID);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    node_close(&node);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("raft");
    TCase *tests = tcase_create("raft");
    tcase_add_test(tests, single_voter_leads_when_its_vote_is_durable_and_spends_no_entry);
    tcase_add_test(tests, proposal_gets_its_index_at_once_and_commits_only_when_durable);
    tcase_add_test(tests, release_gives_the_window_back_but_never_what_is_not_durable);
    tcase_add_test(tests, recovery_commits_what_the_journal_has_under_one_noop);
    tcase_add_test(tests, recovery_after_a_clean_stop_appends_nothing);
    tcase_add_test(tests, recovery_takes_rewrites_and_truncations_but_no_gap);
    tcase_add_test(tests, withdrawn_single_voter_does_not_lead_until_it_rejoins);
    tcase_add_test(tests, uncommitted_bytes_are_bounded);
    tcase_add_test(tests, events_before_the_start_and_foreign_messages_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
