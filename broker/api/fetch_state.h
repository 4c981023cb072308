/* A Fetch under way: shared by fetch.c (reading and waiting) and fetch_answer.c (the response).
 * Nobody else includes this. */
#ifndef OTTLA_BROKER_API_FETCH_STATE_H
#define OTTLA_BROKER_API_FETCH_STATE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/api/fan_out.h"
#include "broker/api/fetch_session.h"
#include "broker/api/node_endpoint.h"
#include "broker/group/partition.h"
#include "messages/fetch.h"
#include "storage/partition_log.h"

struct fetch;

/* One partition that is asked for. Filled at home, read on the group's shard. */
struct fetch_part {
    struct part part;
    struct watch watch;
    struct confirm confirm;              /* before an answer that moves the reader */
    struct shard *confirm_shard;
    bool is_confirmed;
    struct fetch *fetch;
    struct fetch_request_fetch_partition asked;
    struct topic_image *topic;           /* a reference; null when it is not known */
    struct view topic_name;
    struct uuid topic_id;
    struct session_partition *remembered; /* in the session; null without one */
    int64_t high_watermark;
    int64_t log_start;
    int32_t preferred_replica;           /* where it shall be read instead; -1: here */
    int64_t seen_end;                    /* the log's end when it was read last */
    struct log_epoch_end diverging;      /* epoch -1: it does not diverge */
    struct log_read read;
    bool has_read;                       /* `read` holds references */
};

/* What one shard does for a fetch. Its fields are touched by that shard only, but for `posted`. */
struct fetch_leg {
    struct mail mail;                    /* tells home that a watched partition moved */
    struct fetch *fetch;
    atomic_bool posted;
    size_t bytes;                        /* read so far in this round */
};

struct fetch {
    struct shard_task wake;              /* a watched partition of the home shard moved */
    struct request *request;
    struct fetch_session *session;       /* null: none, or none yet */
    bool any_replica;                    /* a follower may serve it (fetch_replica.h) */
    bool nearer;                         /* it wants a replica in its own rack */
    bool new_session;
    bool waiting;
    bool timed_out;
    bool woken;
    struct fetch_part *parts;            /* in the order they are answered */
    int32_t part_count;
    struct fetch_leg *legs;              /* one for each shard */
    struct fan_out *fan;
    struct shard_timer timer;
    uint64_t deadline_ms;
    struct fetch_part **sent;            /* the parts behind the answer's gaps */
    struct told_nodes leaders;           /* that the answer names */
};

/* Answers with what the parts hold. */
void fetch_answer(struct fetch *fetch);

/* Answers with a top-level error and no partitions. */
void fetch_answer_error(struct request *request, int16_t error);

#endif
