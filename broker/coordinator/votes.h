/* Which protocol a group's members can agree on. */
#ifndef OTTLA_BROKER_COORDINATOR_VOTES_H
#define OTTLA_BROKER_COORDINATOR_VOTES_H

#include <stdbool.h>

#include "broker/coordinator/consumer_group.h"

/* Counts the member's protocols into the group's table, or out of it. */
void consumer_group_count_support(struct consumer_group *group,
                                  const struct consumer_member *member, bool add);

#endif
