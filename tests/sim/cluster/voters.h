/* Who votes on metadata, where that changes: what the nodes know of it. */
#ifndef OTTLA_TESTS_SIM_CLUSTER_VOTERS_H
#define OTTLA_TESTS_SIM_CLUSTER_VOTERS_H

#include <stdbool.h>
#include <stdint.h>

struct group;
struct sim_node;

/* Nothing is known yet. */
void voters_start(void);

/* A node's disk may be lost: others have what it had, all know the same voters, and no change of
 * them is under way, in any node's log. */
bool voters_may_lose_disk(void);

/* Whether every node knows the same voters, and they are Raft's too. */
bool voters_are_settled(void);

/* The leader that is run has proposed an entry of the group. */
void voters_proposed(const struct group *group);

/* What must be true of the metadata group after each of its steps on the node that is run: a leader
 * is a voter, or the entry that removes it is not committed; one voter comes or goes at a time, and
 * a new one has nearly everything. */
void check_voters(const struct group *group);

#endif
