/* The advertised side of a connection's listener. Owns nothing. */
#include "broker/api/node_endpoint.h"

#include <assert.h>

#include "broker/config/listeners.h"
#include "broker/server/broker.h"

struct node_endpoint node_endpoint_for(const struct request *request)
{
    const struct broker *broker = request->home->broker;
    const struct listener *listener = request->connection->listener;
    assert(listener != NULL);
    assert(!listener->is_controller);
    return (struct node_endpoint){
        .node_id = broker->node_id,
        .host = listener->advertised_host,
        .port = listener->advertised_port != 0 ? listener->advertised_port : listener->port,
        .rack = view_text(broker->rack),
    };
}
