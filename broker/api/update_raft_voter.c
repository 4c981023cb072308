/* UpdateRaftVoter (KIP-853): a voter on metadata says where it is reached. Served on listeners of
 * controllers by the node that leads the metadata log, and to nodes through PeerForward; others
 * answer who leads. */
#include <assert.h>

#include "broker/api/controller_request.h"
#include "broker/api/forward.h"
#include "broker/api/handlers.h"
#include "broker/controller/image.h"
#include "broker/group/directory.h"
#include "broker/group/group.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "broker/server/cluster.h"
#include "broker/server/voter_address.h"
#include "messages/errors.h"
#include "messages/update_raft_voter.h"

#define RESPONSE update_raft_voter_response

/* Who leads, as this shard knows. */
static void fill_leader(const struct shard *shard, struct RESPONSE *response)
{
    struct group_leader leader = directory_get(&shard->broker->directory, METADATA_GROUP_ID);
    int count;
    const struct quorum_voter *voters = cluster_voters(shard, &count);
    response->current_leader.leader_id = leader.leader;
    response->current_leader.leader_epoch = leader.epoch;
    for (int i = 0; i < count; i++) {
        if (voters[i].node_id == leader.leader) {
            response->current_leader.host = voters[i].host;
            response->current_leader.port = voters[i].port;
        }
    }
}

/* A client names the epoch that it believes in; nodes mean whoever leads. */
static enum kafka_error check_epoch(const struct request *request, const struct shard *shard)
{
    const struct update_raft_voter_request *message = request->message;
    const struct group *group = replicas_group(shard->replicas, METADATA_GROUP_ID);
    assert(group != NULL && shard->number == 0);
    int32_t epoch = (int32_t)raft_term(group->raft);
    if (request->connection == NULL || message->current_leader_epoch == epoch) {
        return KAFKA_NONE;
    }
    return message->current_leader_epoch < epoch ? KAFKA_FENCED_LEADER_EPOCH
                                                 : KAFKA_UNKNOWN_LEADER_EPOCH;
}

static enum status make(const struct controller *controller, struct request *request,
                        struct record_list *records, void *response)
{
    const struct update_raft_voter_request *message = request->message;
    const struct broker *broker = request->home->broker;
    struct RESPONSE *out = response;
    struct view listener = VIEW_NULL;
    struct view host;
    uint16_t port;
    assert(message != NULL);
    *out = update_raft_voter_response_default;
    fill_leader(&broker->shards[0], out);
    voter_address_own(broker, &listener, &host, &port);
    enum kafka_error error = check_epoch(request, &broker->shards[0]);
    if (message->cluster_id.data != NULL && !view_is(message->cluster_id, broker->cluster_id)) {
        error = KAFKA_INCONSISTENT_CLUSTER_ID;
    }
    if (error == KAFKA_NONE) {
        bool is_itself = request->connection == NULL;
        error = controller_update_voter(controller, message, is_itself, listener, records);
    }
    out->error_code = (int16_t)error;
    return STATUS_OK;
}

static void fail(void *response, int16_t error)
{
    struct RESPONSE *out = response;
    assert(error != KAFKA_NONE);
    *out = update_raft_voter_response_default;
    out->error_code = error == KAFKA_NOT_CONTROLLER ? KAFKA_NOT_LEADER_OR_FOLLOWER : error;
}

void update_raft_voter_handle(struct request *request)
{
    static const struct controller_request_kind kind = {sizeof(struct RESPONSE), make, fail, NULL};
    if (request->connection == NULL || !forward_is_needed(request)) {
        controller_request_start(request, &kind);
        return;
    }
    struct RESPONSE response = update_raft_voter_response_default;
    response.error_code = KAFKA_NOT_LEADER_OR_FOLLOWER;
    fill_leader(request->home, &response);
    request_answer(request, request->home, &response);
}
