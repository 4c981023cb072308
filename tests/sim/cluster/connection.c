/* broker/net/connection.h and acceptor.h over the simulated network: frames come whole, answers go
 * out in the order of their requests. */
#include "broker/net/connection.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/api/request.h"
#include "broker/net/acceptor.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "tests/sim/cluster/network.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

struct sim_connection {
    struct connection base;
    struct wire *wire;           /* null when it is gone */
};

static struct sim_connection *of(struct connection *connection)
{
    return container_of(connection, struct sim_connection, base);
}

static void release(struct connection *connection)
{
    assert(connection->closed && connection->request_count == 0);
    if (list_contains(&connection->flush.link)) {
        list_remove(&connection->flush.link);
    }
    free(of(connection));
}

static void cancel_requests(struct connection *connection)
{
    struct list_link *at = list_first(&connection->requests);
    while (at != NULL) {
        struct request *request = container_of(at, struct request, link);
        void (*cancel)(struct request *request) = request->cancel;
        request->cancel = NULL;
        if (cancel != NULL && !request->answered) {
            cancel(request);
            at = list_first(&connection->requests);
        } else {
            at = list_next(&connection->requests, at);
        }
    }
}

void connection_close(struct connection *connection, const char *reason)
{
    if (connection->closed) {
        return;
    }
    if (reason != NULL) {
        world_say("node %d closes the connection of %s: %s", connection->shard->broker->node_id,
                  connection->address, reason);
    }
    connection->closed = true;
    evbuffer_free(connection->out);
    if (of(connection)->wire != NULL) {
        wire_close(of(connection)->wire, 1);
        of(connection)->wire = NULL;
    }
    list_remove(&connection->link);
    connection->shard->connections->count--;
    if (connection->peer != NULL) {
        liveness_left(connection->shard->broker, connection->peer);
        connection->peer = NULL;
    }
    cancel_requests(connection);
    if (connection->request_count == 0) {
        shard_defer(connection->shard, &connection->flush);
    }
}

static void flush_due(struct shard_task *task)
{
    struct connection *connection = container_of(task, struct connection, flush);
    if (connection->closed) {
        if (connection->request_count == 0) {
            release(connection);
        }
        return;
    }
    size_t length = evbuffer_get_length(connection->out);
    if (length > 0) {
        wire_send(of(connection)->wire, 1, evbuffer_pullup(connection->out, -1), length);
        evbuffer_drain(connection->out, length);
    }
    if (connection->closing_after_answers && connection->request_count == 0) {
        connection_close(connection, NULL);
    }
}

void connection_answered(struct connection *connection)
{
    struct list_link *at = list_first(&connection->requests);
    while (at != NULL) {
        struct request *request = container_of(at, struct request, link);
        struct list_link *next = list_next(&connection->requests, at);
        if (!request->answered && connection->peer == NULL) {
            break;
        }
        if (request->answered) {
            list_remove(at);
            connection->request_count--;
            if (!connection->closed) {
                request_write_answer(request, connection->out);
                connection->closing_after_answers |= request->close_after;
            }
            request_free(request);
        }
        at = next;
    }
    shard_defer(connection->shard, &connection->flush);
}

void connection_becomes_peer(struct connection *connection, struct liveness_node *node,
                             struct shard *home)
{
    (void)home; /* all shards of a simulated node run in one thread */
    connection->peer = node;
}

void connection_works_for(struct connection *connection, struct shard *shard)
{
    (void)connection;
    (void)shard;
}

static void received(void *owner, const uint8_t *bytes, size_t length)
{
    struct connection *connection = owner;
    if (connection->peer != NULL) {
        liveness_heard(connection->peer, clock_monotonic_ms());
    }
    size_t at = 0;
    while (at + 4 <= length && !connection->closed) {
        size_t frame = load_be32(bytes + at);
        world_require(frame >= 8 && at + 4 + frame <= length, "a frame of %zu bytes", frame);
        struct block *block = block_new_pages(frame);
        memcpy(block->bytes, bytes + at + 4, frame);
        struct request *request = request_new(connection, block, frame);
        list_push_back(&connection->requests, &request->link);
        connection->request_count++;
        request_start(request);
        at += 4 + frame;
    }
}

static void broke(void *owner)
{
    struct connection *connection = owner;
    of(connection)->wire = NULL;
    connection_close(connection, NULL);
}

static const struct listener *listener_on(const struct broker *broker, unsigned port)
{
    for (int i = 0; i < broker->listeners.count; i++) {
        if (broker->listeners.items[i].port == port) {
            return &broker->listeners.items[i];
        }
    }
    return NULL;
}

bool node_accept(struct wire *wire, int place, int from, unsigned port, struct wire_end *end)
{
    struct sim_node *node = node_find(place);
    if (node == NULL || node->broker == NULL || node->broker->stopping) {
        return false;
    }
    if (listener_on(node->broker, port) == NULL) {
        return false;
    }
    struct shard *shard =
        &node->broker->shards[node->next_loop++ % (unsigned)node->broker->shard_count];
    struct sim_connection *made = memory_new_zero(1, sizeof *made);
    struct connection *connection = &made->base;
    made->wire = wire;
    connection->shard = shard;
    connection->listener = listener_on(node->broker, port);
    assert(connection->listener != NULL);
    connection->fd = -1;
    connection->flush.run = flush_due;
    connection->out = evbuffer_new();
    list_init(&connection->requests);
    snprintf(connection->address, sizeof connection->address, "place-%d", from);
    list_push_back(&shard->connections->all, &connection->link);
    shard->connections->count++;
    *end = (struct wire_end){place, connection, received, broke};
    return true;
}

void connections_init(struct connections *connections)
{
    *connections = (struct connections){0};
    list_init(&connections->all);
    list_init(&connections->paused);
    list_init(&connections->parked);
    list_init(&connections->leaderless);
    list_init(&connections->forwards);
}

void connections_free(struct connections *connections)
{
    free(connections);
}

void connections_tick(struct shard *shard, uint64_t now_ms)
{
    (void)shard;
    (void)now_ms;
}

bool connections_drain(struct shard *shard, bool all)
{
    (void)all;
    connections_close_all(shard);
    return true;
}

void connections_close_all(struct shard *shard)
{
    struct list_link *at;
    while ((at = list_first(&shard->connections->all)) != NULL) {
        connection_close(container_of(at, struct connection, link), NULL);
    }
}

/* There are no sockets to listen on: who connects comes to node_accept. */

enum status acceptor_open(struct broker *broker, struct listener *listener,
                          struct acceptor **acceptor)
{
    (void)broker;
    (void)listener;
    *acceptor = NULL;
    return STATUS_OK;
}

void acceptor_start(struct acceptor *acceptor)
{
    (void)acceptor;
}

void acceptor_close(struct acceptor *acceptor)
{
    (void)acceptor;
}

void connection_register_init(struct connection_register *reg, uint32_t limit,
                              uint32_t limit_per_address)
{
    (void)limit;
    (void)limit_per_address;
    *reg = (struct connection_register){0};
}

void connection_register_free(struct connection_register *reg)
{
    (void)reg;
}

void acceptor_connection_gone(struct broker *broker, const char *address)
{
    (void)broker;
    (void)address;
}
