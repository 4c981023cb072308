/* Reading batches: from memory when the tail holds them, else as one range of a segment's file.
 *
 * A range starts at the batch that holds the offset and ends at a batch: at the end of what the
 * file has, or where the offset index has an entry, or, for short reads, after looking at headers.
 * So a long read costs one small read of the file here, for the header in front, and one for that
 * at the end, which is where the same reader goes on next time. The data itself is not touched.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "storage/log_content.h"

enum status log_segment_file(struct partition_log *log, struct log_segment *segment,
    struct file **file)
{
    char path[FILE_PATH_MAX];
    log_content_path(log, segment->base_offset, LOG_FILE_LOG, path);
    return log_handle_open(log->shard, &segment->log, path, FILE_WRITE, file);
}

static void index_path(struct partition_log *log, const struct log_segment *segment,
    char path[FILE_PATH_MAX])
{
    log_content_path(log, segment->base_offset, LOG_FILE_INDEX, path);
}

/* Whether the batch that an index entry points to is the one it was made for. */
static bool entry_is_true(struct partition_log *log, struct log_segment *segment,
    struct log_offset_entry entry)
{
    struct file *file;
    struct log_scan scan;
    struct batch_header header;
    if (entry.position < 0 || (uint64_t)entry.position >= segment->written_bytes
        || log_segment_file(log, segment, &file) != STATUS_OK) {
        return false;
    }
    log_scan_start(&scan, file, (uint64_t)entry.position, segment->written_bytes);
    bool is_true = log_scan_header(&scan, &header) == STATUS_OK
        && batch_last_offset(&header) == segment->base_offset + entry.offset;
    log_scan_free(&scan);
    return is_true;
}

/* Where to start looking for the offset: the batch of the last index entry not above it. An index
 * that does not fit its log is not followed. */
static enum status index_position(struct partition_log *log, struct log_segment *segment,
    int64_t offset, uint64_t *position)
{
    char path[FILE_PATH_MAX];
    struct log_offset_entry entry;
    index_path(log, segment, path);
    *position = 0;
    enum status status = log_index_find_offset(log->shard, &segment->offsets, path,
        offset - segment->base_offset, &entry);
    if (status == STATUS_OK && entry_is_true(log, segment, entry)) {
        *position = (uint64_t)entry.position;
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Headers from `position` on until one that ends at or above the offset. What cannot be read as a
 * batch below the written end is damage. */
static enum status scan_to(struct log_scan *scan, int64_t offset, struct batch_header *header)
{
    enum status status = log_scan_header(scan, header);
    while (status == STATUS_OK && batch_last_offset(header) < offset) {
        log_scan_skip(scan, header);
        status = log_scan_header(scan, header);
    }
    bool damaged = status == STATUS_TRUNCATED || status == STATUS_INVALID
        || status == STATUS_UNSUPPORTED;
    return damaged ? STATUS_CORRUPT : status;
}

static enum status locate_from(struct partition_log *log, struct log_segment *segment,
    int64_t offset, uint64_t *position, struct batch_header *header)
{
    struct file *file;
    struct log_scan scan;
    enum status status = log_segment_file(log, segment, &file);
    if (status != STATUS_OK) {
        return status;
    }
    log_scan_start(&scan, file, *position, segment->written_bytes);
    status = scan_to(&scan, offset, header);
    *position = scan.position;
    log_scan_free(&scan);
    return status;
}

enum status log_segment_locate(struct partition_log *log, struct log_segment *segment,
    int64_t offset, uint64_t *position, struct batch_header *header)
{
    if (segment->written_bytes == 0) {
        return STATUS_NOT_FOUND;
    }
    enum status status = index_position(log, segment, offset, position);
    return status == STATUS_OK ? locate_from(log, segment, offset, position, header) : status;
}

/* The cursor that waits at this offset; null when there is none. */
static struct log_cursor *find_cursor(struct log_content *content, int64_t offset)
{
    for (size_t i = 0; i < LOG_CURSORS; i++) {
        if (content->cursors[i].offset == offset) {
            return &content->cursors[i];
        }
    }
    return NULL;
}

/* Results ----------------------------------------------------------------------------------- */

static void start_result(struct log_read *read)
{
    read->parts = read->few;
    read->part_count = 0;
    read->total_bytes = 0;
    read->base_offset = -1;
}

void log_read_release(struct log_read *read)
{
    for (size_t i = 0; i < read->part_count; i++) {
        block_unref(read->parts[i].slice.block);
        file_unref(read->parts[i].file);
    }
    if (read->parts != read->few) {
        free(read->parts);
    }
    start_result(read);
}

/* Room for one more part; false at the bound. */
static bool add_part(struct log_read *read, struct log_part part)
{
    size_t count = read->part_count;
    if (count == LOG_READ_PARTS_MAX) {
        return false;
    }
    if (count == LOG_READ_PARTS_INLINE) {
        struct log_part *more = memory_new(LOG_READ_PARTS_MAX * sizeof *more);
        for (size_t i = 0; i < count; i++) {
            more[i] = read->few[i];
        }
        read->parts = more;
    }
    read->parts[read->part_count++] = part;
    return true;
}

/* Adds a slice, joined to the part before where it follows in memory. */
static bool add_slice(struct log_read *read, struct slice slice)
{
    struct log_part *last = read->part_count == 0 ? NULL : &read->parts[read->part_count - 1];
    if (last != NULL && last->slice.block == slice.block
        && last->slice.data + last->slice.length == slice.data) {
        last->slice.length += slice.length;
        last->length_bytes += slice.length;
    } else if (add_part(read, (struct log_part){.slice = slice, .length_bytes = slice.length})) {
        block_ref(slice.block);
    } else {
        return false;
    }
    read->total_bytes += slice.length;
    return true;
}

static void read_tail(struct log_content *content, size_t number, size_t max_bytes,
    bool whole_first, struct log_read *read)
{
    const struct log_tail *tail = &content->tail;
    assert(number < tail->count);
    read->base_offset = log_tail_at(tail, number)->base_offset;
    for (size_t i = number; i < tail->count; i++) {
        struct slice slice = log_tail_at(tail, i)->slice;
        bool fits = slice.length <= max_bytes && read->total_bytes <= max_bytes - slice.length;
        bool forced = whole_first && i == number;
        if ((!fits && !forced) || !add_slice(read, slice)) {
            return;
        }
    }
}

/* Files ------------------------------------------------------------------------------------- */

/* The end of a range that starts with the batch at `position`: as far as the limit allows. */
static enum status range_end(struct partition_log *log, struct log_segment *segment,
    uint64_t position, const struct batch_header *first, size_t max_bytes, uint64_t *end)
{
    char path[FILE_PATH_MAX];
    struct log_offset_entry entry;
    if (segment->written_bytes - position <= max_bytes) {
        *end = segment->written_bytes;
        return STATUS_OK;
    }
    uint64_t limit = position + max_bytes;
    index_path(log, segment, path);
    enum status status = log_index_find_position(log->shard, &segment->offsets, path, limit,
        &entry);
    if (status == STATUS_OK && (uint64_t)entry.position > position
        && entry_is_true(log, segment, entry)) {
        *end = (uint64_t)entry.position;
        return STATUS_OK;
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    struct file *file;
    struct log_scan scan;
    struct batch_header header = *first;
    status = log_segment_file(log, segment, &file);
    if (status != STATUS_OK) {
        return status;
    }
    log_scan_start(&scan, file, position, segment->written_bytes);
    while (status == STATUS_OK && scan.position + batch_size_bytes(&header) <= limit) {
        log_scan_skip(&scan, &header);
        status = log_scan_header(&scan, &header);
    }
    *end = scan.position;
    log_scan_free(&scan);
    return status == STATUS_IO ? status : STATUS_OK;
}

/* Remembers where a reader that got everything below `end` goes on. */
static void put_cursor(struct partition_log *log, struct log_segment *segment, uint64_t end)
{
    struct log_content *content = log->content;
    struct batch_header header;
    uint64_t position = end;
    if (end >= segment->written_bytes
        || locate_from(log, segment, INT64_MIN, &position, &header) != STATUS_OK) {
        return;
    }
    struct log_cursor *cursor = find_cursor(content, header.base_offset);
    if (cursor == NULL) {
        cursor = &content->cursors[content->next_cursor++ % LOG_CURSORS];
    }
    *cursor = (struct log_cursor){header.base_offset, segment->base_offset, end};
}

static enum status read_range(struct partition_log *log, struct log_segment *segment,
    uint64_t position, const struct batch_header *first, size_t max_bytes, bool whole_first,
    struct log_read *read)
{
    size_t first_bytes = batch_size_bytes(first);
    uint64_t end = position + first_bytes;
    read->base_offset = first->base_offset;
    if (first_bytes > max_bytes && !whole_first) {
        return STATUS_OK;
    }
    if (first_bytes < max_bytes) {
        enum status status = range_end(log, segment, position, first, max_bytes, &end);
        if (status != STATUS_OK) {
            return status;
        }
    }
    assert(end > position && end <= segment->written_bytes);
    put_cursor(log, segment, end);
    struct file *file;
    enum status status = log_segment_file(log, segment, &file);
    if (status != STATUS_OK) {
        return status;
    }
    read->total_bytes = (size_t)(end - position);
    add_part(read, (struct log_part){.file = file_ref(file), .position = position,
        .length_bytes = read->total_bytes});
    return STATUS_OK;
}

/* Finds the batch in the files: where a cursor waits, or through the index. */
static enum status locate(struct partition_log *log, int64_t offset,
    struct log_segment **segment, uint64_t *position, struct batch_header *header)
{
    struct log_content *content = log->content;
    size_t at = log_segment_at(content, offset);
    struct log_cursor *cursor = find_cursor(content, offset);
    enum status status = STATUS_NOT_FOUND;
    if (cursor != NULL && content->segments[at]->base_offset == cursor->segment) {
        *segment = content->segments[at];
        *position = cursor->position;
        status = locate_from(log, *segment, offset, position, header);
    }
    for (; status == STATUS_NOT_FOUND && at < content->segment_count; at++) {
        *segment = content->segments[at];
        status = log_segment_locate(log, *segment, offset, position, header);
    }
    return status;
}

enum status partition_log_read(struct partition_log *log, int64_t offset, size_t max_bytes,
    bool whole_first, struct log_read *read)
{
    struct log_content *content = log->content;
    start_result(read);
    if (offset < log->start_offset || offset > log->next_offset) {
        return STATUS_OUT_OF_RANGE;
    }
    if (content != NULL) {
        content->last_read_ms = log->shard->now_ms;
    }
    if (offset == log->next_offset || content == NULL || content->segment_count == 0) {
        return STATUS_OK;
    }
    const struct log_tail *tail = &content->tail;
    if (tail->count > 0 && offset >= log_tail_at(tail, 0)->base_offset) {
        size_t number = log_tail_find(tail, offset);
        if (number < tail->count) {
            read_tail(content, number, max_bytes, whole_first, read);
        }
        return STATUS_OK;
    }
    struct log_segment *segment = NULL;
    uint64_t position = 0;
    struct batch_header header;
    enum status status = locate(log, offset, &segment, &position, &header);
    if (status == STATUS_NOT_FOUND && tail->count > 0) {
        read_tail(content, 0, max_bytes, whole_first, read); /* compaction left a gap before it */
        return STATUS_OK;
    }
    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK;
    }
    if (status == STATUS_OK && header.base_offset > offset && !log_may_have_gaps(log)) {
        status = STATUS_CORRUPT;
    }
    if (status == STATUS_OK) {
        status = read_range(log, segment, position, &header, max_bytes, whole_first, read);
    }
    if (status != STATUS_OK) {
        log_read_release(read);
    }
    return status;
}

uint64_t partition_log_bytes_from(struct partition_log *log, int64_t offset)
{
    struct log_content *content = log->content;
    if (content == NULL || offset >= log->next_offset || content->segment_count == 0) {
        return 0;
    }
    size_t at = log_segment_at(content, offset);
    uint64_t position = 0;
    if (index_position(log, content->segments[at], offset, &position) != STATUS_OK) {
        position = 0;
    }
    uint64_t bytes = content->segments[at]->size_bytes - position;
    for (at++; at < content->segment_count; at++) {
        bytes += content->segments[at]->size_bytes;
    }
    return bytes;
}
