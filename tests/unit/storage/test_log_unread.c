/* A log that cannot be read for a while: its opening fails, and nothing of it is cut, removed or
 * taken for something else meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/clock.h"
#include "io/file.h"
#include "protocol/records.h"
#include "storage/partition_log.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"
#include "tests/unit/runner.h"

enum { WAYS = 300, BATCHES = 30, SEGMENT_BYTES = 4000, SHORT_VALUE = 300,
    LONG_VALUE = 20000 };

static const char last_log[] = "/data/t-0/00000000000000000000.log";

struct fixture {
    struct log_writer *writer;
    struct log_shard *shard;
    struct log_settings settings;
    struct partition_log *log;
    struct log_damage damage;
    size_t value_bytes;
};

static enum status open_at(struct fixture *f, int64_t next_offset)
{
    struct log_identity identity = {"/data", "t", 0, {{1}}};
    struct log_recovery recovery = {next_offset, next_offset < 0 ? -1 : 0};
    return partition_log_open(f->shard, &identity, &f->settings, &recovery, &f->log, &f->damage);
}

static void settle(struct fixture *f)
{
    while (log_writer_run_once(f->writer, clock_wall_ms()) || log_shard_drain(f->shard) > 0) {
    }
}

static void append(struct fixture *f, int32_t sequence)
{
    struct batch_builder builder;
    struct buffer output = {0};
    uint8_t value[LONG_VALUE];
    memset(value, 'v', f->value_bytes);
    batch_builder_start(&builder);
    builder.header.base_offset = partition_log_end(f->log);
    builder.header.leader_epoch = 1 + sequence / 10;
    builder.header.producer_id = 9;
    builder.header.producer_epoch = 0;
    builder.header.base_sequence = sequence;
    batch_builder_add(&builder, 5, VIEW_NULL, (struct view){value, f->value_bytes}, NULL, 0);
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &output);
    struct block *block = block_copy(buffer_view(&output));
    buffer_free(&output);
    ck_assert_int_eq(partition_log_append(f->log, slice_of(block, 0, block->capacity),
        clock_wall_ms()), STATUS_OK);
    block_unref(block);
}

static void flushed(void *context, enum status status, int64_t synced_offset)
{
    *(int64_t *)context = synced_offset;
    ck_assert_int_eq(status, STATUS_OK);
}

/* Thirty batches of one record on the disk, in segments of so many bytes; closed. */
static void start(struct fixture *f, uint64_t seed, int64_t segment_bytes, size_t value_bytes)
{
    int64_t synced = 0;
    *f = (struct fixture){.settings = log_settings_default()};
    f->settings.segment_bytes = segment_bytes;
    f->value_bytes = value_bytes;
    f->settings.index_interval_bytes = 700;
    sim_disk_reset(seed);
    sim_clock_reset(seed);
    ck_assert_int_eq(file_make_directory("/data"), STATUS_OK);
    struct log_writer_settings writer = {.group_min = 1};
    struct log_shard_settings shard = {.write_after_bytes = 1};
    f->writer = log_writer_new(&writer);
    f->shard = log_shard_new(f->writer, &shard);
    ck_assert_int_eq(open_at(f, -1), STATUS_OK);
    for (int32_t i = 0; i < BATCHES; i++) {
        append(f, i);
        settle(f);
    }
    partition_log_flush(f->log, flushed, &synced);
    settle(f);
    ck_assert_int_eq(synced, BATCHES);
    partition_log_close(f->log);
}

static void stop(struct fixture *f)
{
    settle(f);
    partition_log_close(f->log);
    log_writer_stop(f->writer);
    log_shard_drain(f->shard);
    log_shard_free(f->shard);
    log_writer_free(f->writer);
}

/* Some bytes of one of the files. */
static void spoil_any(void)
{
    size_t count = 0;
    while (sim_disk_file_name(count) != NULL) {
        count++;
    }
    const char *path = sim_disk_file_name((size_t)sim_disk_random(count));
    uint64_t from = sim_disk_random(sim_disk_file_size(path) + 1);
    sim_disk_spoil(path, from, from + 1 + sim_disk_random(600));
}

static enum producer_verdict judge(struct fixture *f, int32_t sequence)
{
    struct producer_batch batch = {.producer_id = 9, .base_sequence = sequence,
        .record_count = 1};
    return producer_state_check(partition_log_producers(f->log), &batch).verdict;
}

static void check_whole(struct fixture *f)
{
    ck_assert_str_eq(f->damage.file, "");
    ck_assert_int_eq(partition_log_end(f->log), BATCHES);
    ck_assert_int_eq(partition_log_epoch_end(f->log, 1).end_offset, 10);
    ck_assert_int_eq(partition_log_latest_epoch(f->log), 3);
    ck_assert_int_eq(judge(f, BATCHES - 1), PRODUCER_DUPLICATE);
    ck_assert_int_eq(judge(f, BATCHES), PRODUCER_ACCEPT);
}

START_TEST(log_is_whole_when_the_disk_reads_again)
{
    struct fixture f;
    static const int64_t points[] = {BATCHES, -1, BATCHES / 2, 0};
    start(&f, (uint64_t)_i, SEGMENT_BYTES, SHORT_VALUE);
    for (int tries = 0; tries < 3; tries++) {
        spoil_any();
        enum status status = open_at(&f, points[_i % 4]);
        ck_assert(status == STATUS_OK || status == STATUS_IO);
        if (status == STATUS_OK) {
            check_whole(&f);
            settle(&f);
            partition_log_close(f.log);
        }
    }
    sim_disk_spoil(NULL, 0, 0);
    ck_assert_int_eq(open_at(&f, points[_i % 4]), STATUS_OK);
    check_whole(&f);
    stop(&f);
}
END_TEST

/* Good batches follow the broken one, but that cannot be seen at first: what is read there is more
 * than a scan reads at a time. */
START_TEST(unread_end_is_not_cut_off_as_torn)
{
    struct fixture f;
    start(&f, (uint64_t)_i, 1 << 30, LONG_VALUE);
    uint64_t size = sim_disk_file_size(last_log);
    ck_assert(sim_disk_flip(last_log, 200, 1));
    sim_disk_spoil(last_log, size / 2 + sim_disk_random(size / 2), size);
    ck_assert_int_eq(open_at(&f, -1), STATUS_IO);
    ck_assert_uint_eq(sim_disk_file_size(last_log), size);
    sim_disk_spoil(NULL, 0, 0);
    ck_assert_int_eq(open_at(&f, -1), STATUS_OK);
    ck_assert_int_eq(f.damage.offset, 0);
    ck_assert_int_eq(f.damage.resume_offset, 1);
    stop(&f);
}
END_TEST

int main(void)
{
    log_set_level(LOG_OFF);
    Suite *suite = suite_create("log_unread");
    TCase *tests = tcase_create("log_unread");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, log_is_whole_when_the_disk_reads_again, 0, WAYS);
    tcase_add_loop_test(tests, unread_end_is_not_cut_off_as_torn, 0, 20);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
