/* AlterPartitionReassignments and ListPartitionReassignments: both are asked of the controller, see
 * broker/api/controller_request.h. Whoever is told that nothing moves any more goes on to take a
 * broker away: a node that lags behind must not say so. */
#include <assert.h>

#include "broker/api/controller_request.h"
#include "broker/api/handlers.h"
#include "broker/controller/topic_image.h"
#include "messages/errors.h"
#include "messages/list_partition_reassignments.h"

#define TOPIC_RESULT alter_partition_reassignments_response_reassignable_topic_response
#define RESULT alter_partition_reassignments_response_reassignable_partition_response
#define ONGOING_TOPIC list_partition_reassignments_response_ongoing_topic_reassignment
#define ONGOING list_partition_reassignments_response_ongoing_partition_reassignment
#define ASKED list_partition_reassignments_request_list_partition_reassignments_topics

/* ---- Beginning and giving up --------------------------------------------------------------- */

static enum status make_moves(const struct controller *controller, struct request *request,
                              struct record_list *records, void *response)
{
    return controller_alter_reassignments(controller, request->message, &request->arena, records,
                                          response);
}

static void fail_moves(void *response, int16_t error)
{
    struct alter_partition_reassignments_response *out = response;
    out->error_code = error;
}

void alter_partition_reassignments_refuse(struct request *request, int16_t error)
{
    struct alter_partition_reassignments_response response =
        alter_partition_reassignments_response_default;
    response.error_code = error;
    response.error_message = VIEW_NULL;
    request_answer(request, request->home, &response);
}

void alter_partition_reassignments_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct alter_partition_reassignments_response), make_moves, fail_moves};
    controller_request_start(request, &kind);
}

/* ---- What is under way --------------------------------------------------------------------- */

struct listing {
    struct request *request;
    struct list_partition_reassignments_response *response;
    int32_t capacity;
};

/* Those of `list` that are not among `others`. */
static int32_t *without(struct request *request, const int32_t *list, int32_t count,
                        const int32_t *others, int32_t other_count, int32_t *left)
{
    int32_t *rest = request_take(request, (size_t)count + 1, sizeof *rest);
    *left = 0;
    assert(count >= 0 && other_count >= 0);
    for (int32_t i = 0; i < count; i++) {
        bool found = false;
        for (int32_t j = 0; j < other_count; j++) {
            found = found || others[j] == list[i];
        }
        if (!found) {
            rest[(*left)++] = list[i];
        }
    }
    return rest;
}

static void add_partition(struct listing *listing, struct ONGOING_TOPIC *out, int32_t partition,
                          const struct partition_group *group)
{
    struct ONGOING *ongoing = &out->partitions[out->partitions_count++];
    int32_t original_count;
    int32_t target_count;
    const int32_t *original = partition_group_original(group, &original_count);
    const int32_t *target = partition_group_target(group, &target_count);
    assert(partition_group_moves(group));
    /* The codec takes what it encodes as not const; it only reads. */
    *ongoing = (struct ONGOING){.partition_index = partition,
                                .replicas = (int32_t *)(uintptr_t)group->replicas,
                                .replicas_count = group->replica_count};
    ongoing->adding_replicas = without(listing->request, target, target_count, original,
                                       original_count, &ongoing->adding_replicas_count);
    ongoing->removing_replicas =
        without(listing->request, group->replicas, group->replica_count, target, target_count,
                &ongoing->removing_replicas_count);
}

/* A place for the topic, which is given up again when nothing of it moves. */
static struct ONGOING_TOPIC *next_topic(struct listing *listing, const struct topic_image *topic,
                                        size_t partitions)
{
    struct list_partition_reassignments_response *response = listing->response;
    if (response->topics_count == listing->capacity) {
        int32_t capacity = listing->capacity == 0 ? 16 : listing->capacity * 2;
        struct ONGOING_TOPIC *topics =
            request_take(listing->request, (size_t)capacity, sizeof *topics);
        for (int32_t i = 0; i < listing->capacity; i++) {
            topics[i] = response->topics[i];
        }
        response->topics = topics;
        listing->capacity = capacity;
    }
    assert(response->topics_count < listing->capacity);
    struct ONGOING_TOPIC *out = &response->topics[response->topics_count++];
    *out = (struct ONGOING_TOPIC){.name = topic->name};
    out->partitions = request_take(listing->request, partitions + 1, sizeof *out->partitions);
    return out;
}

static bool any_moves(const struct topic_image *topic)
{
    uint32_t i = 0;
    while (i < topic->group_count && !partition_group_moves(&topic->groups[i])) {
        i++;
    }
    return i < topic->group_count;
}

static void list_whole(struct listing *listing, const struct topic_image *topic)
{
    if (!any_moves(topic)) {
        return;
    }
    struct ONGOING_TOPIC *out = next_topic(listing, topic, (size_t)topic->partition_count);
    for (int32_t i = 0; i < topic->partition_count; i++) {
        const struct partition_group *group = topic_image_group(topic, i);
        if (partition_group_moves(group)) {
            add_partition(listing, out, i, group);
        }
    }
}

static void list_asked(struct listing *listing, const struct topic_image *topic,
                       const struct ASKED *asked)
{
    size_t count = asked->partition_indexes_count < 0 ? 0 : (size_t)asked->partition_indexes_count;
    if (!any_moves(topic)) {
        return;
    }
    struct ONGOING_TOPIC *out = next_topic(listing, topic, count);
    for (size_t i = 0; i < count; i++) {
        int32_t partition = asked->partition_indexes[i];
        if (topic_image_has(topic, partition) &&
            partition_group_moves(topic_image_group(topic, partition))) {
            add_partition(listing, out, partition, topic_image_group(topic, partition));
        }
    }
    listing->response->topics_count -= out->partitions_count == 0 ? 1 : 0;
}

static enum status list_moves(const struct controller *controller, struct request *request,
                              struct record_list *records, void *response)
{
    const struct list_partition_reassignments_request *message = request->message;
    struct listing listing = {.request = request, .response = response};
    struct topic_image *topic;
    uint32_t cursor = 0;
    (void)records; /* it changes nothing */
    *listing.response = list_partition_reassignments_response_default;
    listing.response->error_message = VIEW_NULL;
    while (message->topics_count < 0 &&
           (topic = image_next_topic(controller->image, &cursor)) != NULL) {
        list_whole(&listing, topic);
    }
    for (int32_t i = 0; i < message->topics_count; i++) {
        topic = image_topic(controller->image, message->topics[i].name);
        if (topic != NULL) {
            list_asked(&listing, topic, &message->topics[i]);
        }
    }
    return STATUS_OK;
}

static void fail_list(void *response, int16_t error)
{
    struct list_partition_reassignments_response *out = response;
    *out = list_partition_reassignments_response_default;
    out->error_code = error;
    out->error_message = VIEW_NULL;
}

void list_partition_reassignments_refuse(struct request *request, int16_t error)
{
    struct list_partition_reassignments_response response;
    fail_list(&response, error);
    request_answer(request, request->home, &response);
}

void list_partition_reassignments_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct list_partition_reassignments_response), list_moves, fail_list};
    controller_request_start(request, &kind);
}
