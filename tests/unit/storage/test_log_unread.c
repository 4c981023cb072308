/* A log that cannot be read for a while: its opening fails, and nothing of it is cut, removed or
 * taken for something else meanwhile. */
#include "base/log.h"
#include "tests/unit/storage/sim_log.h"

enum { WAYS = 300, BATCHES = 30, SEGMENT_BYTES = 4000, SHORT_VALUE = 300,
    LONG_VALUE = 20000 };

static const char last_log[] = "/data/t-0/00000000000000000000.log";

static enum status open_at(struct sim_log *f, int64_t next_offset)
{
    return sim_log_open(f, next_offset, next_offset < 0 ? -1 : 0);
}

/* Thirty batches of one record on the disk, in segments of so many bytes; closed. */
static void start(struct sim_log *f, uint64_t seed, int64_t segment_bytes, size_t value_bytes)
{
    struct log_shard_settings shard = {.write_after_bytes = 1};
    sim_log_start(f, seed);
    f->settings.segment_bytes = segment_bytes;
    f->settings.index_interval_bytes = 700;
    sim_log_open_shard(f, &shard);
    ck_assert_int_eq(open_at(f, -1), STATUS_OK);
    for (int32_t i = 0; i < BATCHES; i++) {
        struct sim_log_batch batch = {1 + i / 10, 9, i, value_bytes};
        sim_log_append(f, &batch);
        sim_log_settle(f);
    }
    sim_log_flush(f);
    ck_assert_int_eq(f->synced, BATCHES);
    partition_log_close(f->log);
}

static void stop(struct sim_log *f)
{
    sim_log_settle(f);
    sim_log_close_shard(f);
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

static enum producer_verdict judge(struct sim_log *f, int32_t sequence)
{
    struct producer_batch batch = {.producer_id = 9, .base_sequence = sequence,
        .record_count = 1};
    return producer_state_check(partition_log_producers(f->log), &batch).verdict;
}

static void check_whole(struct sim_log *f)
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
    struct sim_log f;
    static const int64_t points[] = {BATCHES, -1, BATCHES / 2, 0};
    start(&f, (uint64_t)_i, SEGMENT_BYTES, SHORT_VALUE);
    for (int tries = 0; tries < 3; tries++) {
        spoil_any();
        enum status status = open_at(&f, points[_i % 4]);
        ck_assert(status == STATUS_OK || status == STATUS_IO);
        if (status == STATUS_OK) {
            check_whole(&f);
            sim_log_settle(&f);
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
    struct sim_log f;
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
