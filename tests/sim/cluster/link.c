/* broker/peer/link.h over the simulated network: hello, then whole frames. */
#include "broker/peer/link.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "broker/peer/hello.h"
#include "broker/peer/peer_table.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "io/random.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "tests/sim/cluster/network.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

enum { BACKOFF_MS = 20, BACKOFF_MOST_MS = 1000, REFUSED_MS = 5000, PATIENCE_MS = 2000 };

struct sim_link {
    struct peer_link base;
    struct wire *wire;           /* null: none */
    struct shard_timer retry;
    struct shard_timer patience; /* for the answer to hello */
};

static struct sim_link *of(struct peer_link *link)
{
    return container_of(link, struct sim_link, base);
}

static void forget(struct peer_link *link)
{
    evbuffer_drain(link->out, evbuffer_get_length(link->out));
    raft_outbox_free(&link->outbox);
    link->leader_count = 0;
    link->state = LINK_WAITING;
    link->life++;
    peer_calls_closed(link);
}

static void broke(void *owner)
{
    struct peer_link *link = owner;
    bool was_up = link->state == LINK_UP;
    of(link)->wire = NULL;
    shard_timer_stop(&of(link)->patience);
    forget(link);
    uint64_t wait_ms = link->backoff_ms / 2 + random_below(link->backoff_ms / 2 + 1);
    link->backoff_ms = link->backoff_ms * 2 < BACKOFF_MOST_MS ? link->backoff_ms * 2
                                                              : BACKOFF_MOST_MS;
    shard_timer_set(link->shard, &of(link)->retry, wait_ms);
    if (!was_up) {
        places_next(&link->places, peers_meeting(link));
    }
    peers_link_broken(link);
}

static void disconnect(struct peer_link *link)
{
    shard_timer_stop(&of(link)->retry);
    shard_timer_stop(&of(link)->patience);
    if (of(link)->wire != NULL) {
        wire_close(of(link)->wire, 0);
        of(link)->wire = NULL;
    }
    forget(link);
}

static void hello_answered(struct peer_link *link, struct view frame)
{
    struct peer_hello_response hello;
    struct arena arena;
    arena_init(&arena, 1024);
    struct view rest = view_slice(frame, 4, frame.length - 4);
    enum status status = message_decode(&peer_hello_response_type, 0, &rest, &arena, &hello);
    world_require(status == STATUS_OK, "the answer to hello cannot be read");
    if (hello.error_code != KAFKA_NONE) {
        peers_met(link, hello.node_id, hello.cluster_id);
        arena_free(&arena);
        world_say("node %d refuses the link of node %d: error %d", link->node,
                  link->shard->broker->node_id, hello.error_code);
        disconnect(link);
        bool is_short = hello_may_change(link, &hello);
        shard_timer_set(link->shard, &of(link)->retry, is_short ? BACKOFF_MS : REFUSED_MS);
        places_next(&link->places, peers_meeting(link));
        peers_link_broken(link);
        return;
    }
    arena_free(&arena);
    shard_timer_stop(&of(link)->patience);
    liveness_told(link->shard->broker, link->node, hello.incarnation, hello.keeps_metadata);
    link->state = LINK_UP;
    link->backoff_ms = BACKOFF_MS;
    peers_link_up(link);
}

static void received(void *owner, const uint8_t *bytes, size_t length)
{
    struct peer_link *link = owner;
    unsigned life = link->life;
    for (size_t at = 0; at + 4 <= length && link->life == life;) {
        size_t frame = load_be32(bytes + at);
        struct block *block = block_new(frame);
        memcpy(block->bytes, bytes + at + 4, frame);
        at += 4 + frame;
        if (link->state == LINK_GREETING) {
            hello_answered(link, (struct view){block->bytes, frame});
        } else {
            struct liveness_node *node =
                liveness_add(&link->shard->broker->liveness, link->node);
            liveness_heard(node, clock_monotonic_ms());
            peer_call_answered(link, slice_of(block, 0, frame));
        }
        block_unref(block);
    }
}

int32_t link_request(struct peer_link *link, int16_t api_key, int16_t api_version,
                     struct view body)
{
    struct buffer frame = {0};
    link->correlation_id = link->correlation_id == INT32_MAX ? 1 : link->correlation_id + 1;
    peer_frame_begin(&frame, api_key, api_version, link->correlation_id);
    buffer_append(&frame, body.data, body.length);
    peer_frame_write(&frame, link->out);
    link->sent = true;
    peers_due(link);
    return link->correlation_id;
}

static void greet(struct peer_link *link)
{
    struct buffer body = {0};
    hello_write(link->shard, link->node, &body);
    link->state = LINK_GREETING;
    link_request(link, API_PEER_HELLO, 0, buffer_view(&body));
    buffer_free(&body);
}

static void gave_up(struct shard_timer *timer)
{
    struct sim_link *link = container_of(timer, struct sim_link, patience);
    wire_close(link->wire, 0);
    broke(&link->base);
}

/* Hosts are called node1, node2, ... */
static int node_of_host(const char *host)
{
    world_require(strncmp(host, "node", 4) == 0, "the host %s", host);
    return atoi(host + 4);
}

static void try_now(struct shard_timer *timer)
{
    struct sim_link *link = container_of(timer, struct sim_link, retry);
    const struct wire_end end = {link->base.shard->broker->node_id, &link->base, received, broke};
    if (peers_rests(&link->base)) {
        shard_timer_set(link->base.shard, timer, BACKOFF_MOST_MS);
        return;
    }
    const struct place *place = places_now(&link->base.places, peers_meeting(&link->base));
    link->base.place = *place;
    link->wire = wire_open(&end, node_of_host(place->host), place->port);
    greet(&link->base);
    shard_timer_set(link->base.shard, &link->patience, PATIENCE_MS);
}

struct peer_link *link_new(struct shard *shard, int32_t node, const struct places *places)
{
    struct sim_link *made = memory_new_zero(1, sizeof *made);
    struct peer_link *link = &made->base;
    link->shard = shard;
    link->node = node;
    link->places = *places;
    link->fd = -1;
    link->backoff_ms = BACKOFF_MS;
    link->out = evbuffer_new();
    list_init(&link->calls);
    made->retry.run = try_now;
    made->patience.run = gave_up;
    shard_timer_set(shard, &made->retry, 0);
    return link;
}

void link_moved(struct peer_link *link)
{
    if (link->state != LINK_UP) {
        disconnect(link);
        link->backoff_ms = BACKOFF_MS;
        shard_timer_set(link->shard, &of(link)->retry, 0);
    }
}

void link_hurry(struct peer_link *link)
{
    if (link->state == LINK_WAITING && of(link)->wire == NULL) {
        link->backoff_ms = BACKOFF_MS;
        shard_timer_set(link->shard, &of(link)->retry, 0);
    }
}

void link_free(struct peer_link *link)
{
    disconnect(link);
    if (list_contains(&link->due)) {
        list_remove(&link->due);
    }
    evbuffer_free(link->out);
    free(link->leaders);
    free(of(link));
}

void link_send_raft(struct peer_link *link, uint64_t group, const struct raft_message *message,
                    struct payload_place place)
{
    if (link->state == LINK_UP) {
        raft_outbox_add(&link->outbox, group, message, place);
        link->sent = true;
        peers_due(link);
    }
}

void link_send_leader(struct peer_link *link, const struct peer_leaders_request_leader *leader)
{
    if (link->state != LINK_UP) {
        return;
    }
    if (link->leader_count == link->leader_capacity) {
        link->leader_capacity = link->leader_capacity * 2 + 16;
        link->leaders =
            memory_resize(link->leaders, link->leader_capacity, sizeof *link->leaders);
    }
    link->leaders[link->leader_count++] = *leader;
    peers_due(link);
}

static void write_leaders(struct peer_link *link)
{
    struct peer_leaders_request request = {.leaders = link->leaders,
                                           .leaders_count = (int32_t)link->leader_count};
    struct buffer body = {0};
    enum status status = message_encode_to(&peer_leaders_request_type, 0, &request, &body);
    assert(status == STATUS_OK);
    (void)status;
    link_request(link, API_PEER_LEADERS, 0, buffer_view(&body));
    buffer_free(&body);
    link->leader_count = 0;
}

static void write_out(struct peer_link *link)
{
    size_t length = evbuffer_get_length(link->out);
    if (length > 0 && of(link)->wire != NULL) {
        wire_send(of(link)->wire, 0, evbuffer_pullup(link->out, -1), length);
    }
    evbuffer_drain(link->out, length);
}

void link_flush(struct peer_link *link)
{
    if (link->outbox.message_count > 0) {
        raft_outbox_write(&link->outbox, 0, link->out);
    }
    if (link->leader_count > 0) {
        write_leaders(link);
    }
    write_out(link);
}

void link_beat(struct peer_link *link)
{
    if (link->state == LINK_UP && !link->sent) {
        raft_outbox_write(&link->outbox, 0, link->out);
        write_out(link);
    }
    link->sent = false;
}

/* Names need no resolving here. */

struct resolver *resolver_new(void)
{
    return NULL;
}

void resolver_close(struct resolver *resolver)
{
    assert(resolver == NULL);
    (void)resolver;
}
