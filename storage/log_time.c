/* Finding records by timestamp (KIP-33, KIP-79, KIP-734): the time index narrows the search to a
 * stretch of a segment, headers to a batch, and the records inside give the offset. Batches in
 * memory are looked at there. What cannot be unpacked is damage. */
#include <assert.h>

#include "storage/log_content.h"

enum { UNPACK_LIMIT_BYTES = 256 * 1024 * 1024 };


/* The first record of the batch that is at or after the time, and not below the log's start. */
static enum status find_record(struct partition_log *log, struct view batch,
    const struct batch_header *header, int64_t timestamp_ms, struct log_time_offset *found)
{
    struct buffer scratch = {0};
    struct view records;
    enum status status = batch_unpack(batch, header, UNPACK_LIMIT_BYTES, &scratch, &records);
    if (status == STATUS_OK) {
        struct record_iterator iterator = record_iterator_start(header, records);
        struct record record;
        while ((status = record_next(&iterator, &record)) == STATUS_OK) {
            if (record.timestamp >= timestamp_ms && record.offset >= log->start_offset) {
                *found = (struct log_time_offset){record.offset, record.timestamp,
                    header->leader_epoch};
                break;
            }
        }
    }
    buffer_free(&scratch);
    return status == STATUS_OK || status == STATUS_NOT_FOUND ? status : STATUS_CORRUPT;
}

/* Looks through the batches in memory, from the one with `offset` on. */
static enum status find_in_tail(struct partition_log *log, int64_t offset, int64_t timestamp_ms,
    struct log_time_offset *found)
{
    const struct log_tail *tail = &log->content->tail;
    for (size_t i = log_tail_find(tail, offset); i < tail->count; i++) {
        struct view bytes = slice_view(log_tail_at(tail, i)->slice);
        struct batch_header header;
        enum status status = batch_read_header(bytes, &header);
        assert(status == STATUS_OK);
        if (header.max_timestamp < timestamp_ms) {
            continue;
        }
        status = find_record(log, bytes, &header, timestamp_ms, found);
        if (status != STATUS_NOT_FOUND) {
            return status;
        }
    }
    return STATUS_NOT_FOUND;
}

/* Looks through the batches of a file from `position` on. */
static enum status find_in_file(struct partition_log *log, struct log_segment *segment,
    uint64_t position, int64_t timestamp_ms, struct log_time_offset *found)
{
    struct file *file;
    struct log_scan scan;
    struct batch_header header;
    enum status status = log_segment_file(log, segment, &file);
    if (status != STATUS_OK) {
        return status;
    }
    log_scan_start(&scan, file, position, segment->written_bytes);
    while ((status = log_scan_header(&scan, &header)) == STATUS_OK) {
        if (header.max_timestamp >= timestamp_ms
            && batch_last_offset(&header) >= log->start_offset) {
            struct view bytes;
            status = log_scan_batch(&scan, &header, &bytes);
            if (status == STATUS_OK) {
                status = find_record(log, bytes, &header, timestamp_ms, found);
            }
            if (status != STATUS_NOT_FOUND) {
                break;
            }
        }
        log_scan_skip(&scan, &header);
    }
    log_scan_free(&scan);
    bool answered = status == STATUS_OK || status == STATUS_NOT_FOUND || status == STATUS_IO;
    return answered ? status : STATUS_CORRUPT;
}

/* Where in the file to begin: behind the last time entry that is below the wanted time. */
static enum status start_position(struct partition_log *log, struct log_segment *segment,
    int64_t timestamp_ms, uint64_t *position)
{
    char path[FILE_PATH_MAX];
    struct log_time_entry entry;
    struct log_offset_entry place;
    *position = 0;
    log_content_path(log, segment->base_offset, LOG_FILE_TIME_INDEX, path);
    if (timestamp_ms <= 0) {
        return STATUS_OK;
    }
    enum status status = log_index_find_time(log->shard, &segment->times, path, timestamp_ms - 1,
        &entry);
    if (status == STATUS_OK) {
        log_content_path(log, segment->base_offset, LOG_FILE_INDEX, path);
        status = log_index_find_offset(log->shard, &segment->offsets, path, entry.offset, &place);
    }
    if (status == STATUS_OK && (uint64_t)place.position < segment->written_bytes) {
        *position = (uint64_t)place.position;
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status find_in_segment(struct partition_log *log, struct log_segment *segment,
    int64_t timestamp_ms, struct log_time_offset *found)
{
    uint64_t position;
    if (segment->written_bytes == 0) {
        return STATUS_NOT_FOUND;
    }
    enum status status = start_position(log, segment, timestamp_ms, &position);
    return status == STATUS_OK ? find_in_file(log, segment, position, timestamp_ms, found) : status;
}

enum status partition_log_find_time(struct partition_log *log, int64_t timestamp_ms,
    struct log_time_offset *found)
{
    struct log_content *content = log->content;
    *found = (struct log_time_offset){-1, -1, -1};
    enum status status = STATUS_NOT_FOUND;
    if (content == NULL) {
        return STATUS_OK;
    }
    for (size_t i = 0; i < content->segment_count && status == STATUS_NOT_FOUND; i++) {
        struct log_segment *segment = content->segments[i];
        if (segment->max_timestamp >= timestamp_ms) {
            status = find_in_segment(log, segment, timestamp_ms, found);
        }
    }
    if (status == STATUS_NOT_FOUND) {
        status = find_in_tail(log, log->start_offset, timestamp_ms, found);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status partition_log_find_max_time(struct partition_log *log, struct log_time_offset *found)
{
    struct log_content *content = log->content;
    int64_t largest = -1;
    *found = (struct log_time_offset){-1, -1, -1};
    for (size_t i = 0; content != NULL && i < content->segment_count; i++) {
        int64_t segment = content->segments[i]->max_timestamp;
        largest = segment > largest ? segment : largest;
    }
    return largest < 0 ? STATUS_OK : partition_log_find_time(log, largest, found);
}
