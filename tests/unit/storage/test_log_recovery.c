/* What a log does about its files at open: the five cases of log_recover.h, lost files and indexes,
 * epochs and producers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/file_whole.h"
#include "protocol/records.h"
#include "storage/log_recover.h"
#include "storage/partition_log.h"
#include "tests/unit/runner.h"
#include "tests/unit/storage/support.h"

enum { BATCHES = 60, RECORDS = 3, VALUE_BYTES = 300, END = BATCHES * RECORDS };

static const char first_log[] = "t-0/00000000000000000000.log";

struct fixture {
    const char *directory;
    struct support_shard support;
    struct log_settings settings;
    struct partition_log *log;
    struct log_damage damage;
    size_t batch_bytes;
};

static void open_at(struct fixture *f, int64_t next_offset)
{
    struct log_identity identity = {f->directory, "t", 0, {{1}}};
    struct log_recovery recovery = {next_offset, next_offset < 0 ? -1 : 0};
    ck_assert_int_eq(partition_log_open(f->support.shard, &identity, &f->settings, &recovery,
        &f->log, &f->damage), STATUS_OK);
}

static void append(struct fixture *f, int64_t offset, int32_t epoch)
{
    struct support_producer producer = {9, 0, (int32_t)offset};
    struct slice batch = support_batch_of(offset, epoch, RECORDS, VALUE_BYTES, 1000 + offset,
        &producer, 0);
    f->batch_bytes = batch.length;
    ck_assert_int_eq(partition_log_append(f->log, batch, f->support.now_ms), STATUS_OK);
    block_unref(batch.block);
}

/* A log of 60 batches of one size, flushed and closed. */
static void start(struct fixture *f, int64_t segment_bytes)
{
    f->directory = support_directory();
    f->settings = log_settings_default();
    f->settings.segment_bytes = segment_bytes;
    support_shard_open(&f->support, NULL);
    open_at(f, -1);
    for (int64_t i = 0; i < BATCHES; i++) {
        append(f, i * RECORDS, (int32_t)(i / 20));
    }
    ck_assert_int_eq(support_flush(&f->support, f->log), STATUS_OK);
    partition_log_close(f->log);
}

static void stop(struct fixture *f)
{
    partition_log_close(f->log);
    support_shard_close(&f->support);
    support_clean(f->directory);
}

/* Every batch from 0 to the end is whole and in order. */
static void check_content(struct fixture *f)
{
    int64_t offset = 0;
    while (offset < partition_log_end(f->log)) {
        struct log_read read;
        ck_assert_int_eq(partition_log_read(f->log, offset, 5000, true, &read), STATUS_OK);
        struct buffer bytes = support_bytes(&read);
        struct view left = buffer_view(&bytes);
        struct view batch;
        struct batch_header header;
        ck_assert_uint_gt(left.length, 0);
        while (batch_next(&left, &batch, &header) == STATUS_OK) {
            ck_assert_int_eq(batch_validate(batch, &header), STATUS_OK);
            ck_assert_int_eq(header.base_offset, offset);
            offset = batch_last_offset(&header) + 1;
        }
        buffer_free(&bytes);
        log_read_release(&read);
    }
}

/* One row: a bit of batch `flip` flips (-1: none), `cut_bytes` are cut off, and the log is opened
 * with the recovery point. */
struct row {
    char letter;
    int64_t flip;
    size_t cut_bytes;
    int64_t recovery_point;
    int64_t end;
    int64_t resume;      /* of the damage; -2: no damage */
};

static const struct row rows[] = {
    {'A', -1, 0, END, END, -2},
    {'A', -1, 0, -1, END, -2},
    {'A', 10, 0, END, END, -2},              /* what a checkpoint vouches for is not read */
    {'B', -1, 100, END, END - RECORDS, -1},
    {'B', -1, 2900, END - RECORDS, END - 3 * RECORDS, -1},
    {'C', 40, 0, 90, 40 * RECORDS, -2},
    {'C', -1, 100, 90, END - RECORDS, -2},
    {'C', 59, 0, 0, 59 * RECORDS, -2},
    {'D', 40, 0, -1, 40 * RECORDS, 41 * RECORDS},
    {'D', 0, 0, -1, 0, RECORDS},
    {'E', 59, 0, -1, 59 * RECORDS, -2},
    {'E', -1, 100, -1, END - RECORDS, -2},
};

START_TEST(end_of_a_log_is_judged_by_its_row)
{
    const struct row *row = &rows[_i];
    struct fixture f;
    start(&f, 1 << 30);
    const char *path = support_path(f.directory, first_log);
    if (row->flip >= 0) {
        support_flip(path, (uint64_t)row->flip * f.batch_bytes + 200);
    }
    struct file *file;
    ck_assert_int_eq(file_open(path, FILE_WRITE, &file), STATUS_OK);
    ck_assert_int_eq(file_truncate(file, BATCHES * f.batch_bytes - row->cut_bytes), STATUS_OK);
    file_unref(file);
    open_at(&f, row->recovery_point);
    bool damaged = f.damage.file[0] != '\0';
    ck_assert_int_eq(damaged, row->resume != -2);
    ck_assert_int_eq(partition_log_end(f.log), row->end);
    if (damaged) {
        ck_assert_int_eq(f.damage.offset, row->end);
        ck_assert_int_eq(f.damage.resume_offset, row->resume);
        ck_assert_uint_eq(f.damage.position, (uint64_t)row->end / RECORDS * f.batch_bytes);
        ck_assert_int_eq(partition_log_status(f.log), STATUS_CORRUPT);
        ck_assert_uint_eq(support_size(support_path(f.directory, first_log)),
            BATCHES * f.batch_bytes - row->cut_bytes);
        struct slice batch = support_batch(row->end, 3, 1, 10, 1);
        ck_assert_int_eq(partition_log_append(f.log, batch, 1), STATUS_CORRUPT);
        block_unref(batch.block);
        ck_assert_int_eq(partition_log_cut_damage(f.log), STATUS_OK);
        ck_assert_int_eq(partition_log_end(f.log), row->end);
    }
    if (row->letter != 'A') {
        check_content(&f);
        ck_assert(row->end == 0 || support_size(support_path(f.directory, first_log))
            == (uint64_t)row->end / RECORDS * f.batch_bytes);
        for (int64_t offset = row->end; offset < END; offset += RECORDS) {
            append(&f, offset, (int32_t)(offset / RECORDS / 20));
        }
        ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
        ck_assert_int_eq(partition_log_epoch_end(f.log, 1).end_offset, 40 * RECORDS);
        check_content(&f);
    }
    stop(&f);
}
END_TEST

START_TEST(one_case_fits_each_end)
{
    const int64_t points[] = {-1, 0, 50, 100};
    for (size_t r = 0; r < sizeof points / sizeof points[0]; r++) {
        for (int64_t expected = 0; expected <= 100; expected += 50) {
            for (int bits = 0; bits < 4; bits++) {
                bool whole = (bits & 1) != 0;
                bool follows = (bits & 2) != 0;
                bool lost = !whole && expected < points[r];
                bool unsynced = !whole && !lost && points[r] >= 0;
                bool corrupt = !whole && points[r] < 0 && follows;
                bool torn = !whole && points[r] < 0 && !follows;
                ck_assert_int_eq(whole + lost + unsynced + corrupt + torn, 1);
                enum log_recover_case result = log_recover_judge(whole, expected, points[r],
                    follows);
                ck_assert_int_eq(result == LOG_RECOVER_WHOLE, whole);
                ck_assert_int_eq(result == LOG_RECOVER_LOST, lost);
                ck_assert_int_eq(result == LOG_RECOVER_UNSYNCED, unsynced);
                ck_assert_int_eq(result == LOG_RECOVER_CORRUPT, corrupt);
                ck_assert_int_eq(result == LOG_RECOVER_TORN, torn);
            }
        }
    }
}
END_TEST

/* The n-th segment's .log, by listing. */
struct lowest {
    int64_t above;
    int64_t found;
};

static bool note_lowest(void *context, const char *name, bool is_directory)
{
    struct lowest *lowest = context;
    int64_t offset;
    if (!is_directory && log_file_offset(name, "log", &offset) && offset > lowest->above
        && (lowest->found < 0 || offset < lowest->found)) {
        lowest->found = offset;
    }
    return true;
}

static int64_t segment_after(struct fixture *f, int64_t above)
{
    struct lowest lowest = {above, -1};
    ck_assert_int_eq(file_list(support_path(f->directory, "t-0"), note_lowest, &lowest), STATUS_OK);
    return lowest.found;
}

START_TEST(segment_missing_in_the_middle_is_damage)
{
    struct fixture f;
    char path[FILE_PATH_MAX];
    start(&f, 10000);
    int64_t second = segment_after(&f, 0);
    int64_t third = segment_after(&f, second);
    log_file_path(support_path(f.directory, "t-0"), second, LOG_FILE_LOG, path);
    ck_assert_int_eq(file_remove(path), STATUS_OK);
    const int64_t points[] = {END, -1};
    for (size_t i = 0; i < 2; i++) {
        open_at(&f, points[i]);
        ck_assert_int_eq(f.damage.offset, second);
        ck_assert_int_eq(f.damage.resume_offset, third);
        ck_assert_int_eq(partition_log_end(f.log), second);
        check_content(&f);
        if (i == 0) {
            partition_log_close(f.log);
        }
    }
    stop(&f);
}
END_TEST

START_TEST(all_segments_missing_is_damage)
{
    struct fixture f;
    start(&f, 1 << 30);
    ck_assert_int_eq(file_remove(support_path(f.directory, first_log)), STATUS_OK);
    open_at(&f, END);
    ck_assert_str_ne(f.damage.file, "");
    ck_assert_int_eq(f.damage.offset, 0);
    stop(&f);
}
END_TEST

START_TEST(lost_and_broken_indexes_are_made_again)
{
    static const char *const suffixes[] = {"index", "timeindex"};
    struct fixture f;
    start(&f, 10000);
    for (int64_t base = 0; base >= 0; base = segment_after(&f, base)) {
        for (size_t i = 0; i < 2; i++) {
            char name[64];
            snprintf(name, sizeof name, "t-0/%020lld.%s", (long long)base, suffixes[i]);
            struct buffer before = support_read(support_path(f.directory, name));
            ck_assert_int_eq(file_remove(support_path(f.directory, name)), STATUS_OK);
            open_at(&f, END);
            ck_assert_str_eq(f.damage.file, "");
            struct log_time_offset found;
            ck_assert_int_eq(partition_log_find_time(f.log, 1000 + END - 1, &found), STATUS_OK);
            ck_assert_int_eq(found.offset, END - 1);
            check_content(&f);
            support_pass(&f.support, 1000);
            partition_log_close(f.log);
            if (i == 0) {
                open_at(&f, -1); /* everything is read: the index is as it was */
                ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
                partition_log_close(f.log);
                struct buffer after = support_read(support_path(f.directory, name));
                ck_assert(view_equal(buffer_view(&before), buffer_view(&after)));
                buffer_free(&after);
            }
            buffer_free(&before);
        }
    }
    open_at(&f, END);
    stop(&f);
}
END_TEST

START_TEST(flipped_index_entries_do_not_mislead_readers)
{
    const int64_t segment_bytes[] = {1 << 30, 30000}; /* of a segment that is read again, or not */
    struct fixture f;
    start(&f, segment_bytes[_i]);
    uint64_t size = support_size(support_path(f.directory, "t-0/00000000000000000000.index"));
    for (uint64_t i = 0; i < size; i++) {
        support_flip(support_path(f.directory, "t-0/00000000000000000000.index"), i);
        open_at(&f, END);
        ck_assert_str_eq(f.damage.file, "");
        check_content(&f);
        support_pass(&f.support, 1000);
        partition_log_close(f.log);
    }
    open_at(&f, END);
    stop(&f);
}
END_TEST

START_TEST(epochs_behind_a_cut_are_forgotten)
{
    struct fixture f;
    start(&f, 1 << 30);
    support_flip(support_path(f.directory, first_log), 39 * f.batch_bytes + 200);
    open_at(&f, 30 * RECORDS);
    ck_assert_int_eq(partition_log_end(f.log), 39 * RECORDS);
    ck_assert_int_eq(partition_log_latest_epoch(f.log), 1);
    ck_assert_int_eq(partition_log_epoch_end(f.log, 1).end_offset, 39 * RECORDS);
    partition_log_close(f.log);
    open_at(&f, END); /* and so it is when that is damage */
    ck_assert_int_eq(f.damage.offset, 39 * RECORDS);
    ck_assert_int_eq(partition_log_latest_epoch(f.log), 1);
    stop(&f);
}
END_TEST

START_TEST(missing_epochs_are_read_from_the_batches)
{
    struct fixture f;
    start(&f, 10000);
    ck_assert_int_eq(file_remove(support_path(f.directory, "t-0/leader-epoch-checkpoint")),
        STATUS_OK);
    open_at(&f, END);
    ck_assert_int_eq(partition_log_epoch_end(f.log, 0).end_offset, 20 * RECORDS);
    ck_assert_int_eq(partition_log_epoch_end(f.log, 1).end_offset, 40 * RECORDS);
    ck_assert_int_eq(partition_log_latest_epoch(f.log), 2);
    stop(&f);
}
END_TEST

static enum producer_verdict judge(struct fixture *f, int32_t sequence)
{
    struct producer_batch batch = {.producer_id = 9, .base_sequence = sequence,
        .record_count = RECORDS};
    return producer_state_check(partition_log_producers(f->log), &batch).verdict;
}

START_TEST(producers_are_known_again_from_snapshot_or_log)
{
    struct fixture f;
    char name[64];
    start(&f, 10000);
    const int64_t points[] = {END, -1, 30 * RECORDS};
    for (size_t i = 0; i < 3; i++) {
        open_at(&f, points[i]);
        ck_assert_int_eq(judge(&f, END - RECORDS), PRODUCER_DUPLICATE);
        ck_assert_int_eq(judge(&f, END), PRODUCER_ACCEPT);
        ck_assert_int_eq(judge(&f, END + 1), PRODUCER_OUT_OF_ORDER);
        ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
        partition_log_close(f.log);
    }
    snprintf(name, sizeof name, "t-0/%020d.snapshot", END);
    support_flip(support_path(f.directory, name), 20);
    open_at(&f, END);
    ck_assert_int_eq(judge(&f, END - RECORDS), PRODUCER_DUPLICATE);
    stop(&f);
}
END_TEST

START_TEST(leftovers_of_a_crash_are_removed)
{
    struct fixture f;
    start(&f, 10000);
    ck_assert_int_eq(file_replace(support_path(f.directory, "t-0/x.tmp"), VIEW_EMPTY, false),
        STATUS_OK);
    ck_assert_int_eq(file_replace(support_path(f.directory,
        "t-0/00000000000000000000.log.deleted"), VIEW_EMPTY, false), STATUS_OK);
    open_at(&f, END);
    ck_assert(!file_exists(support_path(f.directory, "t-0/x.tmp")));
    ck_assert(!file_exists(support_path(f.directory, "t-0/00000000000000000000.log.deleted")));
    check_content(&f);
    stop(&f);
}
END_TEST

START_TEST(gaps_of_a_copied_compacted_log_are_no_damage)
{
    struct fixture f;
    start(&f, 10000);
    open_at(&f, END);
    append(&f, END + 1000, 3);
    append(&f, END + 2000, 3);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    const int64_t points[] = {END + 2000 + RECORDS, -1};
    for (size_t i = 0; i < 2; i++) {
        partition_log_close(f.log);
        open_at(&f, points[i]);
        struct log_read read;
        ck_assert_str_eq(f.damage.file, "");
        ck_assert_int_eq(partition_log_end(f.log), END + 2000 + RECORDS);
        ck_assert_int_eq(partition_log_read(f.log, END + 500, 100, true, &read), STATUS_OK);
        ck_assert_int_eq(read.base_offset, END + 1000);
        log_read_release(&read);
    }
    stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_recovery");
    TCase *tests = tcase_create("log_recovery");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, end_of_a_log_is_judged_by_its_row, 0,
        (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(tests, one_case_fits_each_end);
    tcase_add_test(tests, segment_missing_in_the_middle_is_damage);
    tcase_add_test(tests, all_segments_missing_is_damage);
    tcase_add_test(tests, lost_and_broken_indexes_are_made_again);
    tcase_add_loop_test(tests, flipped_index_entries_do_not_mislead_readers, 0, 2);
    tcase_add_test(tests, epochs_behind_a_cut_are_forgotten);
    tcase_add_test(tests, missing_epochs_are_read_from_the_batches);
    tcase_add_test(tests, producers_are_known_again_from_snapshot_or_log);
    tcase_add_test(tests, leftovers_of_a_crash_are_removed);
    tcase_add_test(tests, gaps_of_a_copied_compacted_log_are_no_damage);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
