/* Appending, and what a log says about itself.
 *
 * An append takes the batch into memory, notes it in the indexes, epochs and producer table, and
 * leaves the file to the writer: readers see it at once. It fails only when the log is damaged or
 * the writer is offline. The first append makes the log's content; before, a log is a few words.
 */
#include "storage/partition_log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "storage/log_content.h"

enum { DEFAULT_PRODUCER_LIMIT = 100000 };

struct log_settings log_settings_default(void)
{
    return (struct log_settings){
        .segment_bytes = 1073741824, .segment_ms = 604800000, .segment_index_bytes = 10485760,
        .index_interval_bytes = 4096, .retention_ms = 604800000, .retention_bytes = -1,
        .file_delete_delay_ms = 60000, .flush_messages = INT64_MAX, .flush_ms = INT64_MAX,
        .producer_expire_ms = 86400000, .producer_limit = DEFAULT_PRODUCER_LIMIT,
        .delete_old = true};
}

/* Paths ------------------------------------------------------------------------------------- */

void log_directory_path(const struct log_identity *identity, char path[FILE_PATH_MAX])
{
    int length = snprintf(path, FILE_PATH_MAX, "%s/%s-%d", identity->data_path, identity->topic,
        (int)identity->partition);
    assert(length > 0 && length < FILE_PATH_MAX);
}

static const char *const suffixes[] = {
    [LOG_FILE_LOG] = "log", [LOG_FILE_INDEX] = "index", [LOG_FILE_TIME_INDEX] = "timeindex",
    [LOG_FILE_SNAPSHOT] = "snapshot"};

void log_file_path(const char *directory, int64_t offset, enum log_file_kind kind,
    char path[FILE_PATH_MAX])
{
    assert(offset >= 0);
    int length = snprintf(path, FILE_PATH_MAX, "%s/%020" PRId64 ".%s", directory, offset,
        suffixes[kind]);
    assert(length > 0 && length < FILE_PATH_MAX);
}

void log_content_path(const struct partition_log *log, int64_t offset, enum log_file_kind kind,
    char path[FILE_PATH_MAX])
{
    char directory[FILE_PATH_MAX];
    log_directory_path(&log->identity, directory);
    log_file_path(directory, offset, kind, path);
}

bool log_file_offset(const char *name, const char *suffix, int64_t *offset)
{
    char *end;
    if (name[0] < '0' || name[0] > '9') {
        return false;
    }
    long long value = strtoll(name, &end, 10);
    if (end != name + 20 || *end != '.' || strcmp(end + 1, suffix) != 0 || value < 0) {
        return false;
    }
    *offset = value;
    return true;
}

/* Segments and content ---------------------------------------------------------------------- */

struct log_segment *log_segment_new(int64_t base_offset, int64_t now_ms)
{
    struct log_segment *segment = memory_new_zero(1, sizeof *segment);
    segment->base_offset = base_offset;
    log_index_init(&segment->offsets, LOG_OFFSET_ENTRY_BYTES);
    log_index_init(&segment->times, LOG_TIME_ENTRY_BYTES);
    segment->last_index_offset = -1;
    segment->first_timestamp = -1;
    segment->max_timestamp = -1;
    segment->last_time_entry = -1;
    segment->touched_ms = now_ms;
    return segment;
}

void log_segment_free(struct log_shard *shard, struct log_segment *segment)
{
    log_handle_close(shard, &segment->log);
    log_index_free(shard, &segment->offsets);
    log_index_free(shard, &segment->times);
    free(segment);
}

struct log_content *log_content_of(struct partition_log *log)
{
    if (log->content == NULL) {
        struct log_content *content = memory_new_zero(1, sizeof *content);
        content->log = log;
        content->written_offset = log->next_offset;
        content->synced_offset = log->next_offset;
        content->unsynced_since_ms = -1;
        content->last_read_ms = -1;
        content->roll_snapshot_offset = -1;
        list_init(&content->waiters);
        for (size_t i = 0; i < LOG_SNAPSHOTS_KEPT; i++) {
            content->snapshots[i] = -1;
        }
        for (size_t i = 0; i < LOG_CURSORS; i++) {
            content->cursors[i].offset = -1;
        }
        log->content = content;
    }
    return log->content;
}

struct log_segment *log_content_add(struct log_content *content, int64_t base_offset,
    int64_t now_ms)
{
    assert(content->segment_count == 0 || log_active(content)->base_offset < base_offset);
    if (content->segment_count == content->segment_capacity) {
        content->segment_capacity = content->segment_capacity == 0 ? 1
                                                                   : content->segment_capacity * 2;
        content->segments = memory_resize(content->segments, content->segment_capacity,
            sizeof *content->segments);
    }
    struct log_segment *segment = log_segment_new(base_offset, now_ms);
    content->segments[content->segment_count++] = segment;
    return segment;
}

bool log_may_have_gaps(const struct partition_log *log)
{
    return log->settings->compact || (log->content != NULL && log->content->has_gaps);
}

struct log_segment *log_active(const struct log_content *content)
{
    return content->segment_count == 0 ? NULL : content->segments[content->segment_count - 1];
}

size_t log_segment_at(const struct log_content *content, int64_t offset)
{
    size_t low = 0;
    size_t high = content->segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (content->segments[middle]->base_offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? 0 : low - 1;
}

void log_content_drop_segments(struct partition_log *log, size_t count)
{
    struct log_content *content = log->content;
    assert(count <= content->segment_count);
    for (size_t i = 0; i < count; i++) {
        assert(content->size_bytes >= content->segments[i]->size_bytes);
        content->size_bytes -= content->segments[i]->size_bytes;
        log_segment_free(log->shard, content->segments[i]);
    }
    content->segment_count -= count;
    if (content->segment_count == 0) {
        return;
    }
    memmove(content->segments, content->segments + count,
        content->segment_count * sizeof *content->segments);
}

void log_drop_tail(struct partition_log *log, size_t bytes)
{
    struct log_content *content = log->content;
    size_t gone = 0;
    while (gone < bytes && content->tail.written > 0) {
        gone += log_tail_drop(&content->tail);
    }
    assert(log->shard->tail_bytes >= gone);
    log->shard->tail_bytes -= gone;
    if (content->tail.count == 0 && list_contains(&content->tail_use)) {
        list_remove(&content->tail_use);
    }
}

void log_content_free(struct partition_log *log)
{
    struct log_content *content = log->content;
    if (content == NULL) {
        return;
    }
    log_write_orphan(log);
    log_end_waiters(log, STATUS_CLOSED);
    log->shard->tail_bytes -= content->tail.bytes;
    log_tail_free(&content->tail);
    log_content_drop_segments(log, content->segment_count);
    if (list_contains(&content->dirty)) {
        list_remove(&content->dirty);
    }
    if (list_contains(&content->tail_use)) {
        list_remove(&content->tail_use);
    }
    log_epochs_free(&content->epochs);
    buffer_free(&content->roll_snapshot);
    free(content->segments);
    free(content);
    log->content = NULL;
}

void partition_log_close(struct partition_log *log)
{
    log_content_free(log);
    producer_state_free(log->producers);
    free(log);
}

void partition_log_configure(struct partition_log *log, const struct log_settings *settings)
{
    log->settings = settings;
}

void partition_log_expect_readers(struct partition_log *log, bool expected)
{
    log->unread = !expected;
}

/* Appending --------------------------------------------------------------------------------- */

static void note_times(struct log_segment *segment, const struct batch_header *header)
{
    if (segment->first_timestamp < 0) {
        segment->first_timestamp = header->max_timestamp;
    }
    if (header->max_timestamp > segment->max_timestamp) {
        segment->max_timestamp = header->max_timestamp;
        segment->max_timestamp_offset = batch_last_offset(header);
    }
}

static void add_time_entry(struct log_segment *segment)
{
    if (segment->max_timestamp > segment->last_time_entry) {
        log_index_add_time(&segment->times, (struct log_time_entry){segment->max_timestamp,
            (int32_t)(segment->max_timestamp_offset - segment->base_offset)});
        segment->last_time_entry = segment->max_timestamp;
    }
}

void log_segment_end_times(struct log_segment *segment)
{
    add_time_entry(segment);
}

/* Kafka's rule: a batch gets an entry when more than index.interval.bytes came since the last. */
static void note_indexes(const struct partition_log *log, struct log_segment *segment,
    uint64_t position, const struct batch_header *header)
{
    int64_t relative = batch_last_offset(header) - segment->base_offset;
    if (segment->bytes_since_index > (uint64_t)log->settings->index_interval_bytes
        && relative > segment->last_index_offset) {
        log_index_add_offset(&segment->offsets,
            (struct log_offset_entry){(int32_t)relative, (int32_t)position});
        segment->last_index_offset = relative;
        add_time_entry(segment);
        segment->bytes_since_index = 0;
    }
}

void log_note_batch(struct partition_log *log, struct log_segment *segment, uint64_t position,
    const struct batch_header *header, bool with_index)
{
    struct log_content *content = log->content;
    assert(position <= INT32_MAX);
    note_times(segment, header);
    if (with_index) {
        note_indexes(log, segment, position, header);
    }
    segment->bytes_since_index += batch_size_bytes(header);
    if (log_epochs_note(&content->epochs, header->leader_epoch, header->base_offset)) {
        content->epochs_changed = true;
    }
}

void log_note_producer(struct partition_log *log, const struct batch_header *header)
{
    if (header->producer_id < 0 || header->record_count <= 0) {
        return;
    }
    struct producer_state *producers = partition_log_producers(log);
    log->content->producers_changed = true;
    if (batch_has(header, BATCH_CONTROL)) {
        producer_state_end_transaction(producers, header->producer_id, header->producer_epoch, -1,
            batch_last_offset(header), header->max_timestamp);
        return;
    }
    if (header->base_sequence < 0) {
        return;
    }
    struct producer_batch batch = {.producer_id = header->producer_id,
        .epoch = header->producer_epoch, .base_sequence = header->base_sequence,
        .record_count = header->last_offset_delta + 1, .base_offset = header->base_offset,
        .last_offset = batch_last_offset(header), .timestamp_ms = header->max_timestamp,
        .is_transactional = batch_has(header, BATCH_TRANSACTIONAL)};
    producer_state_update(producers, &batch);
}

/* Whether the batch must go into a new segment. */
static bool must_roll(const struct partition_log *log, const struct log_segment *segment,
    const struct batch_header *header)
{
    const struct log_settings *settings = log->settings;
    uint64_t size = segment->size_bytes + batch_size_bytes(header);
    if (segment->size_bytes == 0) {
        return batch_last_offset(header) - segment->base_offset > INT32_MAX;
    }
    return size > (uint64_t)settings->segment_bytes || size > INT32_MAX
        || batch_last_offset(header) - segment->base_offset > INT32_MAX
        || (log_index_count(&segment->offsets) + 1) * LOG_OFFSET_ENTRY_BYTES
            > (uint64_t)settings->segment_index_bytes
        || (segment->first_timestamp >= 0 && header->max_timestamp > segment->first_timestamp
            && header->max_timestamp - segment->first_timestamp > settings->segment_ms);
}

/* Remembers the producers as they are at the start of a new segment; the writer saves them. */
static void snapshot_for_roll(struct partition_log *log, int64_t offset)
{
    struct log_content *content = log->content;
    if (log->producers == NULL || producer_state_count(log->producers) == 0) {
        return;
    }
    content->roll_snapshot.length = 0;
    producer_state_save(log->producers, INT64_MAX, &content->roll_snapshot);
    content->roll_snapshot_offset = offset;
    content->producers_changed = false;
}

/* The segment the batch goes into. */
static struct log_segment *segment_for(struct partition_log *log,
    const struct batch_header *header, int64_t now_ms)
{
    struct log_content *content = log_content_of(log);
    struct log_segment *active = log_active(content);
    if (active == NULL) {
        return log_content_add(content, header->base_offset, now_ms);
    }
    if (must_roll(log, active, header)) {
        log_segment_end_times(active);
        snapshot_for_roll(log, header->base_offset);
        return log_content_add(content, header->base_offset, now_ms);
    }
    return active;
}

static void touch_tail(struct partition_log *log, int64_t now_ms)
{
    struct log_content *content = log->content;
    content->last_append_ms = now_ms;
    if (list_contains(&content->tail_use)) {
        list_remove(&content->tail_use);
    }
    list_push_back(&log->shard->tails, &content->tail_use);
}

/* Counts what is not synced, and asks for a sync when flush.messages or flush.ms say so. */
static void note_unsynced(struct partition_log *log, const struct batch_header *header,
    int64_t now_ms)
{
    struct log_content *content = log->content;
    content->records_unsynced += header->last_offset_delta + 1;
    if (content->unsynced_since_ms < 0) {
        content->unsynced_since_ms = now_ms;
    }
}

enum status partition_log_append(struct partition_log *log, struct slice batch, int64_t now_ms)
{
    struct batch_header header;
    enum status status = partition_log_status(log);
    if (status != STATUS_OK) {
        return status;
    }
    status = batch_read_header(slice_view(batch), &header);
    assert(status == STATUS_OK && batch_size_bytes(&header) == batch.length);
    if (header.base_offset < log->next_offset) {
        return STATUS_OUT_OF_RANGE;
    }
    struct log_segment *segment = segment_for(log, &header, now_ms);
    struct log_content *content = log->content;
    content->has_gaps = content->has_gaps || header.base_offset > log->next_offset;
    uint64_t position = segment->size_bytes;
    log_tail_add(&content->tail, slice_view(batch), batch.block,
        (struct tail_batch){.base_offset = header.base_offset,
            .last_offset = batch_last_offset(&header), .segment = segment->base_offset,
            .position = position});
    log->shard->tail_bytes += batch.length;
    log_note_batch(log, segment, position, &header, true);
    log_note_producer(log, &header);
    segment->size_bytes += batch.length;
    segment->touched_ms = now_ms;
    content->size_bytes += batch.length;
    content->unwritten_bytes += batch.length;
    log->next_offset = batch_last_offset(&header) + 1;
    note_unsynced(log, &header, now_ms);
    touch_tail(log, now_ms);
    log_mark_dirty(log, now_ms);
    return STATUS_OK;
}

/* Accessors --------------------------------------------------------------------------------- */

int64_t partition_log_start(const struct partition_log *log)
{
    return log->start_offset;
}

int64_t partition_log_end(const struct partition_log *log)
{
    return log->next_offset;
}

uint64_t partition_log_size_bytes(const struct partition_log *log)
{
    return log->content == NULL ? 0 : log->content->size_bytes;
}

uint64_t partition_log_position(const struct partition_log *log)
{
    const struct log_segment *active = log->content == NULL ? NULL : log_active(log->content);
    return active == NULL ? 0 : active->size_bytes;
}

size_t partition_log_segment_count(const struct partition_log *log)
{
    return log->content == NULL ? 0 : log->content->segment_count;
}

enum status partition_log_status(const struct partition_log *log)
{
    return log->status != STATUS_OK ? log->status : log_writer_status(log->shard->writer);
}

const struct log_epoch *partition_log_epochs(const struct partition_log *log, size_t *count)
{
    *count = log->content == NULL ? 0 : log->content->epochs.count;
    return *count == 0 ? NULL : log->content->epochs.entries;
}

int32_t partition_log_latest_epoch(const struct partition_log *log)
{
    size_t count;
    const struct log_epoch *epochs = partition_log_epochs(log, &count);
    return count == 0 ? -1 : epochs[count - 1].epoch;
}

int32_t partition_log_epoch_at(const struct partition_log *log, int64_t offset)
{
    return log->content == NULL ? -1 : log_epochs_at(&log->content->epochs, offset);
}

struct log_epoch_end partition_log_epoch_end(const struct partition_log *log, int32_t epoch)
{
    struct log_epochs none = {0};
    return log_epochs_end(log->content == NULL ? &none : &log->content->epochs, epoch,
        log->next_offset);
}

struct producer_state *partition_log_producers(struct partition_log *log)
{
    if (log->producers == NULL) {
        size_t limit = log->settings->producer_limit;
        log->producers = producer_state_new(limit == 0 ? DEFAULT_PRODUCER_LIMIT : limit);
    }
    return log->producers;
}

int64_t partition_log_synced(const struct partition_log *log)
{
    return log->content == NULL ? log->next_offset : log->content->synced_offset;
}
