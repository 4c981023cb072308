/* What is left of groups that were deleted or moved away goes: journal, checkpoint, logs. */
#ifndef OTTLA_BROKER_GROUP_GROUP_REMOVAL_H
#define OTTLA_BROKER_GROUP_GROUP_REMOVAL_H

#include "broker/group/group.h"

/* Begins it, and ends the partitions; the group is being closed. It counts as starting until its
 * files are gone, so that no round in which it may come back begins before. */
void group_removal_begin(struct group *group);

/* The steps of it, for groups that need not be open: the journal forgets them, written with the
 * carrier's records, and their checkpoints go. Then `ended` runs, on the carrier's shard, and lets
 * the logs go, or leaves them if the status is not STATUS_OK. The ids are copied. */
void group_removal_steps(struct group *carrier, const uint64_t *ids, size_t count,
                         void (*ended)(void *context, enum status status), void *context);

#endif
