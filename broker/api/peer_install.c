/* PeerInstall and PeerRead: another node's leader wants this replica to catch up from its logs, and
 * a replica reads them. Both run on the group's shard. */
#include <assert.h>

#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/group/install.h"
#include "broker/group/replicas.h"
#include "broker/group/throttle.h"
#include "broker/peer/liveness.h"
#include "broker/server/broker.h"
#include "messages/errors.h"
#include "messages/peer_install.h"

enum { READ_BYTES_MAX = 8 * 1024 * 1024 };

struct install_state {
    struct install_order order;
    struct request *request;
    struct shard *shard;         /* of the group */
};

static void answer_install(struct install_state *state, int16_t error)
{
    struct peer_install_response response = {.error_code = error};
    request_answer(state->request, state->shard, &response);
}

static void install_done(struct install_order *order, int16_t error)
{
    answer_install(container_of(order, struct install_state, order), error);
}

static bool fill_order(struct install_state *state)
{
    struct request *request = state->request;
    const struct peer_install_request *wire = request->message;
    size_t member_count = (size_t)wire->members_count;
    size_t partition_count = (size_t)wire->partitions_count;
    if (wire->members_count < 1 || wire->members_count > RAFT_MEMBERS_MAX ||
        wire->partitions_count < 0 || wire->index < 1 || wire->index_term < 1 || wire->term < 1) {
        return false;
    }
    struct raft_member *members = request_take(request, member_count, sizeof *members);
    for (size_t i = 0; i < member_count; i++) {
        members[i] = (struct raft_member){.id = wire->members[i].node_id,
                                          .flags = (uint8_t)wire->members[i].flags};
    }
    struct install_partition *partitions =
        request_take(request, partition_count, sizeof *partitions);
    for (size_t i = 0; i < partition_count; i++) {
        const struct peer_install_request_partition *from = &wire->partitions[i];
        if (from->log_start_offset < 0 || from->end_offset < from->log_start_offset) {
            return false;
        }
        partitions[i] = (struct install_partition){
            from->partition_index, from->log_start_offset, from->end_offset};
    }
    state->order = (struct install_order){
        .leader = liveness_id(request->connection->peer),
        .term = (uint64_t)wire->term,
        .index = (uint64_t)wire->index,
        .index_term = (uint64_t)wire->index_term,
        .members = members,
        .member_count = member_count,
        .partitions = partitions,
        .partition_count = partition_count,
        .done = install_done,
    };
    return true;
}

static void install_arrived(struct shard *shard, struct mail *mail)
{
    struct request *request = request_of_mail(mail);
    struct install_state *state = request->state;
    const struct peer_install_request *wire = request->message;
    struct group *group = replicas_group(shard->replicas, (uint64_t)wire->group);
    state->shard = shard;
    if (group == NULL) {
        answer_install(state, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    } else {
        install_take(group, &state->order);
    }
}

void peer_install_handle(struct request *request)
{
    const struct peer_install_request *wire = request->message;
    struct install_state *state = request_take(request, 1, sizeof *state);
    assert(request->connection->peer != NULL);
    request->state = state;
    state->request = request;
    state->shard = request->home;
    if (!fill_order(state)) {
        answer_install(state, KAFKA_INVALID_REQUEST);
        return;
    }
    request_send(request, broker_shard_of(request->home->broker, (uint64_t)wire->group),
                 install_arrived);
}

/* Reads at no more than the leader's rate; *wait_ms is above 0 when it is too early. */
static int16_t read_held(struct group *group, const struct peer_read_request *wire,
                         size_t most, int32_t *wait_ms, struct buffer *batches)
{
    int32_t partition = wire->partition_index;
    *wait_ms = (int32_t)throttle_wait_ms(group, partition, THROTTLE_LEADER);
    if (*wait_ms > 0) {
        return KAFKA_NONE;
    }
    most = throttle_bytes(group, partition, THROTTLE_LEADER, most);
    int16_t error = install_read(group, partition, wire->offset, most, batches);
    throttle_count(group, partition, THROTTLE_LEADER, batches->length);
    return error;
}

static void read_arrived(struct shard *shard, struct mail *mail)
{
    struct request *request = request_of_mail(mail);
    const struct peer_read_request *wire = request->message;
    struct peer_read_response response = peer_read_response_default;
    struct group *group = replicas_group(shard->replicas, (uint64_t)wire->group);
    struct buffer batches = {0};
    size_t most = wire->max_bytes < 1 ? 1 : (size_t)wire->max_bytes;
    most = most > READ_BYTES_MAX ? READ_BYTES_MAX : most;
    response.error_code = group == NULL || wire->partition_index < 0
                              ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                              : read_held(group, wire, most, &response.wait_ms, &batches);
    response.batches = buffer_view(&batches);
    request_answer(request, shard, &response);
    buffer_free(&batches);
}

void peer_read_handle(struct request *request)
{
    const struct peer_read_request *wire = request->message;
    assert(request->connection->peer != NULL);
    request_send(request, broker_shard_of(request->home->broker, (uint64_t)wire->group),
                 read_arrived);
}
