/* Who takes part in the metadata group: the voters of controller.quorum.voters, or else of the
 * metadata itself, vote; brokers that are none of them learn, from their registration until they
 * are unregistered. */
#ifndef OTTLA_BROKER_SERVER_METADATA_MEMBERS_H
#define OTTLA_BROKER_SERVER_METADATA_MEMBERS_H

#include "broker/group/group.h"
#include "broker/server/metadata_state.h"

/* The members that the group is opened with: the voters. Null when this node stands alone. The
 * caller frees. */
struct raft_member *metadata_members_at_start(const struct broker *broker, size_t *count);

/* Those that this node heard of last, where voters change; else null. The caller frees. */
struct raft_member *metadata_members_latest(const struct broker *broker, size_t *count);

/* On the leader: makes the members those that vote by now, and as learners those that are to vote
 * or are registered. */
void metadata_members_update(struct metadata_log *log);

/* On the leader: a voter that does not keep up, without which the other voters would be too few to
 * go on when `node` votes no longer; -1: it can be spared. On shard 0. */
int32_t metadata_members_needed(const struct broker *broker, int32_t node);

/* The nodes that this shard reaches are the voters and the brokers of the picture. */
void metadata_members_link(struct shard *shard, const struct cluster_image *before,
                           const struct cluster_image *now);

#endif
