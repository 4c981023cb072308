/* What a partition knows about its idempotent producers (KIP-98): the epoch and the last five
 * batches of each producer id, so that a batch sent again is recognised and a gap is refused.
 *
 * Two layers: batches that are committed (in the log), and on the leader batches that are proposed
 * but not committed yet. A check looks at both. Proposed batches become committed with
 * producer_state_update, or vanish with producer_state_drop_proposed when leadership is lost.
 *
 * Sequences count records and wrap from 2147483647 to 0. A producer id without state may start at
 * any sequence. Entries expire, and their number is bounded: past the bound the one that was silent
 * longest goes.
 */
#ifndef OTTLA_STORAGE_PRODUCER_STATE_H
#define OTTLA_STORAGE_PRODUCER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/view.h"

enum { PRODUCER_BATCHES_KEPT = 5 };

/* A batch of an idempotent producer, as its header says. */
struct producer_batch {
    int64_t producer_id;
    int16_t epoch;
    int32_t base_sequence;
    int32_t record_count;
    int64_t base_offset;
    int64_t last_offset;
    int64_t timestamp_ms; /* max timestamp of the batch: answered to a duplicate, and for expiry */
    bool is_transactional;
};

enum producer_verdict {
    PRODUCER_ACCEPT,
    PRODUCER_DUPLICATE,          /* in the log: answer with base_offset and timestamp_ms */
    PRODUCER_DUPLICATE_PROPOSED, /* proposed: answer when base_offset is committed */
    PRODUCER_OUT_OF_ORDER,       /* OUT_OF_ORDER_SEQUENCE_NUMBER */
    PRODUCER_FENCED              /* the epoch is older than the known one: INVALID_PRODUCER_EPOCH */
};

struct producer_answer {
    enum producer_verdict verdict;
    int64_t base_offset;  /* of the original, for duplicates; else -1 */
    int64_t timestamp_ms; /* of the original, for duplicates; else -1 */
    /* Of a batch that leaves out others of its epoch: what was expected instead, and where the last
     * batch of the producer ends. Else -1. */
    int32_t missing_sequence;
    int64_t last_offset;
};

struct producer_state;

/* Whether a producer comes to the one sequence after the other: what is less than half of all of
 * them ahead is later. */
bool sequence_is_later(int32_t sequence, int32_t than);

/* An empty table. Costs nothing but a pointer until the first update. */
struct producer_state *producer_state_new(size_t entry_limit);

/* Null is allowed. */
void producer_state_free(struct producer_state *state);

/* Judges a batch (offsets in it are not looked at) against what is committed and proposed. */
struct producer_answer producer_state_check(const struct producer_state *state,
    const struct producer_batch *batch);

/* Remembers a batch that was given offsets and proposed. It must have been accepted. */
void producer_state_propose(struct producer_state *state, const struct producer_batch *batch);

/* Forgets proposed batches with base_offset >= offset. */
void producer_state_drop_proposed(struct producer_state *state, int64_t offset);

/* The batch is in the log. It is trusted: no check. Ends the proposal with the same offset. */
void producer_state_update(struct producer_state *state, const struct producer_batch *batch);

/* Forgets committed batches that reach `offset` or beyond it: a snapshot was ahead of what a power
 * loss left of the log (flush policy interval). */
void producer_state_forget_from(struct producer_state *state, int64_t offset);

/* A transaction marker (control batch) of the producer is in the log at `offset`: its transaction
 * is over, and the marker's epoch counts from now on. */
void producer_state_end_transaction(struct producer_state *state, int64_t producer_id,
    int16_t epoch, int32_t coordinator_epoch, int64_t offset, int64_t timestamp_ms);

/* First offset of the oldest open transaction; -1 when there is none (the last stable offset is
 * then the high watermark). */
int64_t producer_state_first_open_offset(const struct producer_state *state);

/* Forgets producers whose last batch is older than expire_ms before now_ms and that have neither
 * proposed batches nor an open transaction. Returns how many. */
size_t producer_state_expire(struct producer_state *state, int64_t now_ms, int64_t expire_ms);

/* How many producer ids are known. */
size_t producer_state_count(const struct producer_state *state);

/* One producer as DescribeProducers and snapshots show it. */
struct producer_info {
    int64_t producer_id;
    int16_t epoch;
    int32_t last_sequence; /* -1 when nothing but a marker is known */
    int64_t last_offset;
    int32_t offset_delta;  /* last_offset minus base offset of the last batch */
    int64_t timestamp_ms;
    int32_t coordinator_epoch;
    int64_t transaction_first_offset; /* -1 when none is open */
};

/* Calls `each` for every producer, committed state only, in order of producer id. */
void producer_state_each(const struct producer_state *state,
    void (*each)(void *context, const struct producer_info *info), void *context);

/* Adds or replaces a producer from a snapshot; only its last batch is known then. */
void producer_state_put(struct producer_state *state, const struct producer_info *info);

/* Appends the committed state as of `below` in Kafka's .snapshot format (ProducerSnapshot version
 * 1: one entry for each producer, with its last batch), and behind it the batches before the last
 * ones. Batches that reach `below` or lie beyond are left out; INT64_MAX leaves out none. */
void producer_state_save(const struct producer_state *state, int64_t below,
    struct buffer *out);

/* Replaces the state by a snapshot's. STATUS_CORRUPT when its check fails, STATUS_UNSUPPORTED for
 * another version; the table is empty then. */
MUST_USE enum status producer_state_load(struct producer_state *state, struct view snapshot);

#endif
