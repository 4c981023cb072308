/* How many groups of a shard hold an election at a time: ottla.elections.max of them. When a node
 * with many groups is lost, or all of them start, the others wait in a queue and begin one by one
 * as elections end, so that each is short and none runs into its timeout because of all the others.
 *
 * Happy path: fewer are due than may run, and nothing waits. Beyond that Raft is told to hold back
 * (`hold` of its events), and CAMPAIGN comes when it is the group's turn; one whose time is over
 * without a result goes to the end of the queue. A group that could not win anyway, since a
 * majority of its voters is away, neither waits nor counts: its messages go nowhere. Nor does the
 * metadata log wait, nor who is told to lead by a leader that hands over.
 */
#ifndef OTTLA_BROKER_GROUP_ELECTIONS_H
#define OTTLA_BROKER_GROUP_ELECTIONS_H

#include <stdbool.h>

#include "base/list.h"
#include "broker/net/shard.h"

struct group;

/* Of a shard. */
struct elections {
    struct list waiting;         /* groups that have an election due, oldest first */
    struct shard_task begin;     /* lets some of them begin */
    int running;
    int most;
};

/* Nothing runs; at most `most` shall. */
void elections_init(struct elections *elections, int most);

/* Nothing waits any more, as all groups have ended. */
void elections_end(struct elections *elections);

/* Whether an event of this group must not begin an election now. */
bool elections_hold(const struct group *group);

/* After each step of the group: an election may have begun, ended, or been held back. */
void elections_stepped(struct group *group);

/* The group ends. */
void elections_leave(struct group *group);

#endif
