/* Partition groups of __consumer_offsets: each partition has a group coordinator.
 *
 * When this node begins to lead, the partition's log is read from its start and replayed into the
 * coordinator, in pieces so that the loop's other work goes on; until then requests are answered
 * with COORDINATOR_LOAD_IN_PROGRESS. The coordinator's records are appended to the same partition.
 */
#ifndef OTTLA_BROKER_GROUP_OFFSETS_GROUP_H
#define OTTLA_BROKER_GROUP_OFFSETS_GROUP_H

#include <stdint.h>

#include "base/arena.h"
#include "base/uuid.h"
#include "base/view.h"
#include "broker/coordinator/coordinator.h"
#include "broker/group/confirm.h"
#include "broker/group/group.h"
#include "broker/net/shard.h"

struct topic_image;

/* Gives the start a machine with coordinators. */
void offsets_group_prepare(struct shard *shard, struct group_start *start);

/* Who takes an answer. Callers embed it; `arena` lives until `answered` was called. */
struct coordinator_call {
    struct arena *arena;
    void (*answered)(struct coordinator_call *call, enum api_key api, const void *response);

    struct confirm confirm;      /* the rest is the coordinator's own */
    struct shard *shard;
    uint64_t group_id;
    int32_t partition;
    struct coordinator_context context;
    const void *request;
    enum api_key api;
};

/* Which partition of __consumer_offsets a group id belongs to: Java's String.hashCode without its
 * sign, modulo the number of partitions, as every Kafka broker computes it. */
int32_t offsets_partition_for(struct view group_id, int32_t partition_count);

/* Asks the coordinator of a partition on this shard; the call is answered now or later, exactly
 * once, with the response struct of `api`. A partition that is not led here, or still loads,
 * refuses with the matching error. `context`'s token and arena are set from the call. */
void offsets_group_call(struct shard *shard, uint64_t group_id, int32_t partition,
                        const struct coordinator_context *context, enum api_key api,
                        const void *request, struct coordinator_call *call);

/* A topic was deleted: the shard's coordinators drop the offsets that were committed for it. */
void offsets_groups_topic_deleted(struct shard *shard, const struct topic_image *topic);

/* Makes the shard's timer for its coordinators' deadlines, and releases it. */
void offsets_groups_open(struct shard *shard);
void offsets_groups_close(struct shard *shard);

#endif
