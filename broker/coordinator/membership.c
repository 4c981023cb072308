/* Heartbeat and LeaveGroup. Happy path: a heartbeat restarts the session timer; a leave removes the
 * members it names and starts one rebalance for all of them. Each named member has its own error.
 */
#include <assert.h>

#include "base/planted.h"
#include "broker/coordinator/answers.h"
#include "broker/coordinator/machine.h"
#include "messages/heartbeat.h"
#include "messages/leave_group.h"

enum { LEAVE_BATCH_VERSION = 3 };

static enum kafka_error heartbeat(struct coordinator *coordinator,
                                  const struct heartbeat_request *message)
{
    if (message->group_id.length == 0) {
        return KAFKA_INVALID_GROUP_ID;
    }
    struct consumer_group *group = coordinator_group(coordinator, message->group_id);
    if (group == NULL) {
        return KAFKA_UNKNOWN_MEMBER_ID;
    }
    enum kafka_error error =
        consumer_group_check_member(group, message->member_id, message->group_instance_id);
    if (error != KAFKA_NONE) {
        return error;
    }
    if (message->generation_id != group->generation && !planted(PLANT_BEAT_IGNORED)) {
        return KAFKA_ILLEGAL_GENERATION;
    }
    assert(group->state != GROUP_EMPTY);
    coordinator_touch_member(coordinator, consumer_group_member(group, message->member_id));
    return group->state == GROUP_PREPARING_REBALANCE ? KAFKA_REBALANCE_IN_PROGRESS : KAFKA_NONE;
}

void coordinator_handle_heartbeat(const struct request_context *request, const void *message)
{
    struct heartbeat_response response = heartbeat_response_default;
    response.error_code = (int16_t)heartbeat(request->coordinator, message);
    coordinator_answer(request->coordinator, request->context->token, API_HEARTBEAT, &response);
}

/* Removes one member by id, or a static one by its instance id when the id is empty (an admin).
 * *removed tells whether a member, not only a pending id, is gone. */
static enum kafka_error leave(struct coordinator *coordinator, struct consumer_group *group,
                              struct view member_id, struct view instance_id)
{
    struct consumer_member *member;
    if (member_id.length == 0) {
        member =
            instance_id.data == NULL ? NULL : consumer_group_static_member(group, instance_id);
        if (member == NULL) {
            return KAFKA_UNKNOWN_MEMBER_ID;
        }
        coordinator_remove_member(coordinator, member);
        return KAFKA_NONE;
    }
    struct pending_member *pending = consumer_group_pending(group, member_id);
    if (pending != NULL) {
        assert(pending->group == group);
        coordinator_remove_pending(coordinator, pending);
        return KAFKA_NONE;
    }
    enum kafka_error error = consumer_group_check_member(group, member_id, instance_id);
    if (error == KAFKA_NONE) {
        coordinator_remove_member(coordinator, consumer_group_member(group, member_id));
    }
    return error;
}

/* Removes all named members and fills their results; true when one of them was there. */
static bool leave_all(const struct request_context *request, struct consumer_group *group,
                      const struct leave_group_request *message,
                      struct leave_group_response *response)
{
    bool any = false;
    struct arena *arena = request->context->arena;
    for (int32_t i = 0; i < response->members_count; i++) {
        const struct leave_group_request_member_identity *named = &message->members[i];
        struct leave_group_response_member_response *out = &response->members[i];
        out->member_id = coordinator_answer_text(arena, named->member_id);
        out->group_instance_id = coordinator_answer_text(arena, named->group_instance_id);
        enum kafka_error error = group == NULL ? KAFKA_UNKNOWN_MEMBER_ID
                                               : leave(request->coordinator, group,
                                                       named->member_id, named->group_instance_id);
        out->error_code = (int16_t)error;
        any = any || error == KAFKA_NONE;
    }
    return any;
}

/* Versions 0-2: one member, whose error is the answer's. */
static bool leave_one(const struct request_context *request, struct consumer_group *group,
                      const struct leave_group_request *message,
                      struct leave_group_response *response)
{
    enum kafka_error error =
        group == NULL ? KAFKA_UNKNOWN_MEMBER_ID
                      : leave(request->coordinator, group, message->member_id, VIEW_NULL);
    response->error_code = (int16_t)error;
    return error == KAFKA_NONE;
}

/* Fills the response; the batch that has to be committed before it is given, or null. */
static struct batch *leave_group(const struct request_context *request,
                                 const struct leave_group_request *message,
                                 struct leave_group_response *response)
{
    struct coordinator *coordinator = request->coordinator;
    if (message->group_id.length == 0) {
        response->error_code = KAFKA_INVALID_GROUP_ID;
        return NULL;
    }
    struct consumer_group *group = coordinator_group(coordinator, message->group_id);
    bool any;
    if (request->context->version < LEAVE_BATCH_VERSION) {
        any = leave_one(request, group, message, response);
    } else {
        response->members = coordinator_answer_list(
            request->context->arena, (size_t)message->members_count,
            &leave_group_response_member_response_default, sizeof(*response->members),
            &response->members_count);
        any = leave_all(request, group, message, response);
    }
    return any ? coordinator_after_removal(coordinator, group, "members left") : NULL;
}

void coordinator_handle_leave(const struct request_context *request, const void *message)
{
    int32_t count;
    struct leave_group_response *response =
        coordinator_answer_list(request->context->arena, 1, &leave_group_response_default,
                                sizeof(*response), &count);
    if (response == NULL) {
        struct leave_group_response full = leave_group_response_default;
        full.error_code = KAFKA_UNKNOWN_SERVER_ERROR;
        coordinator_answer(request->coordinator, request->context->token, API_LEAVE_GROUP, &full);
        return;
    }
    struct batch *batch = leave_group(request, message, response);
    if (batch != NULL) {
        coordinator_answer_with(request, batch, response);
    } else {
        coordinator_answer(request->coordinator, request->context->token, API_LEAVE_GROUP,
                           response);
    }
}
