/* Whether this node still leads a group, for answers that only a leader may give.
 *
 * A leader that was paused or cut off believes for a while that it leads, while another one already
 * does. What it appends then is not committed; but what it refuses or reports from its own state
 * (a sequence out of order, an offset beyond the end, a committed offset) would be wrong. Such
 * answers wait for a round of heartbeats that a majority answers (docs/raft.md, READ); all that ask
 * while one is under way share the next. In a group with one voter there is nothing to wait for.
 */
#ifndef OTTLA_BROKER_GROUP_CONFIRM_H
#define OTTLA_BROKER_GROUP_CONFIRM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "broker/group/group.h"

struct confirm {
    struct list_link link;
    uint64_t round;              /* the group's number of the round that answers it */
    bool is_answered;            /* by a majority: ready when the index is applied */
    uint64_t index;
    /* Once, on the group's shard, perhaps inside group_confirm. `leads`: when it was asked this
     * node led, and everything committed until then is applied. */
    void (*done)(struct confirm *confirm, bool leads);
};

/* Asks. Memory stays the caller's until `done`. */
void group_confirm(struct group *group, struct confirm *confirm);

/* For the group: a majority has answered a round, or will not; entries were applied; it closes. */
void confirms_ready(struct group *group, uint64_t round, uint64_t index);
void confirms_failed(struct group *group, uint64_t round);
void confirms_applied(struct group *group);
void confirms_end(struct group *group);

#endif
