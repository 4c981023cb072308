/* Records are found by time in every place a batch can be, and old ones leave when they should. */
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "protocol/records.h"
#include "storage/partition_log.h"
#include "tests/unit/runner.h"
#include "tests/unit/storage/support.h"

struct fixture {
    const char *directory;
    struct support_shard support;
    struct log_settings settings;
    struct partition_log *log;
};

static void start(struct fixture *f)
{
    struct log_recovery recovery = {-1, -1};
    struct log_damage damage;
    f->directory = support_directory();
    f->settings = log_settings_default();
    f->settings.segment_bytes = 20000;
    support_shard_open(&f->support, NULL);
    struct log_identity identity = {f->directory, "t", 0, {{1}}};
    ck_assert_int_eq(partition_log_open(f->support.shard, &identity, &f->settings, &recovery,
        &f->log, &damage), STATUS_OK);
}

static void stop(struct fixture *f)
{
    partition_log_close(f->log);
    support_shard_close(&f->support);
    support_clean(f->directory);
}

static void append(struct fixture *f, int32_t count, int64_t time_ms, int compression)
{
    struct slice batch = support_batch_of(partition_log_end(f->log), 4, count, 100, time_ms, NULL,
        compression);
    ck_assert_int_eq(partition_log_append(f->log, batch, f->support.now_ms), STATUS_OK);
    block_unref(batch.block);
}

static int64_t find(struct fixture *f, int64_t time_ms)
{
    struct log_time_offset found;
    ck_assert_int_eq(partition_log_find_time(f->log, time_ms, &found), STATUS_OK);
    ck_assert(found.offset < 0 || found.timestamp_ms >= time_ms);
    ck_assert_int_eq(found.leader_epoch, found.offset < 0 ? -1 : 4);
    return found.offset;
}

START_TEST(first_record_at_or_after_a_time_is_found)
{
    struct fixture f;
    start(&f);
    ck_assert_int_eq(find(&f, 0), -1);
    for (int i = 0; i < 300; i++) { /* record n has time 10000 + 10 n within a batch of ten: + n */
        append(&f, 10, 10000 + 100 * i, i % COMPRESSION_COUNT);
    }
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(find(&f, 0), 0);
        ck_assert_int_eq(find(&f, 10000), 0);
        ck_assert_int_eq(find(&f, 10001), 1);
        ck_assert_int_eq(find(&f, 10009), 9);
        ck_assert_int_eq(find(&f, 10010), 10);
        ck_assert_int_eq(find(&f, 10000 + 100 * 299 + 9), 2999);
        ck_assert_int_eq(find(&f, 10000 + 100 * 299 + 10), -1);
        for (int i = 0; i < 300; i += 7) {
            ck_assert_int_eq(find(&f, 10000 + 100 * i + 5), i * 10 + 5);
            ck_assert_int_eq(find(&f, 10000 + 100 * i + 50), i == 299 ? -1 : (i + 1) * 10);
        }
        support_pass(&f.support, 1000);
        if (round == 1) {
            support_pass(&f.support, 60000);
        }
    }
    ck_assert_uint_gt(partition_log_segment_count(f.log), 3);
    ck_assert_int_eq(partition_log_delete_records(f.log, 15), STATUS_OK);
    ck_assert_int_eq(find(&f, 0), 15);
    stop(&f);
}
END_TEST

START_TEST(times_that_do_not_rise_are_found_too)
{
    struct fixture f;
    struct log_time_offset found;
    start(&f);
    append(&f, 1, 500, 0);
    append(&f, 1, 300, 0);
    append(&f, 1, 900, 0);
    append(&f, 3, 100, 0);
    append(&f, 1, 900, 0);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(find(&f, 100), 0);
        ck_assert_int_eq(find(&f, 501), 2);
        ck_assert_int_eq(find(&f, 901), -1);
        ck_assert_int_eq(partition_log_find_max_time(f.log, &found), STATUS_OK);
        ck_assert_int_eq(found.offset, 2);
        ck_assert_int_eq(found.timestamp_ms, 900);
        support_pass(&f.support, 60000);
        support_pass(&f.support, 60000);
    }
    stop(&f);
}
END_TEST

START_TEST(old_segments_leave_by_time)
{
    struct fixture f;
    start(&f);
    f.settings.retention_ms = 10000;
    for (int i = 0; i < 300; i++) {
        append(&f, 10, 10000 + 100 * i, 0);
    }
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    ck_assert_int_eq(partition_log_retention(f.log, 10000), 0);
    int64_t start_offset = partition_log_retention(f.log, 10000 + 100 * 150 + 10000);
    ck_assert_int_gt(start_offset, 1200);
    ck_assert_int_le(start_offset, 1510);
    ck_assert_int_eq(start_offset, partition_log_start(f.log));
    ck_assert_int_eq(find(&f, 0), start_offset);
    ck_assert_int_eq(partition_log_epoch_end(f.log, 3).end_offset, start_offset);
    support_settle(&f.support);
    /* Everything is old: the active segment goes too, and offsets go on. */
    for (int i = 0; i < 3; i++) {
        partition_log_retention(f.log, INT64_MAX);
        support_settle(&f.support);
    }
    ck_assert_int_eq(partition_log_start(f.log), 3000);
    ck_assert_int_eq(partition_log_end(f.log), 3000);
    ck_assert_uint_eq(partition_log_size_bytes(f.log), 0);
    ck_assert(file_exists(support_path(f.directory, "t-0/00000000000000003000.log")));
    append(&f, 1, 1, 0);
    ck_assert_int_eq(partition_log_end(f.log), 3001);
    stop(&f);
}
END_TEST

START_TEST(surplus_segments_leave_by_size)
{
    struct fixture f;
    start(&f);
    f.settings.retention_bytes = 100000;
    for (int i = 0; i < 300; i++) {
        append(&f, 10, 10000 + 100 * i, 0);
    }
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    ck_assert_uint_gt(partition_log_size_bytes(f.log), 300000);
    partition_log_retention(f.log, 0);
    ck_assert_uint_ge(partition_log_size_bytes(f.log), 100000);
    ck_assert_uint_le(partition_log_size_bytes(f.log), 125000);
    f.settings.delete_old = false;
    f.settings.retention_bytes = 0;
    int64_t before = partition_log_start(f.log);
    ck_assert_int_eq(partition_log_retention(f.log, INT64_MAX), before);
    stop(&f);
}
END_TEST

START_TEST(segments_roll_by_size_time_and_index)
{
    struct fixture f;
    start(&f);
    f.settings.segment_ms = 1000;
    append(&f, 1, 5000, 0);
    append(&f, 1, 6000, 0);
    ck_assert_uint_eq(partition_log_segment_count(f.log), 1);
    append(&f, 1, 6001, 0);
    ck_assert_uint_eq(partition_log_segment_count(f.log), 2);
    f.settings.segment_ms = INT64_MAX;
    f.settings.segment_index_bytes = 8 * 2;
    f.settings.index_interval_bytes = 0;
    for (int i = 0; i < 7; i++) {
        append(&f, 1, 6001, 0);
    }
    ck_assert_uint_eq(partition_log_segment_count(f.log), 4);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    support_pass(&f.support, 60000);
    ck_assert_uint_eq(support_size(support_path(f.directory, "t-0/00000000000000000002.index")),
        16);
    ck_assert_uint_eq(support_size(support_path(f.directory,
        "t-0/00000000000000000000.timeindex")), 12);
    stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_time");
    TCase *tests = tcase_create("log_time");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, first_record_at_or_after_a_time_is_found);
    tcase_add_test(tests, times_that_do_not_rise_are_found_too);
    tcase_add_test(tests, old_segments_leave_by_time);
    tcase_add_test(tests, surplus_segments_leave_by_size);
    tcase_add_test(tests, segments_roll_by_size_time_and_index);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
