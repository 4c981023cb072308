/* What a group does on a node that lost its part of it: the data directory, or its journal, went
 * away and the node came back under its old id; or the group's checkpoint is gone or broken; or the
 * group moves here, where it may have been before: what it promised then went with its files, and
 * an old replica that missed the moves since could lead with the help of those who forgot them.
 *
 * A vote of such a node could elect a leader without an entry that the node once acknowledged, and
 * an entry that it takes from a leader of the past would count, although the node's vote may have
 * helped to replace that one. So it hears nobody before a leader was confirmed by a majority of the
 * others (PeerConfirm); then it takes entries of that leader's term and later ones, but neither
 * votes nor campaigns before it has what that leader had on its disk (docs/raft.md, Damage). When
 * another one leads meanwhile it asks that one too: what the first one had beyond what is committed
 * may be gone. Where the number of voters is even nothing has to be held back: without this node's
 * promises, two majorities still have another voter in common. The same is so when a later entry in
 * its log makes the voters an even number, or this node the only one.
 *
 * That a group is held back is written into the journal before it hears anybody, with everything
 * before that made void; the group's later votes say so too, and up to where it has to get, until
 * the one that it gives itself at the end. So a process that begins anew knows which groups may
 * vote, whatever the directory or the moves say by then.
 */
#ifndef OTTLA_BROKER_GROUP_GROUP_LOSS_H
#define OTTLA_BROKER_GROUP_GROUP_LOSS_H

#include "broker/group/group.h"
#include "raft/raft.h"
#include "storage/journal.h"

/* At the opening, when it is known whether there is a checkpoint (STATUS_NOT_FOUND, STATUS_CORRUPT:
 * none that can be used), and who would be the members without one. Whether the group's part is
 * lost: up to where it had got, and with which members, nothing else says, unless the journal has
 * all of it. Then nothing of the journal's part is used; the logs stay, as the beginning of a copy.
 * Otherwise nothing is done, or the group is offline. */
bool group_loss_of_checkpoint(struct group *group, const struct group_start *start,
                              enum status status);

/* At the opening, when the members are known and Raft is not made yet. `boot` is what the journal
 * has of the group and is used; null: nothing. */
void group_loss_begin(struct group *group, const struct group_start *start,
                      const struct journal_boot *boot, bool checkpoint_is_lost);

/* When Raft is made and has not started: writes down what begins. */
void group_loss_record(struct group *group);

/* What the journal keeps of it with a vote. */
void group_loss_fill(struct group *group, struct journal_record *vote);

/* Whether a message may be stepped. The first one of a leader in each term makes the group ask
 * whether it leads, and how far there is to go. */
bool group_loss_lets_pass(struct group *group, const struct raft_message *message);

/* Whether a leader of this term may bring the group up to date. */
bool group_loss_lets_lead(const struct group *group, uint64_t term);

/* After a step: whether the group has what it needs, on the disk. If so it votes again once the
 * caller has fed REJOIN, and counts as catching up until what that saves is on the disk too: the
 * directory must not pass for complete before a power cut would leave it so. */
bool group_loss_is_over(struct group *group);

/* REJOIN was fed: nothing is held back at the next start. */
void group_loss_rejoined(struct group *group);

/* Nothing was lost: the cluster is new. */
void group_loss_none(struct group *group);

/* The group ends. */
void group_loss_end(struct group *group);

#endif
