/* Both ends of passing a request on. At the asker's it is a controller_call with the body as the
 * client sent it; at the leader's it is a request inside (broker/api/request.h), whose answer goes
 * back as it would have gone to the client. */
#include "broker/api/forward.h"

#include <assert.h>

#include "broker/api/controller_call.h"
#include "broker/api/handlers.h"
#include "broker/api/service.h"
#include "broker/controller/image.h"
#include "broker/group/directory.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "messages/peer_controller.h"

struct forward {
    struct controller_call call;
    struct request *request;
};

bool forward_is_needed(const struct request *request)
{
    const struct broker *broker = request->home->broker;
    return broker->in_cluster && !controller_is_here(broker);
}

static void forwarded(struct controller_call *call, int16_t error, struct view body)
{
    struct request *request = container_of(call, struct forward, call)->request;
    request->cancel = NULL;
    if (error == KAFKA_NONE) {
        request_answer_as_is(request, body);
    } else {
        service_find(request->api_key)->refuse(request, error);
    }
}

static void client_gone(struct request *request)
{
    struct forward *forward = request->state;
    controller_call_hurry(&forward->call);
}

void forward_to_controller(struct request *request)
{
    assert(request->connection != NULL);
    const struct service *service = service_find(request->api_key);
    assert(service->refuse != NULL);
    struct forward *forward = request_take(request, 1, sizeof *forward);
    forward->request = request;
    forward->call = (struct controller_call){.api_key = request->api_key,
                                             .api_version = request->api_version,
                                             .client_id = request->client_id,
                                             .body = request->body,
                                             .repeatable = service->reads,
                                             .done = forwarded};
    request->state = forward;
    request->cancel = client_gone;
    controller_call(request->home, &forward->call);
}

bool forward_after_all(struct request *request)
{
    if (request->connection == NULL) {
        request->not_controller = true;
        request_finish_silently(request, request->home, false);
        return true;
    }
    bool may_pass = service_find(request->api_key)->refuse != NULL;
    if (may_pass && request->home->broker->in_cluster && !request->connection->closed) {
        forward_to_controller(request);
        return true;
    }
    return false;
}

/* ---- At the leader's ----------------------------------------------------------------------- */

static void answer_not_controller(struct request *request)
{
    struct peer_forward_response response = peer_forward_response_default;
    const struct broker *broker = request->home->broker;
    int32_t leader = directory_get(&broker->directory, METADATA_GROUP_ID).leader;
    response.error_code = KAFKA_NOT_CONTROLLER;
    bool is_elsewhere = leader != broker->node_id && peers_is_alive(broker, leader);
    response.leader_id = is_elsewhere ? leader : -1;
    response.body = VIEW_EMPTY;
    request_answer(request, request->home, &response);
}

static void came_home(struct request *inside)
{
    struct request *request = inside->asker;
    struct peer_forward_response response = peer_forward_response_default;
    if (inside->not_controller) {
        answer_not_controller(request);
    } else {
        response.error_code = inside->silent ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_NONE;
        response.metadata_offset = metadata_delivered(request->home->broker);
        response.body = request_answer_body(inside);
        request_answer(request, request->home, &response);
    }
    request_free(inside);
}

void peer_forward_handle(struct request *request)
{
    const struct peer_forward_request *message = request->message;
    const struct inside_request inside = {.api_key = message->api_key,
                                          .api_version = message->api_version,
                                          .client_id = message->client_id,
                                          .body = message->body,
                                          .came_home = came_home,
                                          .asker = request};
    if (message->api_key != API_PRODUCE && !controller_is_here(request->home->broker)) {
        answer_not_controller(request);
    } else if (!request_run_inside(request->home, &inside)) {
        struct peer_forward_response response = peer_forward_response_default;
        response.error_code = KAFKA_INVALID_REQUEST;
        response.body = VIEW_EMPTY;
        request_answer(request, request->home, &response);
    }
}
