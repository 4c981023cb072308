/* PeerHello: another node opens a link to this one. From then on its connection is the node's; who
 * belongs elsewhere is told why, and both sides have it in their logs. */
#include <assert.h>

#include "base/log.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/errors.h"
#include "messages/peer.h"
#include "protocol/api_table.h"

/* Fills in what is wrong with it, if anything is. */
static void judge(struct request *request, const struct peer_hello_request *hello,
                  struct peer_hello_response *response)
{
    const struct broker *broker = request->home->broker;
    struct arena *arena = &request->arena;
    if (!view_is(hello->cluster_id, broker->cluster_id)) {
        response->error_code = KAFKA_INCONSISTENT_CLUSTER_ID;
        response->error_message =
            arena_format(arena, "node %d belongs to cluster %s, node %d to cluster %.*s",
                         broker->node_id, broker->cluster_id, hello->node_id,
                         VIEW_PRINT(hello->cluster_id));
    } else if (hello->node_id == broker->node_id) {
        response->error_code = KAFKA_DUPLICATE_BROKER_REGISTRATION;
        response->error_message = arena_format(arena, "both nodes have node.id %d",
                                               broker->node_id);
    } else if (hello->wanted_id != broker->node_id) {
        response->error_code = KAFKA_INVALID_REQUEST;
        response->error_message = arena_format(arena, "this is node %d, not node %d",
                                               broker->node_id, hello->wanted_id);
    } else if (!broker->in_cluster && !peers_any(broker)) {
        response->error_code = KAFKA_INVALID_REQUEST;
        response->error_message = arena_format(
            arena, "node %d stands alone: its controller.quorum.voters names nobody else",
            broker->node_id);
    } else if (hello->node_id < 0 || hello->node_id == INT32_MAX ||
               hello->shard_count < 1 || request->connection->peer != NULL) {
        response->error_code = KAFKA_INVALID_REQUEST;
        response->error_message = VIEW_LITERAL("this hello makes no sense");
    }
}

static void let_in(struct request *request, const struct peer_hello_request *hello,
                   struct peer_hello_response *response)
{
    struct broker *broker = request->home->broker;
    struct liveness_node *node = liveness_add(&broker->liveness, hello->node_id);
    if (node == NULL) {
        response->error_code = KAFKA_POLICY_VIOLATION;
        response->error_message = VIEW_LITERAL("the cluster has too many nodes");
        return;
    }
    if (!liveness_join(broker, node, hello->incarnation, clock_monotonic_ms())) {
        response->error_code = KAFKA_DUPLICATE_BROKER_REGISTRATION;
        response->error_message = arena_format(
            &request->arena, "another process with node.id %d is connected", hello->node_id);
        return;
    }
    uint32_t home = (uint32_t)hello->shard % (uint32_t)broker->shard_count;
    connection_becomes_peer(request->connection, node, &broker->shards[home]);
    const struct place place = place_of(hello->host, hello->port);
    peers_came(broker, hello->node_id, hello->shard, hello->shard_count, &place);
}

void peer_hello_handle(struct request *request)
{
    const struct broker *broker = request->home->broker;
    const struct peer_hello_request *hello = request->message;
    struct peer_hello_response response = peer_hello_response_default;
    assert(request->api_key == API_PEER_HELLO);
    response.error_message = VIEW_NULL;
    response.cluster_id = view_text(broker->cluster_id);
    response.node_id = broker->node_id;
    response.incarnation = broker->self.incarnation;
    response.keeps_metadata = atomic_load(&broker->keeps_metadata);
    judge(request, hello, &response);
    if (response.error_code == KAFKA_NONE) {
        let_in(request, hello, &response);
    }
    if (response.error_code != KAFKA_NONE) {
        bool is_wrong = hello->shard == 0 && hello->wanted_id == broker->node_id;
        log_at(is_wrong ? LOG_WARN : LOG_DEBUG, "peer",
               "refused the link of a node at %s: %.*s", request->connection->address,
               VIEW_PRINT(response.error_message));
        request->close_after = true;
    }
    request_answer(request, request->home, &response);
}
