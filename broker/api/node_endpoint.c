/* The advertised side of this node's listener and of its namesakes on other brokers. Owns nothing;
 * what is not known is not told. */
#include "broker/api/node_endpoint.h"

#include <assert.h>

#include "broker/config/listeners.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/image.h"
#include "broker/group/directory.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "messages/errors.h"

enum { FIRST_LISTENER_ERROR_VERSION = 6 };

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

static const struct cluster_image *cluster_of(const struct request *request)
{
    assert(request->home->replicas->cluster != NULL);
    return request->home->replicas->cluster;
}

/* The broker on the client's listener; false when it has none of that name. */
static bool on_listener(const struct request *request, const struct cluster_broker *broker,
                        struct node_endpoint *endpoint)
{
    const struct cluster_endpoint *found =
        cluster_broker_endpoint(broker, request->connection->listener->name);
    if (found == NULL) {
        return false;
    }
    *endpoint = (struct node_endpoint){
        .node_id = broker->id,
        .host = found->host,
        .port = found->port,
        .rack = broker->rack,
        .is_fenced = broker->is_fenced,
    };
    return true;
}

bool node_endpoint_of(const struct request *request, int32_t node_id,
                      struct node_endpoint *endpoint)
{
    if (node_id == request->home->broker->node_id) {
        *endpoint = node_endpoint_for(request);
        return true;
    }
    const struct cluster_broker *broker = cluster_image_find(cluster_of(request), node_id);
    return broker != NULL && !broker->is_fenced && on_listener(request, broker, endpoint);
}

struct node_endpoint *node_endpoint_all(struct request *request, bool with_fenced,
                                        int32_t *count)
{
    const struct cluster_image *cluster = cluster_of(request);
    int32_t self = request->home->broker->node_id;
    struct node_endpoint *all =
        request_take(request, (size_t)cluster->broker_count + 1, sizeof *all);
    bool self_told = false;
    *count = 0;
    for (int32_t i = 0; i < cluster->broker_count; i++) {
        const struct cluster_broker *broker = &cluster->brokers[i];
        if (!self_told && broker->id >= self) {
            all[(*count)++] = node_endpoint_for(request);
            self_told = true;
        }
        bool is_wanted = broker->id != self && (with_fenced || !broker->is_fenced);
        if (is_wanted && on_listener(request, broker, &all[*count])) {
            (*count)++;
        }
    }
    if (!self_told) {
        all[(*count)++] = node_endpoint_for(request);
    }
    return all;
}

int32_t node_endpoint_controller(const struct request *request)
{
    int32_t leader = told_leader_of(request, METADATA_GROUP_ID).id;
    return leader >= 0 ? leader : request->home->broker->node_id;
}

/* Why a leader that somebody told of is not told on: a client that asks by listener can be told
 * that this one is missing. */
static int16_t error_of(const struct request *request, int32_t leader)
{
    const struct cluster_broker *broker = cluster_image_find(cluster_of(request), leader);
    bool lacks_listener = broker != NULL && !broker->is_fenced &&
                          peers_is_alive(request->home->broker, leader);
    return lacks_listener && request->api_version >= FIRST_LISTENER_ERROR_VERSION
               ? KAFKA_LISTENER_NOT_FOUND
               : KAFKA_LEADER_NOT_AVAILABLE;
}

struct told_leader told_leader_of(const struct request *request, uint64_t group_id)
{
    const struct broker *broker = request->home->broker;
    struct group_leader leader = directory_get(&broker->directory, group_id);
    struct told_leader told = {-1, leader.epoch, KAFKA_LEADER_NOT_AVAILABLE};
    struct node_endpoint endpoint;
    if (leader.leader < 0) {
        return told;
    }
    if (leader.leader == broker->node_id) {
        return (struct told_leader){leader.leader, leader.epoch, KAFKA_NONE};
    }
    /* A client that is sent to a node that is silent waits there for as long as it has patience;
     * one that is told of no leader asks again soon. */
    if (peers_is_alive(broker, leader.leader) &&
        node_endpoint_of(request, leader.leader, &endpoint)) {
        told.id = leader.leader;
        told.error = KAFKA_NONE;
    } else {
        told.error = error_of(request, leader.leader);
    }
    return told;
}

void told_nodes_add(struct told_nodes *nodes, struct request *request, int32_t node_id)
{
    struct node_endpoint endpoint;
    for (int32_t i = 0; i < nodes->count; i++) {
        if (nodes->items[i].node_id == node_id) {
            return;
        }
    }
    if (node_id < 0 || !node_endpoint_of(request, node_id, &endpoint)) {
        return;
    }
    if (nodes->items == NULL) {
        size_t most = (size_t)cluster_of(request)->broker_count + 1;
        nodes->items = request_take(request, most, sizeof *nodes->items);
    }
    nodes->items[nodes->count++] = endpoint;
}
