/* When each follower of the metadata log last had everything that was committed, as the node that
 * leads it saw: what DescribeQuorum tells of followers that are silent or behind. */
#ifndef OTTLA_BROKER_SERVER_QUORUM_TIMES_H
#define OTTLA_BROKER_SERVER_QUORUM_TIMES_H

#include <stdint.h>

#include "broker/peer/liveness.h"
#include "raft/raft.h"

struct quorum_time {
    int32_t node;
    uint64_t had_ms;             /* monotonic */
};

/* All zero: nobody was seen. */
struct quorum_times {
    uint64_t term;               /* in which they were seen */
    int count;
    struct quorum_time items[LIVENESS_NODES];
};

/* Looks at all peers, when this node leads; what was seen in an earlier term is forgotten. Nodes
 * that the table has no place for are left out. */
void quorum_times_tick(struct quorum_times *times, const struct raft *raft, uint64_t now_ms);

/* When the node last had everything; 0: not yet in this term. */
uint64_t quorum_times_had_ms(const struct quorum_times *times, int32_t node);

#endif
