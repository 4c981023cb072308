/* The inside of a partition log, shared by the files that implement it and nobody else:
 * partition_log.c (append, accessors), log_open.c (recovery), log_write.c (jobs of the writer),
 * log_read.c, log_time.c (lookup by timestamp), log_clean.c (retention and deletion).
 */
#ifndef OTTLA_STORAGE_LOG_CONTENT_H
#define OTTLA_STORAGE_LOG_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "io/file_whole.h"
#include "protocol/records.h"
#include "storage/log_epochs.h"
#include "storage/log_index.h"
#include "storage/log_scan.h"
#include "storage/log_shard.h"
#include "storage/log_tail.h"
#include "storage/partition_log.h"

struct log_segment {
    int64_t base_offset;
    uint64_t size_bytes;       /* with what is not in the file yet */
    uint64_t written_bytes;    /* in the file */
    uint64_t synced_bytes;     /* on the disk */
    struct log_handle log;
    struct log_index offsets;
    struct log_index times;
    uint64_t bytes_since_index;
    int64_t last_index_offset; /* relative, of the last offset entry; -1 without one */
    int64_t first_timestamp;   /* of its first batch, for segment.ms; -1 unknown */
    int64_t max_timestamp;     /* -1 when no record has one */
    int64_t max_timestamp_offset; /* last offset of the first batch that has it */
    int64_t last_time_entry;   /* timestamp of the last time entry; -1 without one */
    int64_t touched_ms;        /* last append, or the open; stands in for a missing timestamp */
    bool on_disk;              /* its files exist */
    bool finished;             /* it takes no more, and is written and synced */
};

/* Where a sequential reader will go on. */
struct log_cursor {
    int64_t offset;            /* base offset of the batch at the position; -1: unused */
    int64_t segment;           /* base offset */
    uint64_t position;
};

/* An empty file in the directory of a log that has, or had, gaps between its batches. */
#define LOG_GAPS_NAME "gaps"

enum { LOG_CURSORS = 4, LOG_SNAPSHOTS_KEPT = 2 };

struct log_write;

struct log_waiter {
    struct list_link link;
    int64_t target_offset;
    void (*done)(void *context, enum status status, int64_t synced_offset);
    void *context;
};

/* What a log needs from its first append on. */
struct log_content {
    struct log_segment **segments; /* by rising base offset; the last one is active */
    size_t segment_count;
    size_t segment_capacity;
    struct log_tail tail;
    struct log_epochs epochs;
    bool epochs_changed;       /* the file does not have them yet */
    uint64_t size_bytes;
    uint64_t unwritten_bytes;
    int64_t written_offset;    /* batches below are in files */
    int64_t synced_offset;     /* and below this on the disk */
    int64_t records_unsynced;
    int64_t unsynced_since_ms; /* -1: nothing */
    struct log_write *flying;  /* the job in flight */
    struct list waiters;       /* flushes */
    struct partition_log *log; /* the owner, found from the lists */
    struct list_link dirty;
    int64_t dirty_since_ms;
    struct list_link tail_use;
    int64_t last_append_ms;
    int64_t last_read_ms;      /* -1: never */
    bool directory_made;
    bool metadata_durable;     /* partition.metadata was synced */
    bool has_gaps;             /* a compacted log, or a copy of one: offsets may be missing */
    bool gaps_noted;           /* the file LOG_GAPS_NAME says so too */
    bool sync_wanted;          /* the next job must sync */
    bool names_unsynced;       /* files or the directory were made since the last sync */
    bool producers_changed;    /* since the last snapshot */
    struct buffer roll_snapshot; /* producers as they were when a segment was begun */
    int64_t roll_snapshot_offset; /* -1: none waits */
    int64_t snapshots[LOG_SNAPSHOTS_KEPT]; /* offsets of those on the disk, newest first; -1 none */
    struct log_cursor cursors[LOG_CURSORS];
    unsigned next_cursor;
    struct log_damage damage;  /* file empty when there is none */
    uint64_t damage_segment;   /* number of the segment it is in */
};

struct partition_log {
    struct log_shard *shard;
    const struct log_settings *settings;
    struct log_identity identity;
    int64_t start_offset;
    int64_t next_offset;
    struct producer_state *producers; /* null until one is asked for */
    struct log_content *content;      /* null: never written */
    enum status status;
    bool unread;                      /* nobody is expected to read it soon */
};

_Static_assert(sizeof(struct partition_log) <= 200, "a log that was never written costs little");

enum log_file_kind { LOG_FILE_LOG, LOG_FILE_INDEX, LOG_FILE_TIME_INDEX, LOG_FILE_SNAPSHOT };

/* <data>/<topic>-<partition>. */
void log_directory_path(const struct log_identity *identity, char path[FILE_PATH_MAX]);

/* <directory>/<offset, 20 digits>.<kind>. */
void log_file_path(const char *directory, int64_t offset, enum log_file_kind kind,
    char path[FILE_PATH_MAX]);
void log_content_path(const struct partition_log *log, int64_t offset, enum log_file_kind kind,
    char path[FILE_PATH_MAX]);

/* Reads the offset out of a file's name; false when it is not NNN.suffix. */
bool log_file_offset(const char *name, const char *suffix, int64_t *offset);

/* The content, made when the log has none. */
struct log_content *log_content_of(struct partition_log *log);

/* Releases everything in memory. */
void log_content_free(struct partition_log *log);

/* An empty segment without files. */
struct log_segment *log_segment_new(int64_t base_offset, int64_t now_ms);

/* Closes and releases it; its files stay. */
void log_segment_free(struct log_shard *shard, struct log_segment *segment);

/* Whether offsets may be missing between batches. In other logs that is damage. */
bool log_may_have_gaps(const struct partition_log *log);

/* Adds a segment behind the others and makes it the active one. */
struct log_segment *log_content_add(struct log_content *content, int64_t base_offset,
    int64_t now_ms);

/* The active segment; null when there is none. */
struct log_segment *log_active(const struct log_content *content);

/* Number of the segment that holds the offset (the last whose base is not above it); 0 at least. */
size_t log_segment_at(const struct log_content *content, int64_t offset);

/* Takes segments [0, count) out of memory; the caller sees to their files. */
void log_content_drop_segments(struct partition_log *log, size_t count);

/* What appending and recovery do with a batch at `position` of the segment: indexes, timestamps,
 * epochs, producers. `with_index` false: the index has it already. */
void log_note_batch(struct partition_log *log, struct log_segment *segment, uint64_t position,
    const struct batch_header *header, bool with_index);

/* The producers' part of it. */
void log_note_producer(struct partition_log *log, const struct batch_header *header);

/* Adds the last entry of the time index of a segment that takes no more. */
void log_segment_end_times(struct log_segment *segment);

/* The open .log file of a segment. */
MUST_USE enum status log_segment_file(struct partition_log *log, struct log_segment *segment,
    struct file **file);

/* Finds the batch that holds the offset, or the next one of the segment; its header and position.
 * Looks only at what is in the file. STATUS_NOT_FOUND: the segment has none. */
MUST_USE enum status log_segment_locate(struct partition_log *log, struct log_segment *segment,
    int64_t offset, uint64_t *position, struct batch_header *header);

/* Gives what waits to the writer, unless a job is in flight. */
void log_write_submit(struct partition_log *log);

/* The log is waiting to be written. */
void log_mark_dirty(struct partition_log *log, int64_t now_ms);

/* The job in flight, if any, will not tell the log any more. */
void log_write_orphan(struct partition_log *log);

/* Ends all flushes. */
void log_end_waiters(struct partition_log *log, enum status status);

/* Drops batches in memory that are in the file, oldest first, until `bytes` are gone. */
void log_drop_tail(struct partition_log *log, size_t bytes);

/* Removes segments that lie wholly below the start offset, if the writer is through with them. */
void log_drop_below_start(struct partition_log *log, int64_t now_ms);

/* Removes the files of a segment: renamed now, deleted after file.delete.delay.ms. */
void log_remove_files(struct partition_log *log, int64_t base_offset, int64_t now_ms);

#endif
