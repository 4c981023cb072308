/* What must be true at every moment, looked at with each step of a group and each batch applied.
 *
 * One leader in each term of a group; what is committed at an offset of a partition is the same on
 * every node and for ever; ends of logs do not go back while a process lives. A leader commits by
 * counting only what is of its term and on the disks of the majorities, and changes the members one
 * step after the other. What check_steps.c looks at where it happens.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_CHECK_H
#define OTTLA_TESTS_SIM_CLUSTER_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct group;
struct journal_op;
struct raft_message;

/* Nothing is known yet; and forgets it again. */
void check_start(void);
void check_end(void);

/* Whether all nodes that should hold a group agree: each group has one leader, all its replicas
 * have applied the same, and every node was told so. Says what is missing, when asked. */
bool check_is_whole(bool tell);

/* What is committed of a partition of the work topic, by any node's word. */
int64_t check_committed_end(int partition);

/* Whether all nodes that run know this one as fenced, or all know it as there. */
bool check_is_known(int32_t node, bool fenced);

/* Who the members of a group are follows from what it has applied, on every node. check_end
 * forgets what is known of them. */
void check_members(const struct group *group);
void check_members_forget(void);

/* Sees what the journal is given; what it is told to forget goes before the logs of it. */
void check_strays_submitted(const struct journal_op *op);
void check_strays_forget(void);

/* Forgets what was proposed. */
void check_steps_forget(void);

/* Who lost its part of a group: sees what the journal is given; a disk is lost, and all that was
 * known of it; who lost its part does not vote, and is not made a voter; whether the process that
 * is run has made up for it. */
void check_losses_submitted(const struct journal_op *op);
void check_losses_disk_lost(int32_t node);
void check_losses_vote(const struct group *group, const struct raft_message *message);
void check_losses_voter(const struct group *group, int32_t voter);
bool check_losses_ended_here(uint64_t group);
void check_losses_forget(void);

/* Compares all replicas' logs: where they begin and end, and their epochs. */
void check_replicas(void);

#endif
