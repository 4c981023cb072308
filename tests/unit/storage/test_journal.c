/* The journal at work on a simulated disk: recycling, pressure, failures. */
#include "storage/journal.h"

#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "storage/journal_format.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"
#include "tests/unit/runner.h"

enum { FILE_BYTES = 64 * 1024, FILES = 4, GROUPS = 3, PAYLOAD_BYTES = 3000 };

struct fixture {
    struct journal *journal;
    uint64_t file_bytes;
    uint64_t now_ms;
    unsigned done;
    unsigned failed;
    enum status last_status;
    unsigned failures;       /* calls of the handler */
    unsigned pressures;
    unsigned stalls;
    bool mark_under_pressure;
    uint64_t next_index[GROUPS + 1];
    uint64_t first_replayed[GROUPS + 1];
    uint64_t last_replayed[GROUPS + 1];
    uint64_t vote[GROUPS + 1];
    uint32_t tag[GROUPS + 1];   /* of the vote */
    uint64_t index[GROUPS + 1];
    unsigned damages;
    struct slice large;      /* the last large payload that was replayed, with a reference */
};

static void replay(void *context, const struct journal_record *record)
{
    struct fixture *f = context;
    if (record->kind == JOURNAL_VOTE || record->kind == JOURNAL_ANEW) {
        f->vote[record->group] = record->term;
        f->tag[record->group] = record->tag;
        f->index[record->group] = record->index;
    }
    if (record->kind == JOURNAL_ENTRY) {
        if (f->first_replayed[record->group] == 0) {
            f->first_replayed[record->group] = record->index;
        } else {
            ck_assert(record->index == f->last_replayed[record->group] + 1 || f->damages > 0);
        }
        f->last_replayed[record->group] = record->index;
        if (record->payload.length > PAYLOAD_BYTES) {
            block_unref(f->large.block);
            f->large = record->payload;
            block_ref(f->large.block);
        }
    }
}

static void damage(void *context, const struct journal_damage *damage)
{
    (void)damage;
    ((struct fixture *)context)->damages++;
}

static void pressure(void *context, const uint64_t *groups, size_t count, bool stalled)
{
    struct fixture *f = context;
    f->pressures++;
    f->stalls += stalled ? 1 : 0;
    for (size_t i = 0; i < count && f->mark_under_pressure; i++) {
        ck_assert_uint_le(groups[i], GROUPS);
        journal_mark(f->journal, groups[i], f->next_index[groups[i]] - 1);
    }
}

static void failed(void *context, enum status status)
{
    struct fixture *f = context;
    f->failures++;
    ck_assert_int_ne(status, STATUS_OK);
}

static enum status try_open(struct fixture *f)
{
    struct journal_settings settings = {.directory = "/journal", .file_bytes = f->file_bytes,
        .size_bytes = f->file_bytes * FILES};
    struct journal_handler handler = {f, replay, damage, pressure, failed};
    memset(f->first_replayed, 0, sizeof f->first_replayed);
    memset(f->last_replayed, 0, sizeof f->last_replayed);
    memset(f->vote, 0, sizeof f->vote);
    return journal_open(&settings, &handler, &f->journal);
}

static void start_with(struct fixture *f, uint64_t file_bytes)
{
    sim_disk_reset(7);
    sim_clock_reset(7);
    *f = (struct fixture){.now_ms = 1000, .file_bytes = file_bytes};
    for (unsigned g = 0; g <= GROUPS; g++) {
        f->next_index[g] = 1;
    }
    ck_assert_int_eq(try_open(f), STATUS_OK);
}

static void start(struct fixture *f)
{
    start_with(f, FILE_BYTES);
}

static void stop(struct fixture *f)
{
    journal_abandon(f->journal);
    sim_disk_reset(0);
}

struct operation {
    struct journal_op op;
    struct journal_record record;
    struct fixture *fixture;
};

static void done(struct journal_op *op, enum status status)
{
    struct operation *operation = container_of(op, struct operation, op);
    operation->fixture->done += status == STATUS_OK ? 1 : 0;
    operation->fixture->failed += status != STATUS_OK ? 1 : 0;
    operation->fixture->last_status = status;
    free(operation);
}

static void submit(struct fixture *f, struct journal_record record, struct block *block)
{
    struct operation *operation = calloc(1, sizeof *operation);
    if (block != NULL) {
        record.payload = slice_of(block, 0, block->capacity);
    }
    operation->record = record;
    operation->op.records = &operation->record;
    operation->op.record_count = 1;
    operation->op.done = done;
    operation->fixture = f;
    journal_submit(f->journal, &operation->op);
}

static void submit_entry(struct fixture *f, uint64_t group)
{
    struct block *block = block_new(PAYLOAD_BYTES);
    memset(block->bytes, 'x', PAYLOAD_BYTES);
    submit(f, (struct journal_record){.kind = JOURNAL_ENTRY, .group = group,
        .index = f->next_index[group]++, .term = 1}, block);
    block_unref(block);
}

static void work(struct fixture *f)
{
    while (journal_run_once(f->journal, f->now_ms)) {
    }
}

START_TEST(files_are_used_again_and_votes_move_on)
{
    struct fixture f;
    struct journal_stats stats;
    start(&f);
    submit(&f, (struct journal_record){.kind = JOURNAL_VOTE, .group = 3, .term = 77, .tag = 8,
        .index = 9}, NULL);
    submit(&f, (struct journal_record){.kind = JOURNAL_ANEW, .group = 2, .term = 66}, NULL);
    f.mark_under_pressure = true;
    for (unsigned lap = 0; lap < 10; lap++) {
        for (unsigned i = 0; i < 100; i++) {
            submit_entry(&f, 1 + i % 2);
            work(&f);
        }
        journal_read_stats(f.journal, &stats);
        ck_assert_uint_le(stats.capacity_bytes, FILE_BYTES * FILES);
        journal_abandon(f.journal);
        ck_assert_int_eq(try_open(&f), STATUS_OK);
        ck_assert_uint_eq(f.damages, 0);
        ck_assert_uint_eq(f.vote[3], 77);
        ck_assert_uint_eq(f.tag[3], 8);
        ck_assert_uint_eq(f.index[3], 9);
        ck_assert_uint_eq(f.vote[2], 66);
        for (unsigned group = 1; group <= 2; group++) {
            ck_assert_uint_eq(f.last_replayed[group], f.next_index[group] - 1);
            ck_assert(lap == 0 || f.first_replayed[group] > 1);
        }
    }
    ck_assert_uint_eq(f.done, 1002);
    ck_assert_uint_gt(f.pressures, 5);
    stop(&f);
}
END_TEST

START_TEST(full_ring_waits_for_marks_and_then_goes_on_in_order)
{
    struct fixture f;
    start(&f);
    for (unsigned i = 0; i < 200; i++) {
        submit_entry(&f, 1);
    }
    work(&f);
    unsigned before = f.done;
    ck_assert_uint_lt(before, 200);
    ck_assert_uint_gt(before, 30);
    ck_assert_uint_gt(f.stalls, 0);
    work(&f);
    ck_assert_uint_eq(f.done, before);
    journal_mark(f.journal, 1, before);
    work(&f);
    ck_assert_uint_gt(f.done, before);
    while (f.done < 200) {
        journal_mark(f.journal, 1, f.done);
        work(&f);
    }
    ck_assert_uint_eq(f.failed, 0);
    journal_abandon(f.journal);
    ck_assert_int_eq(try_open(&f), STATUS_OK);
    ck_assert_uint_eq(f.last_replayed[1], 200);
    ck_assert_uint_eq(f.damages, 0);
    stop(&f);
}
END_TEST

START_TEST(restart_of_a_full_ring_can_be_worked_free)
{
    struct fixture f;
    start(&f);
    for (unsigned i = 0; i < 200; i++) {
        submit_entry(&f, 1);
    }
    work(&f);
    unsigned written = f.done;
    journal_abandon(f.journal);
    ck_assert_int_eq(try_open(&f), STATUS_OK);
    ck_assert_uint_ge(f.last_replayed[1], written);
    f.next_index[1] = f.last_replayed[1] + 1;
    submit_entry(&f, 1);
    work(&f);
    journal_mark(f.journal, 1, f.last_replayed[1]);
    work(&f);
    ck_assert_uint_eq(f.done, written + 1);
    stop(&f);
}
END_TEST

START_TEST(failed_write_ends_everything_with_its_status)
{
    struct fixture f;
    start(&f);
    submit_entry(&f, 1);
    work(&f);
    ck_assert_uint_eq(f.done, 1);
    sim_disk_set_read_only(true);
    submit_entry(&f, 1);
    submit_entry(&f, 2);
    work(&f);
    ck_assert_uint_eq(f.done, 1);
    ck_assert_uint_eq(f.failed, 2);
    ck_assert_int_eq(f.last_status, STATUS_READ_ONLY);
    ck_assert_int_eq(journal_status(f.journal), STATUS_READ_ONLY);
    sim_disk_set_read_only(false);
    submit_entry(&f, 1);
    work(&f);
    ck_assert_uint_eq(f.failed, 3);
    ck_assert_uint_eq(f.failures, 1);
    journal_abandon(f.journal);
    ck_assert_int_eq(try_open(&f), STATUS_OK);
    ck_assert_uint_eq(f.last_replayed[1], 1);
    stop(&f);
}
END_TEST

START_TEST(full_disk_is_met_by_growth_alone_and_kills_only_without_hope)
{
    struct fixture f;
    start(&f);
    submit_entry(&f, 1);
    work(&f);
    sim_disk_set_capacity(FILE_BYTES); /* the first file is all there is */
    for (unsigned i = 0; i < 10; i++) {
        submit_entry(&f, 1);
        work(&f);
    }
    ck_assert_uint_eq(f.done, 11);
    ck_assert_int_eq(journal_status(f.journal), STATUS_OK);
    for (unsigned i = 0; i < 100 && journal_status(f.journal) == STATUS_OK; i++) {
        submit_entry(&f, 1);
        work(&f);
    }
    ck_assert_int_eq(journal_status(f.journal), STATUS_NO_SPACE);
    ck_assert_uint_eq(f.failures, 1);
    unsigned acknowledged = f.done;
    journal_abandon(f.journal);
    sim_disk_set_capacity(0);
    ck_assert_int_eq(try_open(&f), STATUS_OK);
    ck_assert_uint_eq(f.last_replayed[1], acknowledged);
    f.next_index[1] = acknowledged + 1;
    f.done = 0;
    submit_entry(&f, 1);
    work(&f);
    ck_assert_uint_eq(f.done, 1);
    stop(&f);
}
END_TEST

START_TEST(one_write_serves_all_groups)
{
    struct fixture f;
    struct journal_stats stats;
    start(&f);
    for (unsigned i = 0; i < 9; i++) {
        submit_entry(&f, 1 + i % GROUPS);
    }
    ck_assert(journal_run_once(f.journal, f.now_ms));
    ck_assert_uint_eq(f.done, 9);
    journal_read_stats(f.journal, &stats);
    ck_assert_uint_eq(stats.frames, 1);
    ck_assert_uint_eq(stats.records, 9);
    stop(&f);
}
END_TEST

START_TEST(idle_journal_writes_one_frame_and_no_more)
{
    struct fixture f;
    struct journal_stats stats;
    start(&f);
    submit_entry(&f, 1);
    work(&f);
    for (unsigned i = 0; i < 100; i++) {
        f.now_ms += 1000;
        work(&f);
    }
    journal_read_stats(f.journal, &stats);
    ck_assert_uint_eq(stats.frames, 2);
    stop(&f);
}
END_TEST

/* Changes of the disk for one more entry, and for all background work after it. */
static uint64_t changes_for_entry(struct fixture *f)
{
    uint64_t before = sim_disk_operations();
    submit_entry(f, 1);
    work(f);
    return sim_disk_operations() - before;
}

START_TEST(next_file_is_filled_little_by_little)
{
    enum { FRAMES = 255, MAKING = 6 }; /* frames of a file; what making another one takes */
    struct fixture f;
    start_with(&f, (FRAMES + 1) * JOURNAL_PAGE);
    changes_for_entry(&f); /* fills the first file */
    for (unsigned i = 1; i < FRAMES; i++) {
        ck_assert_uint_le(changes_for_entry(&f), i < FRAMES / 2 ? 1 : 1 + MAKING + 2);
    }
    for (unsigned i = 0; i < FRAMES / 2; i++) {
        ck_assert_uint_eq(changes_for_entry(&f), 1); /* it was ready */
    }
    stop(&f);
}
END_TEST

START_TEST(forgotten_group_holds_no_file)
{
    struct fixture f;
    struct journal_stats stats;
    start(&f);
    for (unsigned i = 0; i < 40; i++) {
        submit_entry(&f, 1);
        work(&f);
    }
    submit_entry(&f, 2);
    work(&f);
    journal_read_stats(f.journal, &stats);
    ck_assert_uint_gt(stats.used_bytes, FILE_BYTES);
    journal_forget(f.journal, 1);
    submit_entry(&f, 2);
    work(&f);
    journal_read_stats(f.journal, &stats);
    ck_assert_uint_eq(stats.used_bytes, FILE_BYTES);
    stop(&f);
}
END_TEST

START_TEST(entries_below_a_mark_hold_no_file)
{
    struct fixture f;
    struct journal_stats stats;
    start(&f);
    submit_entry(&f, 1);
    work(&f);
    journal_mark(f.journal, 1, 1000); /* a snapshot came from elsewhere */
    for (unsigned i = 0; i < 60; i++) {
        submit_entry(&f, 1);
        work(&f);
    }
    journal_read_stats(f.journal, &stats);
    ck_assert_uint_eq(stats.used_bytes, FILE_BYTES);
    stop(&f);
}
END_TEST

/* A crash came while a file was made, and now there is no room for it. */
START_TEST(short_file_is_done_without_on_a_full_disk)
{
    struct fixture f;
    struct file *file;
    start(&f);
    submit_entry(&f, 1);
    work(&f);
    journal_close(f.journal);
    ck_assert_int_eq(file_open("/journal/00000007.journal", FILE_WRITE | FILE_CREATE, &file),
                     STATUS_OK);
    file_unref(file);
    sim_disk_set_capacity(sim_disk_used() + 1);
    ck_assert_int_eq(try_open(&f), STATUS_OK);
    ck_assert_uint_eq(f.last_replayed[1], 1);
    sim_disk_set_capacity(0);
    submit_entry(&f, 1);
    work(&f);
    ck_assert_int_eq(f.failed, 0);
    journal_close(f.journal);
    memset(f.first_replayed, 0, sizeof f.first_replayed);
    ck_assert_int_eq(try_open(&f), STATUS_OK);
    ck_assert_uint_eq(f.last_replayed[1], 2);
    ck_assert_uint_eq(f.damages, 0); /* nobody looks for that file */
    stop(&f);
}
END_TEST

enum { LARGE_BYTES = 30001, LARGE_AT = 4999, AROUND = 'S' };

static struct block *large_block(void)
{
    struct block *block = block_new_pages(LARGE_AT + LARGE_BYTES + 200);
    memset(block->bytes, AROUND, block->capacity);
    for (unsigned i = 0; i < LARGE_BYTES; i++) {
        block->bytes[LARGE_AT + i] = (uint8_t)(i % 61);
    }
    return block;
}

static void submit_large(struct fixture *f)
{
    struct operation *operation = calloc(1, sizeof *operation);
    struct block *block = large_block();
    operation->record = (struct journal_record){.kind = JOURNAL_ENTRY, .group = 1, .term = 1,
        .index = f->next_index[1]++, .payload = slice_of(block, LARGE_AT, LARGE_BYTES)};
    operation->op = (struct journal_op){
        .records = &operation->record, .record_count = 1, .done = done};
    operation->fixture = f;
    journal_submit(f->journal, &operation->op);
    block_unref(block);
}

static void check_large(struct fixture *f)
{
    struct block *block = large_block();
    ck_assert_uint_eq(f->large.length, LARGE_BYTES);
    ck_assert(memcmp(f->large.data, block->bytes + LARGE_AT, LARGE_BYTES) == 0);
    block_unref(block);
}

static void reopen(struct fixture *f)
{
    block_unref(f->large.block);
    f->large = (struct slice){0};
    journal_close(f->journal);
    ck_assert_int_eq(try_open(f), STATUS_OK);
}

/* Where in the first file this byte is for the first time; the file's end when it is nowhere. */
static uint64_t find_byte(struct file *file, uint64_t from, uint8_t byte)
{
    static uint8_t bytes[FILE_BYTES];
    size_t got;
    ck_assert_int_eq(file_read(file, 0, bytes, sizeof bytes, &got), STATUS_OK);
    while (from < got && bytes[from] != byte) {
        from++;
    }
    return from;
}

static void flip_byte(struct file *file, uint64_t position)
{
    uint8_t byte;
    size_t got;
    ck_assert_int_eq(file_read(file, position, &byte, 1, &got), STATUS_OK);
    byte ^= 1;
    struct iovec part = {&byte, 1};
    ck_assert_int_eq(file_write(file, position, &part, 1), STATUS_OK);
}

/* A payload in pages of its own is not copied: what is around it in its sectors is on the disk too,
 * without a meaning. */
START_TEST(large_payload_is_written_from_where_it_lies)
{
    struct fixture f;
    struct file *file;
    start(&f);
    submit_entry(&f, 1);
    submit_large(&f);
    submit_entry(&f, 1);
    work(&f);
    ck_assert_uint_eq(f.done, 3);
    reopen(&f);
    ck_assert_uint_eq(f.last_replayed[1], 3);
    check_large(&f);
    ck_assert_int_eq(file_open("/journal/00000000.journal", FILE_WRITE, &file), STATUS_OK);
    uint64_t around = find_byte(file, 0, AROUND);
    ck_assert_uint_lt(around, FILE_BYTES);
    flip_byte(file, around);
    reopen(&f);
    ck_assert_uint_eq(f.damages, 0);
    check_large(&f);
    flip_byte(file, around + LARGE_BYTES / 2);
    reopen(&f);
    ck_assert_uint_eq(f.damages, 1);
    ck_assert_ptr_null(f.large.block);
    ck_assert_uint_eq(f.last_replayed[1], 3); /* what follows is there */
    file_unref(file);
    stop(&f);
}
END_TEST

START_TEST(large_payloads_go_on_in_the_next_frame)
{
    struct fixture f;
    start(&f);
    for (unsigned i = 0; i < 5; i++) {
        submit_large(&f);
        submit_entry(&f, 1);
    }
    f.mark_under_pressure = true;
    work(&f);
    ck_assert_uint_eq(f.done, 10);
    reopen(&f);
    ck_assert_uint_eq(f.last_replayed[1], 10);
    ck_assert_uint_eq(f.damages, 0);
    check_large(&f);
    block_unref(f.large.block);
    stop(&f);
}
END_TEST

START_TEST(newer_version_is_refused)
{
    struct fixture f;
    struct journal_frame_header header = {.sequence = 1, .generation = 1, .oldest = 1,
        .length = sizeof header};
    uint8_t bytes[sizeof header];
    start(&f);
    submit_entry(&f, 1);
    work(&f);
    journal_abandon(f.journal);
    /* A newer broker's frame: the version differs and the check fits. */
    journal_frame_store_version(header, JOURNAL_FORMAT_VERSION + 1, bytes);
    struct file *file;
    struct iovec part = {bytes, sizeof bytes};
    ck_assert_int_eq(file_open("/journal/00000000.journal", FILE_WRITE, &file), STATUS_OK);
    ck_assert_int_eq(file_write(file, 0, &part, 1), STATUS_OK);
    file_unref(file);
    ck_assert_int_eq(try_open(&f), STATUS_UNSUPPORTED);
    ck_assert_ptr_null(f.journal);
    sim_disk_reset(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("journal");
    TCase *tests = tcase_create("journal");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, files_are_used_again_and_votes_move_on);
    tcase_add_test(tests, full_ring_waits_for_marks_and_then_goes_on_in_order);
    tcase_add_test(tests, restart_of_a_full_ring_can_be_worked_free);
    tcase_add_test(tests, failed_write_ends_everything_with_its_status);
    tcase_add_test(tests, full_disk_is_met_by_growth_alone_and_kills_only_without_hope);
    tcase_add_test(tests, one_write_serves_all_groups);
    tcase_add_test(tests, idle_journal_writes_one_frame_and_no_more);
    tcase_add_test(tests, next_file_is_filled_little_by_little);
    tcase_add_test(tests, forgotten_group_holds_no_file);
    tcase_add_test(tests, entries_below_a_mark_hold_no_file);
    tcase_add_test(tests, short_file_is_done_without_on_a_full_disk);
    tcase_add_test(tests, large_payload_is_written_from_where_it_lies);
    tcase_add_test(tests, large_payloads_go_on_in_the_next_frame);
    tcase_add_test(tests, newer_version_is_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
