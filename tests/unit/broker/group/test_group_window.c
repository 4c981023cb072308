/* A group without peers keeps nothing behind what it applied; others keep a bounded tail, and one
 * at rest nothing. */
#include "broker/group/group_window.h"

#include <stdlib.h>

#include "broker/group/replicas.h"
#include "tests/unit/runner.h"

/* Just what the window looks at. */
struct bench {
    struct replicas replicas;
    struct shard shard;
    struct group group;
    struct raft_actions actions;
};

static struct bench *bench_new(const struct raft_member *members, size_t count)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct raft_config config = {
        .id = 1, .voted_for = RAFT_NO_NODE, .members = members, .member_count = count};
    bench->shard.replicas = &bench->replicas;
    bench->group.shard = &bench->shard;
    bench->group.raft = raft_create(&config);
    raft_actions_init(&bench->actions);
    raft_step(bench->group.raft, &(struct raft_event){.kind = RAFT_EVENT_START},
              &bench->actions);
    return bench;
}

static void bench_free(struct bench *bench)
{
    group_window_end(&bench->group);
    ck_assert_uint_eq(bench->replicas.window_bytes, 0);
    raft_actions_free(&bench->actions);
    raft_free(bench->group.raft);
    free(bench);
}

static void step(struct bench *bench, struct raft_event event)
{
    raft_actions_clear(&bench->actions);
    ck_assert_int_eq(raft_step(bench->group.raft, &event, &bench->actions), RAFT_OK);
}

/* The leader's entries up to `last`, committed and durable here; each of this many bytes. */
static void follow_up_to(struct bench *bench, uint64_t last, size_t bytes)
{
    struct raft *raft = bench->group.raft;
    struct block *block = block_new(bytes);
    while (raft_last_index(raft) < last) {
        uint64_t before = raft_last_index(raft);
        struct raft_entry entry = {
            .index = before + 1, .term = 1, .payload = slice_of(block, 0, bytes)};
        struct raft_message message = {.kind = RAFT_APPEND, .from = 2, .to = 1, .term = 1,
                                       .index = before, .log_term = before == 0 ? 0 : 1,
                                       .commit = before + 1, .entries = &entry, .entry_count = 1};
        step(bench, (struct raft_event){.kind = RAFT_EVENT_MESSAGE, .message = &message});
        struct raft_event persisted = {.kind = RAFT_EVENT_PERSISTED};
        persisted.persisted.term = 1;
        persisted.persisted.index = before + 1;
        step(bench, persisted);
        bench->group.applied_index = before + 1;
        group_window_release(&bench->group);
    }
    block_unref(block);
}

static const struct raft_member three[] = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}};

START_TEST(alone_nothing_is_kept)
{
    struct bench *bench = bench_new(three, 1);
    struct slice payload = {0};
    struct raft_event saved = {.kind = RAFT_EVENT_SAVED};
    saved.saved.term = 1;
    saved.saved.voted_for = 1;
    step(bench, saved);
    struct raft_event propose = {.kind = RAFT_EVENT_PROPOSE};
    propose.propose.payloads = &payload;
    propose.propose.count = 1;
    step(bench, propose);
    struct raft_event persisted = {.kind = RAFT_EVENT_PERSISTED};
    persisted.persisted.term = 1;
    persisted.persisted.index = 1;
    step(bench, persisted);
    bench->group.applied_index = 1;
    group_window_release(&bench->group);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 1);
    bench_free(bench);
}
END_TEST

START_TEST(the_tail_is_bounded_in_entries)
{
    struct bench *bench = bench_new(three, 3);
    follow_up_to(bench, 4096, 10);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 0);
    follow_up_to(bench, 5000, 10);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 5000 - 4096);
    bench_free(bench);
}
END_TEST

START_TEST(the_tail_is_bounded_in_bytes)
{
    struct bench *bench = bench_new(three, 3);
    follow_up_to(bench, 100, 100 * 1024);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 90);
    ck_assert_uint_gt(bench->replicas.window_bytes, 900 * 1024);
    ck_assert_uint_le(bench->replicas.window_bytes, 1024 * 1024);
    bench_free(bench);
}
END_TEST

START_TEST(a_shard_that_is_full_keeps_no_tails)
{
    struct bench *bench = bench_new(three, 3);
    follow_up_to(bench, 10, 1000);
    bench->replicas.window_bytes += (uint64_t)1 << 30;
    group_window_release(&bench->group);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 10);
    bench->replicas.window_bytes -= (uint64_t)1 << 30;
    bench_free(bench);
}
END_TEST

START_TEST(at_rest_nothing_is_kept)
{
    struct bench *bench = bench_new(three, 3);
    follow_up_to(bench, 10, 1000);
    ck_assert_uint_eq(raft_start_index(bench->group.raft), 0);
    struct raft_event saved = {.kind = RAFT_EVENT_SAVED};
    saved.saved.term = 1;
    saved.saved.voted_for = RAFT_NO_NODE;
    step(bench, saved);
    struct raft_message rest = {.kind = RAFT_HEARTBEAT, .from = 2, .to = 1, .term = 1,
                                .index = 10, .log_term = 1, .commit = 10, .round = 1,
                                .sleep = true};
    step(bench, (struct raft_event){.kind = RAFT_EVENT_MESSAGE, .message = &rest});
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
    tcase_add_test(tests, at_rest_nothing_is_kept);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
