/* The journal's replay keeps for each group what no checkpoint covers, and says what is damaged. */
#include "broker/group/boot.h"

#include "tests/unit/runner.h"

static void entry(struct boot *boot, uint64_t group, uint64_t index, uint64_t term)
{
    struct block *block = block_copy(VIEW_LITERAL("payload"));
    boot_replay(boot, &(struct journal_record){.kind = JOURNAL_ENTRY,
                                               .group = group,
                                               .index = index,
                                               .term = term,
                                               .payload = slice_of(block, 0, 7)});
    block_unref(block);
}

static void record(struct boot *boot, enum journal_kind kind, uint64_t group, uint64_t index)
{
    boot_replay(boot, &(struct journal_record){.kind = kind, .group = group, .index = index});
}

START_TEST(marks_drop_what_they_cover)
{
    struct boot boot = {0};
    for (uint64_t i = 1; i <= 5; i++) {
        entry(&boot, 7, i, 1);
        entry(&boot, 8, i, 1);
    }
    record(&boot, JOURNAL_MARK, 7, 3);
    entry(&boot, 7, 2, 1); /* covered already */
    struct journal_boot *part = boot_find(&boot, 7);
    ck_assert_uint_eq(part->mark, 3);
    ck_assert_uint_eq(part->count, 2);
    ck_assert_uint_eq(part->records[0].index, 4);
    ck_assert_uint_eq(boot_find(&boot, 8)->count, 5);
    record(&boot, JOURNAL_FORGET, 8, 0);
    ck_assert_ptr_null(boot_find(&boot, 8));
    boot_free(&boot);
}
END_TEST

START_TEST(latest_vote_counts)
{
    struct boot boot = {0};
    boot_replay(&boot, &(struct journal_record){
                           .kind = JOURNAL_VOTE, .group = 1, .term = 4, .voted_for = 2});
    boot_replay(&boot, &(struct journal_record){
                           .kind = JOURNAL_VOTE, .group = 1, .term = 3, .voted_for = 1});
    ck_assert_uint_eq(boot_find(&boot, 1)->vote_term, 4);
    ck_assert_int_eq(boot_find(&boot, 1)->voted_for, 2);
    boot_free(&boot);
}
END_TEST

/* That a group is held back is known until a vote says that it is not. */
START_TEST(a_loss_is_kept_with_the_vote)
{
    struct boot boot = {0};
    entry(&boot, 1, 1, 1);
    record(&boot, JOURNAL_MARK, 1, 1);
    boot_replay(&boot, &(struct journal_record){
                           .kind = JOURNAL_VOTE, .group = 1, .term = 4, .voted_for = 2});
    ck_assert_uint_eq(boot_find(&boot, 1)->loss, BOOT_NOTHING_LOST);
    boot_replay(&boot, &(struct journal_record){
                           .kind = JOURNAL_ANEW, .group = 1, .voted_for = -1, .tag = BOOT_LOST});
    const struct journal_boot *part = boot_find(&boot, 1);
    ck_assert_uint_eq(part->loss, BOOT_LOST);
    ck_assert_uint_eq(part->mark, 0);
    ck_assert_uint_eq(part->vote_term, 0);
    ck_assert_int_eq(part->voted_for, -1);
    boot_replay(&boot, &(struct journal_record){.kind = JOURNAL_VOTE,
                                                .group = 1,
                                                .term = 5,
                                                .voted_for = -1,
                                                .tag = BOOT_TOLD,
                                                .index = 17});
    entry(&boot, 1, 1, 5);
    ck_assert_uint_eq(part->loss, BOOT_TOLD);
    ck_assert_uint_eq(part->catch_up_to, 17);
    ck_assert_uint_eq(part->count, 1);
    boot_replay(&boot, &(struct journal_record){
                           .kind = JOURNAL_VOTE, .group = 1, .term = 5, .voted_for = 1});
    ck_assert_uint_eq(part->loss, BOOT_NOTHING_LOST);
    boot_free(&boot);
}
END_TEST

START_TEST(entries_and_truncations_reach_raft_in_order)
{
    struct boot boot = {0};
    struct raft_member self = {.id = 1, .flags = RAFT_VOTER};
    struct raft_config config = {
        .id = 1, .voted_for = RAFT_NO_NODE, .members = &self, .member_count = 1};
    entry(&boot, 1, 1, 1);
    entry(&boot, 1, 2, 1);
    entry(&boot, 1, 3, 1);
    record(&boot, JOURNAL_TRUNCATE, 1, 2);
    entry(&boot, 1, 2, 2);
    struct raft *raft = raft_create(&config);
    ck_assert_int_eq(boot_restore(boot_find(&boot, 1), raft), STATUS_OK);
    ck_assert_uint_eq(raft_last_index(raft), 2);
    ck_assert_uint_eq(raft_last_term(raft), 2);
    raft_free(raft);
    boot_free(&boot);
}
END_TEST

/* What a follower's journal holds after three leaders, two of whom replaced what others wrote. */
START_TEST(a_followers_journal_of_several_terms)
{
    struct boot boot = {0};
    struct raft_member members[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};
    struct raft_config config = {
        .id = 1, .voted_for = RAFT_NO_NODE, .members = members, .member_count = 3};
    for (uint64_t i = 1; i <= 5; i++) {
        entry(&boot, 1, i, 1);
    }
    boot_replay(&boot, &(struct journal_record){
                           .kind = JOURNAL_VOTE, .group = 1, .term = 3, .voted_for = 3});
    record(&boot, JOURNAL_TRUNCATE, 1, 3);
    entry(&boot, 1, 3, 3);
    entry(&boot, 1, 4, 3);
    boot_replay(&boot, &(struct journal_record){
                           .kind = JOURNAL_VOTE, .group = 1, .term = 5, .voted_for = -1});
    record(&boot, JOURNAL_TRUNCATE, 1, 4);
    entry(&boot, 1, 4, 5);
    struct raft *raft = raft_create(&config);
    ck_assert_int_eq(boot_restore(boot_find(&boot, 1), raft), STATUS_OK);
    ck_assert_uint_eq(raft_last_index(raft), 4);
    ck_assert_uint_eq(raft_last_term(raft), 5);
    ck_assert_uint_eq(raft_entry_at(raft, 3)->term, 3);
    ck_assert_uint_eq(raft_entry_at(raft, 2)->term, 1);
    ck_assert_uint_eq(raft_term(raft), 5);
    ck_assert_int_eq(raft_voted_for(raft), RAFT_NO_NODE);
    raft_free(raft);
    boot_free(&boot);
}
END_TEST

/* A checkpoint of term 2 covers entry 3; the tail of term 1 behind it was void, but the record that
 * says so went with the mark. */
START_TEST(a_void_tail_behind_the_mark_does_not_come_back)
{
    struct boot boot = {0};
    struct raft_member members[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};
    struct raft_config config = {.id = 1,
                                 .voted_for = RAFT_NO_NODE,
                                 .members = members,
                                 .member_count = 3,
                                 .start_index = 3,
                                 .start_term = 2};
    for (uint64_t i = 1; i <= 6; i++) {
        entry(&boot, 1, i, 1);
    }
    record(&boot, JOURNAL_TRUNCATE, 1, 2);
    entry(&boot, 1, 2, 2);
    entry(&boot, 1, 3, 2);
    record(&boot, JOURNAL_MARK, 1, 3);
    struct raft *raft = raft_create(&config);
    ck_assert_int_eq(boot_restore(boot_find(&boot, 1), raft), STATUS_OK);
    ck_assert_uint_eq(raft_last_index(raft), 3);
    ck_assert_uint_eq(raft_last_term(raft), 2);
    raft_free(raft);
    boot_free(&boot);
}
END_TEST

/* After an install the journal goes on behind a gap, which the checkpoint covers. */
START_TEST(a_gap_that_the_checkpoint_covers)
{
    struct boot boot = {0};
    struct raft_member members[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};
    struct raft_config config = {.id = 1,
                                 .voted_for = RAFT_NO_NODE,
                                 .members = members,
                                 .member_count = 3,
                                 .start_index = 90,
                                 .start_term = 4};
    entry(&boot, 1, 1, 1);
    entry(&boot, 1, 2, 1);
    record(&boot, JOURNAL_TRUNCATE, 1, 2);
    entry(&boot, 1, 91, 4);
    entry(&boot, 1, 92, 5);
    struct raft *raft = raft_create(&config);
    ck_assert_int_eq(boot_restore(boot_find(&boot, 1), raft), STATUS_OK);
    ck_assert_uint_eq(raft_last_index(raft), 92);
    ck_assert_uint_eq(raft_last_term(raft), 5);
    raft_free(raft);
    boot_free(&boot);
}
END_TEST

START_TEST(a_gap_is_corrupt)
{
    struct boot boot = {0};
    struct raft_member self = {.id = 1, .flags = RAFT_VOTER};
    struct raft_config config = {
        .id = 1, .voted_for = RAFT_NO_NODE, .members = &self, .member_count = 1};
    entry(&boot, 1, 1, 1);
    entry(&boot, 1, 3, 1);
    struct raft *raft = raft_create(&config);
    ck_assert_int_eq(boot_restore(boot_find(&boot, 1), raft), STATUS_CORRUPT);
    raft_free(raft);
    boot_free(&boot);
}
END_TEST

START_TEST(damage_hits_its_group_or_all)
{
    struct boot boot = {0};
    entry(&boot, 1, 1, 1);
    entry(&boot, 2, 1, 1);
    boot_damage(&boot, &(struct journal_damage){.file = "a", .group_known = true, .group = 2});
    ck_assert(!boot_find(&boot, 1)->damaged);
    ck_assert(boot_find(&boot, 2)->damaged);
    boot_damage(&boot, &(struct journal_damage){.file = "a"});
    entry(&boot, 3, 1, 1);
    ck_assert(boot_find(&boot, 1)->damaged);
    ck_assert(boot_find(&boot, 3)->damaged);
    boot_free(&boot);
}
END_TEST

START_TEST(whole_means_from_the_first_entry_on)
{
    struct boot boot = {0};
    ck_assert(!boot_is_whole(NULL));
    entry(&boot, 1, 1, 1);
    entry(&boot, 2, 5, 1);
    entry(&boot, 3, 1, 1);
    record(&boot, JOURNAL_MARK, 3, 1);
    ck_assert(boot_is_whole(boot_find(&boot, 1)));
    ck_assert(!boot_is_whole(boot_find(&boot, 2)));
    ck_assert(!boot_is_whole(boot_find(&boot, 3)));
    boot_find(&boot, 1)->damaged = true;
    ck_assert(!boot_is_whole(boot_find(&boot, 1)));
    boot_free(&boot);
}
END_TEST

START_TEST(a_gap_is_what_a_checkpoint_covered)
{
    struct boot boot = {0};
    ck_assert(!boot_lacks_entries(NULL));
    entry(&boot, 1, 1, 1);
    entry(&boot, 1, 2, 1);
    record(&boot, JOURNAL_TRUNCATE, 1, 2);
    entry(&boot, 1, 2, 2);
    ck_assert(!boot_lacks_entries(boot_find(&boot, 1)));
    ck_assert(boot_is_whole(boot_find(&boot, 1)));
    entry(&boot, 1, 9, 2); /* behind an install */
    ck_assert(boot_lacks_entries(boot_find(&boot, 1)));
    ck_assert(!boot_is_whole(boot_find(&boot, 1)));
    entry(&boot, 2, 2, 1);
    ck_assert(boot_lacks_entries(boot_find(&boot, 2)));
    record(&boot, JOURNAL_MARK, 3, 1);
    ck_assert(boot_lacks_entries(boot_find(&boot, 3)));
    entry(&boot, 4, 1, 1);
    entry(&boot, 4, 2, 1);
    record(&boot, JOURNAL_TRUNCATE, 4, 1);
    entry(&boot, 4, 2, 2);
    ck_assert(boot_lacks_entries(boot_find(&boot, 4)));
    boot_free(&boot);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot");
    TCase *tests = tcase_create("boot");
    tcase_add_test(tests, marks_drop_what_they_cover);
    tcase_add_test(tests, latest_vote_counts);
    tcase_add_test(tests, a_loss_is_kept_with_the_vote);
    tcase_add_test(tests, entries_and_truncations_reach_raft_in_order);
    tcase_add_test(tests, a_followers_journal_of_several_terms);
    tcase_add_test(tests, a_void_tail_behind_the_mark_does_not_come_back);
    tcase_add_test(tests, a_gap_that_the_checkpoint_covers);
    tcase_add_test(tests, a_gap_is_corrupt);
    tcase_add_test(tests, whole_means_from_the_first_entry_on);
    tcase_add_test(tests, a_gap_is_what_a_checkpoint_covered);
    tcase_add_test(tests, damage_hits_its_group_or_all);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
