/* Passing one partition's batch on to the node that leads now, while this one stops.
 *
 * A broker that is about to stop has others lead its partitions. What its clients still send is
 * not refused, for a client that is refused waits (librdkafka: 100 ms before it sends again, 250 ms
 * before it asks who leads); it goes to the new leader, whose answer goes back. When nobody leads
 * yet, it is tried again until the deadline; batches of a group keep their order. A batch whose
 * fate is not known is not sent twice.
 */
#ifndef OTTLA_BROKER_API_PRODUCE_FORWARD_H
#define OTTLA_BROKER_API_PRODUCE_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/uuid.h"
#include "base/view.h"
#include "broker/net/shard.h"
#include "broker/peer/peers.h"

struct broker;

/* The upper part is the caller's, as are the memory and what the views show, until `done`. */
struct produce_forward {
    uint64_t group_id;
    struct view topic_name;
    struct uuid topic_id;
    int32_t partition;
    int16_t acks;
    int32_t timeout_ms;
    struct view batch;
    void *context;
    void (*done)(struct produce_forward *forward); /* once, on the shard, not inside _begin */

    int16_t error;               /* Kafka error code; the rest is valid without one */
    int64_t base_offset;
    int64_t append_time_ms;      /* -1 unless the topic uses LogAppendTime */
    int64_t log_start_offset;

    struct shard *shard;         /* its own from here on */
    struct list_link link;       /* in the shard's that wait for a leader */
    struct peer_call call;
    uint64_t deadline_ms;
};

/* Whether batches that this node cannot take are passed on. */
bool produce_forward_is_due(const struct broker *broker);

/* Sends it, or waits for somebody to send it to. */
void produce_forward_begin(struct shard *shard, struct produce_forward *forward);

/* `done` does not run. */
void produce_forward_cancel(struct produce_forward *forward);

#endif
