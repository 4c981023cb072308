/* FindCoordinator: on which node a group's coordinator is. On one node it is this one; what is left
 * to do is to see that __consumer_offsets is there, since the client's next request needs it. */
#include <assert.h>

#include "broker/api/auto_create.h"
#include "broker/api/handlers.h"
#include "broker/api/node_endpoint.h"
#include "broker/api/request.h"
#include "broker/config/topic_name.h"
#include "broker/group/replicas.h"
#include "messages/errors.h"
#include "messages/find_coordinator.h"

enum { KEY_GROUP = 0, KEY_TRANSACTION = 1, VERSION_BATCHED = 4 };

struct find_state {
    struct auto_create create;
};

static int16_t key_error(const struct request *request, struct view *message)
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
    struct view name = VIEW_LITERAL(TOPIC_CONSUMER_OFFSETS);
    if (replicas_topic(request->home->replicas, name) == NULL) {
        *message = VIEW_LITERAL("The coordinator is not available.");
        return KAFKA_COORDINATOR_NOT_AVAILABLE;
    }
    *message = VIEW_NULL;
    return KAFKA_NONE;
}

static void fill_one(const struct request *request, struct find_coordinator_response *response)
{
    struct view message;
    response->error_code = key_error(request, &message);
    response->error_message = response->error_code == KAFKA_NONE ? VIEW_LITERAL("NONE") : message;
    response->node_id = -1;
    response->port = -1;
    if (response->error_code == KAFKA_NONE) {
        struct node_endpoint self = node_endpoint_for(request);
        response->node_id = self.node_id;
        response->host = self.host;
        response->port = self.port;
    }
}

static void fill_batch(struct request *request, struct find_coordinator_response *response)
{
    const struct find_coordinator_request *asked = request->message;
    size_t count = asked->coordinator_keys_count > 0 ? (size_t)asked->coordinator_keys_count : 0;
    struct node_endpoint self = node_endpoint_for(request);
    response->coordinators =
        request_elements(request, count, &find_coordinator_response_coordinator_default,
                         sizeof *response->coordinators);
    response->coordinators_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct find_coordinator_response_coordinator *out = &response->coordinators[i];
        out->key = asked->coordinator_keys[i];
        out->error_code = key_error(request, &out->error_message);
        bool found = out->error_code == KAFKA_NONE;
        out->error_message = found ? VIEW_EMPTY : out->error_message;
        out->node_id = found ? self.node_id : -1;
        out->port = found ? self.port : -1;
        out->host = found ? self.host : VIEW_EMPTY;
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
    if (asked->key_type == KEY_GROUP && replicas_topic(request->home->replicas, name) == NULL) {
        auto_create_add(&state->create, name);
    }
    auto_create_go(&state->create, answer);
}
