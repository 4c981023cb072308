/* Members, leader and states of one group. Happy path: members are added, vote, and a generation
 * begins. There are no failures here; rules that refuse a client are questions that the machine
 * asks first, and breaking them is a bug. */
#include "broker/coordinator/consumer_group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/planted.h"
#include "broker/coordinator/subscriptions.h"
#include "broker/coordinator/texts.h"
#include "broker/coordinator/votes.h"

struct consumer_group *consumer_group_new(struct view id, int64_t now_ms)
{
    assert(id.data != NULL);
    struct consumer_group *group = memory_new_zero(1, sizeof(*group));
    group->id = coordinator_text_copy(id);
    group->state = GROUP_EMPTY;
    group->previous = GROUP_EMPTY;
    group->state_timestamp_ms = now_ms;
    list_init(&group->members);
    return group;
}

static void load_member(struct consumer_group *group, const struct group_metadata_value *value,
                        const struct group_metadata_value_member_metadata *stored)
{
    struct join_group_request_join_group_request_protocol protocol = {
        .name = value->protocol.data == NULL ? VIEW_EMPTY : value->protocol,
        .metadata = stored->subscription,
    };
    struct member_details details = {
        .id = stored->member_id,
        .instance_id = stored->group_instance_id,
        .client_id = stored->client_id,
        .client_host = stored->client_host,
        .protocol_type = value->protocol_type,
        .session_timeout_ms = stored->session_timeout,
        .rebalance_timeout_ms =
            stored->rebalance_timeout == -1 ? stored->session_timeout : stored->rebalance_timeout,
        .protocols = &protocol,
        .protocol_count = 1,
    };
    if (consumer_group_member(group, stored->member_id) != NULL) {
        return;
    }
    struct consumer_member *member = consumer_group_add(group, &details);
    coordinator_text_free(&member->assignment);
    member->assignment = coordinator_text_copy(stored->assignment);
    member->is_new = false;
}

struct consumer_group *consumer_group_load(struct view id, const struct group_metadata_value *value)
{
    struct consumer_group *group = consumer_group_new(id, value->current_state_timestamp);
    group->generation = planted(PLANT_GENERATION_NOT_LOADED) ? 0 : value->generation;
    for (int32_t i = 0; i < value->members_count; i++) {
        load_member(group, value, &value->members[i]);
    }
    if (group->protocol_type.data == NULL && value->protocol_type.length > 0) {
        group->protocol_type = coordinator_text_copy(value->protocol_type);
    }
    group->protocol_name = coordinator_text_copy(value->protocol);
    group->leader =
        value->leader.data == NULL ? NULL : consumer_group_member(group, value->leader);
    if (group->member_count > 0) {
        group->state = GROUP_STABLE;
        if (group->protocol_name.data == NULL) {
            group->protocol_name = coordinator_text_copy(VIEW_EMPTY);
        }
        if (group->leader == NULL) {
            group->leader = consumer_group_first(group);
        }
    }
    consumer_group_read_subscriptions(group);
    return group;
}

void consumer_protocols_free(struct member_protocol *protocols, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        coordinator_text_free(&protocols[i].name);
        coordinator_text_free(&protocols[i].metadata);
    }
    free(protocols);
}

void consumer_member_copy_protocols(const struct consumer_member *member,
                                    struct member_protocol **protocols, size_t *count)
{
    *protocols = memory_new_zero(member->protocol_count, sizeof(**protocols));
    *count = member->protocol_count;
    for (size_t i = 0; i < member->protocol_count; i++) {
        (*protocols)[i].name = coordinator_text_copy(member->protocols[i].name);
        (*protocols)[i].metadata = coordinator_text_copy(member->protocols[i].metadata);
    }
}

static void free_protocols(struct consumer_member *member)
{
    consumer_protocols_free(member->protocols, member->protocol_count);
    member->protocols = NULL;
    member->protocol_count = 0;
}

void consumer_group_free(struct consumer_group *group)
{
    assert(!coordinator_timer_runs(&group->join) && !coordinator_timer_runs(&group->sync));
    while (group->member_count > 0) {
        consumer_group_remove(group, consumer_group_first(group));
    }
    while (group->pending != NULL) {
        consumer_group_remove_pending(group, group->pending);
    }
    assert(group->support == NULL && list_is_empty(&group->members));
    consumer_group_forget_subscriptions(group);
    coordinator_text_free(&group->id);
    coordinator_text_free(&group->protocol_type);
    coordinator_text_free(&group->protocol_name);
    free(group);
}

const char *consumer_group_state_text(enum consumer_group_state state)
{
    static const char *const texts[GROUP_STATE_COUNT] = {
        [GROUP_EMPTY] = "Empty",
        [GROUP_PREPARING_REBALANCE] = "PreparingRebalance",
        [GROUP_COMPLETING_REBALANCE] = "CompletingRebalance",
        [GROUP_STABLE] = "Stable",
    };
    assert(state < GROUP_STATE_COUNT);
    return texts[state];
}

/* Kafka's table of transitions. */
static bool may_follow(enum consumer_group_state from, enum consumer_group_state to)
{
    switch (to) {
    case GROUP_EMPTY:
        return from == GROUP_PREPARING_REBALANCE;
    case GROUP_PREPARING_REBALANCE:
        return from == GROUP_EMPTY || from == GROUP_COMPLETING_REBALANCE || from == GROUP_STABLE;
    case GROUP_COMPLETING_REBALANCE:
        return from == GROUP_PREPARING_REBALANCE;
    case GROUP_STABLE:
        return from == GROUP_COMPLETING_REBALANCE;
    default:
        return false;
    }
}

void consumer_group_transition(struct consumer_group *group, enum consumer_group_state to,
                               int64_t now_ms)
{
    assert(may_follow(group->state, to));
    group->previous = group->state;
    group->state = to;
    group->state_timestamp_ms = now_ms;
}

struct consumer_member *consumer_group_member(const struct consumer_group *group, struct view id)
{
    struct consumer_member *member;
    HASH_FIND(hh, group->by_id, id.data, id.length, member);
    return member;
}

struct consumer_member *consumer_group_static_member(const struct consumer_group *group,
                                                     struct view instance_id)
{
    assert(instance_id.data != NULL);
    struct consumer_member *member;
    HASH_FIND(hh_instance, group->by_instance, instance_id.data, instance_id.length, member);
    return member;
}

struct pending_member *consumer_group_pending(const struct consumer_group *group, struct view id)
{
    struct pending_member *pending;
    HASH_FIND(hh, group->pending, id.data, id.length, pending);
    return pending;
}

enum kafka_error consumer_group_check_member(const struct consumer_group *group, struct view id,
                                             struct view instance_id)
{
    if (instance_id.data != NULL) {
        const struct consumer_member *holder = consumer_group_static_member(group, instance_id);
        if (holder == NULL) {
            return KAFKA_UNKNOWN_MEMBER_ID;
        }
        if (!view_equal(holder->id, id)) {
            return KAFKA_FENCED_INSTANCE_ID;
        }
    }
    return consumer_group_member(group, id) == NULL ? KAFKA_UNKNOWN_MEMBER_ID : KAFKA_NONE;
}

static void set_protocols(struct consumer_group *group, struct consumer_member *member,
                          const struct member_details *details)
{
    assert(member->protocols == NULL);
    member->protocols = memory_new_zero(details->protocol_count, sizeof(*member->protocols));
    member->protocol_count = details->protocol_count;
    for (size_t i = 0; i < details->protocol_count; i++) {
        member->protocols[i].name = coordinator_text_copy(details->protocols[i].name);
        member->protocols[i].metadata = coordinator_text_copy(details->protocols[i].metadata);
    }
    member->session_timeout_ms = details->session_timeout_ms;
    member->rebalance_timeout_ms = details->rebalance_timeout_ms;
    consumer_group_count_support(group, member, true);
}

static void index_member(struct consumer_group *group, struct consumer_member *member)
{
    HASH_ADD_KEYPTR(hh, group->by_id, member->id.data, member->id.length, member);
    if (member->instance_id.data != NULL) {
        HASH_ADD_KEYPTR(hh_instance, group->by_instance, member->instance_id.data,
                        member->instance_id.length, member);
    }
}

struct consumer_member *consumer_group_add(struct consumer_group *group,
                                           const struct member_details *details)
{
    assert(consumer_group_member(group, details->id) == NULL);
    assert(details->instance_id.data == NULL ||
           consumer_group_static_member(group, details->instance_id) == NULL);
    struct consumer_member *member = memory_new_zero(1, sizeof(*member));
    member->group = group;
    member->id = coordinator_text_copy(details->id);
    member->instance_id = coordinator_text_copy(details->instance_id);
    member->client_id = coordinator_text_copy(details->client_id);
    member->client_host = coordinator_text_copy(details->client_host);
    member->assignment = coordinator_text_copy(VIEW_EMPTY);
    member->is_new = true;
    if (group->member_count == 0) {
        coordinator_text_free(&group->protocol_type);
        group->protocol_type = coordinator_text_copy(details->protocol_type);
    }
    set_protocols(group, member, details);
    index_member(group, member);
    list_push_back(&group->members, &member->link);
    group->member_count++;
    if (group->leader == NULL) {
        group->leader = member;
    }
    return member;
}

void consumer_group_remove(struct consumer_group *group, struct consumer_member *member)
{
    assert(member->group == group && group->member_count > 0);
    assert(!member->join.waiting && !member->sync.waiting);
    assert(!coordinator_timer_runs(&member->session));
    consumer_group_count_support(group, member, false);
    consumer_group_set_sync_pending(group, member, false);
    HASH_DELETE(hh, group->by_id, member);
    if (member->instance_id.data != NULL) {
        HASH_DELETE(hh_instance, group->by_instance, member);
    }
    list_remove(&member->link);
    group->member_count--;
    if (group->leader == member) {
        group->leader = consumer_group_first(group);
    }
    free_protocols(member);
    coordinator_text_free(&member->id);
    coordinator_text_free(&member->instance_id);
    coordinator_text_free(&member->client_id);
    coordinator_text_free(&member->client_host);
    coordinator_text_free(&member->assignment);
    free(member);
}

struct pending_member *consumer_group_add_pending(struct consumer_group *group, struct view id)
{
    assert(consumer_group_pending(group, id) == NULL);
    struct pending_member *pending = memory_new_zero(1, sizeof(*pending));
    pending->group = group;
    pending->id = coordinator_text_copy(id);
    HASH_ADD_KEYPTR(hh, group->pending, pending->id.data, pending->id.length, pending);
    return pending;
}

void consumer_group_remove_pending(struct consumer_group *group, struct pending_member *pending)
{
    assert(pending->group == group && !coordinator_timer_runs(&pending->session));
    HASH_DEL(group->pending, pending);
    coordinator_text_free(&pending->id);
    free(pending);
}

void consumer_group_update(struct consumer_group *group, struct consumer_member *member,
                           const struct member_details *details)
{
    assert(member->group == group);
    consumer_group_count_support(group, member, false);
    free_protocols(member);
    set_protocols(group, member, details);
}

void consumer_group_restore_protocols(struct consumer_group *group, struct consumer_member *member,
                                      const struct member_protocol *protocols, size_t count)
{
    consumer_group_count_support(group, member, false);
    free_protocols(member);
    const struct consumer_member source = {
        .protocols = (struct member_protocol *)(uintptr_t)protocols, .protocol_count = count};
    consumer_member_copy_protocols(&source, &member->protocols, &member->protocol_count);
    consumer_group_count_support(group, member, true);
}

void consumer_group_rename(struct consumer_group *group, struct consumer_member *member,
                           struct view id)
{
    assert(consumer_group_member(group, id) == NULL);
    HASH_DELETE(hh, group->by_id, member);
    coordinator_text_free(&member->id);
    member->id = coordinator_text_copy(id);
    HASH_ADD_KEYPTR(hh, group->by_id, member->id.data, member->id.length, member);
}

bool consumer_member_matches(const struct consumer_member *member,
                             const struct join_group_request_join_group_request_protocol *protocols,
                             size_t count)
{
    if (member->protocol_count != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!view_equal(member->protocols[i].name, protocols[i].name) ||
            !view_equal(member->protocols[i].metadata, protocols[i].metadata)) {
            return false;
        }
    }
    return true;
}

struct view consumer_member_metadata(const struct consumer_member *member, struct view protocol)
{
    for (size_t i = 0; i < member->protocol_count; i++) {
        if (view_equal(member->protocols[i].name, protocol)) {
            return member->protocols[i].metadata;
        }
    }
    return VIEW_EMPTY;
}

void consumer_group_next_generation(struct consumer_group *group, int64_t now_ms)
{
    assert(group->state == GROUP_PREPARING_REBALANCE);
    struct view chosen =
        group->member_count == 0 ? VIEW_NULL : consumer_group_select_protocol(group);
    if (!planted(PLANT_GENERATION_REUSED) || group->generation == 0) {
        group->generation = group->generation == INT32_MAX ? 1 : group->generation + 1;
    }
    coordinator_text_free(&group->protocol_name);
    group->protocol_name = coordinator_text_copy(chosen);
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        consumer_group_set_sync_pending(group, member, false);
    }
    consumer_group_transition(
        group, group->member_count == 0 ? GROUP_EMPTY : GROUP_COMPLETING_REBALANCE, now_ms);
    consumer_group_read_subscriptions(group);
}

bool consumer_group_elect_leader(struct consumer_group *group)
{
    if (group->leader != NULL && group->leader->join.waiting) {
        return true;
    }
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        if (member->join.waiting) {
            group->leader = member;
            return true;
        }
    }
    return false;
}

int64_t consumer_group_rebalance_timeout_ms(const struct consumer_group *group)
{
    int64_t longest = 0;
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        longest = member->rebalance_timeout_ms > longest ? member->rebalance_timeout_ms : longest;
    }
    return longest;
}

bool consumer_group_all_joined(const struct consumer_group *group)
{
    assert(group->joining_count <= group->member_count);
    return group->joining_count == group->member_count && group->pending == NULL;
}

bool consumer_group_is_consumer(const struct consumer_group *group)
{
    return view_is(group->protocol_type, "consumer");
}

void consumer_group_set_sync_pending(struct consumer_group *group, struct consumer_member *member,
                                     bool pending)
{
    if (member->sync_pending != pending) {
        member->sync_pending = pending;
        group->sync_pending_count += pending ? 1 : (size_t)-1;
    }
    assert(group->sync_pending_count <= group->member_count);
}

void consumer_group_clear_assignments(struct consumer_group *group)
{
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        coordinator_text_free(&member->assignment);
        member->assignment = coordinator_text_copy(VIEW_EMPTY);
    }
}

struct consumer_member *consumer_group_first(const struct consumer_group *group)
{
    struct list_link *link = list_first(&group->members);
    return link == NULL ? NULL : container_of(link, struct consumer_member, link);
}

struct consumer_member *consumer_group_next(const struct consumer_group *group,
                                            const struct consumer_member *member)
{
    struct list_link *link = list_next(&group->members, &member->link);
    return link == NULL ? NULL : container_of(link, struct consumer_member, link);
}
