/* FindCoordinator: on which node a group's coordinator is: who leads the group's partition of
 * __consumer_offsets, a topic that is made when it is not there yet. COORDINATOR_NOT_AVAILABLE
 * while nobody leads it; clients ask again. */
#include <assert.h>

#include "broker/api/auto_create.h"
#include "broker/api/group_call.h"
#include "broker/api/handlers.h"
#include "broker/api/node_endpoint.h"
#include "broker/api/request.h"
#include "broker/config/topic_name.h"
#include "broker/controller/topic_image.h"
#include "broker/group/offsets_group.h"
#include "messages/errors.h"
#include "messages/find_coordinator.h"

enum { KEY_GROUP = 0, KEY_TRANSACTION = 1, VERSION_BATCHED = 4 };

struct find_state {
    struct auto_create create;
};

/* Where the coordinator of the key is; an error with its message when nobody can be told. */
static int16_t find(const struct request *request, struct view key,
                    struct node_endpoint *endpoint, struct view *message)
{
    const struct find_coordinator_request *asked = request->message;
    if (asked->key_type == KEY_TRANSACTION) {
        *message = VIEW_LITERAL("Transactions are not offered by this broker");
        return KAFKA_INVALID_REQUEST;
    }
    if (asked->key_type != KEY_GROUP) {
        *message = VIEW_LITERAL("Coordinators of this type are not offered by this broker");
        return KAFKA_INVALID_REQUEST;
    }
    const struct topic_image *topic = group_call_topic(request);
    if (topic != NULL) {
        int32_t partition = offsets_partition_for(key, topic->partition_count);
        uint64_t group_id = topic_image_group(topic, partition)->id;
        if (node_endpoint_of(request, told_leader_of(request, group_id).id, endpoint)) {
            *message = VIEW_NULL;
            return KAFKA_NONE;
        }
    }
    *message = VIEW_LITERAL("The coordinator is not available.");
    return KAFKA_COORDINATOR_NOT_AVAILABLE;
}

static void fill_one(const struct request *request, struct find_coordinator_response *response)
{
    const struct find_coordinator_request *asked = request->message;
    struct node_endpoint node = {.node_id = -1, .port = -1, .host = VIEW_EMPTY};
    struct view message;
    response->error_code = find(request, asked->key, &node, &message);
    response->error_message = response->error_code == KAFKA_NONE ? VIEW_LITERAL("NONE") : message;
    response->node_id = node.node_id;
    response->port = node.port;
    response->host = node.host;
}

static void fill_batch(struct request *request, struct find_coordinator_response *response)
{
    const struct find_coordinator_request *asked = request->message;
    size_t count = asked->coordinator_keys_count > 0 ? (size_t)asked->coordinator_keys_count : 0;
    response->coordinators =
        request_elements(request, count, &find_coordinator_response_coordinator_default,
                         sizeof *response->coordinators);
    response->coordinators_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct find_coordinator_response_coordinator *out = &response->coordinators[i];
        struct node_endpoint node = {.node_id = -1, .port = -1, .host = VIEW_EMPTY};
        out->key = asked->coordinator_keys[i];
        out->error_code = find(request, out->key, &node, &out->error_message);
        out->error_message = out->error_code == KAFKA_NONE ? VIEW_EMPTY : out->error_message;
        out->node_id = node.node_id;
        out->port = node.port;
        out->host = node.host;
    }
}

static void answer(struct auto_create *create)
{
    struct request *request = create->request;
    struct find_coordinator_response response = find_coordinator_response_default;
    if (request->api_version < VERSION_BATCHED) {
        fill_one(request, &response);
    } else {
        fill_batch(request, &response);
    }
    request_answer(request, request->home, &response);
}

void find_coordinator_handle(struct request *request)
{
    const struct find_coordinator_request *asked = request->message;
    struct find_state *state = request_take(request, 1, sizeof *state);
    assert(request->message != NULL);
    request->state = state;
    auto_create_begin(&state->create, request);
    struct view name = VIEW_LITERAL(TOPIC_CONSUMER_OFFSETS);
    if (asked->key_type == KEY_GROUP && group_call_topic(request) == NULL) {
        auto_create_add(&state->create, name);
    }
    auto_create_go(&state->create, answer);
}
