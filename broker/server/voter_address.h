/* Where this voter is reached, in a cluster that changes its voters: when the metadata says another
 * address than this node's own listener of controllers has, it tells the leader (UpdateRaftVoter,
 * KIP-853). So a voter that comes back elsewhere is found again. One that lost its disk tells the
 * id of its new directory too, which a client may not: the voter stays the same, and what it lost
 * is made up for before it votes (group/group_loss.h).
 *
 * A node that nobody reaches hears no leader either, and so does not know what the metadata says by
 * now: then it tells its address as long as it has not caught up.
 */
#ifndef OTTLA_BROKER_SERVER_VOTER_ADDRESS_H
#define OTTLA_BROKER_SERVER_VOTER_ADDRESS_H

#include "broker/config/listeners.h"

struct broker;
struct metadata_log;

/* The endpoint of this node's listener of controllers; false when it has none, or none that another
 * node could reach. */
bool voter_address_own(const struct broker *broker, struct view *name, struct view *host,
                       uint16_t *port);

/* Looks whether there is something to tell; on shard 0. */
void voter_address_tick(struct metadata_log *log, uint64_t now_ms);

/* Releases it, after the shards have ended. */
void voter_address_free(struct metadata_log *log);

#endif
