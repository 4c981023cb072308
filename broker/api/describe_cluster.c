/* DescribeCluster: the nodes and the cluster's id (KIP-700, KIP-919). On a listener of brokers
 * these are the brokers, on one of controllers the voters on metadata; who asks for the other kind
 * is told that this is the wrong place. */
#include <assert.h>

#include "broker/api/authorized.h"
#include "broker/api/handlers.h"
#include "broker/api/node_endpoint.h"
#include "broker/api/request.h"
#include "broker/controller/image.h"
#include "broker/group/directory.h"
#include "broker/server/broker.h"
#include "broker/server/cluster.h"
#include "messages/describe_cluster.h"
#include "messages/errors.h"

#define NODE describe_cluster_response_describe_cluster_broker

enum { ENDPOINT_BROKERS = 1, ENDPOINT_CONTROLLERS = 2 };

static void add_brokers(struct request *request, struct describe_cluster_response *response)
{
    const struct describe_cluster_request *message = request->message;
    int32_t count;
    const struct node_endpoint *nodes =
        node_endpoint_all(request, message->include_fenced_brokers, &count);
    response->brokers = request_take(request, (size_t)count, sizeof *response->brokers);
    response->brokers_count = count;
    for (int32_t i = 0; i < count; i++) {
        response->brokers[i] = (struct NODE){.broker_id = nodes[i].node_id,
                                             .host = nodes[i].host,
                                             .port = nodes[i].port,
                                             .rack = nodes[i].rack,
                                             .is_fenced = nodes[i].is_fenced};
    }
    response->controller_id = node_endpoint_controller(request);
}

static void add_controllers(struct request *request, struct describe_cluster_response *response)
{
    const struct broker *broker = request->home->broker;
    int count;
    const struct quorum_voter *voters = cluster_voters(request->home, &count);
    response->brokers = request_take(request, (size_t)count, sizeof *response->brokers);
    response->brokers_count = count;
    for (int i = 0; i < count; i++) {
        response->brokers[i] = (struct NODE){
            .broker_id = voters[i].node_id, .host = voters[i].host, .port = voters[i].port};
    }
    response->controller_id = directory_get(&broker->directory, METADATA_GROUP_ID).leader;
}

/* Refuses a question for the other kind of nodes, or for one that there is not. */
static bool check_type(const struct request *request, struct describe_cluster_response *response)
{
    const struct describe_cluster_request *message = request->message;
    bool here_controllers = request->connection->listener->is_controller;
    int8_t offered = here_controllers ? ENDPOINT_CONTROLLERS : ENDPOINT_BROKERS;
    if (message->endpoint_type == offered) {
        return true;
    }
    bool known = message->endpoint_type == ENDPOINT_CONTROLLERS ||
                 message->endpoint_type == ENDPOINT_BROKERS;
    response->cluster_id = VIEW_EMPTY;
    response->error_code =
        known ? KAFKA_MISMATCHED_ENDPOINT_TYPE : KAFKA_UNSUPPORTED_ENDPOINT_TYPE;
    response->error_code =
        request->api_version == 0 ? KAFKA_INVALID_REQUEST : response->error_code;
    response->error_message = here_controllers
                                  ? VIEW_LITERAL("This listener is one of controllers")
                                  : VIEW_LITERAL("This listener is one of brokers");
    return false;
}

void describe_cluster_handle(struct request *request)
{
    const struct describe_cluster_request *message = request->message;
    struct describe_cluster_response response = describe_cluster_response_default;
    assert(request->message != NULL);
    response.endpoint_type = message->endpoint_type;
    if (check_type(request, &response)) {
        response.cluster_id = view_text(request->home->broker->cluster_id);
        if (message->endpoint_type == ENDPOINT_CONTROLLERS) {
            add_controllers(request, &response);
        } else {
            add_brokers(request, &response);
        }
        if (message->include_cluster_authorized_operations) {
            response.cluster_authorized_operations = AUTHORIZED_CLUSTER;
        }
    }
    request_answer(request, request->home, &response);
}
