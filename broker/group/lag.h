/* Which replicas of a partition group do not keep up, as its leader tells the other nodes: a bit
 * for each place in the list of replicas, and a print of the list that is meant, since a node may
 * know the list from before or after a move. Places beyond LAG_REPLICAS always count as keeping up.
 *
 * Pure arithmetic; nothing can fail.
 */
#ifndef OTTLA_BROKER_GROUP_LAG_H
#define OTTLA_BROKER_GROUP_LAG_H

#include <stdbool.h>
#include <stdint.h>

struct partition_group;

enum { LAG_REPLICAS = 48 };

/* What holds for the group's list of replicas as long as nobody has told: newcomers of a move lag,
 * the others keep up. Never 0. */
uint64_t lag_untold(const struct partition_group *group);

/* What was told, if it was told of the group's list of replicas; else lag_untold. */
uint64_t lag_of(uint64_t told, const struct partition_group *group);

/* The same with another word on the replica at that place of the list. */
uint64_t lag_with(uint64_t lag, int32_t place, bool lags);

/* Whether the replica at that place of the list lags. */
bool lag_has(uint64_t lag, int32_t place);

#endif
