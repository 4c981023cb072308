/* A partition of a request that is asked about its log's ends or epochs: what its leader says moves
 * clients, so that only one which leads for certain answers (group/confirm.h).
 */
#ifndef OTTLA_BROKER_API_CONFIRMED_PART_H
#define OTTLA_BROKER_API_CONFIRMED_PART_H

#include <stdint.h>

#include "broker/api/fan_out.h"
#include "broker/group/confirm.h"

struct topic_image;

/* Handlers embed it first in a struct of their own. */
struct confirmed_part {
    struct part part;
    struct confirm confirm;
    struct shard *shard;         /* of the partition, once it is asked */
    int32_t leader_epoch;        /* that the client knows; -1: it says none (KIP-320) */
    void (*look_up)(struct confirmed_part *part, struct partition *partition);
};

/* Adds it to the fan when the topic has the partition, else sets its error; a null topic has
 * none. */
void confirmed_part_add(struct fan_out *fan, struct confirmed_part *part,
                        const struct topic_image *topic, int32_t partition);

/* Runs a part of a fan: `look_up` is called on the partition's shard when this node leads it for
 * certain, with the epoch that the client knows; otherwise the part's error says why not. */
void confirmed_part_run(struct shard *shard, struct part *part);

#endif
