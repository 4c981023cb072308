/* OffsetDelete (KIP-496). Happy path: a group that is not subscribed to the topic loses the
 * offsets; one batch of tombstones, then the answer. Partitions the metadata does not know are
 * answered first, as in the reference. Deleting what is not there is no error. */
#include <assert.h>
#include <stddef.h>

#include "broker/coordinator/answers.h"
#include "broker/coordinator/machine.h"
#include "messages/offset_delete.h"

#define IN_TOPIC offset_delete_request_offset_delete_request_topic
#define OUT_TOPIC offset_delete_response_offset_delete_response_topic

/* One deletion in work. */
struct deleting {
    const struct request_context *request;
    const struct offset_delete_request *message;
    const struct consumer_group *group;
    struct offset_delete_response *response;
    struct batch *batch;
};

static enum kafka_error check_group(const struct consumer_group *group)
{
    if (group == NULL) {
        return KAFKA_GROUP_ID_NOT_FOUND;
    }
    bool may = group->state == GROUP_EMPTY || consumer_group_is_consumer(group);
    return may ? KAFKA_NONE : KAFKA_NON_EMPTY_GROUP;
}

static int32_t partition_count(const struct deleting *deleting, struct view topic,
                               enum kafka_error *error)
{
    struct coordinator *coordinator = deleting->request->coordinator;
    struct coordinator_topic found = {0};
    coordinator->in_host = true;
    *error = coordinator->host.find_topic(coordinator->host.owner,
                                          deleting->request->context->token, API_OFFSET_DELETE,
                                          topic, (struct uuid){{0}}, &found);
    coordinator->in_host = false;
    return *error == KAFKA_NONE ? found.partition_count : 0;
}

static enum kafka_error delete_one(struct deleting *deleting, struct view topic, int32_t partition)
{
    if (consumer_group_is_subscribed(deleting->group, topic)) {
        return KAFKA_GROUP_SUBSCRIBED_TO_TOPIC;
    }
    const struct coordinator *coordinator = deleting->request->coordinator;
    struct view group = deleting->group->id;
    assert(deleting->batch != NULL);
    if (coordinator_has_open_batch(coordinator, group) ||
        offset_store_is_open(&coordinator->store, group, topic, partition) ||
        offset_store_find(offset_store_group(&coordinator->store, group), topic, partition)) {
        coordinator_batch_drop_offset(deleting->batch, group, topic, partition);
    }
    return KAFKA_NONE;
}

static void put(struct OUT_TOPIC *out, int32_t partition, enum kafka_error error)
{
    out->partitions[out->partitions_count].partition_index = partition;
    out->partitions[out->partitions_count].error_code = (int16_t)error;
    out->partitions_count++;
}

/* The partitions of one topic: the unknown ones, then the others. */
static void delete_topic(struct deleting *deleting, const struct IN_TOPIC *in,
                         struct OUT_TOPIC *out)
{
    enum kafka_error error;
    int32_t count = partition_count(deleting, in->name, &error);
    enum kafka_error unknown = error == KAFKA_NONE ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION : error;
    int32_t room;
    out->name = in->name;
    out->partitions = coordinator_answer_list(
        deleting->request->context->arena, (size_t)in->partitions_count,
        &offset_delete_response_offset_delete_response_partition_default,
        sizeof(*out->partitions), &room);
    out->partitions_count = 0;
    for (int known = 0; known <= 1; known++) {
        for (int32_t i = 0; i < room; i++) {
            int32_t partition = in->partitions[i].partition_index;
            bool exists = partition >= 0 && partition < count;
            if (exists == (known == 1)) {
                put(out, partition,
                    exists ? delete_one(deleting, in->name, partition) : unknown);
            }
        }
    }
    assert(out->partitions_count == room);
}

static void delete_all(struct deleting *deleting)
{
    const struct offset_delete_request *message = deleting->message;
    struct offset_delete_response *response = deleting->response;
    response->topics = coordinator_answer_list(
        deleting->request->context->arena, (size_t)message->topics_count,
        &offset_delete_response_offset_delete_response_topic_default, sizeof(*response->topics),
        &response->topics_count);
    for (int32_t i = 0; i < response->topics_count; i++) {
        delete_topic(deleting, &message->topics[i], &response->topics[i]);
    }
}

/* Fills the response; the batch the answer waits for, or null. */
static struct batch *delete_offsets(struct deleting *deleting)
{
    struct coordinator *coordinator = deleting->request->coordinator;
    deleting->group = coordinator_group(coordinator, deleting->message->group_id);
    enum kafka_error error = deleting->message->group_id.length == 0 ? KAFKA_INVALID_GROUP_ID
                                                                     : check_group(deleting->group);
    if (error != KAFKA_NONE) {
        deleting->response->error_code = (int16_t)error;
        return NULL;
    }
    deleting->batch = coordinator_batch_new(BATCH_DELETE_OFFSETS, deleting->group->id);
    delete_all(deleting);
    if (deleting->batch->count > 0) {
        return coordinator_emit(coordinator, deleting->batch);
    }
    coordinator_batch_free(deleting->batch);
    return NULL;
}

void coordinator_handle_delete_offsets(const struct request_context *request, const void *message)
{
    struct offset_delete_response full = offset_delete_response_default;
    int32_t count;
    struct deleting deleting = {.request = request, .message = message};
    deleting.response = coordinator_answer_list(request->context->arena, 1,
                                                &offset_delete_response_default, sizeof(full),
                                                &count);
    struct batch *batch = NULL;
    if (deleting.response == NULL) {
        deleting.response = &full;
        full.error_code = KAFKA_UNKNOWN_SERVER_ERROR;
    } else {
        batch = delete_offsets(&deleting);
    }
    if (batch != NULL) {
        coordinator_answer_with(request, batch, deleting.response);
    } else {
        coordinator_answer(request->coordinator, request->context->token, API_OFFSET_DELETE,
                           deleting.response);
    }
}
