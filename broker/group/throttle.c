/* Lists are read where the topic has them as text: that happens once for each read of a log, which
 * is much more work. Nothing can fail. */
#include "broker/group/throttle.h"

#include <assert.h>
#include <string.h>

#include "broker/config/value.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "io/clock.h"

enum {
    SMALL_BYTES = 16 * 1024,     /* reads of a shard that is held to a low rate */
    COST_MS_MAX = 60 * 1000,
};

static bool is_pair(struct view item, int32_t partition, int32_t broker)
{
    int64_t numbers[2];
    const uint8_t *colon = memchr(item.data, ':', item.length);
    if (colon == NULL) {
        return false;
    }
    size_t at = (size_t)(colon - item.data);
    return config_number_parse(config_trim(view_slice(item, 0, at)), &numbers[0]) &&
           config_number_parse(config_trim(view_slice(item, at + 1, item.length - at - 1)),
                               &numbers[1]) &&
           numbers[0] == partition && numbers[1] == broker;
}

bool throttle_lists(struct view list, int32_t partition, int32_t broker)
{
    assert(partition >= 0);
    while (list.length > 0) {
        const uint8_t *comma = memchr(list.data, ',', list.length);
        size_t length = comma == NULL ? list.length : (size_t)(comma - list.data);
        struct view item = config_trim(view_slice(list, 0, length));
        if (view_is(item, "*") || (item.length > 0 && is_pair(item, partition, broker))) {
            return true;
        }
        length += comma != NULL ? 1 : 0;
        list = view_slice(list, length, list.length - length);
    }
    return false;
}

/* Bytes a second for this shard; 0: all it can. */
static uint64_t rate_of(const struct group *group, int32_t partition, enum throttle_side side)
{
    const struct broker *broker = group->shard->broker;
    const struct topic_image *topic = group->topic;
    const struct cluster_broker *self =
        cluster_image_find(group->shard->replicas->cluster, broker->node_id);
    assert(self != NULL && broker->shard_count > 0);
    int64_t rate = side == THROTTLE_LEADER ? self->leader_rate : self->follower_rate;
    if (rate <= 0 || topic == NULL) {
        return 0;
    }
    const struct topic_override *listed = topic_override_find(
        topic->overrides, topic->override_count,
        side == THROTTLE_LEADER ? TOPIC_CONFIG_LEADER_REPLICATION_THROTTLED_REPLICAS
                                : TOPIC_CONFIG_FOLLOWER_REPLICATION_THROTTLED_REPLICAS);
    if (listed == NULL || !throttle_lists(listed->value, partition, broker->node_id)) {
        return 0;
    }
    uint64_t share = (uint64_t)rate / (unsigned)broker->shard_count;
    return share > 0 ? share : 1;
}

static uint64_t *next_of(const struct group *group, enum throttle_side side)
{
    assert(side < THROTTLE_SIDES);
    return &group->shard->replicas->throttle.next_ms[side];
}

uint64_t throttle_wait_ms(const struct group *group, int32_t partition, enum throttle_side side)
{
    uint64_t now_ms = clock_monotonic_ms();
    uint64_t next_ms = *next_of(group, side);
    if (next_ms <= now_ms || rate_of(group, partition, side) == 0) {
        return 0;
    }
    uint64_t wait_ms = next_ms - now_ms;
    return wait_ms < THROTTLE_WAIT_MS_MAX ? wait_ms : THROTTLE_WAIT_MS_MAX;
}

size_t throttle_bytes(const struct group *group, int32_t partition, enum throttle_side side,
                      size_t most)
{
    uint64_t rate = rate_of(group, partition, side);
    uint64_t bytes = rate > SMALL_BYTES ? rate : SMALL_BYTES;
    return rate == 0 || bytes > most ? most : (size_t)bytes;
}

void throttle_count(const struct group *group, int32_t partition, enum throttle_side side,
                    size_t bytes)
{
    uint64_t rate = rate_of(group, partition, side);
    uint64_t *next_ms = next_of(group, side);
    uint64_t now_ms = clock_monotonic_ms();
    if (rate == 0 || bytes == 0) {
        return;
    }
    uint64_t cost_ms = (uint64_t)bytes * 1000 / rate;
    *next_ms = now_ms > *next_ms ? now_ms : *next_ms;
    *next_ms += cost_ms < COST_MS_MAX ? cost_ms : COST_MS_MAX;
}
