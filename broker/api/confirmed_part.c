/* Errors that are known at once end a part at once; the others wait for a round of heartbeats. */
#include "broker/api/confirmed_part.h"

#include <assert.h>

#include "broker/controller/topic_image.h"
#include "broker/group/partition.h"
#include "messages/errors.h"

void confirmed_part_add(struct fan_out *fan, struct confirmed_part *part,
                        const struct topic_image *topic, int32_t partition)
{
    assert(part->look_up != NULL);
    part->part.partition = partition;
    if (topic == NULL || partition < 0 || partition >= topic->partition_count) {
        part->part.error = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    fan_out_add(fan, &part->part, topic, partition);
}

static void still_leads(struct confirm *confirm, bool leads)
{
    struct confirmed_part *part = container_of(confirm, struct confirmed_part, confirm);
    struct partition *partition = part_partition(part->shard, &part->part);
    if (partition != NULL && leads) {
        part->look_up(part, partition);
    } else if (partition != NULL) {
        part->part.error = KAFKA_NOT_LEADER_OR_FOLLOWER;
    }
    part_done(part->shard, &part->part);
}

void confirmed_part_run(struct shard *shard, struct part *base)
{
    struct confirmed_part *part = container_of(base, struct confirmed_part, part);
    struct partition *partition = part_partition(shard, base);
    if (partition != NULL) {
        base->error = partition_error(partition);
    }
    if (base->error == KAFKA_NONE) {
        base->error = partition_epoch_error(partition, part->leader_epoch);
    }
    if (base->error != KAFKA_NONE) {
        part_done(shard, base);
        return;
    }
    part->shard = shard;
    part->confirm.done = still_leads;
    group_confirm(partition->group, &part->confirm);
}
