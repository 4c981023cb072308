/* What is left of a group that was deleted or moved away goes: journal, checkpoint, logs. */
#ifndef OTTLA_BROKER_GROUP_GROUP_REMOVAL_H
#define OTTLA_BROKER_GROUP_GROUP_REMOVAL_H

#include "broker/group/group.h"

/* Begins it, and ends the partitions; the group is being closed. It counts as starting until its
 * files are gone, so that no round in which it may come back begins before. */
void group_removal_begin(struct group *group);

#endif
