/* A Produce request for one partition inside a PeerForward. Fails with NOT_LEADER_OR_FOLLOWER when
 * no leader was found in time, with REQUEST_TIMED_OUT when it is not known what became of it. */
#include "broker/api/produce_forward.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "broker/group/directory.h"
#include "broker/net/connection.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "messages/peer_controller.h"
#include "messages/produce.h"
#include "protocol/codec.h"

enum {
    PRODUCE_VERSION = 13,        /* topics by id */
    AGAIN_MS = 2,
    PATIENCE_MS = 600,           /* the stop does not wait longer */
};

bool produce_forward_is_due(const struct broker *broker)
{
    return broker->in_cluster && atomic_load_explicit(&broker->stopping, memory_order_relaxed);
}

static void look(struct shard_timer *timer);

static void end(struct produce_forward *forward, int16_t error)
{
    assert(!list_contains(&forward->link));
    forward->error = error;
    forward->done(forward);
}

static void look_soon(struct shard *shard)
{
    struct connections *connections = shard->connections;
    connections->forward_timer.run = look;
    if (list_is_empty(&connections->forwards)) {
        shard_timer_stop(&connections->forward_timer);
    } else {
        shard_timer_set(shard, &connections->forward_timer, AGAIN_MS);
    }
}

static void wait(struct produce_forward *forward)
{
    assert(!list_contains(&forward->link));
    list_push_back(&forward->shard->connections->forwards, &forward->link);
    look_soon(forward->shard);
}

static bool read_partition(struct produce_forward *forward,
                           const struct produce_response *response)
{
    if (response->responses_count != 1 || response->responses[0].partition_responses_count != 1) {
        return false;
    }
    const struct produce_response_partition_produce_response *partition =
        &response->responses[0].partition_responses[0];
    forward->error = partition->error_code;
    forward->base_offset = partition->base_offset;
    forward->append_time_ms = partition->log_append_time_ms;
    forward->log_start_offset = partition->log_start_offset;
    return partition->index == forward->partition;
}

static bool read_answer(struct produce_forward *forward, struct view body)
{
    struct peer_forward_response outer;
    struct produce_response response;
    struct arena arena;
    arena_init(&arena, 64 * 1024);
    bool good =
        message_decode(&peer_forward_response_type, 0, &body, &arena, &outer) == STATUS_OK &&
        outer.error_code == KAFKA_NONE &&
        message_decode(&produce_response_type, PRODUCE_VERSION, &outer.body, &arena, &response) ==
            STATUS_OK &&
        read_partition(forward, &response);
    arena_free(&arena);
    return good;
}

static void answered(struct peer_call *call, enum status status, struct slice body)
{
    struct produce_forward *forward = container_of(call, struct produce_forward, call);
    if (status != STATUS_OK && !call->sent) {
        wait(forward);
    } else if (status != STATUS_OK || !read_answer(forward, slice_view(body))) {
        end(forward, KAFKA_REQUEST_TIMED_OUT);
    } else if (forward->error == KAFKA_NOT_LEADER_OR_FOLLOWER) {
        wait(forward); /* it is about to lead */
    } else if (forward->error == KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER) {
        /* The batch before may have come while it did not lead yet, and be sent again behind this
         * one. A producer would give up; it is true that nothing was written, and it asks there. */
        end(forward, KAFKA_NOT_LEADER_OR_FOLLOWER);
    } else {
        end(forward, forward->error);
    }
}

static void encode(const struct produce_forward *forward, struct buffer *out)
{
    struct produce_request_partition_produce_data data = {
        .index = forward->partition,
        .records.bytes = forward->batch,
    };
    struct produce_request_topic_produce_data topic = {
        .name = forward->topic_name,
        .topic_id = forward->topic_id,
        .partition_data = &data,
        .partition_data_count = 1,
    };
    struct produce_request request = produce_request_default;
    struct peer_forward_request outer = peer_forward_request_default;
    struct buffer body = {0};
    request.acks = forward->acks;
    request.timeout_ms = forward->timeout_ms;
    request.topic_data = &topic;
    request.topic_data_count = 1;
    enum status status =
        message_encode_to(&produce_request_type, PRODUCE_VERSION, &request, &body);
    assert(status == STATUS_OK);
    outer.api_key = API_PRODUCE;
    outer.api_version = PRODUCE_VERSION;
    outer.body = buffer_view(&body);
    status = message_encode_to(&peer_forward_request_type, 0, &outer, out);
    assert(status == STATUS_OK);
    (void)status;
    buffer_free(&body);
}

/* The node that leads the group now, to be asked; -1 when there is none. */
static int32_t leader_of(const struct produce_forward *forward)
{
    const struct broker *broker = forward->shard->broker;
    int32_t leader = directory_get(&broker->directory, forward->group_id).leader;
    return leader != broker->node_id && peers_is_alive(broker, leader) ? leader : -1;
}

static void send_to(struct produce_forward *forward, int32_t leader)
{
    struct buffer body = {0};
    assert(leader >= 0 && leader != forward->shard->broker->node_id);
    forward->call = (struct peer_call){
        .node = leader,
        .api_key = API_PEER_FORWARD,
        .timeout_ms = PATIENCE_MS,
        .done = answered,
    };
    encode(forward, &body);
    peers_call(forward->shard, &forward->call, buffer_view(&body));
    buffer_free(&body);
}

static void look(struct shard_timer *timer)
{
    struct connections *connections = container_of(timer, struct connections, forward_timer);
    struct shard *shard = timer->shard;
    struct list late;
    struct list_link *next;
    uint64_t now_ms = clock_monotonic_ms();
    list_init(&late);
    for (struct list_link *at = list_first(&connections->forwards); at != NULL; at = next) {
        struct produce_forward *forward = container_of(at, struct produce_forward, link);
        int32_t leader = leader_of(forward);
        next = list_next(&connections->forwards, at);
        if (leader >= 0 || now_ms >= forward->deadline_ms) {
            list_remove(at);
        }
        if (leader >= 0) {
            send_to(forward, leader);
        } else if (now_ms >= forward->deadline_ms) {
            list_push_back(&late, at);
        }
    }
    look_soon(shard);
    while ((next = list_pop_front(&late)) != NULL) {
        end(container_of(next, struct produce_forward, link), KAFKA_NOT_LEADER_OR_FOLLOWER);
    }
}

static bool others_wait(const struct shard *shard, uint64_t group_id)
{
    const struct list *forwards = &shard->connections->forwards;
    struct list_link *at = list_first(forwards);
    while (at != NULL && container_of(at, struct produce_forward, link)->group_id != group_id) {
        at = list_next(forwards, at);
    }
    return at != NULL;
}

void produce_forward_begin(struct shard *shard, struct produce_forward *forward)
{
    assert(forward->done != NULL && forward->batch.length > 0);
    assert(produce_forward_is_due(shard->broker));
    forward->shard = shard;
    forward->deadline_ms = clock_monotonic_ms() + PATIENCE_MS;
    int32_t leader = leader_of(forward);
    if (leader >= 0 && !others_wait(shard, forward->group_id)) {
        send_to(forward, leader);
    } else {
        wait(forward);
    }
}

void produce_forward_cancel(struct produce_forward *forward)
{
    if (list_contains(&forward->link)) {
        list_remove(&forward->link);
        look_soon(forward->shard);
    }
    peers_cancel(forward->shard, &forward->call);
}
