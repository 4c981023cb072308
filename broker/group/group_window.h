/* How much of a group's log stays in memory behind what is applied, for peers that lag. */
#ifndef OTTLA_BROKER_GROUP_GROUP_WINDOW_H
#define OTTLA_BROKER_GROUP_GROUP_WINDOW_H

#include "broker/group/group.h"

/* Releases what is applied and not needed any more. A group without peers keeps nothing, nor does
 * one at rest; others keep a tail, and the leader also what a peer that answers still lacks, both
 * within bounds for the group and for the shard. Not inside a step: what it sends may be part of
 * what is released. */
void group_window_release(struct group *group);

/* The group goes away: what it kept does not count any more. */
void group_window_end(struct group *group);

#endif
