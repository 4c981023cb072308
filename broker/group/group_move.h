/* A group that moves to other replicas, and who should lead it (docs/replication.md: placement).
 *
 * Happy path: the topic's image says where to; the nodes that are new open the group, empty; the
 * leader takes them in as learners, waits until they have caught up, makes the target the voters,
 * and has the metadata's leader told; what the image says then closes the group on the others. All
 * of the state is the image and Raft's members, so that whoever leads takes the next step.
 * Failures: a step that Raft refuses, or whose answer is lost, is taken again with the next tick.
 */
#ifndef OTTLA_BROKER_GROUP_GROUP_MOVE_H
#define OTTLA_BROKER_GROUP_GROUP_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/controller/topic_image.h"
#include "broker/group/group.h"
#include "broker/group/replicas.h"

/* The group's place in its topic's image; null: it has no topic, or is none of it. */
const struct partition_group *group_place(const struct group *group);

/* The topic's image has changed, or the group begins: notes whether it moves. */
void group_move_note(struct group *group);

/* It moves no more, as it ends. */
void group_move_end(struct group *group);

/* What the node is in the group (enum raft_member flags); 0: no member. */
uint8_t group_member_flags(const struct group *group, int32_t node);

/* Whether a change of members is not committed in all its parts, as far as this node knows. */
bool group_is_changing(const struct group *group);

/* On the leader: whether the node has nearly everything that is committed, takes more, and votes
 * when it is asked (group_loss.h). */
bool group_is_near(const struct group *group, int32_t node);

/* Whether an answer to this leader comes from a node that shall be a voter and whose metadata do
 * not have the move yet. What it has of the group may be of an earlier stay there: it is about to
 * leave, with all that it promised, and to come anew. */
bool group_move_is_unknown(const struct group *group, const struct raft_message *message);

/* Takes the next step of the groups of the shard that move. */
void group_moves_tick(struct replicas *replicas);

/* Calls `each` for every group led here whose members are the target of its move, unless it was
 * called for it within the last second. */
void group_moves_each_done(struct replicas *replicas, uint64_t now_ms,
                           void (*each)(struct shard *shard, const struct group *group,
                                        int32_t move));

/* Hands the lead of the group to that node, when this one leads and the other keeps up. A Kafka
 * error code; none: it has begun, or the node leads already. */
int16_t group_hand_to(struct group *group, int32_t node);

/* With auto.leader.rebalance.enable, every leader.imbalance.check.interval.seconds: groups are
 * handed to their first replica. */
void group_balance_tick(struct replicas *replicas, uint64_t now_ms);

/* On a node that was struck off the list of brokers while it runs: clients are not told of it any
 * more, so that others shall lead the topics' groups that it leads. Once a second, as it may come
 * to lead again. */
void group_leave_tick(struct replicas *replicas, uint64_t now_ms);

#endif
