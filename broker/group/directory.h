/* Who leads each partition group, and which of its replicas lag, as every thread may ask: soft
 * state.
 *
 * An epoch has one leader, so who leads it by its own word, or by Raft's, stays here until a later
 * epoch is known or it says itself that it leads no more: a replica that hears nobody any more does
 * not take that back, as the leader need not say it again. Whether it lives is another question
 * (peers_is_alive), for whoever asks.
 *
 * Group ids are small dense numbers that are never used twice, so this is a growing array of
 * pages. The group's shard writes, everybody reads; there are no locks.
 */
#ifndef OTTLA_BROKER_GROUP_DIRECTORY_H
#define OTTLA_BROKER_GROUP_DIRECTORY_H

#include <stdatomic.h>
#include <stdint.h>

enum { DIRECTORY_PAGE_GROUPS = 1024, DIRECTORY_PAGES = 4096 };

struct directory_entry {
    _Atomic int32_t leader;       /* broker id, -1 none */
    _Atomic int32_t epoch;        /* Raft term of that leader; -1 none yet */
    _Atomic uint64_t lag;         /* group/lag.h, as a leader told it last; 0 none has */
};

struct directory_page {
    struct directory_entry entries[DIRECTORY_PAGE_GROUPS];
};

struct directory {
    _Atomic(struct directory_page *) pages[DIRECTORY_PAGES];
};

/* What one read gives; leader -1 when nobody leads. */
struct group_leader {
    int32_t leader;
    int32_t epoch;
};

/* Makes room for the group's entry, with no leader. Any thread. */
void directory_add(struct directory *directory, uint64_t group_id);

/* Tells who leads. Only the group's own shard. */
void directory_set(struct directory *directory, uint64_t group_id, int32_t leader, int32_t epoch);

/* This node, which leads, tells which replicas lag. Only the group's own shard. */
void directory_set_lag(struct directory *directory, uint64_t group_id, uint64_t lag);

/* Another node says that it leads, and which replicas lag: taken unless a later epoch is known.
 * Only the group's own shard. */
void directory_set_told(struct directory *directory, uint64_t group_id, int32_t leader,
                        int32_t epoch, uint64_t lag);

/* Another node says that it led in this epoch and does so no more: nobody leads, unless a later
 * epoch is known. Only the group's own shard. */
void directory_set_ended(struct directory *directory, uint64_t group_id, int32_t leader,
                         int32_t epoch);

/* Who leads, as last told; {-1, -1} for a group that is not known. */
struct group_leader directory_get(const struct directory *directory, uint64_t group_id);

/* Which replicas lag (group/lag.h), as last told; 0 when nobody has. It outlives the leader who
 * told it, until the next one does. */
uint64_t directory_lag(const struct directory *directory, uint64_t group_id);

/* Releases the pages. */
void directory_free(struct directory *directory);

#endif
