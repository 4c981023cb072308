/* Replication throttles, as Kafka has them: a broker reads for replicas that are listed in
 * follower.replication.throttled.replicas of their topic no more bytes a second than its
 * follower.replication.throttled.rate, and serves partitions that it leads and that are listed in
 * leader.replication.throttled.replicas no faster than its leader.replication.throttled.rate.
 *
 * What is throttled are reads of logs for replicas that are brought up (install.h), which are not
 * in sync; what replicas in sync get is never held back. Each shard has its share of a rate. What
 * was read costs time before the next read, so that large pieces are held to the rate as well.
 */
#ifndef OTTLA_BROKER_GROUP_THROTTLE_H
#define OTTLA_BROKER_GROUP_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

struct group;

enum throttle_side { THROTTLE_LEADER, THROTTLE_FOLLOWER, THROTTLE_SIDES };

/* Nobody waits longer before he asks again: the rate may have changed. */
enum { THROTTLE_WAIT_MS_MAX = 1000 };

/* Of a shard: when the next read is due, on each side. */
struct throttle {
    uint64_t next_ms[THROTTLE_SIDES];
};

/* Whether a list (PARTITION:BROKER,... or *) names the replica. What is malformed names nobody. */
bool throttle_lists(struct view list, int32_t partition, int32_t broker);

/* How long this node has to wait before it reads (follower) or serves (leader) the partition; 0: it
 * may at once. */
uint64_t throttle_wait_ms(const struct group *group, int32_t partition, enum throttle_side side);

/* How many bytes it should read or serve at a time, at most `most`. */
size_t throttle_bytes(const struct group *group, int32_t partition, enum throttle_side side,
                      size_t most);

/* So many bytes were read or served. */
void throttle_count(const struct group *group, int32_t partition, enum throttle_side side,
                    size_t bytes);

#endif
