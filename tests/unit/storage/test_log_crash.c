/* A partition log under power cuts on the simulated disk: what a checkpoint vouches for survives
 * each of many ways in which the cut can fall. */
#include "tests/unit/storage/sim_log.h"

enum { WAYS = 200 };

static void open_at(struct sim_log *f, int64_t next_offset, int64_t log_start)
{
    ck_assert_int_eq(sim_log_open(f, next_offset, log_start), STATUS_OK);
}

static void open_shard(struct sim_log *f)
{
    struct log_shard_settings shard = {.write_after_bytes = 1, .direct_from_bytes = 4500,
        .read_lately_ms = 1000};
    sim_log_open_shard(f, &shard);
}

static void start(struct sim_log *f, uint64_t seed)
{
    sim_log_start(f, seed);
    f->settings.segment_bytes = 1000;
    open_shard(f);
    open_at(f, -1, -1);
}

static void cut_power(struct sim_log *f)
{
    sim_disk_crash_after(0);
    enum status status = file_sync_directory("/data");
    ck_assert_int_eq(status, STATUS_IO);
    sim_log_close_shard(f);
    sim_disk_restart();
    open_shard(f);
}

static void append_of(struct sim_log *f, int64_t producer_id, int32_t sequence)
{
    struct sim_log_batch batch = {1, producer_id, sequence, 300};
    sim_log_append(f, &batch);
}

static void append(struct sim_log *f)
{
    append_of(f, -1, -1);
}

START_TEST(removed_segments_do_not_take_the_log_with_them)
{
    struct sim_log f;
    start(&f, (uint64_t)_i);
    for (int i = 0; i < 8; i++) {
        append(&f);
    }
    sim_log_flush(&f);
    ck_assert_int_eq(f.synced, 8);
    append(&f); /* begins a segment, perhaps written, not synced */
    ck_assert_int_eq(partition_log_delete_records(f.log, 9), STATUS_OK);
    for (int i = 0; i < _i % 8; i++) {
        log_writer_run_once(f.writer, clock_wall_ms());
        log_shard_drain(f.shard);
    }
    cut_power(&f);
    open_at(&f, 8, 0);
    ck_assert_str_eq(f.damage.file, "");
    ck_assert_int_ge(partition_log_end(f.log), 8);
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

START_TEST(flushed_batches_survive)
{
    struct sim_log f;
    start(&f, (uint64_t)_i + 1000);
    for (int i = 0; i < _i % 20; i++) {
        append(&f);
        for (int turn = 0; turn < i % 3; turn++) {
            log_writer_run_once(f.writer, clock_wall_ms());
            log_shard_drain(f.shard);
        }
    }
    sim_log_flush(&f);
    ck_assert_int_eq(f.synced, _i % 20);
    for (int i = 0; i < 3; i++) {
        append(&f);
        log_writer_run_once(f.writer, clock_wall_ms());
    }
    cut_power(&f);
    open_at(&f, _i % 20, 0);
    ck_assert_str_eq(f.damage.file, "");
    ck_assert_int_ge(partition_log_end(f.log), _i % 20);
    for (int64_t offset = 0; offset < _i % 20; offset++) {
        struct log_read read;
        ck_assert_int_eq(partition_log_read(f.log, offset, 1, true, &read), STATUS_OK);
        ck_assert_int_eq(read.base_offset, offset);
        log_read_release(&read);
    }
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

START_TEST(log_without_checkpoint_is_mended_after_a_power_cut)
{
    struct sim_log f;
    start(&f, (uint64_t)_i + 2000);
    for (int i = 0; i < 20; i++) {
        append(&f);
        log_writer_run_once(f.writer, clock_wall_ms());
        log_shard_drain(f.shard);
    }
    cut_power(&f);
    open_at(&f, -1, -1);
    if (f.damage.file[0] != '\0') { /* a hole in what was never synced; the journal has it all */
        ck_assert_int_eq(partition_log_cut_damage(f.log), STATUS_OK);
    }
    ck_assert_int_le(partition_log_end(f.log), 20);
    while (partition_log_end(f.log) < 20) {
        append(&f);
    }
    sim_log_flush(&f);
    ck_assert_int_eq(f.synced, 20);
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

static void write_unread(struct sim_log *f, int batches)
{
    partition_log_expect_readers(f->log, false);
    for (int i = 0; i < batches; i++) {
        append(f); /* the first is written alone, the others together */
    }
    sim_log_settle(f);
}

/* Opens it anew, which checks every batch in the files. */
static void check_whole(struct sim_log *f, int64_t end)
{
    sim_log_flush(f);
    partition_log_close(f->log);
    open_at(f, -1, -1);
    ck_assert_str_eq(f->damage.file, "");
    ck_assert_int_eq(partition_log_end(f->log), end);
}

START_TEST(what_nobody_reads_goes_past_the_page_cache)
{
    struct sim_log f;
    start(&f, (uint64_t)_i + 6000);
    f.settings.segment_bytes = 100000;
    write_unread(&f, 1 + _i % 12);
    ck_assert_uint_eq(sim_disk_direct_bytes(), 0); /* not worth it */
    write_unread(&f, 30 + _i % 12);
    uint64_t direct_bytes = sim_disk_direct_bytes();
    ck_assert_uint_gt(direct_bytes, 0);
    check_whole(&f, 31 + _i % 12 * 2);
    partition_log_expect_readers(f.log, false);
    write_unread(&f, 40);
    ck_assert_uint_gt(sim_disk_direct_bytes(), direct_bytes);
    sim_log_flush(&f);
    cut_power(&f);
    open_at(&f, -1, -1);
    ck_assert_str_eq(f.damage.file, "");
    ck_assert_int_eq(partition_log_end(f.log), 71 + _i % 12 * 2);
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

START_TEST(what_is_read_stays_in_the_page_cache)
{
    struct sim_log f;
    struct log_read read;
    start(&f, (uint64_t)_i + 7000);
    f.settings.segment_bytes = 100000;
    write_unread(&f, 1);
    ck_assert_int_eq(partition_log_read(f.log, 0, 1, true, &read), STATUS_OK);
    log_read_release(&read);
    write_unread(&f, 30);
    ck_assert_uint_eq(sim_disk_direct_bytes(), 0);
    log_shard_tick(f.shard, clock_wall_ms() + 2000); /* nobody read it for long */
    write_unread(&f, 30);
    ck_assert_uint_gt(sim_disk_direct_bytes(), 0);
    uint64_t direct_bytes = sim_disk_direct_bytes();
    partition_log_expect_readers(f.log, true);
    for (int i = 0; i < 30; i++) {
        append(&f);
    }
    sim_log_settle(&f);
    ck_assert_uint_eq(sim_disk_direct_bytes(), direct_bytes);
    check_whole(&f, 91);
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

/* The process is killed before a sync; the next one's flush has the names to sync too. */
START_TEST(flush_after_a_restart_makes_older_names_durable)
{
    struct sim_log f;
    start(&f, (uint64_t)_i + 8000);
    for (int i = 0; i < 1 + _i % 8; i++) {
        append(&f);
        sim_log_settle(&f);
    }
    partition_log_close(f.log);
    open_at(&f, -1, -1);
    append(&f);
    sim_log_flush(&f);
    ck_assert_int_eq(f.synced, 2 + _i % 8);
    cut_power(&f);
    open_at(&f, f.synced, 0);
    ck_assert_str_eq(f.damage.file, "");
    ck_assert_int_eq(partition_log_end(f.log), f.synced);
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

/* As an install does whose leader begins behind where this log ends. */
START_TEST(log_that_starts_anew_is_whole_after_a_power_cut)
{
    struct sim_log f;
    start(&f, (uint64_t)_i + 3000);
    for (int i = 0; i < 8; i++) {
        append(&f);
    }
    sim_log_flush(&f);
    ck_assert_int_eq(f.synced, 8);
    ck_assert_int_eq(partition_log_reset(f.log, 50), STATUS_OK);
    sim_disk_crash_after(_i % 20);
    sim_log_settle(&f);
    cut_power(&f);
    f.settings.segment_bytes = 100000;
    open_at(&f, 8, 0);
    ck_assert_str_eq(f.damage.file, "");
    ck_assert(partition_log_end(f.log) == 8 || partition_log_end(f.log) == 50);
    ck_assert(partition_log_start(f.log) < 8 || partition_log_end(f.log) == 50);
    for (int i = 0; i < 60; i++) {
        append(&f); /* past where the new segment was to begin */
        log_writer_run_once(f.writer, clock_wall_ms());
        log_shard_drain(f.shard);
    }
    cut_power(&f);
    open_at(&f, 8, 0);
    ck_assert_str_eq(f.damage.file, "");
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

/* The same before there is a checkpoint: an install that was broken off is made again. */
START_TEST(log_without_checkpoint_starts_anew)
{
    struct sim_log f;
    start(&f, (uint64_t)_i + 4000);
    for (int i = 0; i < 7; i++) {
        append(&f);
        sim_log_settle(&f);
    }
    ck_assert_int_eq(partition_log_reset(f.log, 50), STATUS_OK);
    sim_disk_crash_after(_i % 20);
    sim_log_settle(&f);
    cut_power(&f);
    open_at(&f, -1, -1);
    ck_assert_str_eq(f.damage.file, "");
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

/* Of the producers from before it, whose batches no replica has any more, a log knows nothing. */
START_TEST(log_that_starts_anew_forgets_producers)
{
    struct sim_log f;
    start(&f, (uint64_t)_i + 5000);
    for (int i = 0; i < 8; i++) {
        append_of(&f, 7, i);
        sim_log_flush(&f);
    }
    ck_assert_int_eq(partition_log_reset(f.log, 50), STATUS_OK);
    sim_disk_crash_after(_i % 30);
    sim_log_settle(&f);
    cut_power(&f);
    open_at(&f, 8, 0);
    bool is_anew = partition_log_start(f.log) == 50;
    ck_assert_uint_eq(producer_state_count(partition_log_producers(f.log)), is_anew ? 0 : 1);
    sim_log_close_shard(&f);
    sim_disk_reset(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_crash");
    TCase *tests = tcase_create("log_crash");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, removed_segments_do_not_take_the_log_with_them, 0, WAYS);
    tcase_add_loop_test(tests, flushed_batches_survive, 0, WAYS);
    tcase_add_loop_test(tests, log_without_checkpoint_is_mended_after_a_power_cut, 0, WAYS);
    tcase_add_loop_test(tests, what_nobody_reads_goes_past_the_page_cache, 0, WAYS);
    tcase_add_loop_test(tests, what_is_read_stays_in_the_page_cache, 0, WAYS);
    tcase_add_loop_test(tests, flush_after_a_restart_makes_older_names_durable, 0, WAYS);
    tcase_add_loop_test(tests, log_that_starts_anew_is_whole_after_a_power_cut, 0, WAYS);
    tcase_add_loop_test(tests, log_without_checkpoint_starts_anew, 0, WAYS);
    tcase_add_loop_test(tests, log_that_starts_anew_forgets_producers, 0, WAYS);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
