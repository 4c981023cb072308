/* The writer's queue and thread, and the shards' side of it. Jobs run in order; delayed ones when
 * they are due and nothing else waits. After a fatal failure jobs are only handed back. */
#include "storage/log_writer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"
#include "io/clock.h"
#include "storage/log_direct.h"
#include "storage/log_shard.h"

struct log_writer {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list jobs;
    struct list delayed; /* by rising not_before_ms */
    bool stopping;
    enum status status;
    struct log_writer_settings settings;
    pthread_t thread;
    uint8_t *pages; /* null until a job asks; the writer thread's */
};

enum { DEFAULT_GROUP_MIN = 8, GROUP_LOOK = 64, GROUP_MAX = 4096 };

enum { DELAY_LOOK_MS = 1000, DEFAULT_TAIL_BYTES = 32 * 1024 * 1024, DEFAULT_OPEN_FILES = 512,
    DEFAULT_WRITE_AFTER_MS = 200, DEFAULT_WRITE_AFTER_BYTES = 256 * 1024,
    DEFAULT_SYNC_AFTER_BYTES = 4 * 1024 * 1024, DEFAULT_IDLE_TAIL_MS = 10000,
    DEFAULT_DIRECT_FROM_BYTES = 256 * 1024, DEFAULT_READ_LATELY_MS = 60000 };

static struct log_job *job_of(struct list_link *link)
{
    return container_of(link, struct log_job, link);
}

/* Puts a job where its shard finds it. */
static void hand_back(struct log_job *job, enum status status)
{
    struct log_shard *shard = job->shard;
    job->status = status;
    pthread_mutex_lock(&shard->lock);
    bool first = list_is_empty(&shard->finished);
    list_push_back(&shard->finished, &job->link);
    pthread_mutex_unlock(&shard->lock);
    if (first && shard->settings.wake != NULL) {
        shard->settings.wake(shard->settings.context);
    }
}

static void go_offline(struct log_writer *writer, enum status status)
{
    assert(status != STATUS_OK);
    pthread_mutex_lock(&writer->lock);
    bool first = writer->status == STATUS_OK;
    if (first) {
        writer->status = status;
    }
    pthread_mutex_unlock(&writer->lock);
    if (first) {
        log_error("log", "%s: partition logs are not written any more", status_text(status));
        if (writer->settings.failed != NULL) {
            writer->settings.failed(writer->settings.context, status);
        }
    }
}

/* What a failure of a job means for the writer. */
static void note_failure(struct log_writer *writer, const struct log_job *job, enum status status)
{
    if (status != STATUS_OK && job->fatal) {
        go_offline(writer, status);
    }
}

/* The first part of a job; its sync, when it has one, is left. */
static enum status start_job(struct log_writer *writer, struct log_job *job, bool grouped)
{
    enum status status = log_writer_status(writer);
    if (status == STATUS_OK || job->even_offline) {
        job->grouped = grouped;
        status = job->run(job);
        note_failure(writer, job, status);
    }
    return status;
}

static void run_job(struct log_writer *writer, struct log_job *job)
{
    enum status status = start_job(writer, job, false);
    if (status == STATUS_OK && job->sync != NULL) {
        status = job->sync(job);
        note_failure(writer, job, status);
    }
    hand_back(job, status);
}

/* Whether so many jobs that sync wait behind this one that one sync of everything is cheaper. */
static bool is_worth_a_group(struct log_writer *writer, const struct log_job *first)
{
    int count = 0;
    if (first->sync == NULL) {
        return false;
    }
    pthread_mutex_lock(&writer->lock);
    struct list_link *link = list_first(&writer->jobs);
    for (int i = 0; link != NULL && i < GROUP_LOOK && count < writer->settings.group_min; i++) {
        count += job_of(link)->sync != NULL ? 1 : 0;
        link = list_next(&writer->jobs, link);
    }
    pthread_mutex_unlock(&writer->lock);
    return count == writer->settings.group_min;
}

static struct log_job *take_waiting(struct log_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    struct list_link *link = list_pop_front(&writer->jobs);
    pthread_mutex_unlock(&writer->lock);
    return link == NULL ? NULL : job_of(link);
}

/* Runs the job and those that wait behind it, then syncs once for all. */
static void run_group(struct log_writer *writer, struct log_job *first)
{
    struct list held;
    struct list_link *link;
    list_init(&held);
    struct log_job *job = first;
    for (int i = 0; job != NULL && i < GROUP_MAX; i++) {
        enum status status = start_job(writer, job, true);
        if (status == STATUS_OK && job->sync != NULL) {
            list_push_back(&held, &job->link);
        } else {
            hand_back(job, status);
        }
        job = i + 1 < GROUP_MAX ? take_waiting(writer) : NULL;
    }
    enum status status = STATUS_OK;
    if ((link = list_first(&held)) != NULL) {
        status = file_sync_all(job_of(link)->sync_path);
        note_failure(writer, job_of(link), status);
    }
    while ((link = list_pop_front(&held)) != NULL) {
        hand_back(job_of(link), status);
    }
}

/* The next job that is due, taken off its list; null when there is none. */
static struct log_job *take_job(struct log_writer *writer, int64_t now_ms)
{
    struct list_link *link = list_pop_front(&writer->jobs);
    if (link == NULL) {
        struct list_link *first = list_first(&writer->delayed);
        if (first != NULL && job_of(first)->not_before_ms <= now_ms) {
            link = list_pop_front(&writer->delayed);
        }
    }
    return link == NULL ? NULL : job_of(link);
}

bool log_writer_run_once(struct log_writer *writer, int64_t now_ms)
{
    pthread_mutex_lock(&writer->lock);
    struct log_job *job = take_job(writer, now_ms);
    pthread_mutex_unlock(&writer->lock);
    if (job != NULL && is_worth_a_group(writer, job)) {
        run_group(writer, job);
    } else if (job != NULL) {
        run_job(writer, job);
    }
    return job != NULL;
}

/* Waits for a job; false when the writer is to stop and has none. Delayed ones are looked at now
 * and then: nobody minds a second. */
static bool wait_for_job(struct log_writer *writer)
{
    uint64_t until_ms = clock_monotonic_ms() + DELAY_LOOK_MS;
    struct timespec until = {(time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000};
    pthread_mutex_lock(&writer->lock);
    int error = 0;
    while (list_is_empty(&writer->jobs) && !writer->stopping && error != ETIMEDOUT) {
        error = list_is_empty(&writer->delayed)
            ? pthread_cond_wait(&writer->wake, &writer->lock)
            : pthread_cond_timedwait(&writer->wake, &writer->lock, &until);
        assert(error == 0 || error == ETIMEDOUT);
    }
    bool go_on = !writer->stopping || !list_is_empty(&writer->jobs);
    pthread_mutex_unlock(&writer->lock);
    return go_on;
}

static void *writer_main(void *context)
{
    struct log_writer *writer = context;
    bool go_on = true;
    while (go_on) {
        if (!log_writer_run_once(writer, clock_wall_ms())) {
            go_on = wait_for_job(writer);
        }
    }
    return NULL;
}

struct log_writer *log_writer_new(const struct log_writer_settings *settings)
{
    struct log_writer *writer = memory_new_zero(1, sizeof *writer);
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    error += pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    error += pthread_cond_init(&writer->wake, &attributes);
    error += pthread_mutex_init(&writer->lock, NULL);
    assert(error == 0);
    pthread_condattr_destroy(&attributes);
    list_init(&writer->jobs);
    list_init(&writer->delayed);
    writer->settings = *settings;
    writer->settings.group_min = settings->group_min == 0 ? DEFAULT_GROUP_MIN : settings->group_min;
    assert(writer->settings.group_min > 0 && writer->settings.group_min <= GROUP_LOOK);
    if (settings->threaded) {
        error = pthread_create(&writer->thread, NULL, writer_main, writer);
        assert(error == 0);
    }
    return writer;
}

void log_writer_stop(struct log_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->lock);
    if (writer->settings.threaded) {
        int error = pthread_join(writer->thread, NULL);
        assert(error == 0);
        writer->settings.threaded = false;
    }
    while (log_writer_run_once(writer, INT64_MIN)) {
    }
    struct list_link *link;
    while ((link = list_pop_front(&writer->delayed)) != NULL) {
        hand_back(job_of(link), STATUS_CLOSED);
    }
}

void log_writer_free(struct log_writer *writer)
{
    assert(list_is_empty(&writer->jobs) && list_is_empty(&writer->delayed));
    assert(!writer->settings.threaded);
    pthread_cond_destroy(&writer->wake);
    pthread_mutex_destroy(&writer->lock);
    free(writer->pages);
    free(writer);
}

/* Keeps the list in order; a new job is nearly always the last one due. */
static void insert_delayed(struct log_writer *writer, struct log_job *job)
{
    struct list_link *before = writer->delayed.head.previous;
    while (before != &writer->delayed.head && job_of(before)->not_before_ms > job->not_before_ms) {
        before = before->previous;
    }
    job->link.previous = before;
    job->link.next = before->next;
    before->next->previous = &job->link;
    before->next = &job->link;
}

void log_writer_submit(struct log_writer *writer, struct log_shard *shard, struct log_job *job)
{
    assert(job->run != NULL && job->done != NULL);
    assert(!list_contains(&job->link));
    job->shard = shard;
    shard->job_count += job->not_before_ms == 0 ? 1 : 0;
    pthread_mutex_lock(&writer->lock);
    bool stopping = writer->stopping;
    if (!stopping && job->not_before_ms != 0) {
        insert_delayed(writer, job);
    } else if (!stopping) {
        list_push_back(&writer->jobs, &job->link);
    }
    pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->lock);
    if (stopping) {
        hand_back(job, STATUS_CLOSED);
    }
}

enum status log_writer_status(struct log_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    enum status status = writer->status;
    pthread_mutex_unlock(&writer->lock);
    return status;
}

uint8_t *log_writer_pages(struct log_writer *writer)
{
    if (writer->pages == NULL) {
        writer->pages = aligned_alloc(FILE_ALIGNMENT, LOG_DIRECT_BYTES);
        assert(writer->pages != NULL);
    }
    return writer->pages;
}

void log_writer_fail(struct log_writer *writer, enum status status)
{
    go_offline(writer, status);
}

static size_t or_default(size_t value, size_t normal)
{
    return value == 0 ? normal : value;
}

struct log_shard *log_shard_new(struct log_writer *writer,
    const struct log_shard_settings *settings)
{
    struct log_shard *shard = memory_new_zero(1, sizeof *shard);
    shard->writer = writer;
    shard->settings = *settings;
    struct log_shard_settings *own = &shard->settings;
    own->tail_budget_bytes = or_default(own->tail_budget_bytes, DEFAULT_TAIL_BYTES);
    own->open_file_limit = or_default(own->open_file_limit, DEFAULT_OPEN_FILES);
    own->write_after_ms = (uint32_t)or_default(own->write_after_ms, DEFAULT_WRITE_AFTER_MS);
    own->write_after_bytes = or_default(own->write_after_bytes, DEFAULT_WRITE_AFTER_BYTES);
    own->sync_after_bytes = or_default(own->sync_after_bytes, DEFAULT_SYNC_AFTER_BYTES);
    own->direct_from_bytes = or_default(own->direct_from_bytes, DEFAULT_DIRECT_FROM_BYTES);
    own->read_lately_ms = (uint32_t)or_default(own->read_lately_ms, DEFAULT_READ_LATELY_MS);
    own->idle_tail_ms = (uint32_t)or_default(own->idle_tail_ms, DEFAULT_IDLE_TAIL_MS);
    int error = pthread_mutex_init(&shard->lock, NULL);
    assert(error == 0);
    list_init(&shard->finished);
    list_init(&shard->open_handles);
    list_init(&shard->dirty);
    list_init(&shard->tails);
    return shard;
}

void log_shard_free(struct log_shard *shard)
{
    assert(list_is_empty(&shard->finished) && shard->job_count == 0);
    assert(list_is_empty(&shard->dirty) && list_is_empty(&shard->tails));
    assert(shard->open_count == 0 && shard->tail_bytes == 0);
    pthread_mutex_destroy(&shard->lock);
    free(shard);
}

size_t log_shard_drain(struct log_shard *shard)
{
    size_t count = 0;
    pthread_mutex_lock(&shard->lock);
    struct list_link *link = list_pop_front(&shard->finished);
    pthread_mutex_unlock(&shard->lock);
    while (link != NULL) {
        struct log_job *job = job_of(link);
        if (job->not_before_ms == 0) {
            assert(shard->job_count > 0);
            shard->job_count--;
        }
        job->done(job, job->status);
        count++;
        pthread_mutex_lock(&shard->lock);
        link = list_pop_front(&shard->finished);
        pthread_mutex_unlock(&shard->lock);
    }
    return count;
}

void log_shard_tick(struct log_shard *shard, int64_t now_ms)
{
    shard->now_ms = now_ms;
    partition_log_write_due(shard);
    partition_log_trim(shard);
}

size_t log_shard_jobs(const struct log_shard *shard)
{
    return shard->job_count;
}

void log_shard_read_stats(const struct log_shard *shard, struct log_shard_stats *stats)
{
    *stats = shard->stats;
    stats->tail_bytes = shard->tail_bytes;
    stats->open_files = shard->open_count;
}

/* Closes the files that were not used for longest, down to the limit. */
static void close_surplus(struct log_shard *shard)
{
    while (shard->open_count > shard->settings.open_file_limit) {
        struct list_link *link = list_first(&shard->open_handles);
        log_handle_close(shard, container_of(link, struct log_handle, use));
    }
}

enum status log_handle_open(struct log_shard *shard, struct log_handle *handle, const char *path,
    unsigned flags, struct file **file)
{
    if (handle->file == NULL) {
        struct file *opened;
        enum status status = file_open(path, flags, &opened);
        if (status != STATUS_OK) {
            return status;
        }
        log_handle_put(shard, handle, opened);
    } else {
        list_remove(&handle->use);
        list_push_back(&shard->open_handles, &handle->use);
    }
    *file = handle->file;
    return STATUS_OK;
}

void log_handle_put(struct log_shard *shard, struct log_handle *handle, struct file *file)
{
    if (file == NULL || handle->file != NULL) {
        file_unref(file);
        return;
    }
    handle->file = file;
    list_push_back(&shard->open_handles, &handle->use);
    shard->open_count++;
    close_surplus(shard);
    assert(handle->file != NULL);
}

void log_handle_close(struct log_shard *shard, struct log_handle *handle)
{
    if (handle->file != NULL) {
        list_remove(&handle->use);
        file_unref(handle->file);
        handle->file = NULL;
        assert(shard->open_count > 0);
        shard->open_count--;
    }
}
