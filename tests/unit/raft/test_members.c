/* Members in configuration entries: the bytes, and what is refused. */
#include "raft/members.h"

#include "tests/unit/runner.h"

START_TEST(members_come_back_as_they_were)
{
    struct raft_member members[] = {{1, RAFT_VOTER | RAFT_OLD_VOTER}, {70000, RAFT_LEARNER}};
    struct slice payload = raft_members_encode(members, 2);
    ck_assert_uint_eq(payload.length, 13);
    ck_assert_uint_eq(payload.data[0], 1);
    ck_assert_uint_eq(payload.data[2], 2);
    struct raft_member found[2];
    size_t count;
    ck_assert_int_eq(raft_members_decode(slice_view(payload), found, 2, &count), STATUS_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(found[1].id, 70000);
    ck_assert_uint_eq(found[0].flags, RAFT_VOTER | RAFT_OLD_VOTER);
    ck_assert_int_eq(raft_members_decode(slice_view(payload), found, 1, &count), STATUS_LIMIT);
    for (size_t length = 0; length < payload.length; length++) {
        struct view cut = {payload.data, length};
        ck_assert_int_eq(raft_members_decode(cut, found, 2, &count), STATUS_INVALID);
    }
    payload.block->bytes[0] = 2;
    ck_assert_int_eq(raft_members_decode(slice_view(payload), found, 2, &count), STATUS_INVALID);
    block_unref(payload.block);
}
END_TEST

START_TEST(members_need_a_voter_and_make_sense)
{
    ck_assert(raft_members_valid((struct raft_member[]){{1, RAFT_VOTER}}, 1));
    ck_assert(raft_members_valid(
        (struct raft_member[]){{1, RAFT_VOTER}, {2, RAFT_OLD_VOTER | RAFT_LEARNER}}, 2));
    ck_assert(!raft_members_valid((struct raft_member[]){{1, RAFT_LEARNER}}, 1));
    ck_assert(!raft_members_valid((struct raft_member[]){{1, RAFT_OLD_VOTER}}, 1));
    ck_assert(!raft_members_valid((struct raft_member[]){{-1, RAFT_VOTER}}, 1));
    ck_assert(!raft_members_valid((struct raft_member[]){{1, RAFT_VOTER}, {2, 0}}, 2));
    ck_assert(!raft_members_valid((struct raft_member[]){{1, RAFT_VOTER}, {2, 8}}, 2));
    ck_assert(!raft_members_valid((struct raft_member[]){{1, RAFT_VOTER}, {1, RAFT_VOTER}}, 2));
    ck_assert(!raft_members_valid((struct raft_member[]){{1, RAFT_VOTER | RAFT_LEARNER}}, 1));
}
END_TEST

START_TEST(entries_from_outside_are_checked_before_they_enter)
{
    struct raft_entry entry = {.index = 1, .term = 1, .kind = RAFT_ENTRY_DATA};
    ck_assert(raft_entry_valid(&entry));
    entry.payload.length = 3;
    ck_assert(!raft_entry_valid(&entry)); /* bytes without a block */
    entry.payload = raft_members_encode((struct raft_member[]){{1, RAFT_VOTER}}, 1);
    entry.kind = RAFT_ENTRY_CONFIGURATION;
    ck_assert(raft_entry_valid(&entry));
    entry.payload.length--;
    ck_assert(!raft_entry_valid(&entry));
    entry.kind = 3;
    ck_assert(!raft_entry_valid(&entry));
    block_unref(entry.payload.block);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("members");
    TCase *tests = tcase_create("members");
    tcase_add_test(tests, members_come_back_as_they_were);
    tcase_add_test(tests, members_need_a_voter_and_make_sense);
    tcase_add_test(tests, entries_from_outside_are_checked_before_they_enter);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
