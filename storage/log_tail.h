/* The end of a log in memory: batches from the first that is kept to the newest, without gaps in
 * position within a segment. Those in front that are in the file may be dropped at any time. */
#ifndef OTTLA_STORAGE_LOG_TAIL_H
#define OTTLA_STORAGE_LOG_TAIL_H

#include <stddef.h>
#include <stdint.h>

#include "base/block.h"

struct tail_batch {
    struct slice slice;     /* with its own reference */
    int64_t base_offset;
    int64_t last_offset;
    int64_t segment;        /* base offset of its segment */
    uint64_t position;      /* in the segment's file */
};

struct log_tail {
    struct tail_batch *ring;
    size_t capacity;        /* a power of two */
    size_t first;
    size_t count;
    size_t written;         /* how many in front are in the file */
    size_t bytes;
    struct block *chunk;    /* small batches are copied into it, one behind the other */
    size_t chunk_used;
};

/* Gives back all batches. */
void log_tail_free(struct log_tail *tail);

/* Adds a batch; large ones by reference, small ones as a copy beside their neighbours. */
void log_tail_add(struct log_tail *tail, struct view bytes, struct block *block,
    struct tail_batch where);

/* The batch with this number, 0 being the first kept. */
struct tail_batch *log_tail_at(const struct log_tail *tail, size_t number);

/* Number of the first batch whose last offset is >= offset; `count` when there is none. */
size_t log_tail_find(const struct log_tail *tail, int64_t offset);

/* Drops the first batch; it is in the file, or the log is going away. Returns its length. */
size_t log_tail_drop(struct log_tail *tail);

#endif
