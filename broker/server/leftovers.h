/* What deletions that a crash cut off left behind: records in the journal of groups that are gone,
 * directories of partitions that are gone. */
#ifndef OTTLA_BROKER_SERVER_LEFTOVERS_H
#define OTTLA_BROKER_SERVER_LEFTOVERS_H

#include "broker/controller/image.h"

struct broker;

/* At the start, on shard 0, when the image is complete and before any of its groups is opened:
 * renames the directories of partitions that no topic has. */
void leftovers_discard_partitions(struct broker *broker, const struct image *image);

/* When every group is open: tells the journal to forget those that nobody opened, and has the
 * renamed directories removed in the background. */
void leftovers_forget_groups(struct broker *broker);

#endif
