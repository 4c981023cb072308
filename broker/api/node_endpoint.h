/* What a client is told of this node: the advertised address of the listener it came in on, which
 * is the only one that it can surely reach. */
#ifndef OTTLA_BROKER_API_NODE_ENDPOINT_H
#define OTTLA_BROKER_API_NODE_ENDPOINT_H

#include <stdint.h>

#include "base/view.h"
#include "broker/api/request.h"

struct node_endpoint {
    int32_t node_id;
    struct view host;
    int32_t port;
    struct view rack; /* null: none */
};

/* This node as the request's client shall see it. The views live as long as the broker. */
struct node_endpoint node_endpoint_for(const struct request *request);

#endif
