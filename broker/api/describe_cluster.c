/* DescribeCluster: the nodes and the cluster's id (KIP-700, KIP-919). */
#include <assert.h>

#include "broker/api/authorized.h"
#include "broker/api/handlers.h"
#include "broker/api/node_endpoint.h"
#include "broker/api/request.h"
#include "broker/server/broker.h"
#include "messages/describe_cluster.h"
#include "messages/errors.h"

enum { ENDPOINT_BROKERS = 1, ENDPOINT_CONTROLLERS = 2 };

void describe_cluster_handle(struct request *request)
{
    const struct describe_cluster_request *message = request->message;
    struct describe_cluster_response response = describe_cluster_response_default;
    assert(request->message != NULL);
    response.endpoint_type = message->endpoint_type;
    response.cluster_id = VIEW_EMPTY;
    if (message->endpoint_type != ENDPOINT_BROKERS) {
        bool known = message->endpoint_type == ENDPOINT_CONTROLLERS;
        response.error_code =
            known ? KAFKA_MISMATCHED_ENDPOINT_TYPE : KAFKA_UNSUPPORTED_ENDPOINT_TYPE;
        response.error_message = VIEW_LITERAL("This listener is one of brokers");
        request_answer(request, request->home, &response);
        return;
    }
    struct node_endpoint self = node_endpoint_for(request);
    struct describe_cluster_response_describe_cluster_broker broker = {
        .broker_id = self.node_id, .host = self.host, .port = self.port, .rack = self.rack};
    response.cluster_id = view_text(request->home->broker->cluster_id);
    response.controller_id = self.node_id;
    response.brokers = &broker;
    response.brokers_count = 1;
    if (message->include_cluster_authorized_operations) {
        response.cluster_authorized_operations = AUTHORIZED_CLUSTER;
    }
    request_answer(request, request->home, &response);
}
