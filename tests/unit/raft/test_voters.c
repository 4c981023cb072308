/* Who elects, who is elected and what is committed while the members change: majorities of both
 * sets, nodes that are no voters, leaders that are removed, and nodes that do not know it yet. */
#include "raft/raft.h"

#include "tests/unit/raft/node.h"

enum { STRANGER = 9, MANY_TICKS = 200 };

static const struct raft_member three[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};
static const struct raft_member with_learner[] = {
    {1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}, {4, RAFT_LEARNER}};
/* From 1, 2, 3 to 1, 4, 5. */
static const struct raft_member joint[] = {{1, RAFT_VOTER | RAFT_OLD_VOTER},
                                           {2, RAFT_OLD_VOTER},
                                           {3, RAFT_OLD_VOTER},
                                           {4, RAFT_VOTER},
                                           {5, RAFT_VOTER}};

static void open_with(struct node *node, const struct raft_member *members, size_t count)
{
    struct raft_config config = node_config(members, count);
    node_open(node, &config);
    node_start(node);
}

static void reply(struct node *node, enum raft_message_kind kind, int32_t from, uint64_t term)
{
    node_message(node, (struct raft_message){
        .kind = kind, .from = from, .term = term, .accepted = true});
}

/* A candidate whose vote for itself is durable and who has asked the others. */
static void stand(struct node *node)
{
    node_step(node, (struct raft_event){.kind = RAFT_EVENT_CAMPAIGN});
    for (int32_t id = 2; id <= 5 && raft_role(node->raft) == RAFT_PRE_CANDIDATE; id++) {
        reply(node, RAFT_PRE_VOTE_REPLY, id, raft_term(node->raft) + 1);
    }
    ck_assert_int_eq(raft_role(node->raft), RAFT_CANDIDATE);
    node_saved(node, raft_term(node->raft), 1);
    ck_assert_int_eq(raft_role(node->raft), RAFT_CANDIDATE);
}

static void vote_for(struct node *node, int32_t from)
{
    reply(node, RAFT_VOTE_REPLY, from, raft_term(node->raft));
}

static void lead(struct node *node)
{
    stand(node);
    vote_for(node, 2);
    ck_assert_int_eq(raft_role(node->raft), RAFT_LEADER);
}

static void has(struct node *node, int32_t from, uint64_t index)
{
    node_message(node, (struct raft_message){.kind = RAFT_APPEND_REPLY,
                                             .from = from,
                                             .term = raft_term(node->raft),
                                             .accepted = true,
                                             .index = index});
}

static enum raft_result change(struct node *node, const struct raft_member *members, size_t count)
{
    struct raft_event event = {.kind = RAFT_EVENT_CHANGE_MEMBERS};
    event.change.members = members;
    event.change.count = count;
    node_step(node, event);
    return node->result;
}

static void persist_all(struct node *node)
{
    node_persisted(node, raft_term(node->raft), raft_last_index(node->raft));
}

static void ask(struct node *node, enum raft_message_kind kind, int32_t from, uint64_t term,
                uint64_t index)
{
    node_message(node, (struct raft_message){
        .kind = kind, .from = from, .term = term, .index = index, .log_term = index > 0 ? 1 : 0});
}

START_TEST(learners_and_strangers_elect_nobody)
{
    struct node node;
    open_with(&node, with_learner, 4);
    stand(&node);
    ck_assert_ptr_null(node_sent(&node, RAFT_VOTE, 4));
    vote_for(&node, 4);
    vote_for(&node, STRANGER);
    ck_assert_int_eq(raft_role(node.raft), RAFT_CANDIDATE);
    vote_for(&node, 3);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    node_close(&node);
}
END_TEST

START_TEST(a_vote_that_comes_twice_counts_once)
{
    static const struct raft_member five[] = {
        {1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}, {4, RAFT_VOTER}, {5, RAFT_VOTER}};
    struct node node;
    open_with(&node, five, 5);
    stand(&node);
    vote_for(&node, 2);
    vote_for(&node, 2);
    ck_assert_int_eq(raft_role(node.raft), RAFT_CANDIDATE);
    vote_for(&node, 5);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    node_close(&node);
}
END_TEST

START_TEST(both_majorities_elect)
{
    struct node node;
    open_with(&node, joint, 5);
    stand(&node);
    vote_for(&node, 2);
    vote_for(&node, 3);
    ck_assert_int_eq(raft_role(node.raft), RAFT_CANDIDATE); /* all of the old, one of the new */
    vote_for(&node, 4);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    node_close(&node);
    open_with(&node, joint, 5);
    stand(&node);
    vote_for(&node, 4);
    vote_for(&node, 5);
    ck_assert_int_eq(raft_role(node.raft), RAFT_CANDIDATE); /* all of the new, one of the old */
    vote_for(&node, 3);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    node_close(&node);
}
END_TEST

START_TEST(a_learner_stands_for_nothing)
{
    static const struct raft_member members[] = {
        {1, RAFT_LEARNER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};
    struct node node;
    open_with(&node, members, 3);
    for (int i = 0; i < MANY_TICKS; i++) {
        node_tick(&node);
        ck_assert_int_eq(raft_role(node.raft), RAFT_FOLLOWER);
    }
    node_step(&node, (struct raft_event){.kind = RAFT_EVENT_CAMPAIGN});
    ck_assert_int_eq(raft_role(node.raft), RAFT_FOLLOWER);
    ck_assert_uint_eq(raft_term(node.raft), 0);
    node_close(&node);
}
END_TEST

/* A node that was removed does not know it and asks for votes, in ever higher terms. */
START_TEST(removed_nodes_do_not_disturb)
{
    struct node node;
    open_with(&node, three, 3);
    lead(&node);
    node_propose(&node, "x");
    persist_all(&node);
    has(&node, 2, 1);
    uint64_t term = raft_term(node.raft);
    ask(&node, RAFT_PRE_VOTE, STRANGER, term + 5, 100);
    ck_assert_ptr_null(node_sent(&node, RAFT_PRE_VOTE_REPLY, STRANGER));
    ask(&node, RAFT_VOTE, STRANGER, term + 5, 100);
    ck_assert_ptr_null(node_sent(&node, RAFT_VOTE_REPLY, STRANGER));
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    ck_assert_uint_eq(raft_term(node.raft), term);
    node_close(&node);
}
END_TEST

/* The candidate may be a voter by an entry that has not come here yet (§4.1). */
START_TEST(a_node_that_is_not_known_may_be_elected)
{
    struct node node;
    open_with(&node, three, 3);
    for (int i = 0; i < 3; i++) {
        node_tick(&node);
    }
    ask(&node, RAFT_PRE_VOTE, STRANGER, 1, 7);
    const struct raft_message *answer = node_sent(&node, RAFT_PRE_VOTE_REPLY, STRANGER);
    ck_assert(answer != NULL && answer->accepted);
    ask(&node, RAFT_VOTE, STRANGER, 1, 7);
    node_saved(&node, 1, STRANGER);
    answer = node_sent(&node, RAFT_VOTE_REPLY, STRANGER);
    ck_assert(answer != NULL && answer->accepted);
    ask(&node, RAFT_VOTE, 2, 1, 7); /* but one in each term */
    answer = node_sent(&node, RAFT_VOTE_REPLY, 2);
    ck_assert(answer != NULL && !answer->accepted);
    node_close(&node);
}
END_TEST

/* The leader of term 1, node 2, has these members in its first entry. */
static void follow_change(struct node *node, const struct raft_member *members, size_t count)
{
    struct raft_entry entry = {.index = 1, .term = 1, .kind = RAFT_ENTRY_CONFIGURATION,
                               .payload = raft_members_encode(members, count)};
    node_message(node, (struct raft_message){
        .kind = RAFT_APPEND, .from = 2, .term = 1, .entries = &entry, .entry_count = 1});
    block_unref(entry.payload.block);
    node_saved(node, 1, RAFT_NO_NODE);
    node_persisted(node, 1, 1);
}

/* What an earlier leader began is committed by an entry of the own term, and not before. */
START_TEST(a_change_waits_for_one_of_an_earlier_leader)
{
    static const struct raft_member wanted[] = {
        {1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}, {5, RAFT_LEARNER}};
    struct node node;
    open_with(&node, three, 3);
    follow_change(&node, with_learner, 4);
    lead(&node);
    ck_assert_uint_eq(raft_term(node.raft), 2);
    ck_assert_int_eq(change(&node, wanted, 4), RAFT_BUSY);
    persist_all(&node);
    has(&node, 3, 1);
    ck_assert_uint_eq(raft_commit_index(node.raft), 0);
    ck_assert_int_eq(change(&node, wanted, 4), RAFT_BUSY);
    has(&node, 3, 2);
    ck_assert_uint_eq(raft_commit_index(node.raft), 2);
    ck_assert_int_eq(change(&node, wanted, 4), RAFT_OK);
    node_close(&node);
}
END_TEST

START_TEST(a_removed_leader_does_not_count_itself_and_goes)
{
    static const struct raft_member others[] = {{2, RAFT_VOTER}, {3, RAFT_VOTER}};
    struct node node;
    open_with(&node, three, 3);
    lead(&node);
    node_propose(&node, "x");
    persist_all(&node);
    has(&node, 2, 1);
    ck_assert_uint_eq(raft_commit_index(node.raft), 1);
    ck_assert_int_eq(change(&node, others, 2), RAFT_OK);
    persist_all(&node);
    has(&node, 2, 2);
    ck_assert_uint_eq(raft_commit_index(node.raft), 1); /* of the new ones only node 2 has it */
    has(&node, 3, 2);
    ck_assert_uint_eq(raft_commit_index(node.raft), 2);
    ck_assert_uint_eq(raft_members_index(node.raft), 3); /* without it */
    persist_all(&node);
    has(&node, 2, 3);
    ck_assert_uint_eq(raft_commit_index(node.raft), 2);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    has(&node, 3, 3);
    ck_assert_uint_eq(raft_commit_index(node.raft), 3);
    ck_assert_int_eq(raft_role(node.raft), RAFT_FOLLOWER);
    for (int i = 0; i < MANY_TICKS; i++) {
        node_tick(&node);
        ck_assert_int_eq(raft_role(node.raft), RAFT_FOLLOWER);
    }
    node_close(&node);
}
END_TEST

/* It may have the only copy of the entry that removes it: it leads until that is committed. */
START_TEST(a_removed_node_leads_until_its_removal_is_committed)
{
    static const struct raft_member others[] = {{2, RAFT_VOTER}, {3, RAFT_VOTER}};
    struct node node;
    open_with(&node, three, 3);
    follow_change(&node, others, 2);
    stand(&node);
    vote_for(&node, 2);
    ck_assert_int_eq(raft_role(node.raft), RAFT_CANDIDATE); /* its own vote does not count */
    vote_for(&node, 3);
    ck_assert_int_eq(raft_role(node.raft), RAFT_LEADER);
    persist_all(&node);
    has(&node, 2, 2);
    has(&node, 3, 2);
    ck_assert_uint_eq(raft_commit_index(node.raft), 2);
    ck_assert_int_eq(raft_role(node.raft), RAFT_FOLLOWER);
    node_close(&node);
}
END_TEST

/* A learner's copies count for nothing, until an entry makes it a voter; then from where it is. */
START_TEST(a_learner_counts_when_it_is_promoted)
{
    static const struct raft_member four[] = {
        {1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}, {4, RAFT_VOTER}};
    struct node node;
    open_with(&node, with_learner, 4);
    lead(&node);
    node_propose(&node, "x");
    persist_all(&node);
    has(&node, 4, 1);
    ck_assert_uint_eq(raft_commit_index(node.raft), 0);
    has(&node, 2, 1);
    ck_assert_uint_eq(raft_commit_index(node.raft), 1);
    ck_assert_int_eq(change(&node, four, 4), RAFT_OK);
    persist_all(&node);
    has(&node, 4, 2);
    ck_assert_uint_eq(raft_commit_index(node.raft), 1); /* no majority of the old ones */
    has(&node, 3, 2);
    ck_assert_uint_eq(raft_commit_index(node.raft), 2); /* 1, 3 and 4: three of four, too */
    struct raft_peer_info peer;
    ck_assert(raft_peer_info(node.raft, 4, &peer));
    ck_assert_uint_eq(peer.match_index, 2);
    node_close(&node);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("voters");
    TCase *tests = tcase_create("voters");
    tcase_add_test(tests, learners_and_strangers_elect_nobody);
    tcase_add_test(tests, a_vote_that_comes_twice_counts_once);
    tcase_add_test(tests, both_majorities_elect);
    tcase_add_test(tests, a_learner_stands_for_nothing);
    tcase_add_test(tests, removed_nodes_do_not_disturb);
    tcase_add_test(tests, a_node_that_is_not_known_may_be_elected);
    tcase_add_test(tests, a_change_waits_for_one_of_an_earlier_leader);
    tcase_add_test(tests, a_removed_leader_does_not_count_itself_and_goes);
    tcase_add_test(tests, a_removed_node_leads_until_its_removal_is_committed);
    tcase_add_test(tests, a_learner_counts_when_it_is_promoted);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
