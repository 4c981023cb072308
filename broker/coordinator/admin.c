/* ListGroups, DescribeGroups and DeleteGroups. Happy path: list and describe read the live groups
 * that are stored and answer at once; a deletion writes the tombstones of offsets and group, drops
 * the live group, and answers when the tombstones are committed. A group that does not exist is
 * "Dead"; since version 6 of DescribeGroups also an error. */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "base/memory.h"
#include "broker/coordinator/answers.h"
#include "broker/coordinator/machine.h"
#include "broker/coordinator/texts.h"
#include "messages/delete_groups.h"
#include "messages/describe_groups.h"
#include "messages/list_groups.h"

enum { DESCRIBE_NOT_FOUND_VERSION = 6 };

/* The group as others may see it: its first record is committed. */
static struct consumer_group *visible_group(const struct coordinator *coordinator, struct view id)
{
    if (offset_store_group(&coordinator->store, id) == NULL) {
        return NULL;
    }
    return coordinator_group(coordinator, id);
}

static bool names_any(const struct view *names, int32_t count, const char *text)
{
    struct view wanted = view_text(text);
    for (int32_t i = 0; i < count; i++) {
        if (names[i].length == wanted.length &&
            strncasecmp((const char *)names[i].data, text, wanted.length) == 0) {
            return true;
        }
    }
    return count <= 0;
}

static bool is_listed(const struct coordinator *coordinator, const struct consumer_group *group,
                      const struct list_groups_request *message)
{
    return offset_store_group(&coordinator->store, group->id) != NULL &&
           names_any(message->states_filter, message->states_filter_count,
                     consumer_group_state_text(group->state)) &&
           names_any(message->types_filter, message->types_filter_count, "classic");
}

void coordinator_handle_list(const struct request_context *request, const void *message)
{
    struct coordinator *coordinator = request->coordinator;
    struct arena *arena = request->context->arena;
    struct list_groups_response response = list_groups_response_default;
    int32_t room;
    response.groups = coordinator_answer_list(arena, HASH_COUNT(coordinator->groups),
                                              &list_groups_response_listed_group_default,
                                              sizeof(*response.groups), &room);
    assert(response.groups_count == 0);
    const struct consumer_group *group = room == 0 ? NULL : coordinator->groups;
    for (; group != NULL; group = group->hh.next) {
        if (!is_listed(coordinator, group, message)) {
            continue;
        }
        assert(response.groups_count < room);
        struct list_groups_response_listed_group *out = &response.groups[response.groups_count++];
        out->group_id = coordinator_answer_text(arena, group->id);
        out->protocol_type = group->protocol_type.data == NULL
                                 ? VIEW_EMPTY
                                 : coordinator_answer_text(arena, group->protocol_type);
        out->group_state = view_text(consumer_group_state_text(group->state));
        out->group_type = VIEW_LITERAL("classic");
    }
    coordinator_answer(coordinator, request->context->token, API_LIST_GROUPS, &response);
}

static void describe_members(struct arena *arena, const struct consumer_group *group,
                             struct describe_groups_response_described_group *out)
{
    struct describe_groups_response_described_group_member *at = coordinator_answer_list(
        arena, group->member_count, &describe_groups_response_described_group_member_default,
        sizeof(*at), &out->members_count);
    out->members = at;
    for (struct consumer_member *member = at == NULL ? NULL : consumer_group_first(group);
         member != NULL; member = consumer_group_next(group, member)) {
        at->member_id = coordinator_answer_text(arena, member->id);
        at->group_instance_id = coordinator_answer_text(arena, member->instance_id);
        at->client_id = coordinator_answer_text(arena, member->client_id);
        at->client_host = coordinator_answer_text(arena, member->client_host);
        at->member_assignment = coordinator_answer_text(arena, member->assignment);
        if (group->state == GROUP_STABLE) {
            at->member_metadata = coordinator_answer_text(
                arena, consumer_member_metadata(member, group->protocol_name));
        }
        at++;
    }
    assert(at == NULL || at == out->members + out->members_count);
}

static void describe_missing(const struct request_context *request,
                             struct describe_groups_response_described_group *out)
{
    out->group_state = VIEW_LITERAL("Dead");
    if (request->context->version < DESCRIBE_NOT_FOUND_VERSION) {
        return;
    }
    out->error_code = KAFKA_GROUP_ID_NOT_FOUND;
    out->error_message = arena_format(request->context->arena, "Group %.*s not found.",
                                      VIEW_PRINT(out->group_id));
}

static void describe_group(const struct request_context *request, struct view id,
                           struct describe_groups_response_described_group *out)
{
    struct arena *arena = request->context->arena;
    const struct consumer_group *group = visible_group(request->coordinator, id);
    out->group_id = id;
    if (group == NULL) {
        describe_missing(request, out);
        return;
    }
    out->group_state = view_text(consumer_group_state_text(group->state));
    if (group->protocol_type.data != NULL) {
        out->protocol_type = coordinator_answer_text(arena, group->protocol_type);
    }
    if (group->state == GROUP_STABLE) {
        out->protocol_data = coordinator_answer_text(arena, group->protocol_name);
    }
    describe_members(arena, group, out);
}

void coordinator_handle_describe(const struct request_context *request, const void *message)
{
    const struct describe_groups_request *in = message;
    struct describe_groups_response response = describe_groups_response_default;
    response.groups = coordinator_answer_list(request->context->arena, (size_t)in->groups_count,
                                              &describe_groups_response_described_group_default,
                                              sizeof(*response.groups), &response.groups_count);
    for (int32_t i = 0; i < response.groups_count; i++) {
        describe_group(request, in->groups[i], &response.groups[i]);
    }
    coordinator_answer(request->coordinator, request->context->token, API_DESCRIBE_GROUPS,
                       &response);
}

static void put_stored_tombstones(struct batch *batch, const struct stored_group *stored)
{
    const struct stored_topic *topic;
    for (topic = stored->topics; topic != NULL; topic = topic->hh.next) {
        for (size_t i = 0; i < topic->count; i++) {
            coordinator_batch_drop_offset(batch, stored->id, topic->name,
                                          topic->offsets[i].partition);
        }
    }
}

/* Offsets of the group that an open batch is about to store. */
static void put_open_tombstones(struct batch *batch, const struct batch *open, struct view group)
{
    for (size_t i = 0; open->kind == BATCH_OFFSETS && i < open->count; i++) {
        struct coordinator_key key = coordinator_read_key(open->views[i].key);
        if (key.kind == COORDINATOR_KEY_OFFSET && view_equal(key.group, group)) {
            coordinator_batch_drop_offset(batch, group, key.topic, key.partition);
        }
    }
}

struct open_tombstones {
    struct batch *batch;
    const struct stored_group *stored; /* whose offsets have tombstones already; may be null */
};

static void put_transaction_tombstone(void *owner, const struct coordinator_key *key)
{
    const struct open_tombstones *put = owner;
    if (offset_store_find(put->stored, key->topic, key->partition) == NULL) {
        coordinator_batch_drop_offset(put->batch, key->group, key->topic, key->partition);
    }
}

void coordinator_put_group_tombstones(const struct coordinator *coordinator, struct batch *batch,
                                      struct view group)
{
    const struct stored_group *stored = offset_store_group(&coordinator->store, group);
    if (stored != NULL) {
        put_stored_tombstones(batch, stored);
    }
    for (struct list_link *link = list_first(&coordinator->batches); link != NULL;
         link = list_next(&coordinator->batches, link)) {
        put_open_tombstones(batch, container_of(link, struct batch, link), group);
    }
    struct open_tombstones put = {batch, stored};
    offset_store_each_open(&coordinator->store, group, put_transaction_tombstone, &put);
    coordinator_batch_drop_group(batch, group);
}

static enum kafka_error delete_group(struct coordinator *coordinator, struct batch *batch,
                                     struct view id)
{
    struct consumer_group *group = coordinator_group(coordinator, id);
    if (group == NULL) {
        return KAFKA_GROUP_ID_NOT_FOUND;
    }
    if (group->state != GROUP_EMPTY) {
        return KAFKA_NON_EMPTY_GROUP;
    }
    assert(group->member_count == 0);
    coordinator_put_group_tombstones(coordinator, batch, id);
    coordinator_group_drop(coordinator, group);
    return KAFKA_NONE;
}

/* A name that the request had already: each is answered once. */
struct seen_name {
    UT_hash_handle hh;
};

static bool is_new_name(struct seen_name **seen, struct seen_name *fresh, struct view name)
{
    struct seen_name *before;
    HASH_FIND(hh, *seen, name.data, name.length, before);
    if (before == NULL) {
        HASH_ADD_KEYPTR(hh, *seen, name.data, name.length, fresh);
    }
    return before == NULL;
}

static void delete_groups(const struct request_context *request,
                          const struct delete_groups_request *in, struct batch *batch,
                          struct delete_groups_response *response)
{
    int32_t room;
    response->results = coordinator_answer_list(
        request->context->arena, (size_t)in->groups_names_count,
        &delete_groups_response_deletable_group_result_default, sizeof(*response->results), &room);
    struct seen_name *names = memory_new_zero((size_t)room, sizeof(*names));
    struct seen_name *seen = NULL;
    for (int32_t i = 0; i < room; i++) {
        if (is_new_name(&seen, &names[i], in->groups_names[i])) {
            struct delete_groups_response_deletable_group_result *out =
                &response->results[response->results_count++];
            out->group_id = in->groups_names[i];
            out->error_code =
                (int16_t)delete_group(request->coordinator, batch, in->groups_names[i]);
        }
    }
    HASH_CLEAR(hh, seen);
    free(names);
}

void coordinator_handle_delete_groups(const struct request_context *request, const void *message)
{
    struct coordinator *coordinator = request->coordinator;
    struct delete_groups_response full = delete_groups_response_default;
    int32_t count;
    struct delete_groups_response *response = coordinator_answer_list(
        request->context->arena, 1, &full, sizeof(full), &count);
    struct batch *batch = coordinator_batch_new(BATCH_DELETE_GROUPS, VIEW_NULL);
    if (response != NULL) {
        delete_groups(request, message, batch, response);
    }
    if (batch->count > 0) {
        coordinator_answer_with(request, coordinator_emit(coordinator, batch), response);
    } else {
        coordinator_batch_free(batch);
        coordinator_answer(coordinator, request->context->token, API_DELETE_GROUPS,
                           response == NULL ? &full : response);
    }
}
