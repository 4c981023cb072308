/* The log of one partition, in exactly Kafka's files: BASE.log, BASE.index, BASE.timeindex,
 * BASE.snapshot, leader-epoch-checkpoint and partition.metadata in <data>/<topic>-<partition>/.
 *
 * Only committed batches are appended, so a log is never truncated, and its end is the high
 * watermark. A batch can be read at once, from memory; the log writer puts it into the file later,
 * gathered with others, and syncs from time to time. What a crash loses of that is in the journal
 * and is appended again: a batch below the end is skipped by the caller.
 *
 * A log that was never written has no directory, no descriptor and costs less than 400 bytes.
 * Descriptors are opened when needed and cached for all logs of a shard.
 *
 * Everything here runs on the thread of the log's shard; nothing blocks on writes. Reads of index
 * files and of headers of old batches are small reads on that thread.
 *
 * Damage (storage rules of docs/architecture.md): at open the log is checked from the recovery
 * point on. What is not whole above it was never synced and is cut: the journal has it. What is not
 * whole below it, or without a recovery point before something that is whole, is damage: the log is
 * opened, can be read below the damage, takes no appends, and nothing is cut. The caller then looks
 * whether the journal holds every batch from damage.offset on (always so when the group never wrote
 * a checkpoint: a power cut leaves holes in what was not synced). If it does, it calls
 * partition_log_cut_damage and appends them again; if not, the group stops serving and is repaired
 * from its peers.
 */
#ifndef OTTLA_STORAGE_PARTITION_LOG_H
#define OTTLA_STORAGE_PARTITION_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"
#include "base/status.h"
#include "base/uuid.h"
#include "io/file.h"
#include "storage/log_writer.h"
#include "storage/producer_state.h"

struct partition_log;

/* Settings of a topic, resolved. Shared by its logs and borrowed: they must live as long as the
 * logs; partition_log_configure replaces them. Kafka's names and meanings; -1 means no limit where
 * Kafka says so. */
struct log_settings {
    int64_t segment_bytes;
    int64_t segment_ms;
    int64_t segment_index_bytes;
    int64_t index_interval_bytes;
    int64_t retention_ms;
    int64_t retention_bytes;
    int64_t file_delete_delay_ms;
    int64_t flush_messages; /* sync after so many records; INT64_MAX: when the writer thinks so */
    int64_t flush_ms;
    int64_t producer_expire_ms; /* producer.id.expiration.ms */
    size_t producer_limit;      /* producer ids kept; 0 means 100000 */
    bool delete_old;            /* cleanup.policy contains delete */
    bool compact;               /* cleanup.policy contains compact */
};

/* Kafka's defaults. */
struct log_settings log_settings_default(void);

/* Which partition. The texts are borrowed and must live as long as the log. */
struct log_identity {
    const char *data_path; /* log_dir_path */
    const char *topic;
    int32_t partition;
    struct uuid topic_id;
};

/* What the group's checkpoint says; all -1 without one: then all segments are checked. */
struct log_recovery {
    int64_t next_offset; /* synced up to here, where a batch ends: nothing below needs a check */
    int64_t log_start;
};

struct log_damage {
    char file[64];     /* name inside the partition's directory; empty when there is no damage */
    uint64_t position; /* byte in the file */
    int64_t offset;    /* first offset that is lost or doubtful */
    int64_t resume_offset; /* next offset that is there and whole; -1 when unknown */
    const char *reason; /* static text */
};

/* Opens the log. Cuts a torn tail, rebuilds indexes that do not fit, restores epochs and producer
 * state. `damage->file` is empty unless there is damage; the status is STATUS_OK in both cases.
 * Blocks on reading; called at start and when a partition is created (then there is nothing to
 * read). Errors: as io/file.h, STATUS_INVALID when partition.metadata names another topic id. */
MUST_USE enum status partition_log_open(struct log_shard *shard,
    const struct log_identity *identity, const struct log_settings *settings,
    const struct log_recovery *recovery, struct partition_log **log, struct log_damage *damage);

/* Lets go of memory and files. Batches that are not written are lost to the file (not to the
 * journal): flush first. Safe with jobs in flight. */
void partition_log_close(struct partition_log *log);

/* Deletes a partition, whether its log could be opened or not; one that is open is to be closed.
 * When the caller says with log_deletion_begin that the files may go, the log writer renames the
 * directory to TOPIC-N.ID-delete and, file_delete_delay_ms later, removes it. With another status
 * than STATUS_OK the files stay, and so do those of another topic of that name. `done` (may be
 * null) runs on the shard after the rename, or gets that status. */
struct log_deletion *log_deletion_new(struct log_shard *shard,
    const struct log_identity *identity, int64_t file_delete_delay_ms,
    void (*done)(void *context, enum status status), void *context);
void log_deletion_begin(struct log_deletion *deletion, enum status status);

/* Takes other settings from now on. */
void partition_log_configure(struct partition_log *log, const struct log_settings *settings);

/* A damaged log becomes usable again by giving up everything from the damage on; for a caller that
 * has those batches elsewhere (journal, peers). Blocks. */
MUST_USE enum status partition_log_cut_damage(struct partition_log *log);

/* Drops all content, and what is known of producers, and starts again at `start_offset`: for a
 * follower whose leader does not keep the offsets that would come next. Files are removed by the
 * writer. A flush that waits ends when the new beginning is on the disk. */
MUST_USE enum status partition_log_reset(struct partition_log *log, int64_t start_offset);

/* Appends a whole, valid batch (magic 2) whose base offset and leader epoch are final. Its base
 * offset must be the log's end (or above, when copying a compacted log: the log remembers that).
 * Takes a reference on the block; small batches are copied instead. Also updates epochs and
 * producer state.
 * STATUS_OUT_OF_RANGE: below the end. STATUS_CORRUPT: the log is damaged. Else the status of the
 * writer, when it is offline. */
MUST_USE enum status partition_log_append(struct partition_log *log, struct slice batch,
    int64_t now_ms);

/* Whether what comes is likely to be read soon; true at first. A log that nobody reads (nor did in
 * the last minute) is written in larger pieces, and past the page cache where that can be done. */
void partition_log_expect_readers(struct partition_log *log, bool expected);

/* First offset that may be read, and the next one to be written (the high watermark). */
int64_t partition_log_start(const struct partition_log *log);
int64_t partition_log_end(const struct partition_log *log);

/* Bytes of all segments, with what is not yet in a file. */
uint64_t partition_log_size_bytes(const struct partition_log *log);

/* Where in its segment's file the next batch will lie, if no new segment begins. */
uint64_t partition_log_position(const struct partition_log *log);

/* How many segments there are; 0 before the first append. */
size_t partition_log_segment_count(const struct partition_log *log);

/* Bytes from this offset (its batch) to the end; an estimate, exact to index.interval.bytes. */
uint64_t partition_log_bytes_from(struct partition_log *log, int64_t offset);

/* STATUS_OK, STATUS_CORRUPT when damaged, or the writer's failure. */
enum status partition_log_status(const struct partition_log *log);

/* A piece of what was read: memory when `block` is not null, else a range of a file. */
struct log_part {
    struct slice slice;  /* with its own reference */
    struct file *file;   /* with its own reference */
    uint64_t position;
    size_t length_bytes; /* of either */
};

enum { LOG_READ_PARTS_INLINE = 4, LOG_READ_PARTS_MAX = 256 };

struct log_read {
    struct log_part *parts; /* points to `few` or to memory */
    size_t part_count;
    size_t total_bytes;
    int64_t base_offset; /* of the first batch; it may be below the offset asked for */
    struct log_part few[LOG_READ_PARTS_INLINE];
};

/* Whole batches from the one that holds `offset` (or, where compaction left a gap, the next one)
 * on, at most `max_bytes` of them; with `whole_first` the first batch whatever its size. Memory
 * parts or one file range, never both. At the end of the log the result is empty.
 * STATUS_OUT_OF_RANGE: below the start or above the end. STATUS_CORRUPT, STATUS_IO: the data cannot
 * be read. Release the result in every case of STATUS_OK. */
MUST_USE enum status partition_log_read(struct partition_log *log, int64_t offset,
    size_t max_bytes, bool whole_first, struct log_read *read);

/* Gives back the references. From any thread. */
void log_read_release(struct log_read *read);

/* A record found by time; offset -1 when there is none. */
struct log_time_offset {
    int64_t offset;
    int64_t timestamp_ms;
    int32_t leader_epoch; /* of its batch; -1 when there is none */
};

/* The first record whose timestamp is >= timestamp_ms (ListOffsets by time). Looks inside batches,
 * compressed ones too; blocks on reading at most an index interval of them. */
MUST_USE enum status partition_log_find_time(struct partition_log *log, int64_t timestamp_ms,
    struct log_time_offset *found);

/* The first record with the largest timestamp (ListOffsets -3). */
MUST_USE enum status partition_log_find_max_time(struct partition_log *log,
    struct log_time_offset *found);

struct log_epoch {
    int32_t epoch;
    int64_t start_offset;
};

/* Leader epochs by rising start offset; valid until the next append. */
const struct log_epoch *partition_log_epochs(const struct partition_log *log, size_t *count);

/* The epoch of the last batch (or of the last that was known); -1 when there is none. */
int32_t partition_log_latest_epoch(const struct partition_log *log);

/* The epoch of the batch at this offset; -1 when unknown. */
int32_t partition_log_epoch_at(const struct partition_log *log, int64_t offset);

/* Where an epoch ends. */
struct log_epoch_end {
    int32_t epoch;
    int64_t end_offset;
};

/* OffsetForLeaderEpoch: the largest known epoch <= `epoch`, and where it ends (the start of the
 * next one, or the log's end). Both -1 when the epoch is unknown, as in Kafka. */
struct log_epoch_end partition_log_epoch_end(const struct partition_log *log, int32_t epoch);

/* Raises the start offset (DeleteRecords; also on followers) and removes whole segments below it.
 * STATUS_OUT_OF_RANGE above the end; a lower offset than the start changes nothing. Not durable by
 * itself: the caller has it in the journal and in the group's checkpoint (log_start). */
MUST_USE enum status partition_log_delete_records(struct partition_log *log, int64_t offset);

/* Rolls and removes segments by age and size, expires producers. Call it every
 * log.retention.check.interval.ms. Returns the start offset. */
int64_t partition_log_retention(struct partition_log *log, int64_t now_ms);

/* The producers; never null; owned by the log. Readable and, for proposals, writable. */
struct producer_state *partition_log_producers(struct partition_log *log);

/* Writes and syncs everything appended so far; `done` runs on the shard (in log_shard_drain), or
 * at once when there is nothing to do. With STATUS_OK the log is on the disk up to `synced_offset`;
 * that is what a checkpoint may say. */
void partition_log_flush(struct partition_log *log,
    void (*done)(void *context, enum status status, int64_t synced_offset), void *context);

/* Up to where the log is known to be on the disk. */
int64_t partition_log_synced(const struct partition_log *log);

#endif
