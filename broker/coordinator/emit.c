/* What leaves the machine: batches of records and answers. Happy path: encode, queue, hand to the
 * host. The host may not call back from inside; that is asserted at every event. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/coordinator/machine.h"
#include "messages/sync_group.h"

bool coordinator_has_open_batch(const struct coordinator *coordinator, struct view group)
{
    for (struct list_link *link = list_first(&coordinator->batches); link != NULL;
         link = list_next(&coordinator->batches, link)) {
        if (view_equal(container_of(link, struct batch, link)->group, group)) {
            return true;
        }
    }
    return false;
}

struct batch *coordinator_emit(struct coordinator *coordinator, struct batch *batch)
{
    assert(coordinator->active && !coordinator->in_host);
    assert(batch->count > 0);
    batch->id = ++coordinator->batch_id;
    list_push_back(&coordinator->batches, &batch->link);
    struct coordinator_batch out = {
        .id = batch->id,
        .records = coordinator_batch_views(batch),
        .count = batch->count,
        .producer_id = batch->producer_id,
        .producer_epoch = batch->producer_epoch,
    };
    coordinator->in_host = true;
    coordinator->host.append(coordinator->host.owner, &out);
    coordinator->in_host = false;
    return batch;
}

void coordinator_answer(struct coordinator *coordinator, void *token, enum api_key api,
                        const void *response)
{
    assert(!coordinator->in_host && response != NULL);
    coordinator->in_host = true;
    coordinator->host.answer(coordinator->host.owner, token, api, response);
    coordinator->in_host = false;
}

void coordinator_answer_with(const struct request_context *request, struct batch *batch,
                             void *response)
{
    assert(!batch->answer.waiting);
    batch->answer = (struct batch_answer){
        .waiting = true,
        .api = request->api,
        .version = request->context->version,
        .token = request->context->token,
        .response = response,
    };
}

/* The assignment that a SyncGroup gives the member; empty when it forgot it. */
static struct view assignment_for(const struct sync_group_request *sync, struct view member)
{
    for (int32_t i = sync->assignments_count; i > 0; i--) {
        if (view_equal(sync->assignments[i - 1].member_id, member)) {
            return sync->assignments[i - 1].assignment;
        }
    }
    return VIEW_EMPTY;
}

static void fill_member(struct group_metadata_value_member_metadata *out,
                        const struct consumer_group *group, const struct consumer_member *member)
{
    *out = (struct group_metadata_value_member_metadata){
        .member_id = member->id,
        .group_instance_id = member->instance_id,
        .client_id = member->client_id,
        .client_host = member->client_host,
        .rebalance_timeout = member->rebalance_timeout_ms,
        .session_timeout = member->session_timeout_ms,
        .subscription = consumer_member_metadata(member, group->protocol_name),
        .assignment = member->assignment,
    };
}

/* Views of all members; to be released with free(). */
static struct group_metadata_value_member_metadata *
list_members(const struct consumer_group *group, const struct sync_group_request *assignments)
{
    struct group_metadata_value_member_metadata *members =
        memory_new_zero(group->member_count, sizeof(*members));
    size_t count = 0;
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        fill_member(&members[count], group, member);
        if (assignments != NULL) {
            members[count].assignment = assignment_for(assignments, member->id);
        }
        count++;
    }
    assert(count == group->member_count);
    return members;
}

/* The first record of a group says that it is there, and nothing of the members that wait in it. */
struct batch *coordinator_emit_new_group(struct coordinator *coordinator,
                                         const struct consumer_group *group)
{
    struct group_metadata_value value = {
        .protocol_type = VIEW_EMPTY,
        .generation = group->generation,
        .current_state_timestamp = group->state_timestamp_ms,
    };
    struct batch *batch = coordinator_batch_new(BATCH_NEW_GROUP, group->id);
    coordinator_batch_put_group(batch, group->id, &value);
    return coordinator_emit(coordinator, batch);
}

struct batch *coordinator_emit_group(struct coordinator *coordinator, struct consumer_group *group,
                                     enum batch_kind kind,
                                     const struct sync_group_request *assignments)
{
    assert(kind != BATCH_NEW_GROUP);
    struct group_metadata_value_member_metadata *members = list_members(group, assignments);
    struct group_metadata_value value = {
        .protocol_type = group->protocol_type.data == NULL ? VIEW_EMPTY : group->protocol_type,
        .generation = group->generation,
        .protocol = group->protocol_name,
        .leader = group->leader == NULL ? VIEW_NULL : group->leader->id,
        .current_state_timestamp = group->state_timestamp_ms,
        .members = members,
        .members_count = (int32_t)group->member_count,
    };
    struct batch *batch = coordinator_batch_new(kind, group->id);
    batch->generation = group->generation;
    coordinator_batch_put_group(batch, group->id, &value);
    free(members);
    return coordinator_emit(coordinator, batch);
}

enum kafka_error coordinator_append_error(enum kafka_error error)
{
    switch (error) {
    case KAFKA_UNKNOWN_TOPIC_OR_PARTITION:
    case KAFKA_NOT_ENOUGH_REPLICAS:
    case KAFKA_REQUEST_TIMED_OUT:
        return KAFKA_COORDINATOR_NOT_AVAILABLE;
    case KAFKA_NOT_LEADER_OR_FOLLOWER:
    case KAFKA_KAFKA_STORAGE_ERROR:
        return KAFKA_NOT_COORDINATOR;
    case KAFKA_MESSAGE_TOO_LARGE:
    case KAFKA_RECORD_LIST_TOO_LARGE:
    case KAFKA_INVALID_FETCH_SIZE:
        return KAFKA_UNKNOWN_SERVER_ERROR;
    default:
        return error;
    }
}

enum kafka_error coordinator_commit_error(enum kafka_error error)
{
    switch (error) {
    case KAFKA_MESSAGE_TOO_LARGE:
    case KAFKA_RECORD_LIST_TOO_LARGE:
    case KAFKA_INVALID_FETCH_SIZE:
        return KAFKA_INVALID_COMMIT_OFFSET_SIZE;
    default:
        return coordinator_append_error(error);
    }
}
