/* What leaves a log: segments that are too old or too many, records deleted on request, the whole
 * log. Files are renamed by the writer at once (so that nothing finds them any more) and removed
 * after file.delete.delay.ms; who still reads one holds it open. A crash in between leaves names
 * that the next open or start removes. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "io/random.h"
#include "storage/log_content.h"
#include "storage/log_dir.h"

/* Segments ---------------------------------------------------------------------------------- */

struct removal {
    struct log_job job;
    struct log_writer *writer;
    char *directory;
    int64_t base_offset;
    int64_t delay_ms;
    int64_t now_ms;
};

static const enum log_file_kind removed_kinds[] = {LOG_FILE_LOG, LOG_FILE_INDEX,
    LOG_FILE_TIME_INDEX};
enum { REMOVED_KINDS = sizeof removed_kinds / sizeof removed_kinds[0] };

static void deleted_path(const char *path, char deleted[FILE_PATH_MAX])
{
    int length = snprintf(deleted, FILE_PATH_MAX, "%s.deleted", path);
    assert(length > 0 && length < FILE_PATH_MAX);
}

static enum status rename_segment(const char *directory, int64_t base_offset)
{
    for (size_t i = 0; i < REMOVED_KINDS; i++) {
        char path[FILE_PATH_MAX];
        char deleted[FILE_PATH_MAX];
        log_file_path(directory, base_offset, removed_kinds[i], path);
        deleted_path(path, deleted);
        enum status status = file_rename(path, deleted);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status run_rename(struct log_job *job)
{
    struct removal *removal = container_of(job, struct removal, job);
    return rename_segment(removal->directory, removal->base_offset);
}

static enum status run_remove(struct log_job *job)
{
    struct removal *removal = container_of(job, struct removal, job);
    enum status result = STATUS_OK;
    for (size_t i = 0; i < REMOVED_KINDS; i++) {
        char path[FILE_PATH_MAX];
        char deleted[FILE_PATH_MAX];
        log_file_path(removal->directory, removal->base_offset, removed_kinds[i], path);
        deleted_path(path, deleted);
        enum status status = file_remove(deleted);
        result = status == STATUS_OK || status == STATUS_NOT_FOUND ? result : status;
    }
    return result;
}

static void free_removal(struct log_job *job, enum status status)
{
    (void)status; /* a file that could not be removed was logged, and is found at the next open */
    struct removal *removal = container_of(job, struct removal, job);
    free(removal->directory);
    free(removal);
}

/* When something may be removed, as a time of the writer: never 0, which means at once. */
static int64_t removal_time(int64_t now_ms, int64_t delay_ms)
{
    int64_t time_ms = delay_ms > INT64_MAX - (now_ms > 0 ? now_ms : 0) ? INT64_MAX
                                                                       : now_ms + delay_ms;
    return time_ms > 0 ? time_ms : 1;
}

static void renamed(struct log_job *job, enum status status)
{
    struct removal *removal = container_of(job, struct removal, job);
    if (status != STATUS_OK) {
        free_removal(job, status);
        return;
    }
    removal->job.run = run_remove;
    removal->job.done = free_removal;
    removal->job.not_before_ms = removal_time(removal->now_ms, removal->delay_ms);
    log_writer_submit(removal->writer, job->shard, job);
}

void log_remove_files(struct partition_log *log, int64_t base_offset, int64_t now_ms)
{
    char directory[FILE_PATH_MAX];
    struct removal *removal = memory_new_zero(1, sizeof *removal);
    log_directory_path(&log->identity, directory);
    removal->directory = memory_copy_text(directory);
    removal->writer = log->shard->writer;
    removal->base_offset = base_offset;
    removal->delay_ms = log->settings->file_delete_delay_ms;
    removal->now_ms = now_ms;
    removal->job.run = run_rename;
    removal->job.done = renamed;
    log_writer_submit(log->shard->writer, log->shard, &removal->job);
}

/* Whether the first segment may go: it is not the active one, the writer is through with it, and
 * the names of those behind it are on the disk. Else a power cut could take all segments. */
static bool can_drop_first(struct partition_log *log)
{
    struct log_content *content = log->content;
    if (content->segment_count < 2 || !content->segments[0]->finished) {
        return false;
    }
    if (content->segments[1]->finished
        || (content->segments[1]->on_disk && !content->names_unsynced)) {
        return true;
    }
    content->sync_wanted = true; /* and then it is looked at again */
    log_write_submit(log);
    return false;
}

/* Batches in memory that belong to the first segment are in its file; they go with it. */
static void drop_first(struct partition_log *log, int64_t now_ms)
{
    struct log_content *content = log->content;
    assert(content->segment_count > 1 && content->segments[0]->finished);
    int64_t base = content->segments[0]->base_offset;
    while (content->tail.written > 0 && log_tail_at(&content->tail, 0)->segment == base) {
        log_drop_tail(log, 1);
    }
    log_remove_files(log, base, now_ms);
    log_content_drop_segments(log, 1);
}

static void raise_start(struct partition_log *log, int64_t offset)
{
    if (offset <= log->start_offset) {
        return;
    }
    assert(offset <= log->next_offset);
    log->start_offset = offset;
    if (log_epochs_cut_front(&log->content->epochs, offset)) {
        log->content->epochs_changed = true;
    }
}

/* Whether the first segment lies wholly below the start offset. */
static bool is_below_start(const struct partition_log *log)
{
    const struct log_content *content = log->content;
    return content->segment_count > 1 && content->segments[1]->base_offset <= log->start_offset;
}

void log_drop_below_start(struct partition_log *log, int64_t now_ms)
{
    while (is_below_start(log) && can_drop_first(log)) {
        drop_first(log, now_ms);
    }
}

enum status partition_log_delete_records(struct partition_log *log, int64_t offset)
{
    if (offset > log->next_offset) {
        return STATUS_OUT_OF_RANGE;
    }
    if (log->content != NULL) {
        raise_start(log, offset);
        log_drop_below_start(log, log->shard->now_ms);
    }
    return STATUS_OK;
}

/* The newest timestamp in a segment; when its records have none, when it was touched last. */
static int64_t newest_ms(const struct log_segment *segment)
{
    return segment->max_timestamp >= 0 ? segment->max_timestamp : segment->touched_ms;
}

static bool is_expired(const struct partition_log *log, const struct log_segment *segment,
    int64_t now_ms)
{
    int64_t keep = log->settings->retention_ms;
    return keep >= 0 && segment->size_bytes > 0 && now_ms - newest_ms(segment) > keep;
}

/* Whether a log of `size_bytes` is still as large as retention.bytes without its first segment. */
static bool is_surplus(const struct partition_log *log, const struct log_segment *segment,
    uint64_t size_bytes)
{
    int64_t keep = log->settings->retention_bytes;
    return keep >= 0 && size_bytes >= (uint64_t)keep
        && size_bytes - (uint64_t)keep >= segment->size_bytes;
}

/* Where the log starts without what is too old or too much; the active segment stays. */
static int64_t retained_start(const struct partition_log *log, int64_t now_ms)
{
    const struct log_content *content = log->content;
    uint64_t size = content->size_bytes;
    size_t gone = 0;
    while (gone + 1 < content->segment_count
        && (is_expired(log, content->segments[gone], now_ms)
            || is_surplus(log, content->segments[gone], size))) {
        size -= content->segments[gone]->size_bytes;
        gone++;
    }
    return content->segments[gone]->base_offset;
}

/* Ends the active segment, so that it can go when its time comes. */
static void roll(struct partition_log *log, int64_t now_ms)
{
    log_segment_end_times(log_active(log->content));
    log_content_add(log->content, log->next_offset, now_ms);
    log_write_submit(log);
}

int64_t partition_log_retention(struct partition_log *log, int64_t now_ms)
{
    struct log_content *content = log->content;
    if (log->producers != NULL) {
        size_t gone = producer_state_expire(log->producers, now_ms,
            log->settings->producer_expire_ms);
        if (gone > 0 && content != NULL) {
            content->producers_changed = true;
        }
    }
    if (content == NULL || content->segment_count == 0 || log->status != STATUS_OK) {
        return log->start_offset;
    }
    if (log->settings->delete_old) {
        if (content->segment_count == 1 && is_expired(log, content->segments[0], now_ms)) {
            roll(log, now_ms);
        }
        raise_start(log, retained_start(log, now_ms));
    }
    log_drop_below_start(log, now_ms);
    return log->start_offset;
}

/* Starting anew ----------------------------------------------------------------------------- */

struct restart {
    struct log_job job;
    char *directory;
    int64_t start_offset;
    size_t old_count;
    int64_t *old; /* base offsets of the segments that go */
    int64_t snapshots[LOG_SNAPSHOTS_KEPT]; /* which go with them; -1: none */
};

/* What is torn at the end of a log may be cut, what is torn before a segment may not. */
static enum status sync_last(const struct restart *restart)
{
    char path[FILE_PATH_MAX];
    struct file *file;
    log_file_path(restart->directory, restart->old[restart->old_count - 1], LOG_FILE_LOG, path);
    enum status status = file_open(path, FILE_WRITE, &file);
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    status = file_sync(file);
    file_unref(file);
    return status;
}

/* An open looks for what stays. */
static enum status remove_snapshots(const struct restart *restart)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < LOG_SNAPSHOTS_KEPT && status == STATUS_OK; i++) {
        char path[FILE_PATH_MAX];
        if (restart->snapshots[i] >= 0) {
            log_file_path(restart->directory, restart->snapshots[i], LOG_FILE_SNAPSHOT, path);
            status = file_remove(path);
            status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
        }
    }
    return status;
}

/* The new segment is on the disk before the first old one goes: after a power cut the log has what
 * its checkpoint vouches for, or it starts anew. It syncs by itself, not with what waits behind. */
static enum status run_restart(struct log_job *job)
{
    struct restart *restart = container_of(job, struct restart, job);
    char path[FILE_PATH_MAX];
    struct file *file;
    if (!file_exists(restart->directory)) {
        return STATUS_OK; /* nothing was written */
    }
    enum status status = sync_last(restart);
    if (status == STATUS_OK) {
        log_file_path(restart->directory, restart->start_offset, LOG_FILE_LOG, path);
        status = file_open(path, FILE_WRITE | FILE_CREATE, &file);
    }
    if (status == STATUS_OK) {
        file_unref(file);
        status = file_sync_directory(restart->directory);
    }
    for (size_t i = 0; i < restart->old_count && status == STATUS_OK; i++) {
        status = rename_segment(restart->directory, restart->old[i]);
    }
    if (status == STATUS_OK) {
        status = remove_snapshots(restart);
    }
    return status == STATUS_OK ? file_sync_directory(restart->directory) : status;
}

static void free_restart(struct log_job *job, enum status status)
{
    (void)status; /* a failure is the writer's */
    struct restart *restart = container_of(job, struct restart, job);
    free(restart->directory);
    free(restart->old);
    free(restart);
}

static void submit_restart(struct partition_log *log, int64_t start_offset)
{
    const struct log_content *content = log->content;
    char directory[FILE_PATH_MAX];
    struct restart *restart = memory_new_zero(1, sizeof *restart);
    log_directory_path(&log->identity, directory);
    restart->directory = memory_copy_text(directory);
    restart->start_offset = start_offset;
    restart->old = memory_new(content->segment_count * sizeof *restart->old);
    for (; restart->old_count < content->segment_count; restart->old_count++) {
        restart->old[restart->old_count] = content->segments[restart->old_count]->base_offset;
    }
    memcpy(restart->snapshots, content->snapshots, sizeof restart->snapshots);
    restart->job =
        (struct log_job){.run = run_restart, .done = free_restart, .fatal = true};
    log_writer_submit(log->shard->writer, log->shard, &restart->job);
}

/* Who waits for a flush gets it: of the log as it is then. */
static void move_waiters(struct list *from, struct list *to, int64_t target_offset)
{
    struct list_link *link;
    assert(from != to && list_is_empty(to));
    while ((link = list_pop_front(from)) != NULL) {
        container_of(link, struct log_waiter, link)->target_offset = target_offset;
        list_push_back(to, link);
    }
}

enum status partition_log_reset(struct partition_log *log, int64_t start_offset)
{
    assert(start_offset >= 0);
    enum status status = log_writer_status(log->shard->writer);
    if (status != STATUS_OK) {
        return status;
    }
    struct log_content *content = log->content;
    bool made = content != NULL && content->directory_made;
    bool durable = content != NULL && content->metadata_durable;
    bool gaps = content != NULL && content->has_gaps;
    if (content != NULL && content->segment_count > 0) {
        submit_restart(log, start_offset);
    }
    for (size_t i = 0; content != NULL && i < content->segment_count; i++) {
        log_remove_files(log, content->segments[i]->base_offset, log->shard->now_ms);
    }
    struct list waiters;
    list_init(&waiters);
    if (content != NULL) {
        move_waiters(&content->waiters, &waiters, start_offset);
    }
    log_content_free(log);
    producer_state_free(log->producers);
    log->producers = NULL;
    log->status = STATUS_OK;
    log->start_offset = start_offset;
    log->next_offset = start_offset;
    content = log_content_of(log);
    content->directory_made = made;
    content->metadata_durable = durable;
    content->has_gaps = gaps;
    content->epochs_changed = true;
    move_waiters(&waiters, &content->waiters, start_offset);
    log_content_add(content, start_offset, log->shard->now_ms);
    log_write_submit(log);
    return STATUS_OK;
}

/* The whole partition ----------------------------------------------------------------------- */

struct log_deletion {
    struct log_job job;
    struct log_writer *writer;
    struct log_shard *shard;
    char *directory;
    struct uuid topic_id;
    char *doomed;     /* its new name */
    char *data_path;
    int64_t delay_ms;
    int64_t now_ms;
    void (*done)(void *context, enum status status);
    void *context;
};

/* The log could not be opened for that, or not at all. */
static bool is_anothers(const struct log_deletion *deletion)
{
    struct uuid found = log_dir_topic_id(deletion->directory);
    return !uuid_is_zero(found) && !uuid_is_zero(deletion->topic_id)
        && !uuid_equal(found, deletion->topic_id);
}

static enum status run_doom(struct log_job *job)
{
    struct log_deletion *deletion = container_of(job, struct log_deletion, job);
    if (is_anothers(deletion)) {
        log_warn("log", "%s belongs to another topic of that name and stays", deletion->directory);
        return STATUS_OK;
    }
    enum status status = file_rename(deletion->directory, deletion->doomed);
    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK; /* it was never written */
    }
    return status == STATUS_OK ? file_sync_directory(deletion->data_path) : status;
}

static enum status run_remove_doomed(struct log_job *job)
{
    return file_remove_tree(container_of(job, struct log_deletion, job)->doomed);
}

static void free_deletion(struct log_job *job, enum status status)
{
    (void)status; /* what could not be removed was logged, and goes at the next start */
    struct log_deletion *deletion = container_of(job, struct log_deletion, job);
    free(deletion->directory);
    free(deletion->doomed);
    free(deletion->data_path);
    free(deletion);
}

static void doomed(struct log_job *job, enum status status)
{
    struct log_deletion *deletion = container_of(job, struct log_deletion, job);
    if (deletion->done != NULL) {
        deletion->done(deletion->context, status);
    }
    if (status != STATUS_OK) {
        free_deletion(job, status);
        return;
    }
    deletion->job.run = run_remove_doomed;
    deletion->job.done = free_deletion;
    deletion->job.not_before_ms = removal_time(deletion->now_ms, deletion->delay_ms);
    log_writer_submit(deletion->writer, job->shard, job);
}

/* <topic>-<partition>.<32 digits>-delete, the topic shortened where the name gets too long. */
static char *doomed_path(const struct log_identity *identity)
{
    enum { NAME_MAX_BYTES = 255, REST_BYTES = 1 + 32 + 7 };
    char path[FILE_PATH_MAX];
    char partition[16];
    struct uuid unique = random_uuid();
    char digits[2 * UUID_BYTES + 1];
    for (size_t i = 0; i < UUID_BYTES; i++) {
        snprintf(digits + 2 * i, 3, "%02x", unique.bytes[i]);
    }
    int partition_length = snprintf(partition, sizeof partition, "-%d", (int)identity->partition);
    int topic_length = NAME_MAX_BYTES - REST_BYTES - partition_length;
    int length = snprintf(path, sizeof path, "%s/%.*s%s.%s-delete", identity->data_path,
        topic_length, identity->topic, partition, digits);
    assert(length > 0 && (size_t)length < sizeof path);
    return memory_copy_text(path);
}

struct log_deletion *log_deletion_new(struct log_shard *shard,
    const struct log_identity *identity, int64_t file_delete_delay_ms,
    void (*done)(void *context, enum status status), void *context)
{
    char directory[FILE_PATH_MAX];
    struct log_deletion *deletion = memory_new_zero(1, sizeof *deletion);
    log_directory_path(identity, directory);
    deletion->directory = memory_copy_text(directory);
    deletion->topic_id = identity->topic_id;
    deletion->doomed = doomed_path(identity);
    deletion->data_path = memory_copy_text(identity->data_path);
    deletion->writer = shard->writer;
    deletion->shard = shard;
    deletion->delay_ms = file_delete_delay_ms;
    deletion->now_ms = shard->now_ms;
    deletion->done = done;
    deletion->context = context;
    deletion->job.run = run_doom;
    deletion->job.done = doomed;
    return deletion;
}

void log_deletion_begin(struct log_deletion *deletion, enum status status)
{
    assert(!list_contains(&deletion->job.link));
    if (status == STATUS_OK) {
        log_writer_submit(deletion->writer, deletion->shard, &deletion->job);
    } else {
        doomed(&deletion->job, status);
    }
}
