/* Asking the node that leads the metadata log, which may be this one.
 *
 * Happy path: the encoded request goes to the leader (or, when that is here, is run as a request
 * without a connection), which answers with its offset of the metadata log; when this node has what
 * is below it too, the asker is told: what the answer speaks of can be used here at once. While
 * nobody leads, or the one asked does not any more, it is tried again until the deadline. What may
 * have been done already is asked again only when it is `repeatable`; else the call ends with
 * REQUEST_TIMED_OUT.
 */
#ifndef OTTLA_BROKER_API_CONTROLLER_CALL_H
#define OTTLA_BROKER_API_CONTROLLER_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/list.h"
#include "broker/api/request.h"
#include "broker/peer/peers.h"
#include "broker/server/metadata_log.h"

enum {
    CONTROLLER_CALL_MS = 5000,         /* to find a leader */
    CONTROLLER_CALL_ANSWER_MS = 30000, /* for the answer of one that lives */
};

/* Those of a shard. */
struct controller_calls {
    struct list waiting;         /* to be tried again */
    struct list asked;           /* another node, and not answered yet */
    struct shard_timer timer;
    bool ended;
};

struct controller_call {
    int16_t api_key;
    int16_t api_version;
    bool repeatable;             /* having it done twice does no harm */
    struct view client_id;
    struct view body;            /* the encoded message; lives until `done` */
    /* Once, on the shard, and not inside controller_call unless the broker stops. KAFKA_NONE:
     * `body` is the encoded answer, which lives until this returns. REQUEST_TIMED_OUT: nobody
     * leads, it took too long, or the leader that may have done it is gone. NOT_CONTROLLER: the
     * broker stops. UNKNOWN_SERVER_ERROR: the leader could not answer. */
    void (*done)(struct controller_call *call, int16_t error, struct view body);

    int64_t metadata_offset;     /* in `done`: of the leader, when it answered */

    /* The call's own. */
    struct shard *shard;
    struct list_link link;
    struct peer_call peer;
    struct metadata_wait wait;
    struct block *answer;
    struct view answer_body;
    int32_t hint;                /* who leads, as the last one asked said; -1 */
    unsigned tries;
    uint64_t deadline_ms;        /* monotonic: to have asked by */
};

/* Starts with none. */
void controller_calls_open(struct shard *shard);

/* The broker stops: what waits ends, and nothing is tried again. */
void controller_calls_end(struct shard *shard);

/* Releases the timer; nothing waits any more. */
void controller_calls_close(struct shard *shard);

/* Asks. Memory stays the caller's until `done`. */
void controller_call(struct shard *shard, struct controller_call *call);

/* The answer does not matter any more: ends at once where that is possible. */
void controller_call_hurry(struct controller_call *call);

/* Whether this node leads the metadata log, as far as it knows. */
bool controller_is_here(const struct broker *broker);

#endif
