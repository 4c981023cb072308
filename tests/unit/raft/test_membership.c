/* The configuration in force follows the log: forward with appends, back with truncations, and it
 * survives releases and restarts. */
#include "raft/raft.h"

#include "tests/unit/raft/node.h"

static const struct raft_member three[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};

/* An entry that makes nodes 1 to `count` voters; the caller owns the payload's reference. */
static struct raft_entry configuration(uint64_t index, uint64_t term, size_t count)
{
    struct raft_member members[9];
    for (size_t i = 0; i < count; i++) {
        members[i] = (struct raft_member){(int32_t)i + 1, RAFT_VOTER};
    }
    return (struct raft_entry){.index = index,
                               .term = term,
                               .kind = RAFT_ENTRY_CONFIGURATION,
                               .payload = raft_members_encode(members, count)};
}

static void feed(struct node *node, int32_t from, uint64_t term, uint64_t after, uint64_t log_term,
                 struct raft_entry entry, uint64_t commit)
{
    node_message(node, (struct raft_message){.kind = RAFT_APPEND,
                                             .from = from,
                                             .term = term,
                                             .index = after,
                                             .log_term = log_term,
                                             .commit = commit,
                                             .entries = &entry,
                                             .entry_count = 1});
    block_unref(entry.payload.block);
}

static size_t members_of(const struct node *node)
{
    size_t count;
    raft_members(node->raft, &count);
    return count;
}

START_TEST(truncation_takes_a_configuration_back)
{
    struct raft_config config = node_config(three, 3);
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    feed(&node, 2, 1, 0, 0, configuration(1, 1, 4), 0);
    feed(&node, 2, 1, 1, 1, configuration(2, 1, 5), 0);
    ck_assert_uint_eq(members_of(&node), 5);
    struct raft_entry other = {.index = 2, .term = 2};
    feed(&node, 3, 2, 1, 1, other, 0);
    ck_assert_uint_eq(members_of(&node), 4);
    ck_assert_uint_eq(raft_members_index(node.raft), 1);
    other = (struct raft_entry){.index = 1, .term = 3};
    feed(&node, 2, 3, 0, 0, other, 0);
    ck_assert_uint_eq(members_of(&node), 3); /* those of the creation */
    ck_assert_uint_eq(raft_members_index(node.raft), 0);
    node_close(&node);
}
END_TEST

START_TEST(released_configuration_is_what_a_truncation_goes_back_to)
{
    struct raft_config config = node_config(three, 3);
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    feed(&node, 2, 1, 0, 0, configuration(1, 1, 4), 0);
    feed(&node, 2, 1, 1, 1, configuration(2, 1, 5), 1);
    node_persisted(&node, 1, 2);
    ck_assert_uint_eq(raft_release(node.raft, 9), 1);
    struct raft_entry other = {.index = 2, .term = 2};
    feed(&node, 3, 2, 1, 1, other, 0);
    ck_assert_uint_eq(members_of(&node), 4);
    node_close(&node);
}
END_TEST

START_TEST(restored_members_are_those_of_the_snapshot_or_a_later_entry)
{
    struct raft_config config = node_config(three, 3);
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    struct raft_entry first = {.index = 1, .term = 1};
    feed(&node, 2, 1, 0, 0, first, 0);
    feed(&node, 2, 1, 1, 1, configuration(2, 1, 5), 0);
    struct raft_event event = {.kind = RAFT_EVENT_RESTORED};
    event.snapshot.index = 1;
    event.snapshot.term = 1;
    event.snapshot.members = three;
    event.snapshot.member_count = 2;
    node_step(&node, event);
    ck_assert_uint_eq(members_of(&node), 5);
    event.snapshot.index = 9;
    node_step(&node, event);
    ck_assert_uint_eq(members_of(&node), 2);
    ck_assert_uint_eq(raft_last_index(node.raft), 9);
    ck_assert_uint_eq(raft_durable_index(node.raft), 9);
    node_close(&node);
}
END_TEST

START_TEST(replay_finds_the_latest_configuration)
{
    struct raft_config config = node_config(three, 3);
    struct node node;
    node_open(&node, &config);
    struct raft_entry entries[] = {configuration(1, 1, 4), configuration(2, 1, 5),
                                   configuration(2, 2, 2)};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(raft_restore_entry(node.raft, &entries[i]), STATUS_OK);
        block_unref(entries[i].payload.block);
    }
    node_start(&node);
    ck_assert_uint_eq(members_of(&node), 2);
    node_close(&node);
}
END_TEST

START_TEST(single_voter_grows_by_a_joint_configuration)
{
    struct raft_config config = node_config(three, 1);
    struct node node;
    node_open(&node, &config);
    node_start(&node);
    node_saved(&node, 1, 1);
    struct raft_event event = {.kind = RAFT_EVENT_CHANGE_MEMBERS};
    event.change.members = three;
    event.change.count = 3;
    node_step(&node, event);
    ck_assert_int_eq(node.result, RAFT_OK);
    size_t count;
    const struct raft_member *members = raft_members(node.raft, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(members[0].flags, RAFT_VOTER | RAFT_OLD_VOTER);
    ck_assert_uint_eq(members[1].flags, RAFT_VOTER);
    node_persisted(&node, 1, 1);
    ck_assert_ptr_null(node_find(&node, RAFT_ACTION_COMMIT, 0)); /* two of three are needed */
    node_step(&node, event);
    ck_assert_int_eq(node.result, RAFT_BUSY);
    node_message(&node, (struct raft_message){.kind = RAFT_APPEND_REPLY,
                                              .from = 2,
                                              .term = 1,
                                              .accepted = true,
                                              .index = 1});
    ck_assert_ptr_nonnull(node_find(&node, RAFT_ACTION_COMMIT, 0));
    members = raft_members(node.raft, &count);
    ck_assert_uint_eq(members[0].flags, RAFT_VOTER);
    ck_assert_uint_eq(raft_members_index(node.raft), 2);
    node_close(&node);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("membership");
    TCase *tests = tcase_create("membership");
    tcase_add_test(tests, truncation_takes_a_configuration_back);
    tcase_add_test(tests, released_configuration_is_what_a_truncation_goes_back_to);
    tcase_add_test(tests, restored_members_are_those_of_the_snapshot_or_a_later_entry);
    tcase_add_test(tests, replay_finds_the_latest_configuration);
    tcase_add_test(tests, single_voter_grows_by_a_joint_configuration);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
