/* The leader's side: bounded pipelines, contiguous messages, votes of the disk, memory at rest. */
#include "raft/raft.h"

#include "tests/unit/raft/node.h"

static const struct raft_member three[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};

static void answer(struct node *node, int32_t from, uint64_t index)
{
    node_message(node, (struct raft_message){.kind = RAFT_APPEND_REPLY,
                                             .from = from,
                                             .term = 1,
                                             .accepted = true,
                                             .index = index});
}

/* Leads term 1 of three with an empty log; both peers have answered. */
static void open_leader(struct node *node, const struct raft_limits *limits)
{
    struct raft_config config = node_config(three, 3);
    config.limits = limits;
    node_open(node, &config);
    node_start(node);
    node_step(node, (struct raft_event){.kind = RAFT_EVENT_CAMPAIGN});
    node_message(node, (struct raft_message){
                           .kind = RAFT_PRE_VOTE_REPLY, .from = 2, .term = 1, .accepted = true});
    node_saved(node, 1, 1);
    node_message(node, (struct raft_message){
                           .kind = RAFT_VOTE_REPLY, .from = 2, .term = 1, .accepted = true});
    ck_assert_int_eq(raft_role(node->raft), RAFT_LEADER);
    answer(node, 2, 0);
    answer(node, 3, 0);
}

START_TEST(pipeline_is_bounded_by_bytes_and_each_message_too)
{
    struct raft_limits limits = raft_limits_default;
    limits.message_bytes = 2 * (100 + sizeof(struct raft_entry));
    limits.inflight_bytes = 4 * (100 + sizeof(struct raft_entry));
    char text[101];
    memset(text, 'x', 100);
    text[100] = '\0';
    struct node node;
    open_leader(&node, &limits);
    int sent = 0;
    for (int i = 0; i < 10; i++) {
        node_propose(&node, text);
        sent += node_sent(&node, RAFT_APPEND, 2) != NULL ? 1 : 0;
    }
    ck_assert_int_eq(sent, 4);
    answer(&node, 2, 4);
    size_t messages = 0;
    for (size_t i = 0; i < node.actions.count; i++) {
        const struct raft_action *action = &node.actions.list[i];
        if (action->kind == RAFT_ACTION_SEND) {
            ck_assert_uint_eq(action->message.entry_count, 2);
            ck_assert_uint_eq(action->message.entries[0].index, 5 + 2 * messages);
            messages++;
        }
    }
    ck_assert_uint_eq(messages, 2);
    node_close(&node);
}
END_TEST

START_TEST(entries_of_all_messages_stay_valid_while_the_list_grows)
{
    struct node node;
    open_leader(&node, NULL);
    raft_actions_clear(&node.actions);
    for (int i = 0; i < 200; i++) {
        struct block *block = block_copy(VIEW_LITERAL("abc"));
        struct slice payload = slice_of(block, 0, 3);
        struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
        event.propose.payloads = &payload;
        event.propose.count = 1;
        ck_assert_int_eq(raft_step(node.raft, &event, &node.actions), RAFT_OK);
        block_unref(block);
    }
    uint64_t next[4] = {0, 0, 1, 1};
    for (size_t i = 0; i < node.actions.count; i++) {
        const struct raft_action *action = &node.actions.list[i];
        for (size_t k = 0; action->kind == RAFT_ACTION_SEND && k < action->message.entry_count;
             k++) {
            const struct raft_entry *entry = &action->message.entries[k];
            ck_assert_uint_eq(entry->index, next[action->message.to]++);
            ck_assert(view_is(slice_view(entry->payload), "abc"));
        }
    }
    ck_assert_uint_eq(next[2], 201);
    ck_assert_uint_eq(next[3], 201);
    node_close(&node);
}
END_TEST

START_TEST(majority_without_the_leaders_own_disk_commits)
{
    struct node node;
    open_leader(&node, NULL);
    node_propose(&node, "a");
    answer(&node, 2, 1);
    ck_assert_uint_eq(raft_commit_index(node.raft), 0);
    answer(&node, 3, 1);
    ck_assert_uint_eq(raft_commit_index(node.raft), 1);
    ck_assert_uint_eq(raft_durable_index(node.raft), 0);
    ck_assert_uint_eq(raft_release(node.raft, 1), 0); /* not on this disk yet */
    node_close(&node);
}
END_TEST

START_TEST(answers_that_cannot_be_are_ignored)
{
    struct node node;
    open_leader(&node, NULL);
    node_propose(&node, "a");
    answer(&node, 2, 99);
    answer(&node, 7, 1);
    struct raft_peer_info info;
    ck_assert(raft_peer_info(node.raft, 2, &info));
    ck_assert_uint_eq(info.match_index, 0);
    ck_assert(!raft_peer_info(node.raft, 7, &info));
    node_message(&node, (struct raft_message){.kind = RAFT_HEARTBEAT_REPLY,
                                              .from = 2,
                                              .term = 1,
                                              .index = 1,
                                              .hint_index = 5,
                                              .round = 0});
    ck_assert(raft_peer_info(node.raft, 2, &info));
    ck_assert_uint_eq(info.match_index, 0);
    node_close(&node);
}
END_TEST

START_TEST(a_leader_knows_who_may_not_vote)
{
    struct node node;
    struct raft_peer_info info;
    struct raft_message reply = {
        .kind = RAFT_APPEND_REPLY, .accepted = true, .from = 2, .term = 1, .withdrawn = true};
    open_leader(&node, NULL);
    node_message(&node, reply);
    ck_assert(raft_peer_info(node.raft, 2, &info) && info.withdrawn);
    reply = (struct raft_message){.kind = RAFT_HEARTBEAT_REPLY, .from = 2, .term = 1};
    node_message(&node, reply);
    ck_assert(raft_peer_info(node.raft, 2, &info) && !info.withdrawn);
    node_close(&node);
}
END_TEST

START_TEST(eager_commit_tells_idle_peers_at_once)
{
    struct raft_limits limits = raft_limits_default;
    limits.eager_commit = true;
    struct node node;
    open_leader(&node, &limits);
    node_propose(&node, "a");
    node_persisted(&node, 1, 1);
    answer(&node, 2, 1);
    const struct raft_message *told = node_sent(&node, RAFT_APPEND, 2);
    ck_assert_ptr_nonnull(told);
    ck_assert_uint_eq(told->commit, 1);
    ck_assert_uint_eq(told->entry_count, 0);
    ck_assert_ptr_null(node_sent(&node, RAFT_APPEND, 3)); /* it is still taking the entry */
    answer(&node, 3, 1);
    ck_assert_ptr_nonnull(node_sent(&node, RAFT_APPEND, 3));
    node_close(&node);
}
END_TEST

START_TEST(follower_at_rest_is_small)
{
    struct raft_config config = node_config(three, 3);
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    ck_assert_uint_lt(raft_memory_bytes(node.raft), 500);
    node_close(&node);
    open_leader(&node, NULL);
    ck_assert_uint_lt(raft_memory_bytes(node.raft), 700);
    node_step(&node, (struct raft_event){.kind = RAFT_EVENT_WITHDRAW});
    ck_assert_uint_lt(raft_memory_bytes(node.raft), 500);
    node_close(&node);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replication");
    TCase *tests = tcase_create("replication");
    tcase_add_test(tests, pipeline_is_bounded_by_bytes_and_each_message_too);
    tcase_add_test(tests, entries_of_all_messages_stay_valid_while_the_list_grows);
    tcase_add_test(tests, majority_without_the_leaders_own_disk_commits);
    tcase_add_test(tests, answers_that_cannot_be_are_ignored);
    tcase_add_test(tests, a_leader_knows_who_may_not_vote);
    tcase_add_test(tests, eager_commit_tells_idle_peers_at_once);
    tcase_add_test(tests, follower_at_rest_is_small);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
