/* Bringing a replica up to date from the partition logs, when the leader's window does not hold any
 * more what it lacks. The logs are the snapshot: what both have of them is equal, as only what is
 * committed is in them.
 *
 * Happy path: the leader tells the replica which state to install (install_send); the replica
 * pauses applying, reads from the leader what its logs lack (install_read there), flushes, writes
 * its checkpoint, tells Raft, and answers. Failures: any call that fails ends the attempt; the
 * leader begins another one after the replica's next sign of life. What was read is kept and not
 * read again.
 *
 * The producers' state follows from the batches that are read: producers whose batches are all
 * below the leader's log start are not known to the replica afterwards.
 */
#ifndef OTTLA_BROKER_GROUP_INSTALL_H
#define OTTLA_BROKER_GROUP_INSTALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "broker/group/group.h"
#include "raft/raft.h"

/* How far a partition reaches in the state to be installed. */
struct install_partition {
    int32_t number;
    int64_t log_start;
    int64_t end_offset;
};

/* What a leader asks for. Memory is the asker's until `done`. */
struct install_order {
    int32_t leader;
    uint64_t term;               /* the leader's */
    uint64_t index;
    uint64_t index_term;
    const struct raft_member *members; /* as of index */
    size_t member_count;
    const struct install_partition *partitions;
    size_t partition_count;
    /* Once, on the group's shard, perhaps inside install_take. A Kafka error code; none: it is all
     * here, on the disk. */
    void (*done)(struct install_order *order, int16_t error);
};

/* On the replica: begins to carry out the order. Should the group end meanwhile, the order does
 * when its call or write under way has ended. */
void install_take(struct group *group, struct install_order *order);

/* On the replica: the group is closed; an install that pauses, since it is throttled (throttle.h),
 * ends. */
void install_end_pause(struct group *group);

/* On the leader: Raft says that the node needs it. Raft is told how it ended. */
void install_send(struct group *group, int32_t node);

/* On the leader: forgets the installs that it asked for; it leads no more, or the group ends. */
void install_cancel(struct group *group);

/* The lowest index that a replica is being brought to; UINT64_MAX when there is none. What follows
 * is needed next. */
uint64_t install_needed(const struct group *group);

/* Appends whole batches of the partition's log to `out`, from the one that holds `offset` on, about
 * `max_bytes` of them. Returns a Kafka error code. */
int16_t install_read(struct group *group, int32_t partition, int64_t offset,
                     size_t max_bytes, struct buffer *out);

#endif
