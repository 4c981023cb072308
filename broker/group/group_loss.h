/* What a group does on a node that lost its part of it: the data directory, or its journal, went
 * away and the node came back under its old id; or the group's checkpoint is gone or broken; or the
 * group moves here, where it may have been before: what it promised then went with its files, and
 * an old replica that missed the moves since could lead with the help of those who forgot them.
 *
 * A vote of such a node could elect a leader without an entry that the node once acknowledged, and
 * an entry that it takes from a leader of the past would count, although the node's vote may have
 * helped to replace that one. So it hears nobody before a leader was confirmed by a majority of the
 * others (PeerConfirm); then it takes entries of that leader's term and later ones, but neither
 * votes nor campaigns before it has applied what that leader had (docs/raft.md, Damage). Where the
 * number of voters is even nothing has to be held back: without this node's promises, two
 * majorities still have another voter in common. The same is so when a later entry in its log makes
 * the voters an even number, or this node the only one.
 */
#ifndef OTTLA_BROKER_GROUP_GROUP_LOSS_H
#define OTTLA_BROKER_GROUP_GROUP_LOSS_H

#include "broker/group/group.h"
#include "raft/raft.h"

/* At the opening, when it is known whether there is a checkpoint (STATUS_NOT_FOUND, STATUS_CORRUPT:
 * none that can be used), and who would be the members without one. Whether the group's part is
 * lost: up to where it had got, and with which members, nothing else says, unless the journal has
 * all of it. Then the directory is incomplete, on the disk, and the journal forgets the group; the
 * logs stay, as the beginning of a copy. Otherwise nothing is done, or the group is offline. */
bool group_loss_of_checkpoint(struct group *group, struct journal_boot *boot, enum status status);

/* At the opening, when the members are known and Raft is not made yet. */
void group_loss_begin(struct group *group, const struct group_start *start);

/* Whether a message may be stepped. The first one of a leader makes the group ask whether it leads,
 * and how far there is to go. */
bool group_loss_lets_pass(struct group *group, const struct raft_message *message);

/* Whether a leader of this term may bring the group up to date. */
bool group_loss_lets_lead(const struct group *group, uint64_t term);

/* After a step: whether the group has what it needs, on the disk. If so it votes again once the
 * caller has fed REJOIN, and counts as catching up until what that saves is on the disk too: the
 * directory must not pass for complete before a power cut would leave it so. */
bool group_loss_is_over(struct group *group);

/* Nothing was lost: the cluster is new. */
void group_loss_none(struct group *group);

/* The group ends. */
void group_loss_end(struct group *group);

#endif
