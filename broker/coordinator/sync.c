/* SyncGroup. Happy path: followers wait, the leader brings the assignment, it is stored as one
 * record, and once that is committed all are answered (outcomes.c). A member that asks again in a
 * stable group gets its assignment at once. */
#include <assert.h>

#include "broker/coordinator/machine.h"
#include "messages/sync_group.h"

enum { PROTOCOL_REQUIRED_VERSION = 5 };

/* Null says nothing, on either side. */
static bool is_inconsistent(struct view given, struct view actual)
{
    return given.data != NULL && actual.data != NULL && !view_equal(given, actual);
}

static enum kafka_error check_member(const struct consumer_group *group,
                                     const struct sync_group_request *message)
{
    enum kafka_error error =
        consumer_group_check_member(group, message->member_id, message->group_instance_id);
    if (error != KAFKA_NONE) {
        return error;
    }
    if (message->generation_id != group->generation) {
        return KAFKA_ILLEGAL_GENERATION;
    }
    if (is_inconsistent(message->protocol_type, group->protocol_type) ||
        is_inconsistent(message->protocol_name, group->protocol_name)) {
        return KAFKA_INCONSISTENT_GROUP_PROTOCOL;
    }
    switch (group->state) {
    case GROUP_EMPTY:
        return KAFKA_UNKNOWN_MEMBER_ID;
    case GROUP_PREPARING_REBALANCE:
        return KAFKA_REBALANCE_IN_PROGRESS;
    default:
        return KAFKA_NONE;
    }
}

static enum kafka_error check_request(const struct request_context *request,
                                      const struct sync_group_request *message)
{
    if (request->context->version >= PROTOCOL_REQUIRED_VERSION &&
        (message->protocol_type.data == NULL || message->protocol_name.data == NULL)) {
        return KAFKA_INCONSISTENT_GROUP_PROTOCOL;
    }
    if (message->group_id.length == 0) {
        return KAFKA_INVALID_GROUP_ID;
    }
    const struct consumer_group *group = coordinator_group(request->coordinator, message->group_id);
    return group == NULL ? KAFKA_UNKNOWN_MEMBER_ID : check_member(group, message);
}

/* Whether the assignment of this generation is on its way into the log already. */
static bool is_storing(const struct coordinator *coordinator, const struct consumer_group *group)
{
    for (struct list_link *link = list_first(&coordinator->batches); link != NULL;
         link = list_next(&coordinator->batches, link)) {
        const struct batch *batch = container_of(link, struct batch, link);
        if (batch->kind == BATCH_ASSIGNMENT && batch->generation == group->generation &&
            view_equal(batch->group, group->id)) {
            return true;
        }
    }
    return false;
}

void coordinator_handle_sync(const struct request_context *request, const void *message)
{
    const struct sync_group_request *sync = message;
    struct coordinator *coordinator = request->coordinator;
    struct parked_answer to = coordinator_parked(request->context);
    enum kafka_error error = check_request(request, sync);
    if (error != KAFKA_NONE) {
        coordinator_answer_sync_error(coordinator, &to, error);
        return;
    }
    struct consumer_group *group = coordinator_group(coordinator, sync->group_id);
    struct consumer_member *member = consumer_group_member(group, sync->member_id);
    assert(member != NULL && !member->join.waiting);
    coordinator_member_synced(coordinator, member);
    if (group->state == GROUP_STABLE) {
        coordinator_answer_sync(coordinator, &to, member);
        return;
    }
    assert(group->state == GROUP_COMPLETING_REBALANCE);
    coordinator_park_sync(coordinator, member, request->context);
    if (group->leader == member && !is_storing(coordinator, group)) {
        (void)coordinator_emit_group(coordinator, group, BATCH_ASSIGNMENT, sync);
    }
}
