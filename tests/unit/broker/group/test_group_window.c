/* A group without peers keeps nothing behind what it applied; others keep a bounded tail, and one
 * at rest nothing. */
#include "broker/group/group_window.h"

#include "tests/unit/broker/group/bench.h"

/* The leader's entries up to `last`, committed and durable here; each of this many bytes. */
static void follow_up_to(struct bench *bench, uint64_t last, size_t bytes)
{
    struct raft *raft = bench->group.raft;
    struct block *block = block_new(bytes);
    while (raft_last_index(raft) < last) {
        uint64_t before = raft_last_index(raft);
        struct raft_entry entry = {
            .index = before + 1, .term = 1, .payload = slice_of(block, 0, bytes)};
        bench_message(bench, (struct raft_message){.kind = RAFT_APPEND, .from = 2, .term = 1,
                                                   .index = before,
                                                   .log_term = before == 0 ? 0 : 1,
                                                   .commit = before + 1, .entries = &entry,
                                                   .entry_count = 1});
        bench_persisted(bench, 1, before + 1);
        bench->group.applied_index = before + 1;
        group_window_release(&bench->group);
    }
    block_unref(block);
}

START_TEST(alone_nothing_is_kept)
{
    struct bench *bench = bench_new(1);
    bench_saved(bench, 1, 1);
    bench_persisted(bench, 1, bench_propose(bench, 10));
    bench->group.applied_index = 1;
    group_window_release(&bench->group);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 1);
    bench_free(bench);
}
END_TEST

START_TEST(the_tail_is_bounded_in_entries)
{
    struct bench *bench = bench_new(3);
    follow_up_to(bench, 4096, 10);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 0);
    follow_up_to(bench, 5000, 10);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 5000 - 4096);
    bench_free(bench);
}
END_TEST

START_TEST(the_tail_is_bounded_in_bytes)
{
    struct bench *bench = bench_new(3);
    follow_up_to(bench, 100, 100 * 1024);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 90);
    ck_assert_uint_gt(bench->replicas.window_bytes, 900 * 1024);
    ck_assert_uint_le(bench->replicas.window_bytes, 1024 * 1024);
    bench_free(bench);
}
END_TEST

START_TEST(a_shard_that_is_full_keeps_no_tails)
{
    struct bench *bench = bench_new(3);
    follow_up_to(bench, 10, 1000);
    bench->replicas.window_bytes += (uint64_t)1 << 30;
    group_window_release(&bench->group);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 10);
    bench->replicas.window_bytes -= (uint64_t)1 << 30;
    bench_free(bench);
}
END_TEST

START_TEST(a_leader_keeps_what_an_active_peer_lacks)
{
    struct bench *bench = bench_new(3);
    bench_elect(bench);
    for (int i = 0; i < 40; i++) {
        uint64_t index = bench_propose(bench, 1024 * 1024);
        bench_persisted(bench, 1, index);
        bench_message(bench, (struct raft_message){.kind = RAFT_APPEND_REPLY, .from = 2, .term = 1,
                                                   .accepted = true, .index = index});
        bench->group.applied_index = index;
        group_window_release(&bench->group);
    }
    /* Node 3 counts as active since the election, and has nothing. */
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 0);
    for (int i = 0; i < 40; i++) {
        uint64_t index = bench_propose(bench, 1024 * 1024);
        bench_persisted(bench, 1, index);
        bench_message(bench, (struct raft_message){.kind = RAFT_APPEND_REPLY, .from = 2, .term = 1,
                                                   .accepted = true, .index = index});
        bench->group.applied_index = index;
        group_window_release(&bench->group);
    }
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 80 - 63);
    bench_message(bench, (struct raft_message){.kind = RAFT_APPEND_REPLY, .from = 3, .term = 1,
                                               .accepted = true, .index = 78});
    group_window_release(&bench->group);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 78);
    bench_free(bench);
}
END_TEST

START_TEST(at_rest_nothing_is_kept)
{
    struct bench *bench = bench_new(3);
    follow_up_to(bench, 10, 1000);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 0);
    bench_saved(bench, 1, RAFT_NO_NODE);
    bench_message(bench, (struct raft_message){.kind = RAFT_HEARTBEAT, .from = 2, .term = 1,
                                               .index = 10, .log_term = 1, .commit = 10,
                                               .round = 1, .sleep = true});
    group_window_release(&bench->group);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 10);
    bench_free(bench);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group_window");
    TCase *tests = tcase_create("group_window");
    tcase_add_test(tests, alone_nothing_is_kept);
    tcase_add_test(tests, the_tail_is_bounded_in_entries);
    tcase_add_test(tests, the_tail_is_bounded_in_bytes);
    tcase_add_test(tests, a_shard_that_is_full_keeps_no_tails);
    tcase_add_test(tests, a_leader_keeps_what_an_active_peer_lacks);
    tcase_add_test(tests, at_rest_nothing_is_kept);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
