/* Who waits for a group's entries, and how the waiting ends. */
#ifndef OTTLA_BROKER_GROUP_PROPOSALS_H
#define OTTLA_BROKER_GROUP_PROPOSALS_H

#include <stdint.h>

#include "base/status.h"
#include "broker/group/group.h"

/* Nobody waits. */
void proposals_init(struct group *group);

/* Waits for the entry with this index, which is at or above all that others wait for. Where durable
 * and committed are the same, in a group without peers, when_durable and deadline do not count. */
void proposals_add(struct group *group, struct proposal *proposal, uint64_t index);

/* Tells those whose entries are applied, or durable where that is enough. */
void proposals_complete(struct group *group);

/* Tells those whose deadline has passed. */
void proposals_expire(struct group *group, uint64_t now_ms);

/* Tells all, each with this status. */
void proposals_fail(struct group *group, enum status status);

#endif
