/* Groups that live on other nodes and have no leader that this node knows of: while they are new, a
 * round of changes waits for them as for its own, so that who made a topic is told who leads it. */
#ifndef OTTLA_BROKER_GROUP_AWAITED_H
#define OTTLA_BROKER_GROUP_AWAITED_H

#include <stdint.h>

#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"

/* Waits for the leader of a group that is not here, unless it is known, or none of its replicas
 * lives. Counts as a group that is starting until it is told, or for at most a second. */
void awaited_add(struct replicas *replicas, const struct partition_group *group);

/* Somebody leads it, or it is gone. */
void awaited_end(struct replicas *replicas, uint64_t group_id);

/* Time passes. */
void awaited_tick(struct replicas *replicas, uint64_t now_ms);

/* Waits for nobody any more. */
void awaited_end_all(struct replicas *replicas);

#endif
