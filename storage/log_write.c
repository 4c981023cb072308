/* Getting batches into files: one job at a time for each log, made from what waits in memory.
 *
 * A job belongs to one segment. It carries references to the batches' blocks and copies of
 * everything else, so that the log may go away while it runs. The writer makes directory and files
 * when they are missing, writes batches and index entries, replaces the small files, and syncs when
 * the job says so: at the end of a segment, when enough is not synced, and for a flush. Back on the
 * shard, the batches may leave memory and the next job is made. A failed job takes the writer
 * offline, and with it every log of the directory.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "storage/log_content.h"
#include "storage/log_direct.h"

enum { TRIM_AT_ONCE = 64, JOB_BATCHES_MAX = 4096, JOB_BYTES_MAX = 8 * 1024 * 1024,
    UNREAD_PATIENCE = 16 };

struct log_write {
    struct log_job job;
    struct partition_log *log; /* null: it was closed meanwhile; the shard's side only */
    char *directory;
    char *data_path;
    struct uuid topic_id;
    int64_t base_offset;
    bool make_directory;       /* and write partition.metadata */
    bool sync;
    bool sync_names;
    bool direct;               /* past the page cache */
    bool finishes;             /* the segment takes no more */
    bool note_gaps;            /* make LOG_GAPS_NAME */
    struct file *log_file;     /* null: to be opened; results stay here */
    struct file *offsets_file;
    struct file *times_file;
    uint64_t position;
    uint64_t bytes;
    struct iovec *parts;
    int part_count;
    struct block **blocks;     /* references, one for each batch */
    size_t batch_count;
    int64_t end_offset;        /* batches below are written when this is done */
    uint64_t offsets_position;
    uint64_t times_position;
    struct buffer offsets;
    struct buffer times;
    struct buffer epochs;      /* empty: nothing to replace */
    struct buffer snapshot;
    int64_t snapshot_offset;
    int64_t old_snapshot;      /* to be removed; -1 for none */
};

/* On the writer's thread -------------------------------------------------------------------- */

/* Whether small files are synced one by one; else the sync behind the job does it, or nothing. */
static bool sync_each(const struct log_write *write)
{
    return write->sync && !write->job.grouped;
}

static enum status make_directory(struct log_write *write)
{
    char path[FILE_PATH_MAX];
    char id[UUID_TEXT_LENGTH + 1];
    char text[96];
    enum status status = file_make_directory(write->directory);
    if (status != STATUS_OK) {
        return status;
    }
    assert(strlen(write->directory) + 32 < sizeof path);
    uuid_text(write->topic_id, id);
    int length = snprintf(path, sizeof path, "%s/partition.metadata", write->directory);
    assert(length > 0 && (size_t)length < sizeof path);
    snprintf(text, sizeof text, "version: 0\ntopic_id: %s", id);
    return file_replace(path, view_text(text), sync_each(write));
}

static enum status note_gaps(struct log_write *write)
{
    char path[FILE_PATH_MAX];
    struct file *file;
    int length = snprintf(path, sizeof path, "%s/%s", write->directory, LOG_GAPS_NAME);
    assert(length > 0 && (size_t)length < sizeof path);
    enum status status = file_open(path, FILE_WRITE | FILE_CREATE, &file);
    if (status == STATUS_OK) {
        file_unref(file);
    }
    return status;
}

static enum status open_missing(struct log_write *write)
{
    struct file **files[] = {&write->log_file, &write->offsets_file, &write->times_file};
    enum log_file_kind kinds[] = {LOG_FILE_LOG, LOG_FILE_INDEX, LOG_FILE_TIME_INDEX};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[FILE_PATH_MAX];
        if (*files[i] != NULL) {
            continue;
        }
        log_file_path(write->directory, write->base_offset, kinds[i], path);
        enum status status = file_open(path, FILE_WRITE | FILE_CREATE, files[i]);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status write_buffer(struct file *file, uint64_t position, const struct buffer *bytes)
{
    if (bytes->length == 0) {
        return STATUS_OK;
    }
    struct iovec part = {bytes->data, bytes->length};
    return file_write(file, position, &part, 1);
}

static enum status write_batches(struct log_write *write)
{
    char path[FILE_PATH_MAX];
    if (!write->direct) {
        return file_write(write->log_file, write->position, write->parts, write->part_count);
    }
    log_file_path(write->directory, write->base_offset, LOG_FILE_LOG, path);
    return log_direct_write(path, write->log_file, write->position, write->parts,
        write->part_count, log_writer_pages(write->job.shard->writer));
}

static enum status write_files(struct log_write *write)
{
    enum status status = write_batches(write);
    if (status == STATUS_OK) {
        status = write_buffer(write->offsets_file, write->offsets_position, &write->offsets);
    }
    if (status == STATUS_OK) {
        status = write_buffer(write->times_file, write->times_position, &write->times);
    }
    return status;
}

static enum status write_small_files(struct log_write *write)
{
    char path[FILE_PATH_MAX];
    enum status status = STATUS_OK;
    if (write->epochs.length > 0) {
        int length = snprintf(path, sizeof path, "%s/leader-epoch-checkpoint", write->directory);
        assert(length > 0 && (size_t)length < sizeof path);
        status = file_replace(path, buffer_view(&write->epochs), sync_each(write));
    }
    if (status == STATUS_OK && write->snapshot.length > 0) {
        log_file_path(write->directory, write->snapshot_offset, LOG_FILE_SNAPSHOT, path);
        status = file_replace(path, buffer_view(&write->snapshot), sync_each(write));
    }
    if (status == STATUS_OK && write->old_snapshot >= 0) {
        log_file_path(write->directory, write->old_snapshot, LOG_FILE_SNAPSHOT, path);
        status = file_remove(path);
        status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    return status;
}

static enum status sync_files(struct log_write *write)
{
    struct file *files[] = {write->log_file, write->offsets_file, write->times_file};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        enum status status = planted(PLANT_LOG_SYNC_SKIPPED) ? STATUS_OK : file_sync(files[i]);
        if (status != STATUS_OK) {
            return status;
        }
    }
    enum status status = STATUS_OK;
    if (write->sync_names) {
        status = file_sync_directory(write->directory);
    }
    if (status == STATUS_OK && write->sync_names) {
        status = file_sync_directory(write->data_path);
    }
    return status;
}

static enum status sync_write(struct log_job *job)
{
    return sync_files(container_of(job, struct log_write, job));
}

static enum status run_write(struct log_job *job)
{
    struct log_write *write = container_of(job, struct log_write, job);
    enum status status = STATUS_OK;
    if (write->make_directory) {
        status = make_directory(write);
    }
    if (status == STATUS_OK && write->note_gaps) {
        status = note_gaps(write);
    }
    if (status == STATUS_OK) {
        status = open_missing(write);
    }
    if (status == STATUS_OK) {
        status = write_files(write);
    }
    if (status == STATUS_OK) {
        status = write_small_files(write);
    }
    return status;
}

/* Back on the shard ------------------------------------------------------------------------- */

static void free_write(struct log_write *write)
{
    for (size_t i = 0; i < write->batch_count; i++) {
        block_unref(write->blocks[i]);
    }
    file_unref(write->log_file);
    file_unref(write->offsets_file);
    file_unref(write->times_file);
    buffer_free(&write->offsets);
    buffer_free(&write->times);
    buffer_free(&write->epochs);
    buffer_free(&write->snapshot);
    free(write->blocks);
    free(write->parts);
    free(write->directory);
    free(write->data_path);
    free(write);
}

void log_end_waiters(struct partition_log *log, enum status status)
{
    struct log_content *content = log->content;
    int64_t synced = content->synced_offset;
    struct list ready;
    struct list_link *link;
    list_init(&ready);
    while ((link = list_first(&content->waiters)) != NULL) {
        struct log_waiter *waiter = container_of(link, struct log_waiter, link);
        if (status == STATUS_OK && waiter->target_offset > synced) {
            break; /* they wait in order */
        }
        list_remove(link);
        list_push_back(&ready, link);
    }
    /* From here on the log is not touched: a waiter may close it. */
    while ((link = list_pop_front(&ready)) != NULL) {
        struct log_waiter *waiter = container_of(link, struct log_waiter, link);
        waiter->done(waiter->context, status, synced);
        free(waiter);
    }
}

static struct log_segment *find_segment(struct log_content *content, int64_t base_offset)
{
    if (content->segment_count == 0) {
        return NULL;
    }
    struct log_segment *segment = content->segments[log_segment_at(content, base_offset)];
    return segment->base_offset == base_offset ? segment : NULL;
}

static void note_segment_written(struct partition_log *log, struct log_segment *segment,
    struct log_write *write)
{
    log_handle_put(log->shard, &segment->log, write->log_file);
    log_handle_put(log->shard, &segment->offsets.handle, write->offsets_file);
    log_handle_put(log->shard, &segment->times.handle, write->times_file);
    write->log_file = NULL;
    write->offsets_file = NULL;
    write->times_file = NULL;
    segment->on_disk = true;
    segment->written_bytes = write->position + write->bytes;
    assert(segment->written_bytes <= segment->size_bytes);
    segment->synced_bytes = write->sync ? segment->written_bytes : segment->synced_bytes;
    segment->finished = write->finishes;
    log_index_landed(&segment->offsets);
    log_index_landed(&segment->times);
}

/* A sync reaches up to where the segment's successor starts: after an open, batches of later
 * segments count as written, but were not synced. */
static void note_synced(struct log_content *content, const struct log_segment *segment)
{
    content->synced_offset = content->written_offset;
    size_t next = log_segment_at(content, segment->base_offset) + 1;
    if (next < content->segment_count
        && content->segments[next]->base_offset < content->synced_offset) {
        content->synced_offset = content->segments[next]->base_offset;
    }
    content->records_unsynced = 0;
    content->unsynced_since_ms = content->synced_offset == content->log->next_offset
        ? -1 : content->dirty_since_ms;
}

/* Where a snapshot stands among those kept, newest first; LOG_SNAPSHOTS_KEPT behind them all. */
static size_t snapshot_place(const struct log_content *content, int64_t offset)
{
    size_t place = 0;
    while (place < LOG_SNAPSHOTS_KEPT && content->snapshots[place] > offset) {
        place++;
    }
    return place;
}

static bool has_snapshot(const struct log_content *content, int64_t offset)
{
    size_t place = snapshot_place(content, offset);
    return place < LOG_SNAPSHOTS_KEPT && content->snapshots[place] == offset;
}

static void note_snapshot(struct log_content *content, const struct log_write *write)
{
    if (write->snapshot.length == 0 || has_snapshot(content, write->snapshot_offset)) {
        return;
    }
    size_t place = snapshot_place(content, write->snapshot_offset);
    assert(place < LOG_SNAPSHOTS_KEPT);
    for (size_t i = LOG_SNAPSHOTS_KEPT - 1; i > place; i--) {
        content->snapshots[i] = content->snapshots[i - 1];
    }
    content->snapshots[place] = write->snapshot_offset;
}

static void note_written(struct partition_log *log, struct log_write *write)
{
    struct log_content *content = log->content;
    struct log_segment *segment = find_segment(content, write->base_offset);
    assert(segment != NULL);
    note_segment_written(log, segment, write);
    content->directory_made = true;
    content->gaps_noted = content->gaps_noted || write->note_gaps;
    content->metadata_durable = content->metadata_durable || write->sync;
    content->names_unsynced = content->names_unsynced && !write->sync_names;
    assert(content->unwritten_bytes >= write->bytes);
    content->unwritten_bytes -= write->bytes;
    content->tail.written += write->batch_count;
    assert(content->tail.written <= content->tail.count);
    content->written_offset = write->end_offset;
    if (write->sync) {
        note_synced(content, segment);
        log->shard->stats.syncs++;
    }
    note_snapshot(content, write);
    log->shard->stats.writes++;
    log->shard->stats.written_bytes += write->bytes;
}

/* How many times more of a log without readers is gathered for one write, and for one sync. */
static size_t patience(const struct partition_log *log)
{
    const struct log_content *content = log->content;
    bool was_read = content->last_read_ms >= 0
        && log->shard->now_ms - content->last_read_ms < log->shard->settings.read_lately_ms;
    return log->unread && !was_read ? UNREAD_PATIENCE : 1;
}

static bool is_enough(const struct partition_log *log)
{
    return log->content->unwritten_bytes
        >= log->shard->settings.write_after_bytes * patience(log);
}

static bool has_unwritten(const struct log_content *content)
{
    return content->tail.written < content->tail.count;
}

/* Whether a job is wanted without new batches: a segment to end or make, or a flush. */
static bool wants_job(const struct log_content *content)
{
    struct log_segment *active = log_active(content);
    bool unfinished = content->segment_count > 1
        && !content->segments[content->segment_count - 2]->finished;
    struct list_link *last = list_last(&content->waiters);
    bool flush = last != NULL
        && container_of(last, struct log_waiter, link)->target_offset > content->synced_offset;
    return flush || unfinished || content->sync_wanted
        || (active != NULL && !active->on_disk && !has_unwritten(content));
}

/* What comes after a job: the next one at once, or when it is due. */
static void write_more(struct partition_log *log)
{
    struct log_content *content = log->content;
    if (wants_job(content) || is_enough(log)) {
        log_write_submit(log);
    } else if (has_unwritten(content) && !list_contains(&content->dirty)) {
        list_push_back(&log->shard->dirty, &content->dirty);
    }
}

static void write_done(struct log_job *job, enum status status)
{
    struct log_write *write = container_of(job, struct log_write, job);
    struct partition_log *log = write->log;
    if (log == NULL) {
        free_write(write);
        return;
    }
    struct log_content *content = log->content;
    assert(content->flying == write);
    content->flying = NULL;
    if (status == STATUS_OK) {
        note_written(log, write);
    } else if (log->status == STATUS_OK) {
        log->status = status;
    }
    free_write(write);
    if (status == STATUS_OK) {
        log_drop_below_start(log, log->shard->now_ms);
        write_more(log);
    }
    log_end_waiters(log, status);
}

void log_write_orphan(struct partition_log *log)
{
    if (log->content->flying != NULL) {
        log->content->flying->log = NULL;
        log->content->flying = NULL;
    }
}

/* Making a job ------------------------------------------------------------------------------ */

/* The first segment that is not finished; there is always one. */
static struct log_segment *segment_to_write(struct log_content *content, bool *is_active)
{
    size_t at = content->segment_count - 1;
    while (at > 0 && !content->segments[at - 1]->finished) {
        at--;
    }
    *is_active = at == content->segment_count - 1;
    return content->segments[at];
}

/* Takes the batches of the segment that are not written; whether these were all of them. */
static bool collect_batches(struct log_content *content, const struct log_segment *segment,
    struct log_write *write)
{
    const struct log_tail *tail = &content->tail;
    size_t count = 0;
    size_t bytes = 0;
    size_t at = tail->written;
    while (at + count < tail->count && count < JOB_BATCHES_MAX && bytes < JOB_BYTES_MAX
        && log_tail_at(tail, at + count)->segment == segment->base_offset) {
        bytes += log_tail_at(tail, at + count)->slice.length;
        count++;
    }
    write->parts = memory_new(count * sizeof *write->parts);
    write->blocks = memory_new(count * sizeof(struct block *));
    for (size_t i = 0; i < count; i++) {
        struct tail_batch *batch = log_tail_at(tail, at + i);
        struct iovec *last = write->part_count == 0 ? NULL : &write->parts[write->part_count - 1];
        write->blocks[i] = block_ref(batch->slice.block);
        if (last != NULL && (uint8_t *)last->iov_base + last->iov_len == batch->slice.data) {
            last->iov_len += batch->slice.length;
        } else {
            write->parts[write->part_count++] = (struct iovec){
                (void *)(uintptr_t)batch->slice.data, batch->slice.length};
        }
        write->end_offset = batch->last_offset + 1;
    }
    write->batch_count = count;
    write->bytes = bytes;
    return at + count == tail->count || log_tail_at(tail, at + count)->segment
        != segment->base_offset;
}

static void launch_index(struct log_index *index, struct buffer *copy, uint64_t *position)
{
    log_index_launch(index);
    *position = index->written_bytes;
    buffer_append(copy, index->flying.data, index->flying.length);
}

static struct file *ref_or_null(const struct log_handle *handle)
{
    return handle->file == NULL ? NULL : file_ref(handle->file);
}

/* The producers as of the batches this job makes durable, or as of the last roll. */
static void add_snapshot(struct partition_log *log, struct log_write *write)
{
    struct log_content *content = log->content;
    write->old_snapshot = -1;
    /* A flush is what a checkpoint waits for: it never vouches for offsets without a snapshot of
     * the producers as of them, although under load the table is ahead of what the job writes. */
    bool whole = write->end_offset == log->next_offset;
    bool wanted = whole || !list_is_empty(&content->waiters);
    if (write->sync && wanted && content->producers_changed) {
        producer_state_save(partition_log_producers(log), write->end_offset, &write->snapshot);
        write->snapshot_offset = write->end_offset;
        content->producers_changed = !whole;
    } else if (content->roll_snapshot_offset >= 0
        && content->roll_snapshot_offset <= write->end_offset) {
        write->snapshot = content->roll_snapshot;
        write->snapshot_offset = content->roll_snapshot_offset;
        content->roll_snapshot = (struct buffer){0};
        content->roll_snapshot_offset = -1;
    }
    if (write->snapshot.length == 0 || has_snapshot(content, write->snapshot_offset)) {
        return; /* the same again */
    }
    if (snapshot_place(content, write->snapshot_offset) == LOG_SNAPSHOTS_KEPT) {
        buffer_free(&write->snapshot); /* newer ones are there */
    } else {
        write->old_snapshot = content->snapshots[LOG_SNAPSHOTS_KEPT - 1];
    }
}

/* Whether the job must sync: a flush waits, the segment ends, or enough is not synced. */
static bool needs_sync(const struct partition_log *log, const struct log_segment *segment,
    const struct log_write *write)
{
    const struct log_content *content = log->content;
    uint64_t end = write->position + write->bytes;
    bool late = content->unsynced_since_ms >= 0 && log->settings->flush_ms != INT64_MAX
        && log->shard->now_ms - content->unsynced_since_ms >= log->settings->flush_ms;
    return !list_is_empty(&content->waiters) || write->finishes || late || content->sync_wanted
        || end - segment->synced_bytes >= log->shard->settings.sync_after_bytes * patience(log)
        || content->records_unsynced >= log->settings->flush_messages;
}

static struct log_write *new_write(struct partition_log *log, struct log_segment *segment)
{
    char directory[FILE_PATH_MAX];
    struct log_write *write = memory_new_zero(1, sizeof *write);
    log_directory_path(&log->identity, directory);
    write->job.run = run_write;
    write->job.done = write_done;
    write->job.fatal = true;
    write->log = log;
    write->directory = memory_copy_text(directory);
    write->data_path = memory_copy_text(log->identity.data_path);
    write->job.sync_path = write->data_path;
    write->topic_id = log->identity.topic_id;
    write->base_offset = segment->base_offset;
    write->position = segment->written_bytes;
    write->end_offset = log->content->written_offset;
    write->log_file = ref_or_null(&segment->log);
    write->offsets_file = ref_or_null(&segment->offsets.handle);
    write->times_file = ref_or_null(&segment->times.handle);
    return write;
}

void log_write_submit(struct partition_log *log)
{
    struct log_content *content = log->content;
    if (list_contains(&content->dirty)) {
        list_remove(&content->dirty);
    }
    if (content->flying != NULL || content->segment_count == 0) {
        return; /* the job in flight is followed by the next */
    }
    if (log->status != STATUS_OK) {
        return; /* a failed write is final: nothing follows it */
    }
    bool is_active;
    struct log_segment *segment = segment_to_write(content, &is_active);
    struct log_write *write = new_write(log, segment);
    bool all = collect_batches(content, segment, write);
    write->finishes = all && !is_active;
    write->note_gaps = content->has_gaps && !content->gaps_noted;
    content->names_unsynced = content->names_unsynced || !segment->on_disk || write->note_gaps;
    write->sync = needs_sync(log, segment, write);
    write->direct = patience(log) > 1 && write->bytes >= log->shard->settings.direct_from_bytes;
    content->sync_wanted = content->sync_wanted && !is_active;
    write->make_directory = !content->directory_made
        || (write->sync && !content->metadata_durable);
    write->sync_names = write->sync && content->names_unsynced;
    write->job.sync = write->sync ? sync_write : NULL;
    launch_index(&segment->offsets, &write->offsets, &write->offsets_position);
    launch_index(&segment->times, &write->times, &write->times_position);
    if (content->epochs_changed && write->sync) {
        log_epochs_save(&content->epochs, &write->epochs);
        content->epochs_changed = false;
    }
    add_snapshot(log, write);
    content->dirty_since_ms = log->shard->now_ms;
    content->flying = write;
    log_writer_submit(log->shard->writer, log->shard, &write->job);
}

void log_mark_dirty(struct partition_log *log, int64_t now_ms)
{
    struct log_content *content = log->content;
    struct log_shard *shard = log->shard;
    shard->now_ms = now_ms > shard->now_ms ? now_ms : shard->now_ms;
    if (!list_contains(&content->dirty)) {
        content->dirty_since_ms = now_ms;
        list_push_back(&shard->dirty, &content->dirty);
    }
    if (content->flying == NULL && is_enough(log)) {
        log_write_submit(log);
    }
    if (shard->tail_bytes > shard->settings.tail_budget_bytes) {
        partition_log_trim(shard);
    }
}

/* All logs of a shard ----------------------------------------------------------------------- */

void partition_log_write_due(struct log_shard *shard)
{
    struct list_link *link;
    while ((link = list_first(&shard->dirty)) != NULL) {
        struct log_content *content = container_of(link, struct log_content, dirty);
        if (content->dirty_since_ms + shard->settings.write_after_ms > shard->now_ms) {
            return;
        }
        log_write_submit(content->log);
    }
}

static bool is_far_over(const struct log_shard *shard)
{
    size_t budget = shard->settings.tail_budget_bytes;
    return shard->tail_bytes > budget + budget / 4;
}

void partition_log_trim(struct log_shard *shard)
{
    struct list_link *link = list_first(&shard->tails);
    for (int i = 0; link != NULL && i < TRIM_AT_ONCE; i++) {
        struct log_content *content = container_of(link, struct log_content, tail_use);
        link = list_next(&shard->tails, link);
        bool over = shard->tail_bytes > shard->settings.tail_budget_bytes;
        bool idle = content->last_append_ms + shard->settings.idle_tail_ms <= shard->now_ms;
        if (!over && !idle) {
            return;
        }
        size_t surplus = idle ? SIZE_MAX
                              : shard->tail_bytes - shard->settings.tail_budget_bytes;
        log_drop_tail(content->log, surplus);
        /* A full budget is the ordinary state under load: only well above it is a log written
         * before its time, or each append would cause a write of one batch. */
        if (is_far_over(shard) && has_unwritten(content)) {
            log_write_submit(content->log);
        }
    }
}

void partition_log_flush(struct partition_log *log,
    void (*done)(void *context, enum status status, int64_t synced_offset), void *context)
{
    assert(done != NULL);
    enum status status = partition_log_status(log);
    if (status != STATUS_OK || partition_log_synced(log) >= log->next_offset) {
        done(context, status, partition_log_synced(log));
        return;
    }
    struct log_waiter *waiter = memory_new_zero(1, sizeof *waiter);
    waiter->target_offset = log->next_offset;
    waiter->done = done;
    waiter->context = context;
    list_push_back(&log->content->waiters, &waiter->link);
    log_write_submit(log);
}
