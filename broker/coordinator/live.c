/* The live layer: groups made on demand, loaded from the durable layer when this replica begins to
 * lead, and dropped. Every stored group has a live one while the machine is active, except while
 * its deletion is on its way into the log. */
#include <assert.h>

#include "base/log.h"
#include "broker/coordinator/machine.h"

enum { GROUP_VALUE_LIMIT_BYTES = 256 * 1024 * 1024 };

struct consumer_group *coordinator_group(const struct coordinator *coordinator, struct view id)
{
    struct consumer_group *group;
    HASH_FIND(hh, coordinator->groups, id.data, id.length, group);
    return group;
}

static void add_group(struct coordinator *coordinator, struct consumer_group *group)
{
    assert(coordinator->active);
    assert(coordinator_group(coordinator, group->id) == NULL);
    HASH_ADD_KEYPTR(hh, coordinator->groups, group->id.data, group->id.length, group);
}

struct consumer_group *coordinator_group_make(struct coordinator *coordinator, struct view id)
{
    struct consumer_group *group = consumer_group_new(id, coordinator->now_ms);
    add_group(coordinator, group);
    return group;
}

void coordinator_group_drop(struct coordinator *coordinator, struct consumer_group *group)
{
    assert(coordinator_group(coordinator, group->id) == group);
    while (group->member_count > 0) {
        coordinator_remove_member(coordinator, consumer_group_first(group));
    }
    while (group->pending != NULL) {
        coordinator_remove_pending(coordinator, group->pending);
    }
    coordinator_timer_stop(&coordinator->timers, &group->join);
    coordinator_timer_stop(&coordinator->timers, &group->sync);
    HASH_DEL(coordinator->groups, group);
    consumer_group_free(group);
}

void coordinator_group_drop_if_void(struct coordinator *coordinator, struct consumer_group *group)
{
    if (group->state == GROUP_EMPTY && group->pending == NULL &&
        offset_store_group(&coordinator->store, group->id) == NULL &&
        !offset_store_has_open(&coordinator->store, group->id) &&
        !coordinator_has_open_batch(coordinator, group->id)) {
        coordinator_group_drop(coordinator, group);
    }
}

/* The group as its stored value says; Empty without a type when it has only offsets. */
static struct consumer_group *read_group(const struct coordinator *coordinator,
                                         const struct stored_group *stored)
{
    struct arena arena;
    arena_init(&arena, GROUP_VALUE_LIMIT_BYTES);
    struct group_metadata_value value;
    struct consumer_group *group;
    if (stored->value.data != NULL && coordinator_read_group_value(stored->value, &arena, &value)) {
        group = consumer_group_load(stored->id, &value);
    } else {
        group = consumer_group_new(stored->id, coordinator->now_ms);
    }
    arena_free(&arena);
    assert(group->state == GROUP_EMPTY || group->state == GROUP_STABLE);
    return group;
}

void coordinator_group_load(struct coordinator *coordinator, const struct stored_group *stored)
{
    struct consumer_group *group = read_group(coordinator, stored);
    add_group(coordinator, group);
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        coordinator_touch_member(coordinator, member);
    }
    if (group->member_count > (size_t)coordinator->config.group_max_size) {
        (void)coordinator_prepare(coordinator, group, "more members than group.max.size");
    }
}

struct consumer_group *coordinator_group_revive(struct coordinator *coordinator, struct view id)
{
    struct consumer_group *group = coordinator_group(coordinator, id);
    if (group == NULL) {
        const struct stored_group *stored = offset_store_group(&coordinator->store, id);
        if (stored == NULL) {
            return NULL;
        }
        coordinator_group_load(coordinator, stored);
        group = coordinator_group(coordinator, id);
    }
    assert(group != NULL);
    return group;
}
