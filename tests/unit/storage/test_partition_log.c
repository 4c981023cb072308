/* Appending and reading a partition log, from memory and from files, over segments and restarts. */
#include "storage/partition_log.h"

#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/file_whole.h"
#include "protocol/records.h"
#include "tests/unit/runner.h"
#include "tests/unit/storage/support.h"

static const struct uuid topic_id = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

struct fixture {
    const char *directory;
    struct support_shard support;
    struct log_settings settings;
    struct partition_log *log;
    struct log_damage damage;
};

static struct log_identity identity_of(const struct fixture *f)
{
    return (struct log_identity){f->directory, "topic", 3, topic_id};
}

static void open_at(struct fixture *f, int64_t next_offset, int64_t log_start)
{
    struct log_identity identity = identity_of(f);
    struct log_recovery recovery = {next_offset, log_start};
    ck_assert_int_eq(partition_log_open(f->support.shard, &identity, &f->settings, &recovery,
        &f->log, &f->damage), STATUS_OK);
}

static void start(struct fixture *f, const struct log_shard_settings *settings)
{
    f->directory = support_directory();
    f->settings = log_settings_default();
    support_shard_open(&f->support, settings);
    open_at(f, -1, -1);
    ck_assert_str_eq(f->damage.file, "");
}

static void stop(struct fixture *f)
{
    partition_log_close(f->log);
    support_shard_close(&f->support);
    support_clean(f->directory);
}

static void append(struct fixture *f, struct slice batch)
{
    ck_assert_int_eq(partition_log_append(f->log, batch, f->support.now_ms), STATUS_OK);
    block_unref(batch.block);
}

/* Appends `batches` batches of `count` records each. */
static void append_many(struct fixture *f, int batches, int32_t count, size_t value_bytes)
{
    for (int i = 0; i < batches; i++) {
        int64_t offset = partition_log_end(f->log);
        append(f, support_batch(offset, 1, count, value_bytes + (size_t)i % 3, 5000 + offset));
    }
}

/* Reads from `offset` to the end in steps of `max_bytes`; every batch must follow the one before.
 * Returns the offset reached. */
static int64_t read_through(struct fixture *f, int64_t offset, size_t max_bytes)
{
    for (;;) {
        struct log_read read;
        ck_assert_int_eq(partition_log_read(f->log, offset, max_bytes, true, &read), STATUS_OK);
        struct buffer bytes = support_bytes(&read);
        struct view left = buffer_view(&bytes);
        struct view batch;
        struct batch_header header;
        bool first = true;
        ck_assert_uint_eq(read.total_bytes, bytes.length);
        while (batch_next(&left, &batch, &header) == STATUS_OK) {
            ck_assert_int_eq(batch_validate(batch, &header), STATUS_OK);
            ck_assert(first ? header.base_offset <= offset : header.base_offset == offset);
            ck_assert_int_ge(batch_last_offset(&header), offset);
            offset = batch_last_offset(&header) + 1;
            first = false;
        }
        ck_assert_uint_eq(left.length, 0);
        log_read_release(&read);
        buffer_free(&bytes);
        if (first) {
            return offset;
        }
    }
}

START_TEST(unwritten_log_leaves_no_trace)
{
    struct fixture f;
    struct log_read read;
    start(&f, NULL);
    ck_assert(!file_exists(support_path(f.directory, "topic-3")));
    ck_assert_int_eq(partition_log_end(f.log), 0);
    ck_assert_int_eq(partition_log_read(f.log, 0, 1000, true, &read), STATUS_OK);
    ck_assert_uint_eq(read.total_bytes, 0);
    ck_assert_int_eq(partition_log_read(f.log, 1, 1000, true, &read), STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    ck_assert_int_eq(partition_log_epoch_end(f.log, 3).epoch, -1);
    ck_assert(!file_exists(support_path(f.directory, "topic-3")));
    stop(&f);
}
END_TEST

START_TEST(batches_are_read_from_memory_at_once_and_from_the_file_later)
{
    struct fixture f;
    struct log_read read;
    start(&f, NULL);
    append_many(&f, 100, 3, 200);
    ck_assert_int_eq(partition_log_end(f.log), 300);
    ck_assert_int_eq(partition_log_read(f.log, 4, 2000, true, &read), STATUS_OK);
    ck_assert_ptr_nonnull(read.parts[0].slice.block);
    ck_assert_int_eq(read.base_offset, 3);
    log_read_release(&read);
    ck_assert_int_eq(read_through(&f, 0, 5000), 300);
    support_pass(&f.support, 1000);
    ck_assert(file_exists(support_path(f.directory, "topic-3/00000000000000000000.log")));
    support_pass(&f.support, 60000);
    ck_assert_int_eq(partition_log_read(f.log, 4, 2000, true, &read), STATUS_OK);
    ck_assert_ptr_null(read.parts[0].slice.block);
    ck_assert_int_eq(read.base_offset, 3);
    log_read_release(&read);
    for (size_t max = 1; max < 100000; max = max * 3 + 1) {
        ck_assert_int_eq(read_through(&f, 0, max), 300);
        ck_assert_int_eq(read_through(&f, 151, max), 300);
    }
    append_many(&f, 10, 3, 200);
    ck_assert_int_eq(read_through(&f, 0, 4000), 330);
    stop(&f);
}
END_TEST

START_TEST(limit_is_kept_but_for_a_first_batch_asked_for_whole)
{
    struct fixture f;
    struct log_read read;
    start(&f, NULL);
    append_many(&f, 4, 1, 10000);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(partition_log_read(f.log, 1, 100, false, &read), STATUS_OK);
        ck_assert_uint_eq(read.total_bytes, 0);
        log_read_release(&read);
        ck_assert_int_eq(partition_log_read(f.log, 1, 100, true, &read), STATUS_OK);
        ck_assert_uint_gt(read.total_bytes, 10000);
        ck_assert_uint_lt(read.total_bytes, 10200);
        log_read_release(&read);
        ck_assert_int_eq(partition_log_read(f.log, 1, 25000, true, &read), STATUS_OK);
        ck_assert_uint_gt(read.total_bytes, 20000);
        ck_assert_uint_le(read.total_bytes, 25000);
        log_read_release(&read);
        support_pass(&f.support, 1000);
        support_pass(&f.support, 60000);
    }
    stop(&f);
}
END_TEST

START_TEST(restart_finds_everything_again)
{
    struct fixture f;
    start(&f, NULL);
    f.settings.segment_bytes = 20000;
    append_many(&f, 200, 3, 200);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    ck_assert_int_eq(partition_log_synced(f.log), 600);
    size_t segments = partition_log_segment_count(f.log);
    uint64_t size = partition_log_size_bytes(f.log);
    ck_assert_uint_gt(segments, 5);
    const int64_t points[] = {600, -1, 0, 297, 300};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        partition_log_close(f.log);
        open_at(&f, points[i], 0);
        ck_assert_str_eq(f.damage.file, "");
        ck_assert_int_eq(partition_log_end(f.log), 600);
        ck_assert_int_eq(partition_log_start(f.log), 0);
        ck_assert_uint_eq(partition_log_segment_count(f.log), segments);
        ck_assert_uint_eq(partition_log_size_bytes(f.log), size);
        ck_assert_int_eq(partition_log_latest_epoch(f.log), 1);
        ck_assert_int_eq(read_through(&f, 0, 7000), 600);
        ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    }
    append_many(&f, 20, 3, 200);
    ck_assert_int_eq(read_through(&f, 500, 7000), 660);
    stop(&f);
}
END_TEST

START_TEST(segment_ends_only_when_all_its_batches_are_written)
{
    struct fixture f;
    start(&f, NULL);
    for (int i = 0; i < 10000; i++) { /* more than one job takes */
        append(&f, support_batch(i, 1, 1, 1, 5000));
    }
    f.settings.segment_bytes = 1000;
    append(&f, support_batch(10000, 1, 1, 1, 5000));
    ck_assert_uint_eq(partition_log_segment_count(f.log), 2);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    ck_assert_int_eq(partition_log_synced(f.log), 10001);
    partition_log_close(f.log);
    open_at(&f, 10001, 0);
    ck_assert_str_eq(f.damage.file, "");
    ck_assert_int_eq(partition_log_end(f.log), 10001);
    ck_assert_int_eq(read_through(&f, 0, 100000), 10001);
    stop(&f);
}
END_TEST

START_TEST(torn_metadata_is_written_again)
{
    struct fixture f;
    const char *metadata = "topic-3/partition.metadata";
    start(&f, NULL);
    append_many(&f, 1, 1, 10);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    partition_log_close(f.log);
    ck_assert_int_eq(file_replace(support_path(f.directory, metadata),
        VIEW_LITERAL("version: 0\nto"), true), STATUS_OK);
    open_at(&f, 1, 0);
    append_many(&f, 1, 1, 10);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    struct buffer text = support_read(support_path(f.directory, metadata));
    ck_assert_uint_eq(text.length, strlen("version: 0\ntopic_id: AQIDBAUGBwgJCgsMDQ4PEA"));
    buffer_free(&text);
    stop(&f);
}
END_TEST

START_TEST(batch_below_the_end_is_refused)
{
    struct fixture f;
    start(&f, NULL);
    append_many(&f, 2, 5, 10);
    struct slice batch = support_batch(9, 1, 1, 10, 1);
    ck_assert_int_eq(partition_log_append(f.log, batch, 1), STATUS_OUT_OF_RANGE);
    block_unref(batch.block);
    ck_assert_int_eq(partition_log_end(f.log), 10);
    stop(&f);
}
END_TEST

START_TEST(epochs_answer_as_kafka)
{
    struct fixture f;
    start(&f, NULL);
    append(&f, support_batch(0, 2, 10, 10, 1));
    append(&f, support_batch(10, 2, 10, 10, 1));
    append(&f, support_batch(20, 5, 10, 10, 1));
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(partition_log_epoch_end(f.log, 2).end_offset, 20);
        ck_assert_int_eq(partition_log_epoch_end(f.log, 4).epoch, 2);
        ck_assert_int_eq(partition_log_epoch_end(f.log, 4).end_offset, 20);
        ck_assert_int_eq(partition_log_epoch_end(f.log, 5).end_offset, 30);
        ck_assert_int_eq(partition_log_epoch_end(f.log, 6).epoch, -1);
        ck_assert_int_eq(partition_log_epoch_end(f.log, 6).end_offset, -1);
        ck_assert_int_eq(partition_log_epoch_end(f.log, 1).epoch, 1);
        ck_assert_int_eq(partition_log_epoch_end(f.log, 1).end_offset, 0);
        ck_assert_int_eq(partition_log_epoch_at(f.log, 19), 2);
        ck_assert_int_eq(partition_log_epoch_at(f.log, 20), 5);
        ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
        partition_log_close(f.log);
        open_at(&f, 30, 0);
    }
    struct buffer text =
        support_read(support_path(f.directory, "topic-3/leader-epoch-checkpoint"));
    ck_assert(view_is(buffer_view(&text), "0\n2\n2 0\n5 20\n"));
    buffer_free(&text);
    text = support_read(support_path(f.directory, "topic-3/partition.metadata"));
    ck_assert(view_is(buffer_view(&text), "version: 0\ntopic_id: AQIDBAUGBwgJCgsMDQ4PEA"));
    buffer_free(&text);
    stop(&f);
}
END_TEST

START_TEST(foreign_topic_id_is_refused)
{
    struct fixture f;
    struct partition_log *other;
    struct log_identity identity = {NULL, "topic", 3, {{9}}};
    struct log_recovery recovery = {-1, -1};
    start(&f, NULL);
    append_many(&f, 1, 1, 10);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    identity.data_path = f.directory;
    ck_assert_int_eq(partition_log_open(f.support.shard, &identity, &f.settings, &recovery, &other,
        &f.damage), STATUS_INVALID);
    stop(&f);
}
END_TEST

START_TEST(memory_is_given_up_over_the_budget)
{
    struct fixture f;
    struct log_shard_stats stats;
    struct log_shard_settings settings = {.tail_budget_bytes = 100000};
    start(&f, &settings);
    for (int i = 0; i < 100; i++) {
        append_many(&f, 1, 1, 20000);
        support_settle(&f.support);
        log_shard_read_stats(f.support.shard, &stats);
        ck_assert_uint_le(stats.tail_bytes, 150000);
    }
    ck_assert_int_eq(read_through(&f, 0, 300000), 100);
    stop(&f);
}
END_TEST

START_TEST(reads_survive_the_deletion_of_what_they_read)
{
    struct fixture f;
    struct log_read read;
    start(&f, NULL);
    f.settings.segment_bytes = 20000;
    append_many(&f, 100, 3, 200);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    support_pass(&f.support, 60000);
    ck_assert_int_eq(partition_log_read(f.log, 0, 10000, true, &read), STATUS_OK);
    ck_assert_ptr_nonnull(read.parts[0].file);
    ck_assert_int_eq(partition_log_delete_records(f.log, 300), STATUS_OK);
    support_settle(&f.support);
    support_pass(&f.support, 120000);
    ck_assert(!file_exists(support_path(f.directory, "topic-3/00000000000000000000.log")));
    struct buffer bytes = support_bytes(&read);
    ck_assert_uint_eq(bytes.length, read.total_bytes);
    buffer_free(&bytes);
    log_read_release(&read);
    ck_assert_int_eq(partition_log_read(f.log, 299, 10000, true, &read), STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(partition_log_start(f.log), 300);
    ck_assert_uint_eq(partition_log_segment_count(f.log), 1);
    append_many(&f, 1, 3, 200);
    ck_assert_int_eq(read_through(&f, 300, 10000), 303);
    stop(&f);
}
END_TEST

static void count_done(void *context, enum status status)
{
    ck_assert_int_eq(status, STATUS_OK);
    (*(int *)context)++;
}

static void count_flushed(void *context, enum status status, int64_t synced_offset)
{
    ck_assert_int_ge(synced_offset, 0);
    count_done(context, status);
}

/* Closes the log; its files wait for log_deletion_begin. */
static struct log_deletion *delete_log(struct fixture *f, int *done)
{
    struct log_identity identity = identity_of(f);
    partition_log_close(f->log);
    return log_deletion_new(f->support.shard, &identity, f->settings.file_delete_delay_ms,
        done == NULL ? NULL : count_done, done);
}

START_TEST(deleted_partition_leaves_its_name_at_once_and_the_disk_later)
{
    struct fixture f;
    int done = 0;
    start(&f, NULL);
    append_many(&f, 10, 3, 200);
    support_pass(&f.support, 1000);
    append_many(&f, 10, 3, 200);
    log_deletion_begin(delete_log(&f, NULL), STATUS_IO);
    support_settle(&f.support);
    ck_assert(file_exists(support_path(f.directory, "topic-3")));
    open_at(&f, -1, -1);
    struct log_deletion *deletion = delete_log(&f, &done);
    support_settle(&f.support);
    ck_assert_int_eq(done, 0);
    ck_assert(file_exists(support_path(f.directory, "topic-3")));
    log_deletion_begin(deletion, STATUS_OK);
    support_settle(&f.support);
    ck_assert_int_eq(done, 1);
    ck_assert(!file_exists(support_path(f.directory, "topic-3")));
    open_at(&f, -1, -1);
    ck_assert_int_eq(partition_log_end(f.log), 0);
    append_many(&f, 1, 1, 10);
    support_pass(&f.support, 1000);
    support_pass(&f.support, 120000);
    ck_assert_int_eq(read_through(&f, 0, 1000), 1);
    log_deletion_begin(delete_log(&f, NULL), STATUS_OK);
    support_shard_close(&f.support);
    support_clean(f.directory);
}
END_TEST

START_TEST(a_directory_of_another_topic_stays)
{
    struct fixture f;
    start(&f, NULL);
    append_many(&f, 1, 1, 10);
    support_pass(&f.support, 1000);
    partition_log_close(f.log);
    struct log_identity identity = identity_of(&f);
    identity.topic_id.bytes[0]++;
    struct log_recovery recovery = {-1, -1};
    ck_assert_int_eq(partition_log_open(f.support.shard, &identity, &f.settings, &recovery,
        &f.log, &f.damage), STATUS_INVALID);
    log_deletion_begin(log_deletion_new(f.support.shard, &identity, 0, NULL, NULL), STATUS_OK);
    support_pass(&f.support, 120000);
    open_at(&f, -1, -1);
    ck_assert_int_eq(partition_log_end(f.log), 1);
    stop(&f);
}
END_TEST

START_TEST(reset_starts_again_at_an_offset)
{
    struct fixture f;
    start(&f, NULL);
    append_many(&f, 10, 3, 200);
    support_pass(&f.support, 1000);
    ck_assert_int_eq(partition_log_reset(f.log, 1000), STATUS_OK);
    support_settle(&f.support);
    ck_assert_int_eq(partition_log_start(f.log), 1000);
    partition_log_close(f.log);
    open_at(&f, 1000, 1000);
    ck_assert_int_eq(partition_log_end(f.log), 1000);
    append_many(&f, 10, 3, 200);
    ck_assert_int_eq(read_through(&f, 1000, 1000), 1030);
    ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    partition_log_close(f.log);
    open_at(&f, -1, -1);
    ck_assert_int_eq(partition_log_start(f.log), 1000);
    ck_assert_int_eq(partition_log_end(f.log), 1030);
    stop(&f);
}
END_TEST

START_TEST(reset_lets_a_flush_that_waits_end_well)
{
    struct fixture f;
    int done = 0;
    start(&f, NULL);
    append_many(&f, 10, 3, 200);
    partition_log_flush(f.log, count_flushed, &done);
    append_many(&f, 1, 3, 200);
    partition_log_flush(f.log, count_flushed, &done);
    ck_assert_int_eq(partition_log_reset(f.log, 1000), STATUS_OK);
    ck_assert_int_eq(done, 0);
    support_settle(&f.support);
    ck_assert_int_eq(done, 2);
    ck_assert(file_exists(support_path(f.directory, "topic-3/00000000000000001000.log")));
    stop(&f);
}
END_TEST

START_TEST(reset_forgets_producers_for_good)
{
    struct fixture f;
    struct support_producer producer = {.id = 7};
    start(&f, NULL);
    for (int i = 0; i < 3; i++) {
        producer.sequence = i;
        append(&f, support_batch_of(i, 1, 1, 10, 5000, &producer, 0));
        ck_assert_int_eq(support_flush(&f.support, f.log), STATUS_OK);
    }
    ck_assert(file_exists(support_path(f.directory, "topic-3/00000000000000000003.snapshot")));
    ck_assert_int_eq(partition_log_reset(f.log, 1000), STATUS_OK);
    support_settle(&f.support);
    ck_assert(!file_exists(support_path(f.directory, "topic-3/00000000000000000002.snapshot")));
    ck_assert(!file_exists(support_path(f.directory, "topic-3/00000000000000000003.snapshot")));
    partition_log_close(f.log);
    open_at(&f, 1000, 1000);
    ck_assert_uint_eq(producer_state_count(partition_log_producers(f.log)), 0);
    stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("partition_log");
    TCase *tests = tcase_create("partition_log");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, unwritten_log_leaves_no_trace);
    tcase_add_test(tests, batches_are_read_from_memory_at_once_and_from_the_file_later);
    tcase_add_test(tests, limit_is_kept_but_for_a_first_batch_asked_for_whole);
    tcase_add_test(tests, restart_finds_everything_again);
    tcase_add_test(tests, segment_ends_only_when_all_its_batches_are_written);
    tcase_add_test(tests, torn_metadata_is_written_again);
    tcase_add_test(tests, batch_below_the_end_is_refused);
    tcase_add_test(tests, epochs_answer_as_kafka);
    tcase_add_test(tests, foreign_topic_id_is_refused);
    tcase_add_test(tests, memory_is_given_up_over_the_budget);
    tcase_add_test(tests, reads_survive_the_deletion_of_what_they_read);
    tcase_add_test(tests, deleted_partition_leaves_its_name_at_once_and_the_disk_later);
    tcase_add_test(tests, a_directory_of_another_topic_stays);
    tcase_add_test(tests, reset_starts_again_at_an_offset);
    tcase_add_test(tests, reset_lets_a_flush_that_waits_end_well);
    tcase_add_test(tests, reset_forgets_producers_for_good);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
