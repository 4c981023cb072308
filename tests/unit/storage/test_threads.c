/* Journal and log writer with their own threads on real files: submitted from many threads, done in
 * order, nothing lost. Meant for the thread sanitizer too. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/clock.h"
#include "storage/journal.h"
#include "storage/partition_log.h"
#include "tests/unit/runner.h"
#include "tests/unit/storage/support.h"

enum { SUBMITTERS = 4, OPERATIONS = 500 };

struct submitter {
    struct journal *journal;
    uint64_t group;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t progress;
    uint64_t done; /* guarded by lock */
};

struct operation {
    struct journal_op op;
    struct journal_record record;
    struct submitter *submitter;
};

static void done(struct journal_op *op, enum status status)
{
    struct operation *operation = container_of(op, struct operation, op);
    struct submitter *submitter = operation->submitter;
    pthread_mutex_lock(&submitter->lock);
    if (status == STATUS_OK && operation->record.index == submitter->done + 1) {
        submitter->done++;
    }
    pthread_cond_signal(&submitter->progress);
    pthread_mutex_unlock(&submitter->lock);
    free(operation);
}

static void *submit_many(void *context)
{
    struct submitter *submitter = context;
    for (uint64_t i = 1; i <= OPERATIONS; i++) {
        struct operation *operation = memory_new_zero(1, sizeof *operation);
        struct block *block = block_new(500 + i % 3000);
        memset(block->bytes, (int)i, block->capacity);
        operation->submitter = submitter;
        operation->record = (struct journal_record){.kind = JOURNAL_ENTRY, .index = i,
            .group = submitter->group, .term = 1, .payload = slice_of(block, 0, block->capacity)};
        operation->op.records = &operation->record;
        operation->op.record_count = 1;
        operation->op.done = done;
        journal_submit(submitter->journal, &operation->op);
        block_unref(block);
        if (i % 50 == 0) {
            journal_mark(submitter->journal, submitter->group, i / 2);
        }
    }
    pthread_mutex_lock(&submitter->lock);
    while (submitter->done < OPERATIONS) {
        pthread_cond_wait(&submitter->progress, &submitter->lock);
    }
    pthread_mutex_unlock(&submitter->lock);
    return NULL;
}

struct replayed {
    uint64_t last[SUBMITTERS + 1];
    bool in_order;
};

static void replay(void *context, const struct journal_record *record)
{
    struct replayed *replayed = context;
    if (record->kind == JOURNAL_ENTRY) {
        replayed->in_order = replayed->in_order
            && record->index == replayed->last[record->group] + 1
            && record->payload.data[0] == (uint8_t)record->index;
        replayed->last[record->group] = record->index;
    }
}

static void damage(void *context, const struct journal_damage *damage)
{
    (void)damage;
    ((struct replayed *)context)->in_order = false;
}

START_TEST(journal_serves_many_threads_in_order)
{
    const char *directory = support_directory();
    char path[256];
    struct submitter submitters[SUBMITTERS];
    struct replayed replayed = {.in_order = true};
    struct journal *journal;
    struct journal_stats stats;
    snprintf(path, sizeof path, "%s/journal", directory);
    struct journal_settings settings = {.directory = path, .threaded = true};
    struct journal_handler handler = {.context = &replayed, .replay = replay, .damage = damage};
    ck_assert_int_eq(journal_open(&settings, &handler, &journal), STATUS_OK);
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (struct submitter){.journal = journal, .group = i + 1};
        pthread_mutex_init(&submitters[i].lock, NULL);
        pthread_cond_init(&submitters[i].progress, NULL);
        ck_assert_int_eq(pthread_create(&submitters[i].thread, NULL, submit_many, &submitters[i]),
            0);
    }
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        pthread_join(submitters[i].thread, NULL);
    }
    journal_read_stats(journal, &stats);
    ck_assert_uint_lt(stats.frames, SUBMITTERS * OPERATIONS / 2);
    journal_close(journal);
    ck_assert_int_eq(journal_open(&settings, &handler, &journal), STATUS_OK);
    ck_assert(replayed.in_order);
    for (unsigned i = 1; i <= SUBMITTERS; i++) {
        ck_assert_uint_eq(replayed.last[i], OPERATIONS);
    }
    journal_close(journal);
    support_clean(directory);
}
END_TEST

/* The shard's wake-up: a pipe, as an event loop would have. */
static void wake(void *context)
{
    char byte = 1;
    ssize_t written = write(*(int *)context, &byte, 1);
    ck_assert_int_eq(written, 1);
}

static void flushed(void *context, enum status status, int64_t synced_offset)
{
    (void)synced_offset;
    *(enum status *)context = status;
}

START_TEST(shard_and_writer_hand_over_without_waiting)
{
    const char *directory = support_directory();
    int pipes[2];
    enum status status = STATUS_BUSY;
    struct partition_log *log;
    struct log_damage none;
    ck_assert_int_eq(pipe(pipes), 0);
    struct log_writer_settings writer_settings = {.threaded = true};
    struct log_writer *writer = log_writer_new(&writer_settings);
    struct log_shard_settings shard_settings = {.tail_budget_bytes = 50000, .wake = wake,
        .context = &pipes[1]};
    struct log_shard *shard = log_shard_new(writer, &shard_settings);
    struct log_identity identity = {directory, "t", 0, {{1}}};
    struct log_settings settings = log_settings_default();
    struct log_recovery recovery = {-1, -1};
    settings.segment_bytes = 100000;
    ck_assert_int_eq(partition_log_open(shard, &identity, &settings, &recovery, &log, &none),
        STATUS_OK);
    for (int64_t i = 0; i < 1000; i++) {
        struct log_read read;
        struct slice batch = support_batch(i, 1, 1, 2000, i);
        ck_assert_int_eq(partition_log_append(log, batch, clock_wall_ms()), STATUS_OK);
        block_unref(batch.block);
        ck_assert_int_eq(partition_log_read(log, i / 2, 10000, true, &read), STATUS_OK);
        ck_assert_uint_gt(read.total_bytes, 2000);
        log_read_release(&read);
        log_shard_drain(shard);
        log_shard_tick(shard, clock_wall_ms());
    }
    partition_log_flush(log, flushed, &status);
    while (status == STATUS_BUSY) {
        char byte;
        ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
        log_shard_drain(shard);
    }
    ck_assert_int_eq(status, STATUS_OK);
    ck_assert_int_eq(partition_log_synced(log), 1000);
    log_writer_stop(writer);
    log_shard_drain(shard);
    partition_log_close(log);
    log_shard_free(shard);
    log_writer_free(writer);
    close(pipes[0]);
    close(pipes[1]);
    support_clean(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, journal_serves_many_threads_in_order);
    tcase_add_test(tests, shard_and_writer_hand_over_without_waiting);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
