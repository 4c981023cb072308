/* Entries lie in the file, then in the bytes the writer has, then in those that wait; searching
 * sees them as one array. Only reading the file can fail. */
#include "storage/log_index.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

void log_index_init(struct log_index *index, uint32_t entry_bytes)
{
    assert(entry_bytes == LOG_OFFSET_ENTRY_BYTES || entry_bytes == LOG_TIME_ENTRY_BYTES);
    *index = (struct log_index){.entry_bytes = entry_bytes};
}

void log_index_free(struct log_shard *shard, struct log_index *index)
{
    log_handle_close(shard, &index->handle);
    buffer_free(&index->flying);
    buffer_free(&index->pending);
}

size_t log_index_count(const struct log_index *index)
{
    return (size_t)(index->written_bytes + index->flying.length + index->pending.length)
        / index->entry_bytes;
}

void log_index_add_offset(struct log_index *index, struct log_offset_entry entry)
{
    assert(index->entry_bytes == LOG_OFFSET_ENTRY_BYTES);
    assert(entry.offset >= 0 && entry.position >= 0);
    buffer_append_be32(&index->pending, (uint32_t)entry.offset);
    buffer_append_be32(&index->pending, (uint32_t)entry.position);
}

void log_index_add_time(struct log_index *index, struct log_time_entry entry)
{
    assert(index->entry_bytes == LOG_TIME_ENTRY_BYTES);
    assert(entry.offset >= 0);
    buffer_append_be64(&index->pending, (uint64_t)entry.timestamp_ms);
    buffer_append_be32(&index->pending, (uint32_t)entry.offset);
}

struct log_offset_entry log_index_load_offset(const uint8_t *bytes)
{
    return (struct log_offset_entry){(int32_t)load_be32(bytes), (int32_t)load_be32(bytes + 4)};
}

struct log_time_entry log_index_load_time(const uint8_t *bytes)
{
    return (struct log_time_entry){(int64_t)load_be64(bytes), (int32_t)load_be32(bytes + 8)};
}

enum status log_index_read(struct log_shard *shard, struct log_index *index, const char *path,
    size_t number, uint8_t entry[LOG_TIME_ENTRY_BYTES])
{
    assert(number < log_index_count(index));
    uint64_t at = (uint64_t)number * index->entry_bytes;
    if (at >= index->written_bytes + index->flying.length) {
        at -= index->written_bytes + index->flying.length;
        memcpy(entry, index->pending.data + at, index->entry_bytes);
        return STATUS_OK;
    }
    if (at >= index->written_bytes) {
        memcpy(entry, index->flying.data + (at - index->written_bytes), index->entry_bytes);
        return STATUS_OK;
    }
    struct file *file;
    enum status status = log_handle_open(shard, &index->handle, path, FILE_WRITE, &file);
    size_t got = 0;
    if (status == STATUS_OK) {
        status = file_read(file, at, entry, index->entry_bytes, &got);
    }
    return status == STATUS_OK && got != index->entry_bytes ? STATUS_CORRUPT : status;
}

static int64_t offset_key(const uint8_t *entry)
{
    return log_index_load_offset(entry).offset;
}

static int64_t position_key(const uint8_t *entry)
{
    return log_index_load_offset(entry).position;
}

static int64_t time_key(const uint8_t *entry)
{
    return log_index_load_time(entry).timestamp_ms;
}

/* The last entry with key(entry) <= wanted, by binary search. */
static enum status find(struct log_shard *shard, struct log_index *index, const char *path,
    int64_t (*key)(const uint8_t *), int64_t wanted, uint8_t entry[LOG_TIME_ENTRY_BYTES])
{
    size_t low = 0;
    size_t high = log_index_count(index);
    bool found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint8_t probe[LOG_TIME_ENTRY_BYTES];
        enum status status = log_index_read(shard, index, path, middle, probe);
        if (status != STATUS_OK) {
            return status;
        }
        if (key(probe) <= wanted) {
            memcpy(entry, probe, index->entry_bytes);
            found = true;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return found ? STATUS_OK : STATUS_NOT_FOUND;
}

enum status log_index_find_offset(struct log_shard *shard, struct log_index *index,
    const char *path, int64_t offset, struct log_offset_entry *entry)
{
    uint8_t bytes[LOG_TIME_ENTRY_BYTES];
    enum status status = find(shard, index, path, offset_key, offset, bytes);
    if (status == STATUS_OK) {
        *entry = log_index_load_offset(bytes);
        assert(entry->offset <= offset);
    }
    return status;
}

enum status log_index_find_position(struct log_shard *shard, struct log_index *index,
    const char *path, uint64_t position, struct log_offset_entry *entry)
{
    uint8_t bytes[LOG_TIME_ENTRY_BYTES];
    int64_t limit = position > INT32_MAX ? INT32_MAX : (int64_t)position;
    enum status status = find(shard, index, path, position_key, limit, bytes);
    if (status == STATUS_OK) {
        *entry = log_index_load_offset(bytes);
    }
    return status;
}

enum status log_index_find_time(struct log_shard *shard, struct log_index *index,
    const char *path, int64_t timestamp_ms, struct log_time_entry *entry)
{
    uint8_t bytes[LOG_TIME_ENTRY_BYTES];
    enum status status = find(shard, index, path, time_key, timestamp_ms, bytes);
    if (status == STATUS_OK) {
        *entry = log_index_load_time(bytes);
        assert(entry->timestamp_ms <= timestamp_ms);
    }
    return status;
}

enum status log_index_last_time(struct log_shard *shard, struct log_index *index,
    const char *path, struct log_time_entry *entry)
{
    size_t count = log_index_count(index);
    if (count == 0) {
        return STATUS_NOT_FOUND;
    }
    uint8_t bytes[LOG_TIME_ENTRY_BYTES];
    enum status status = log_index_read(shard, index, path, count - 1, bytes);
    if (status == STATUS_OK) {
        *entry = log_index_load_time(bytes);
    }
    return status;
}

void log_index_launch(struct log_index *index)
{
    assert(index->flying.length == 0);
    struct buffer empty = index->flying;
    index->flying = index->pending;
    index->pending = empty;
}

void log_index_landed(struct log_index *index)
{
    assert(index->flying.length % index->entry_bytes == 0);
    index->written_bytes += index->flying.length;
    buffer_free(&index->flying);
}
