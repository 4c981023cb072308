/* The members of a group: those that Raft starts from, and those as of what is applied, which a
 * checkpoint vouches for (Raft's own may be ahead, and a truncation can take those back).
 *
 * A group whose only member is this node keeps none of this.
 */
#ifndef OTTLA_BROKER_GROUP_GROUP_MEMBERS_H
#define OTTLA_BROKER_GROUP_GROUP_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/group/group.h"
#include "raft/raft.h"
#include "storage/checkpoint.h"

/* At the opening: the checkpoint's members, else those of the group's creation: the start's, or the
 * replicas that the topic names. */
void group_members_begin(struct group *group, const struct group_start *start,
                         const struct checkpoint *checkpoint);

/* These are the members as of `index`; they are copied. */
void group_members_set(struct group *group, const struct raft_member *members, size_t count,
                       uint64_t index);

/* A configuration entry is applied. */
void group_members_apply(struct group *group, const struct raft_entry *entry);

/* Puts them into a checkpoint, as a copy. */
void group_members_save(const struct group *group, struct checkpoint *checkpoint);

/* Whether Raft knows another member than this node now. */
bool group_is_replicated(const struct group *group);

/* Whether the node is a member, as Raft knows it now. */
bool group_has_member(const struct group *group, int32_t node);

#endif
