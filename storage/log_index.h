/* The two sparse indexes of a segment, in Kafka's formats.
 *
 * Offset index: int32 offset relative to the segment's base, int32 position; the offset is the last
 * one of the batch that starts at the position. Time index: int64 timestamp, int32 relative offset:
 * no record up to that offset has a larger timestamp. Entries rise strictly. They are appended in
 * memory, and written by the log writer with the batches.
 */
#ifndef OTTLA_STORAGE_LOG_INDEX_H
#define OTTLA_STORAGE_LOG_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "storage/log_shard.h"

enum { LOG_OFFSET_ENTRY_BYTES = 8, LOG_TIME_ENTRY_BYTES = 12 };

struct log_index {
    struct log_handle handle;
    uint64_t written_bytes; /* whole entries in the file */
    struct buffer flying;   /* with the writer */
    struct buffer pending;  /* not yet with it */
    uint32_t entry_bytes;
};

struct log_offset_entry {
    int32_t offset;    /* relative */
    int32_t position;
};

struct log_time_entry {
    int64_t timestamp_ms;
    int32_t offset;    /* relative */
};

/* An empty index of entries of this length. */
void log_index_init(struct log_index *index, uint32_t entry_bytes);

/* Closes and releases; the file stays. */
void log_index_free(struct log_shard *shard, struct log_index *index);

/* Entries in all: in the file, with the writer and waiting. */
size_t log_index_count(const struct log_index *index);

/* Appends an entry; the caller keeps them rising. */
void log_index_add_offset(struct log_index *index, struct log_offset_entry entry);
void log_index_add_time(struct log_index *index, struct log_time_entry entry);

/* Entries out of their bytes. */
struct log_offset_entry log_index_load_offset(const uint8_t *bytes);
struct log_time_entry log_index_load_time(const uint8_t *bytes);

/* The entry with this number. `path` is the index's file. */
MUST_USE enum status log_index_read(struct log_shard *shard, struct log_index *index,
    const char *path, size_t number, uint8_t entry[LOG_TIME_ENTRY_BYTES]);

/* The last entry whose key is <= `key`: relative offset, position or timestamp. STATUS_NOT_FOUND
 * when all are above. */
MUST_USE enum status log_index_find_offset(struct log_shard *shard, struct log_index *index,
    const char *path, int64_t offset, struct log_offset_entry *entry);
MUST_USE enum status log_index_find_position(struct log_shard *shard, struct log_index *index,
    const char *path, uint64_t position, struct log_offset_entry *entry);
MUST_USE enum status log_index_find_time(struct log_shard *shard, struct log_index *index,
    const char *path, int64_t timestamp_ms, struct log_time_entry *entry);

/* The last entry; STATUS_NOT_FOUND when there is none. */
MUST_USE enum status log_index_last_time(struct log_shard *shard, struct log_index *index,
    const char *path, struct log_time_entry *entry);

/* Hands the pending entries to a write; log_index_landed when it is done. */
void log_index_launch(struct log_index *index);
void log_index_landed(struct log_index *index);

#endif
