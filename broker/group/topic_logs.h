/* Which logs a group has, out of its topic's image: names, ids, partition numbers, settings. The
 * metadata group has no topic: it has one partition of its own name. */
#ifndef OTTLA_BROKER_GROUP_TOPIC_LOGS_H
#define OTTLA_BROKER_GROUP_TOPIC_LOGS_H

#include <stdint.h>

#include "base/uuid.h"
#include "broker/group/group.h"
#include "broker/group/partition.h"
#include "storage/checkpoint.h"
#include "storage/partition_log.h"

/* Makes this the group's topic (null: the metadata group, or none any more): takes a reference,
 * gives the old one back, resolves the log settings. */
void topic_log_adopt(struct group *group, struct topic_image *topic);

/* The first partition at or above `from` that the topic gives to this group; -1: no more. */
int32_t topic_log_next_partition(const struct group *group, int32_t from);

/* The topic's name as a C string, and its id; live as long as the group's topic. */
const char *topic_log_name(const struct group *group);
struct uuid topic_log_id(const struct group *group);

/* Where the partition's log is; its texts live as long. */
struct log_identity topic_log_identity(const struct partition *partition);

/* Opens the log of a partition, recovering from what the checkpoint says. `comes_again`: without a
 * checkpoint, what a damaged place in the log hides is to be had from the journal or from others,
 * so that it may be given up. */
MUST_USE enum status topic_log_open(struct partition *partition,
                                    const struct checkpoint *checkpoint, bool comes_again,
                                    struct log_damage *damage);

/* What a checkpoint says of the group's partitions: a new array (the caller's), and how many are in
 * it. Of a log that was never written there is nothing to say. */
size_t topic_log_checkpoint_partitions(const struct group *group,
                                       struct checkpoint_partition **partitions);

#endif
