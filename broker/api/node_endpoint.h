/* What a client is told of the cluster's nodes: their advertised addresses on the listener that it
 * came in on itself, which are the only ones that it can surely reach. Other brokers are those of
 * the shard's cluster image; one that is fenced, or that has no listener of that name, is not told.
 *
 * The views are borrowed from the broker and from the cluster image: they are to be encoded before
 * the handler returns to its loop. */
#ifndef OTTLA_BROKER_API_NODE_ENDPOINT_H
#define OTTLA_BROKER_API_NODE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"
#include "broker/api/request.h"

struct node_endpoint {
    int32_t node_id;
    struct view host;
    int32_t port;
    struct view rack; /* null: none */
    bool is_fenced;   /* told only where it is asked for */
};

/* This node as the request's client shall see it. */
struct node_endpoint node_endpoint_for(const struct request *request);

/* A node as the request's client shall see it, this one included; false when it is not told. */
bool node_endpoint_of(const struct request *request, int32_t node_id,
                      struct node_endpoint *endpoint);

/* All nodes that are told, by id, in the request's memory; this one is always among them. Those
 * that are fenced only when `with_fenced`. */
struct node_endpoint *node_endpoint_all(struct request *request, bool with_fenced,
                                        int32_t *count);

/* The node that leads the metadata log when it is one of those that are told, else this one. */
int32_t node_endpoint_controller(const struct request *request);

/* Who leads a partition group, as the request's client is told. */
struct told_leader {
    int32_t id;    /* -1: nobody who can be told */
    int32_t epoch; /* -1: none yet */
    int16_t error; /* Kafka's, for a partition without a leader; else none */
};

/* The leader as the directory has it; one that is lost, fenced or without the client's listener
 * counts as none. */
struct told_leader told_leader_of(const struct request *request, uint64_t group_id);

/* Nodes that an answer names as leaders, each once (KIP-951). Starts zeroed. */
struct told_nodes {
    struct node_endpoint *items;
    int32_t count;
};

/* Adds the node, unless it is there or is not told. */
void told_nodes_add(struct told_nodes *nodes, struct request *request, int32_t node_id);

#endif
