/* A broker's storage in miniature, and a model that knows what it must hold.
 *
 * Some groups, each with some partitions, share a journal. Every record submitted has a serial
 * number (kept in its term), so that the model can tell after a crash which ones came back: they
 * must be a prefix of what was submitted, with everything that was acknowledged. Committed entries
 * go to partition logs, one record each, so that the n-th committed entry of a partition has offset
 * n.
 */
#ifndef OTTLA_TESTS_SIM_STORAGE_WORLD_H
#define OTTLA_TESTS_SIM_STORAGE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/checkpoint.h"
#include "storage/journal.h"
#include "storage/log_dir.h"
#include "storage/log_writer.h"
#include "storage/partition_log.h"

enum { GROUPS = 3, PARTITIONS = 2, FIRST_PRODUCER = 100 };

/* A record that was submitted. */
struct model_record {
    enum journal_kind kind;
    unsigned group;         /* 0.. */
    uint32_t tag;           /* partition */
    uint64_t index;
    uint32_t payload_bytes;
    bool acked;
    uint64_t frame;         /* the journal's frame it was acknowledged with */
    bool lost;              /* it did not come back from a crash: it was never there */
    bool replayed;          /* by the last open */
};

struct model_partition {
    uint64_t *serials;      /* of committed entries; the number in the array is the offset */
    size_t count;
    size_t capacity;
    int64_t start;
    struct partition_log *log;
    bool damaged;
};

struct model_group {
    uint64_t *live;         /* live[i]: serial of the entry with index i + 1 */
    size_t live_count;
    size_t live_capacity;
    uint64_t acked_index;   /* entries up to here are acknowledged */
    uint64_t committed;
    uint64_t marked;
    uint64_t acked_vote;    /* serials */
    uint64_t last_vote;
    uint64_t checkpointed;  /* index of the checkpoint being made; 0: none */
    unsigned flushes_left;
    bool flush_failed;
    bool damaged;           /* the journal said so */
    struct model_partition partitions[PARTITIONS];
};

struct world {
    uint64_t seed;
    uint64_t random;
    struct log_settings log_settings;
    struct journal_settings journal_settings;
    struct log_dir *dir;
    struct journal *journal;
    struct log_writer *writer;
    struct log_shard *shard;
    bool open;
    struct model_record *records; /* by serial; [0] is not used */
    size_t record_count;
    size_t record_capacity;
    struct model_group groups[GROUPS];
    uint64_t highest_replayed;
    uint64_t replayed_vote[GROUPS];
    uint64_t replayed_entry[GROUPS];
    unsigned damages;
    bool anything_damaged;  /* some group is not known to be whole */
    bool failed;            /* a write or sync failed: nothing may be acknowledged any more */
    bool tampered;          /* bits were changed: damage is allowed, silence about loss is not */
    uint64_t frames_before; /* frames of the journal in earlier lives */
    uint64_t last_frame;    /* nothing vouches for this one when its bits change */
    unsigned restarts;
};

/* Frames that the journal wrote in all lives. */
uint64_t world_frames(const struct world *world);

/* A number below the bound. */
uint64_t world_random(struct world *world, uint64_t bound);

/* Ends the run with a message when the condition does not hold. */
void world_require(const struct world *world, bool condition, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void world_start(struct world *world, uint64_t seed);
void world_finish(struct world *world);

/* What may happen, one random thing at a time. */
void world_step(struct world *world);

/* Opens everything and checks what came back. False: the disk failed meanwhile. */
bool world_open(struct world *world);

/* Lets go of everything, as a process that is killed (or stops, with `clean`). */
void world_close(struct world *world, bool clean);

/* Compares what the logs say with the model. */
void world_check_logs(struct world *world);

/* What became durable, committed, checkpointed. */
void world_commit(struct world *world, unsigned group, uint64_t index);
void world_apply(struct world *world, unsigned group, uint64_t serial, uint64_t offset);

#endif
