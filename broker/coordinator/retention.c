/* Expiration of offsets and of groups that have none left (KIP-211), every
 * offsets.retention.check.interval.ms. Happy path: nothing is old. Old offsets get tombstones, one
 * batch for each group, and an Empty group without offsets gets one too. Groups with a batch on its
 * way wait for the next round. */
#include <assert.h>

#include "broker/coordinator/machine.h"

/* From when the age of an offset counts. */
enum age_base { AGE_NEVER, AGE_SINCE_EMPTY, AGE_SINCE_COMMIT };

static enum age_base age_base_of(const struct consumer_group *group)
{
    if (group->protocol_type.data == NULL) {
        return AGE_SINCE_COMMIT; /* a simple group */
    }
    if (group->state == GROUP_EMPTY) {
        return group->state_timestamp_ms == -1 ? AGE_SINCE_COMMIT : AGE_SINCE_EMPTY;
    }
    bool topics_known = consumer_group_is_consumer(group) && group->subscribed_known;
    return group->state == GROUP_STABLE && topics_known ? AGE_SINCE_COMMIT : AGE_NEVER;
}

static bool is_expired(const struct coordinator *coordinator, const struct consumer_group *group,
                       enum age_base base, const struct coordinator_offset *offset)
{
    assert(base != AGE_NEVER);
    if (offset->expire_timestamp_ms != -1) {
        return coordinator->now_ms >= offset->expire_timestamp_ms;
    }
    int64_t since_ms =
        base == AGE_SINCE_EMPTY ? group->state_timestamp_ms : offset->commit_timestamp_ms;
    int64_t age_ms; /* overflows for a time that only a broken record has */
    return __builtin_sub_overflow(coordinator->now_ms, since_ms, &age_ms) ||
           age_ms >= coordinator->config.offsets_retention_ms;
}

/* Adds tombstones for the topic's old offsets; whether none is left. */
static bool expire_topic(struct coordinator *coordinator, const struct consumer_group *group,
                         enum age_base base, const struct stored_topic *topic, struct batch *batch)
{
    bool all = true;
    for (size_t i = 0; i < topic->count; i++) {
        const struct stored_offset *offset = &topic->offsets[i];
        if (is_expired(coordinator, group, base, &offset->value) &&
            !offset_store_is_open(&coordinator->store, group->id, topic->name,
                                  offset->partition)) {
            coordinator_batch_drop_offset(batch, group->id, topic->name, offset->partition);
            coordinator->expired_offsets++;
        } else {
            all = false;
        }
    }
    return all;
}

/* Adds tombstones for the group's old offsets; whether none is left. */
static bool expire_offsets(struct coordinator *coordinator, const struct consumer_group *group,
                           struct batch *batch)
{
    const struct stored_group *stored = offset_store_group(&coordinator->store, group->id);
    if (stored == NULL || stored->topics == NULL) {
        return true;
    }
    enum age_base base = age_base_of(group);
    if (base == AGE_NEVER) {
        return false;
    }
    bool all = true;
    const struct stored_topic *topic;
    for (topic = stored->topics; topic != NULL; topic = topic->hh.next) {
        bool subscribed = consumer_group_is_subscribed(group, topic->name);
        all = !subscribed && expire_topic(coordinator, group, base, topic, batch) && all;
    }
    return all;
}

static void expire_group(struct coordinator *coordinator, struct consumer_group *group)
{
    if (coordinator_has_open_batch(coordinator, group->id)) {
        return;
    }
    struct batch *batch = coordinator_batch_new(BATCH_EXPIRY, group->id);
    bool none_left = expire_offsets(coordinator, group, batch) &&
                     !offset_store_has_open(&coordinator->store, group->id);
    if (none_left && group->state == GROUP_EMPTY) {
        assert(group->member_count == 0);
        coordinator_batch_drop_group(batch, group->id);
        coordinator_group_drop(coordinator, group);
    }
    if (batch->count > 0) {
        (void)coordinator_emit(coordinator, batch);
    } else {
        coordinator_batch_free(batch);
    }
}

void coordinator_expire(struct coordinator *coordinator)
{
    struct consumer_group *group;
    struct consumer_group *next;
    HASH_ITER(hh, coordinator->groups, group, next)
    {
        expire_group(coordinator, group);
    }
    coordinator_timer_start(&coordinator->timers, &coordinator->retention, TIMER_RETENTION,
                            coordinator->now_ms +
                                coordinator->config.offsets_retention_check_interval_ms);
}

static void drop_group_topic(struct coordinator *coordinator, const struct stored_group *stored,
                             struct view name, struct uuid id)
{
    const struct stored_topic *topic = offset_store_topic(stored, name);
    if (topic == NULL) {
        return;
    }
    struct batch *batch = coordinator_batch_new(BATCH_EXPIRY, stored->id);
    for (size_t i = 0; i < topic->count; i++) {
        struct uuid of = topic->offsets[i].value.topic_id;
        if (uuid_is_zero(of) || uuid_equal(of, id)) {
            coordinator_batch_drop_offset(batch, stored->id, name, topic->offsets[i].partition);
        }
    }
    if (batch->count > 0) {
        (void)coordinator_emit(coordinator, batch);
    } else {
        coordinator_batch_free(batch);
    }
}

void coordinator_drop_topic(struct coordinator *coordinator, struct view name, struct uuid id)
{
    const struct stored_group *stored;
    for (stored = coordinator->store.groups; stored != NULL; stored = stored->hh.next) {
        drop_group_topic(coordinator, stored, name, id);
    }
}
