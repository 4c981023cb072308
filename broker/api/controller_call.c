/* One call: waits to be tried, is with a peer, is run here, or waits for the metadata; in each of
 * the four somebody else holds it. The answer's block is held until it is handed over. Whatever
 * goes wrong on the way leads back to the first of the four, until the time is over. */
#include "broker/api/controller_call.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/config/listeners.h"
#include "broker/controller/image.h"
#include "broker/group/directory.h"
#include "broker/server/broker.h"
#include "broker/server/cluster.h"
#include "io/clock.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "messages/peer_controller.h"

enum { TRY_AGAIN_MS = 50 };

bool controller_is_here(const struct broker *broker)
{
    return directory_get(&broker->directory, METADATA_GROUP_ID).leader == broker->node_id;
}

static void end(struct controller_call *call, int16_t error)
{
    struct block *answer = call->answer;
    call->answer = NULL;
    call->done(call, error, call->answer_body);
    block_unref(answer);
}

static void set_timer(struct shard *shard, unsigned wait_ms)
{
    struct shard_timer *timer = &shard->controller_calls->timer;
    if (wait_ms == 0 || !timer->set) {
        shard_timer_set(shard, timer, wait_ms);
    }
}

static void wait_to_try(struct controller_call *call, unsigned wait_ms)
{
    struct controller_calls *calls = call->shard->controller_calls;
    if (calls->ended) {
        end(call, KAFKA_NOT_CONTROLLER);
        return;
    }
    list_push_back(&calls->waiting, &call->link);
    set_timer(call->shard, wait_ms);
}

/* Or it took too long; then what the leader did is told all the same. */
static void applied_here(struct metadata_wait *wait, int16_t error)
{
    (void)error;
    end(container_of(wait, struct controller_call, wait), KAFKA_NONE);
}

/* The answer is given when this node too has what it speaks of. */
static void answered(struct controller_call *call, struct view body, int64_t metadata_offset)
{
    call->answer_body = body;
    call->metadata_offset = metadata_offset;
    call->wait = (struct metadata_wait){
        .offset = metadata_offset,
        .deadline_ms = clock_monotonic_ms() + CONTROLLER_CALL_MS,
        .done = applied_here};
    if (metadata_delivered(call->shard->broker) >= metadata_offset) {
        end(call, KAFKA_NONE);
    } else {
        metadata_await(call->shard, &call->wait);
    }
}

/* ---- On this node -------------------------------------------------------------------------- */

static void came_home(struct request *inside)
{
    struct controller_call *call = inside->asker;
    if (inside->not_controller) {
        request_free(inside);
        wait_to_try(call, TRY_AGAIN_MS);
        return;
    }
    call->answer = block_copy(request_answer_body(inside));
    bool is_answered = !inside->silent;
    request_free(inside);
    if (!is_answered) {
        end(call, KAFKA_UNKNOWN_SERVER_ERROR);
        return;
    }
    answered(call, (struct view){call->answer->bytes, call->answer->capacity},
             metadata_delivered(call->shard->broker));
}

static void run_here(struct controller_call *call)
{
    const struct inside_request inside = {.api_key = call->api_key,
                                          .api_version = call->api_version,
                                          .client_id = call->client_id,
                                          .body = call->body,
                                          .came_home = came_home,
                                          .asker = call};
    bool is_run = request_run_inside(call->shard, &inside);
    assert(is_run); /* it was decoded, or made, here */
    (void)is_run;
}

/* ---- On another one ------------------------------------------------------------------------ */

static void peer_done(struct peer_call *peer, enum status status, struct slice body)
{
    struct controller_call *call = container_of(peer, struct controller_call, peer);
    struct peer_forward_response response = peer_forward_response_default;
    struct arena arena;
    list_remove(&call->link);
    arena_init(&arena, SIZE_MAX / 2);
    if (status == STATUS_OK) {
        struct view input = slice_view(body);
        status = message_decode(&peer_forward_response_type, 0, &input, &arena, &response);
    }
    arena_free(&arena); /* it holds no part of this message */
    if (status == STATUS_OK && response.error_code == KAFKA_NONE) {
        call->answer = block_ref(body.block);
        answered(call, response.body, response.metadata_offset);
        return;
    }
    if (status == STATUS_OK && response.error_code != KAFKA_NOT_CONTROLLER) {
        end(call, response.error_code);
        return;
    }
    if (status != STATUS_OK && peer->sent && !call->repeatable) {
        end(call, KAFKA_REQUEST_TIMED_OUT);
        return;
    }
    call->hint = status == STATUS_OK ? response.leader_id : -1;
    wait_to_try(call, TRY_AGAIN_MS);
}

static void ask_peer(struct controller_call *call, int32_t node)
{
    struct controller_calls *calls = call->shard->controller_calls;
    struct peer_forward_request request = {.api_key = call->api_key,
                                           .api_version = call->api_version,
                                           .client_id = call->client_id,
                                           .body = call->body};
    struct buffer bytes = {0};
    enum status status = message_encode_to(&peer_forward_request_type, 0, &request, &bytes);
    assert(status == STATUS_OK);
    (void)status;
    call->peer = (struct peer_call){.node = node,
                                    .api_key = API_PEER_FORWARD,
                                    .timeout_ms = CONTROLLER_CALL_ANSWER_MS,
                                    .done = peer_done};
    list_push_back(&calls->asked, &call->link);
    set_timer(call->shard, TRY_AGAIN_MS);
    peers_call(call->shard, &call->peer, buffer_view(&bytes));
    buffer_free(&bytes);
}

/* ---- Whom to ask --------------------------------------------------------------------------- */

/* A node that hears of nobody's leading, because it is not in the metadata group yet, asks one
 * voter after the other, each of which says whom it believes to lead. */
static int32_t whom_to_ask(struct controller_call *call)
{
    const struct broker *broker = call->shard->broker;
    if (!broker->in_cluster) {
        return broker->node_id;
    }
    int32_t leader = directory_get(&broker->directory, METADATA_GROUP_ID).leader;
    if (leader >= 0 && peers_is_alive(broker, leader)) {
        return leader;
    }
    if (call->hint >= 0) {
        leader = call->hint;
        call->hint = -1;
        return leader;
    }
    int count;
    const struct quorum_voter *voters = cluster_voters(call->shard, &count);
    return count == 0 ? -1 : voters[call->tries++ % (unsigned)count].node_id;
}

/* This node is asked only when it leads; standing alone it says itself what is wrong. */
static bool may_ask(const struct broker *broker, int32_t node)
{
    return node != broker->node_id || !broker->in_cluster || controller_is_here(broker);
}

static void attempt(struct controller_call *call)
{
    const struct broker *broker = call->shard->broker;
    uint64_t now_ms = clock_monotonic_ms();
    int32_t node = whom_to_ask(call);
    if (call->shard->controller_calls->ended) {
        end(call, KAFKA_NOT_CONTROLLER);
    } else if (now_ms >= call->deadline_ms) {
        end(call, KAFKA_REQUEST_TIMED_OUT);
    } else if (node < 0 || !may_ask(broker, node)) {
        wait_to_try(call, TRY_AGAIN_MS);
    } else if (node == broker->node_id) {
        run_here(call);
    } else {
        ask_peer(call, node);
    }
}

static void try_all(struct shard *shard)
{
    struct list due;
    struct list_link *link;
    list_init(&due);
    while ((link = list_pop_front(&shard->controller_calls->waiting)) != NULL) {
        list_push_back(&due, link);
    }
    while ((link = list_pop_front(&due)) != NULL) {
        attempt(container_of(link, struct controller_call, link));
    }
}

/* A node that is silent does not answer, and another one may lead soon. What it may have done is
 * not asked for again, unless that does no harm. */
static void give_up_silent(struct shard *shard)
{
    struct controller_calls *calls = shard->controller_calls;
    struct list_link *link = list_first(&calls->asked);
    while (link != NULL) {
        struct list_link *next = list_next(&calls->asked, link);
        struct controller_call *call = container_of(link, struct controller_call, link);
        assert(call->peer.done != NULL);
        if (!peers_is_alive(shard->broker, call->peer.node)) {
            peers_cancel(shard, &call->peer);
            list_remove(link);
            list_push_back(&calls->waiting, link);
            if (call->peer.sent && !call->repeatable) {
                call->deadline_ms = 0;
            }
        }
        link = next;
    }
}

static void timer_due(struct shard_timer *timer)
{
    struct shard *shard = timer->shard;
    give_up_silent(shard);
    try_all(shard);
    if (!list_is_empty(&shard->controller_calls->asked)) {
        set_timer(shard, TRY_AGAIN_MS);
    }
}

void controller_calls_open(struct shard *shard)
{
    struct controller_calls *calls = memory_new_zero(1, sizeof *calls);
    list_init(&calls->waiting);
    list_init(&calls->asked);
    calls->timer.run = timer_due;
    shard->controller_calls = calls;
}

void controller_calls_end(struct shard *shard)
{
    shard->controller_calls->ended = true;
    try_all(shard);
}

void controller_calls_close(struct shard *shard)
{
    assert(list_is_empty(&shard->controller_calls->waiting));
    assert(list_is_empty(&shard->controller_calls->asked));
    shard_timer_stop(&shard->controller_calls->timer);
    free(shard->controller_calls);
}

void controller_call(struct shard *shard, struct controller_call *call)
{
    assert(call->done != NULL && call->body.data != NULL);
    call->shard = shard;
    call->answer = NULL;
    call->answer_body = VIEW_NULL;
    call->peer = (struct peer_call){0};
    call->link = (struct list_link){0};
    call->hint = -1;
    call->tries = 0;
    call->deadline_ms = clock_monotonic_ms() + CONTROLLER_CALL_MS;
    wait_to_try(call, 0);
}

void controller_call_hurry(struct controller_call *call)
{
    struct controller_calls *calls = call->shard->controller_calls;
    bool is_asked = call->peer.done != NULL && list_contains(&call->peer.link);
    call->deadline_ms = clock_monotonic_ms();
    if (is_asked) {
        peers_cancel(call->shard, &call->peer);
        list_remove(&call->link);
        list_push_back(&calls->waiting, &call->link);
        set_timer(call->shard, 0);
    }
}
