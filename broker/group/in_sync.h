/* Which replicas of a group that is led here are in sync: clients are told so (Metadata), and
 * min.insync.replicas counts them.
 *
 * A replica is in sync when it votes, its node is online, and it keeps up. It ceases to keep up
 * when its node is lost, when it has to be brought up from the logs, or when it lacked for
 * replica.lag.time.max.ms something that the leader had; it does again when it answers and has what
 * was committed a tick ago. A new leader goes on from what the one before told; who has not
 * answered it with everything soon after that lags.
 *
 * The leader looks at each tick of its group (a group at rest has none: there everybody has
 * everything, or is known to be gone), and tells the other nodes when something has changed.
 */
#ifndef OTTLA_BROKER_GROUP_IN_SYNC_H
#define OTTLA_BROKER_GROUP_IN_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/group/group.h"

/* A replica that has not answered a new leader for so long, with everything, lags. */
enum { IN_SYNC_AWAIT_MS = 500 };

/* This node begins to lead the group, in the directory too; the others are yet to be told. */
void in_sync_begin(struct group *group);

/* This node leads it no more. */
void in_sync_end(struct group *group);

/* The list of replicas may have changed. */
void in_sync_replicas_changed(struct group *group);

/* A tick of the group has passed. */
void in_sync_tick(struct group *group, uint64_t now_ms);

/* The node is lost. */
void in_sync_lost(struct group *group, int32_t node);

/* What is told of a group that is led here (lag.h); 0 of one that has no other replica. */
uint64_t in_sync_lag(const struct group *group);

/* On the leader: whether so many replicas are in sync, or as many as there are voters when those
 * are fewer (as Kafka counts min.insync.replicas). */
bool in_sync_has(const struct group *group, int32_t least);

/* Whether the node is registered, not fenced, and was heard within the last moments; true for this
 * node itself. */
bool in_sync_is_online(const struct shard *shard, int32_t node);

#endif
