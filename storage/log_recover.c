/* One segment at a time, at open only. Reads may fail; everything else is one of the five cases. */
#include "storage/log_recover.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/memory.h"

enum { INDEX_BYTES_MAX = 256 * 1024 * 1024, SEARCH_WINDOW_BYTES = 1024 * 1024 };

enum log_recover_case log_recover_judge(bool whole, int64_t expected, int64_t recovery_point,
    bool something_follows)
{
    if (whole) {
        return LOG_RECOVER_WHOLE;
    }
    if (expected < recovery_point) {
        return LOG_RECOVER_LOST;
    }
    if (recovery_point >= 0) {
        return LOG_RECOVER_UNSYNCED;
    }
    return something_follows ? LOG_RECOVER_CORRUPT : LOG_RECOVER_TORN;
}

/* Indexes ----------------------------------------------------------------------------------- */

/* The bytes of an index file; a missing one is empty. */
static enum status read_index(struct log_recover *recover, const struct log_segment *segment,
    enum log_file_kind kind, struct buffer *bytes)
{
    char path[FILE_PATH_MAX];
    log_content_path(recover->log, segment->base_offset, kind, path);
    enum status status = file_read_whole(path, INDEX_BYTES_MAX, bytes);
    return status == STATUS_NOT_FOUND || status == STATUS_LIMIT ? STATUS_OK : status;
}

/* How many entries in front rise strictly and point below the recovery point and into the file. */
static size_t good_offset_entries(const struct log_recover *recover,
    const struct log_segment *segment, const struct buffer *bytes)
{
    size_t good = 0;
    struct log_offset_entry last = {-1, -1};
    for (; (good + 1) * LOG_OFFSET_ENTRY_BYTES <= bytes->length; good++) {
        struct log_offset_entry entry =
            log_index_load_offset(bytes->data + good * LOG_OFFSET_ENTRY_BYTES);
        if (entry.offset <= last.offset || entry.position <= last.position
            || (uint64_t)entry.position >= segment->size_bytes
            || segment->base_offset + entry.offset >= recover->recovery_point) {
            break;
        }
        last = entry;
    }
    return good;
}

static size_t good_time_entries(const struct log_segment *segment, const struct buffer *bytes)
{
    size_t good = 0;
    struct log_time_entry last = {-1, -1};
    for (; (good + 1) * LOG_TIME_ENTRY_BYTES <= bytes->length; good++) {
        struct log_time_entry entry =
            log_index_load_time(bytes->data + good * LOG_TIME_ENTRY_BYTES);
        if (entry.timestamp_ms <= last.timestamp_ms || entry.offset <= last.offset
            || entry.offset > segment->last_index_offset) {
            break;
        }
        last = entry;
    }
    return good;
}

/* Whether the batch that an entry points to ends with the entry's offset. */
static enum status entry_fits(struct log_recover *recover, struct log_segment *segment,
    struct log_offset_entry entry, bool *fits)
{
    struct file *file;
    struct log_scan scan;
    struct batch_header header;
    enum status status = log_segment_file(recover->log, segment, &file);
    if (status != STATUS_OK) {
        return status;
    }
    log_scan_start(&scan, file, (uint64_t)entry.position, segment->size_bytes);
    status = log_scan_header(&scan, &header);
    log_scan_free(&scan);
    *fits = status == STATUS_OK
        && batch_last_offset(&header) - segment->base_offset == entry.offset;
    return status == STATUS_IO ? status : STATUS_OK;
}

/* Keeps what fits of both indexes; the rest of the files goes. `*start` is a position from which
 * headers must be read: that of an entry, at or below the offset the caller wants to read from. */
static enum status load_indexes(struct log_recover *recover, struct log_segment *segment,
    uint64_t *start)
{
    struct buffer offsets = {0};
    struct buffer times = {0};
    bool fits = false;
    size_t good = 0;
    *start = 0;
    enum status status = read_index(recover, segment, LOG_FILE_INDEX, &offsets);
    if (status == STATUS_OK) {
        status = read_index(recover, segment, LOG_FILE_TIME_INDEX, &times);
    }
    if (status == STATUS_OK) {
        good = good_offset_entries(recover, segment, &offsets);
    }
    if (good > 0) {
        status = entry_fits(recover, segment, log_index_load_offset(
            offsets.data + (good - 1) * LOG_OFFSET_ENTRY_BYTES), &fits);
    }
    good = fits ? good : 0;
    for (size_t i = 0; i < good; i++) {
        struct log_offset_entry entry =
            log_index_load_offset(offsets.data + i * LOG_OFFSET_ENTRY_BYTES);
        segment->last_index_offset = entry.offset;
        if (segment->base_offset + entry.offset <= recover->scan_from) {
            *start = (uint64_t)entry.position;
        }
    }
    segment->offsets.written_bytes = good * LOG_OFFSET_ENTRY_BYTES;
    size_t good_times = good_time_entries(segment, &times);
    segment->times.written_bytes = good_times * LOG_TIME_ENTRY_BYTES;
    if (good_times > 0) {
        struct log_time_entry last =
            log_index_load_time(times.data + (good_times - 1) * LOG_TIME_ENTRY_BYTES);
        segment->max_timestamp = last.timestamp_ms;
        segment->max_timestamp_offset = segment->base_offset + last.offset;
        segment->last_time_entry = last.timestamp_ms;
    }
    buffer_free(&offsets);
    buffer_free(&times);
    return status;
}

/* Cuts a file to a length unless it has it. A missing file stays missing. */
static enum status cut_file(struct log_recover *recover, const struct log_segment *segment,
    enum log_file_kind kind, uint64_t size_bytes)
{
    char path[FILE_PATH_MAX];
    struct file *file;
    uint64_t now = 0;
    log_content_path(recover->log, segment->base_offset, kind, path);
    enum status status = file_open(path, FILE_WRITE, &file);
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    status = file_size(file, &now);
    if (status == STATUS_OK && now != size_bytes) {
        status = file_truncate(file, size_bytes);
    }
    if (status == STATUS_OK && now != size_bytes) {
        status = file_sync(file);
    }
    file_unref(file);
    return status;
}

/* Batches ----------------------------------------------------------------------------------- */

/* Whether a good batch starts at the position (STATUS_OK); its first offset. STATUS_IO: it cannot
 * be read. */
static enum status check_good_batch(struct log_scan *scan, int64_t at_least, int64_t *offset)
{
    struct batch_header header;
    struct view bytes;
    enum status status = log_scan_header(scan, &header);
    if (status == STATUS_OK && (header.base_offset < at_least
        || header.base_offset - at_least > INT32_MAX)) {
        status = STATUS_INVALID;
    }
    if (status == STATUS_OK) {
        status = log_scan_batch(scan, &header, &bytes);
    }
    if (status == STATUS_OK) {
        status = batch_validate(bytes, &header);
    }
    if (status == STATUS_OK) {
        *offset = header.base_offset;
    }
    return status;
}

/* Looks for a good batch in a part of the file; STATUS_NOT_FOUND: there is none. */
static enum status find_in_window(struct file *file, uint64_t position, struct view window,
    uint64_t end, int64_t at_least, int64_t *offset)
{
    size_t last = window.length - BATCH_HEADER_BYTES;
    enum status status = STATUS_NOT_FOUND;
    for (size_t i = 0; i <= last && status != STATUS_OK && status != STATUS_IO; i++) {
        if (window.data[i + offsetof(struct batch_layout, magic)] != BATCH_MAGIC
            || (int64_t)load_be64(window.data + i) < at_least) {
            continue;
        }
        struct log_scan scan;
        log_scan_start(&scan, file, position + i, end);
        status = check_good_batch(&scan, at_least, offset);
        log_scan_free(&scan);
    }
    return status == STATUS_OK || status == STATUS_IO ? status : STATUS_NOT_FOUND;
}

/* Looks behind `position` for a good batch, at any byte: lengths cannot be trusted there. What
 * cannot be read may hold one. */
static enum status find_good_batch(struct file *file, uint64_t position, uint64_t end,
    int64_t at_least, int64_t *offset)
{
    uint8_t *window = memory_new(SEARCH_WINDOW_BYTES);
    enum status status = STATUS_NOT_FOUND;
    while (status == STATUS_NOT_FOUND && position + BATCH_HEADER_BYTES <= end) {
        size_t wanted = end - position < SEARCH_WINDOW_BYTES ? (size_t)(end - position)
                                                             : SEARCH_WINDOW_BYTES;
        size_t got = 0;
        enum status read = file_read(file, position, window, wanted, &got);
        if (read != STATUS_OK || got < BATCH_HEADER_BYTES) {
            status = read != STATUS_OK ? read : STATUS_NOT_FOUND;
            break;
        }
        status = find_in_window(file, position, (struct view){window, got}, end, at_least, offset);
        position += got - BATCH_HEADER_BYTES + 1;
    }
    free(window);
    return status;
}

/* Whether the batch's offsets, which no checksum covers, follow from those before it. Only a
 * compacted log has gaps. */
static bool offsets_fit(const struct log_recover *recover, const struct log_segment *segment,
    const struct batch_header *header)
{
    if (header->base_offset - segment->base_offset > INT32_MAX - header->last_offset_delta
        || header->base_offset < recover->expected
        || (header->base_offset < recover->recovery_point
            && batch_last_offset(header) >= recover->recovery_point)) {
        return false;
    }
    return log_may_have_gaps(recover->log) || !recover->expected_is_exact
        || header->base_offset == recover->expected;
}

/* One batch: its header is read; above the recovery point it is checked whole. */
static enum status check_batch(struct log_recover *recover, const struct log_segment *segment,
    struct log_scan *scan, struct batch_header *header)
{
    struct view bytes;
    enum status status = log_scan_header(scan, header);
    if (status != STATUS_OK) {
        return status;
    }
    if (header->base_offset < segment->base_offset || !offsets_fit(recover, segment, header)) {
        return STATUS_INVALID;
    }
    if (header->base_offset < recover->recovery_point) {
        return STATUS_OK;
    }
    status = log_scan_batch(scan, header, &bytes);
    return status == STATUS_OK ? batch_validate(bytes, header) : status;
}

static void take_batch(struct log_recover *recover, struct log_segment *segment, uint64_t position,
    const struct batch_header *header)
{
    int64_t relative = batch_last_offset(header) - segment->base_offset;
    if (relative <= segment->last_index_offset) {
        segment->bytes_since_index = 0; /* it has its entry, or a later one has */
    }
    log_note_batch(recover->log, segment, position, header, true);
    if (header->base_offset >= recover->producers_from) {
        log_note_producer(recover->log, header);
    }
    recover->expected = batch_last_offset(header) + 1;
    recover->expected_is_exact = true;
}

static void note_damage(struct log_recover *recover, const struct log_segment *segment,
    uint64_t position, int64_t resume_offset, const char *reason)
{
    struct log_damage *damage = &recover->log->content->damage;
    snprintf(damage->file, sizeof damage->file, "%020" PRId64 ".log", segment->base_offset);
    damage->position = position;
    damage->offset = recover->expected;
    damage->resume_offset = resume_offset;
    damage->reason = reason;
}

static enum status cut_tail(struct log_recover *recover, struct log_segment *segment,
    uint64_t position)
{
    log_warn("log", "%s-%d: cut %020" PRId64 ".log from %" PRIu64 " to %" PRIu64
        " bytes: not written whole; offset %" PRId64 " is next", recover->log->identity.topic,
        (int)recover->log->identity.partition, segment->base_offset, segment->size_bytes, position,
        recover->expected);
    return cut_file(recover, segment, LOG_FILE_LOG, position);
}

/* The bytes at `position` are no batch: which case it is, and what follows from it. */
static enum status settle_end(struct log_recover *recover, struct log_segment *segment,
    struct file *file, uint64_t position, bool is_last, enum log_recover_case *result)
{
    int64_t resume = -1;
    bool whole = position == segment->size_bytes
        && !(is_last && recover->expected < recover->recovery_point);
    bool follows = !whole && recover->recovery_point < 0 && !is_last;
    enum status status = STATUS_OK;
    if (!whole && recover->recovery_point < 0) {
        status = find_good_batch(file, position, segment->size_bytes, recover->expected, &resume);
        follows = follows || status == STATUS_OK;
    }
    if (status == STATUS_IO) {
        return status;
    }
    *result = log_recover_judge(whole, recover->expected, recover->recovery_point, follows);
    status = STATUS_OK;
    switch (*result) {
    case LOG_RECOVER_WHOLE:
        return STATUS_OK;
    case LOG_RECOVER_LOST:
        note_damage(recover, segment, position, -1, "shorter than its checkpoint vouches for");
        break;
    case LOG_RECOVER_CORRUPT:
        note_damage(recover, segment, position, resume, "fails its check before good batches");
        break;
    case LOG_RECOVER_UNSYNCED:
    case LOG_RECOVER_TORN:
        status = cut_tail(recover, segment, position);
        break;
    }
    struct log_content *content = recover->log->content;
    content->size_bytes -= segment->size_bytes - position;
    segment->size_bytes = position;
    return status;
}

static enum status scan_batches(struct log_recover *recover, struct log_segment *segment,
    uint64_t start, bool is_last, enum log_recover_case *result)
{
    struct file *file;
    struct log_scan scan;
    enum status status = log_segment_file(recover->log, segment, &file);
    if (status != STATUS_OK) {
        return status;
    }
    struct file *held = file_ref(file); /* other files may be opened meanwhile */
    log_scan_start(&scan, held, start, segment->size_bytes);
    recover->expected_is_exact = start == 0;
    if (start > 0 || recover->expected < segment->base_offset) {
        recover->expected = segment->base_offset;
    }
    struct batch_header header;
    while ((status = check_batch(recover, segment, &scan, &header)) == STATUS_OK) {
        take_batch(recover, segment, scan.position, &header);
        log_scan_skip(&scan, &header);
    }
    if (status != STATUS_IO) {
        status = settle_end(recover, segment, held, scan.position, is_last, result);
    }
    log_scan_free(&scan);
    file_unref(held);
    return status;
}

/* The first batch's time, which segment.ms counts from. */
static enum status load_first_timestamp(struct log_recover *recover, struct log_segment *segment)
{
    struct file *file;
    struct log_scan scan;
    struct batch_header header;
    enum status status = log_segment_file(recover->log, segment, &file);
    if (status != STATUS_OK || segment->size_bytes == 0) {
        return status;
    }
    log_scan_start(&scan, file, 0, segment->size_bytes);
    status = log_scan_header(&scan, &header);
    if (status == STATUS_OK) {
        segment->first_timestamp = header.max_timestamp;
    }
    log_scan_free(&scan);
    return status == STATUS_IO ? status : STATUS_OK;
}

enum status log_recover_segment(struct log_recover *recover, struct log_segment *segment,
    bool is_last, enum log_recover_case *result)
{
    uint64_t start = 0;
    enum status status = load_indexes(recover, segment, &start);
    if (status == STATUS_OK) {
        status = load_first_timestamp(recover, segment);
    }
    if (status == STATUS_OK) {
        status = scan_batches(recover, segment, start, is_last, result);
    }
    if (status == STATUS_OK) {
        status = cut_file(recover, segment, LOG_FILE_INDEX, segment->offsets.written_bytes);
    }
    if (status == STATUS_OK) {
        status = cut_file(recover, segment, LOG_FILE_TIME_INDEX, segment->times.written_bytes);
    }
    segment->written_bytes = segment->size_bytes;
    segment->on_disk = true;
    return status;
}

static enum status save_index(struct log_recover *recover, const struct log_segment *segment,
    enum log_file_kind kind, struct log_index *index)
{
    char path[FILE_PATH_MAX];
    struct file *file;
    if (index->pending.length == 0) {
        return STATUS_OK;
    }
    log_content_path(recover->log, segment->base_offset, kind, path);
    enum status status = log_handle_open(recover->log->shard, &index->handle, path,
        FILE_WRITE | FILE_CREATE, &file);
    if (status == STATUS_OK) {
        struct iovec part = {index->pending.data, index->pending.length};
        status = file_write(file, index->written_bytes, &part, 1);
    }
    if (status == STATUS_OK) {
        log_index_launch(index);
        log_index_landed(index);
    }
    return status;
}

enum status log_recover_save_indexes(struct log_recover *recover, struct log_segment *segment)
{
    log_segment_end_times(segment);
    enum status status = save_index(recover, segment, LOG_FILE_INDEX, &segment->offsets);
    if (status == STATUS_OK) {
        status = save_index(recover, segment, LOG_FILE_TIME_INDEX, &segment->times);
    }
    return status;
}

/* Trusted segments -------------------------------------------------------------------------- */

/* Whole entries in an index file; 0 when it is missing. */
static enum status index_bytes(struct log_recover *recover, const struct log_segment *segment,
    enum log_file_kind kind, struct log_index *index)
{
    char path[FILE_PATH_MAX];
    struct file *file;
    uint64_t size = 0;
    log_content_path(recover->log, segment->base_offset, kind, path);
    enum status status = log_handle_open(recover->log->shard, &index->handle, path, FILE_WRITE,
        &file);
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    status = file_size(file, &size);
    index->written_bytes = size - size % index->entry_bytes;
    return status;
}

enum status log_recover_trust(struct log_recover *recover, struct log_segment *segment)
{
    char path[FILE_PATH_MAX];
    struct log_time_entry last;
    enum status status = index_bytes(recover, segment, LOG_FILE_INDEX, &segment->offsets);
    if (status == STATUS_OK) {
        status = index_bytes(recover, segment, LOG_FILE_TIME_INDEX, &segment->times);
    }
    log_content_path(recover->log, segment->base_offset, LOG_FILE_TIME_INDEX, path);
    if (status == STATUS_OK) {
        status = log_index_last_time(recover->log->shard, &segment->times, path, &last);
        if (status == STATUS_OK) {
            segment->max_timestamp = last.timestamp_ms;
            segment->max_timestamp_offset = segment->base_offset + last.offset;
            segment->last_time_entry = last.timestamp_ms;
        }
        status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    segment->written_bytes = segment->size_bytes;
    segment->synced_bytes = segment->size_bytes;
    segment->on_disk = true;
    segment->finished = true;
    return status;
}

enum status log_recover_end_offset(struct log_recover *recover, struct log_segment *segment,
    int64_t *end_offset)
{
    struct batch_header header;
    uint64_t position = 0;
    *end_offset = segment->base_offset;
    enum status status = log_segment_locate(recover->log, segment, INT64_MAX, &position, &header);
    if (status != STATUS_NOT_FOUND || segment->size_bytes == 0) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    *end_offset = batch_last_offset(&header) + 1;
    return STATUS_OK;
}
