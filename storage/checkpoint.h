/* A group's checkpoint: up to which Raft index its partition logs are synced, and how far each log
 * reaches. A small JSON file, replaced atomically.
 *
 * It is written after the sync that it vouches for, and before journal_mark tells the journal that
 * the entries are not needed. What it says of the logs can be found by scanning them, when it is
 * missing or broken; the index and the members cannot. */
#ifndef OTTLA_STORAGE_CHECKPOINT_H
#define OTTLA_STORAGE_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/uuid.h"

enum { CHECKPOINT_VERSION = 1 };

struct checkpoint_partition {
    struct uuid topic_id;
    int32_t partition;
    int64_t next_offset; /* the log is synced up to here */
    int64_t log_start;   /* first offset that may be read */
};

/* A member of the group; ids and flags are the caller's business. */
struct checkpoint_member {
    int32_t id;
    uint8_t flags;
};

struct checkpoint {
    uint64_t group;
    uint64_t index; /* every entry up to and with it is in the partition logs, on the disk */
    uint64_t term;  /* of that entry */
    struct checkpoint_member *members; /* as of that entry; none: those of the group's creation */
    size_t member_count;
    uint64_t members_index; /* of the entry that made them */
    struct checkpoint_partition *partitions;
    size_t partition_count;
};

/* Replaces <groups_directory>/<group>/checkpoint, making the directory when needed, synced with
 * its directory before it returns. Blocks: run it as a job of the log writer. */
MUST_USE enum status checkpoint_write(const char *groups_directory,
    const struct checkpoint *checkpoint);

/* Reads a group's checkpoint; checkpoint_free it afterwards. STATUS_NOT_FOUND when there is none,
 * STATUS_CORRUPT when it is broken or names another group, STATUS_UNSUPPORTED when its version is
 * newer, others when it cannot be read. */
MUST_USE enum status checkpoint_read(const char *groups_directory, uint64_t group,
    struct checkpoint *checkpoint);

/* The entry of a partition, or null. */
const struct checkpoint_partition *checkpoint_find(const struct checkpoint *checkpoint,
    struct uuid topic_id, int32_t partition);

/* Removes the group's directory for good: synced before it returns. STATUS_OK when there is none.
 * Blocks. */
MUST_USE enum status checkpoint_remove(const char *groups_directory, uint64_t group);

/* Releases partitions and members, and zeroes the structure. */
void checkpoint_free(struct checkpoint *checkpoint);

#endif
