/* What a turn wants written goes to the journal at its end; by then Raft may have dropped it. The
 * journal and Raft's step are the test's own. */
#include "broker/group/group_journal.h"

#include <string.h>

#include "storage/journal.h"
#include "tests/unit/broker/group/bench.h"

enum { BYTES = 1000 };

static struct {
    struct journal_op *op;   /* the latest that was submitted */
    int persisted;           /* steps that told Raft so */
} seen;

void __wrap_journal_submit(struct journal *journal, struct journal_op *op);
enum raft_result __wrap_group_step(struct group *group, const struct raft_event *event);

void __wrap_journal_submit(struct journal *journal, struct journal_op *op)
{
    (void)journal;
    seen.op = op;
}

enum raft_result __wrap_group_step(struct group *group, const struct raft_event *event)
{
    (void)group;
    ck_assert_int_eq(event->kind, RAFT_EVENT_PERSISTED);
    seen.persisted++;
    return RAFT_OK;
}

static struct slice filled_with(int byte)
{
    struct block *block = block_new(BYTES);
    memset(block->bytes, byte, BYTES);
    return slice_of(block, 0, BYTES);
}

/* Leads in term 1, with one entry of these bytes, whose only owner Raft is. */
static void lead_with(struct bench *bench, int byte)
{
    struct slice payload = filled_with(byte);
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
    event.propose.payloads = &payload;
    event.propose.count = 1;
    bench_elect(bench);
    bench_step(bench, event);
    block_unref(payload.block);
    ck_assert_uint_eq(raft_last_index(bench->group.raft), 1);
}

/* Node 2 leads in term 2, and has another entry in its place. */
static void is_replaced_by(struct bench *bench, int byte)
{
    struct raft_entry entry = {.index = 1, .term = 2, .payload = filled_with(byte)};
    bench_message(bench, (struct raft_message){.kind = RAFT_APPEND, .from = 2, .term = 2,
                                               .entries = &entry, .entry_count = 1});
    block_unref(entry.payload.block);
    ck_assert_uint_eq(raft_entry_at(bench->group.raft, 1)->term, 2);
}

START_TEST(an_entry_that_is_dropped_within_the_turn_is_written_whole)
{
    struct bench *bench = bench_new(3);
    int journal = 0;
    uint8_t expected[BYTES];
    memset(expected, 'a', BYTES);
    list_init(&bench->shard.after);
    list_init(&bench->replicas.writes);
    list_init(&bench->group.writes);
    bench->replicas.submit.run = group_journal_submit;
    bench->replicas.journal = (struct journal *)(void *)&journal;

    lead_with(bench, 'a');
    group_journal_append(&bench->group, 1, 1, 1);
    is_replaced_by(bench, 'b');
    struct block *takes_the_place = filled_with('c').block;
    group_journal_submit(&bench->replicas.submit);
    ck_assert_ptr_nonnull(seen.op);
    ck_assert_mem_eq(seen.op->records[0].payload.data, expected, BYTES);

    seen.op->done(seen.op, STATUS_OK);
    struct mail *mail = mailbox_drain(&bench->shard.mailbox);
    mail->run(&bench->shard, mail);
    ck_assert_int_eq(seen.persisted, 1);
    ck_assert_uint_eq(bench->group.io_pending, 0);
    block_unref(takes_the_place);
    bench_free(bench);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group_journal");
    TCase *tests = tcase_create("group_journal");
    tcase_add_test(tests, an_entry_that_is_dropped_within_the_turn_is_written_whole);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
