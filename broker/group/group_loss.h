/* What a group does on a node that lost its part of it: the data directory, or its journal, went
 * away and the node came back under its old id.
 *
 * A vote of such a node could elect a leader without an entry that the node once acknowledged. So
 * it takes entries, but neither votes nor campaigns, before it has applied what its leader had at
 * their first contact (docs/raft.md, Damage). Where the number of voters is even nothing has to be
 * held back: without this node's promises, two majorities still have another voter in common.
 */
#ifndef OTTLA_BROKER_GROUP_GROUP_LOSS_H
#define OTTLA_BROKER_GROUP_GROUP_LOSS_H

#include "broker/group/group.h"
#include "raft/raft.h"

/* At the opening, when the members are known and Raft is not made yet. */
void group_loss_begin(struct group *group, const struct group_start *start);

/* A message is about to be stepped: the first one from a leader tells how far there is to go. */
void group_loss_contact(struct group *group, const struct raft_message *message);

/* Entries may have been applied: whether the group has what it needs. If so it votes again once the
 * caller has fed REJOIN. */
bool group_loss_is_over(struct group *group);

/* Nothing was lost: the cluster is new. */
void group_loss_none(struct group *group);

/* The group ends. */
void group_loss_end(struct group *group);

#endif
