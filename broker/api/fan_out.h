/* A request's partitions, each handled on the shard of its group, and collected again.
 *
 * Happy path: the handler adds its parts, fan_out_go sends one leg to each shard concerned (its own
 * shard is served by a plain call), every part is ended by part_done, the legs come home, `done`
 * builds the answer. Parts of one shard keep their order, so that a producer's batches do too.
 */
#ifndef OTTLA_BROKER_API_FAN_OUT_H
#define OTTLA_BROKER_API_FAN_OUT_H

#include <stdint.h>

#include "base/uuid.h"
#include "broker/api/request.h"
#include "broker/net/shard.h"

struct fan_leg;
struct partition;
struct topic_image;

/* One partition of a request. Handlers embed it first in a struct of their own. */
struct part {
    struct part *next;        /* in its leg */
    struct fan_leg *leg;
    uint64_t group_id;
    struct uuid topic_id;
    int32_t partition;
    int16_t error;            /* Kafka error code; the handler sets it before part_done */
};

struct fan_out {
    struct request *request;
    struct fan_leg *legs;     /* one for each shard of the process */
    int shard_count;
    unsigned legs_away;
    void (*run)(struct shard *shard, struct part *part);
    void (*done)(struct request *request);
};

/* Begins; memory comes from the request's arena. `run` handles one part on its shard and ends it
 * with part_done, at once or later. `done` runs at home when all parts are ended. */
struct fan_out *fan_out_begin(struct request *request,
                              void (*run)(struct shard *shard, struct part *part),
                              void (*done)(struct request *request));

/* Adds a part for a partition that the topic has. Parts that failed before need not be added. */
void fan_out_add(struct fan_out *fan, struct part *part, const struct topic_image *topic,
                 int32_t partition);

/* Likewise, for a group of whatever topic. */
void fan_out_add_group(struct fan_out *fan, struct part *part, uint64_t group_id);

/* Takes all parts out, for another round with the same fan. */
void fan_out_reset(struct fan_out *fan, void (*run)(struct shard *shard, struct part *part),
                   void (*done)(struct request *request));

/* Where a part that was added will be handled. */
struct shard *part_shard(const struct part *part);

/* Sends the legs. `done` may already have run when this returns. */
void fan_out_go(struct fan_out *fan);

/* Ends a part, on the shard that ran it. */
void part_done(struct shard *shard, struct part *part);

/* The part's partition on this shard. Null when this node does not have it; then the part's error
 * says why: its replicas are elsewhere (NOT_LEADER_OR_FOLLOWER), or the topic is gone by now. */
struct partition *part_partition(const struct shard *shard, struct part *part);

/* The request that a part belongs to, for reading. */
struct request *part_request(const struct part *part);

#endif
