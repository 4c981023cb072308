/* Connections as two queues of pieces, each with one event for its first piece. */
#include "tests/sim/cluster/network.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

enum {
    LEAST_DELAY_US = 30,
    PROBES_MS = 4000,
    PATIENCE_MS = 2000,      /* then what is not delivered breaks the connection */
    ACCEPT = 1, BYTES = 2, CLOSE = 3
};

struct piece {
    struct list_link link;
    uint64_t due_ns;
    uint64_t since_ns;       /* it could not be delivered; 0: it was not tried */
    int kind;
    size_t length;
    uint8_t bytes[];
};

struct pipe {
    struct list pieces;
    uint64_t last_ns;        /* nothing arrives before what was sent earlier */
    uint64_t call;           /* number of the latest event; earlier ones do not count */
    bool scheduled;
    bool blocked;            /* the first piece could not be delivered */
};

struct wire {
    struct list_link link;
    uint64_t id;
    unsigned port;
    struct wire_end ends[2];
    bool attached[2];        /* the end may be called */
    struct pipe pipes[2];    /* by sender */
    bool dead;               /* freed when no event refers to it */
    unsigned events;
};

struct network network;
static struct list wires;
static uint64_t last_id;

static void pipe_due(void *context, uint64_t side);

static void schedule(struct wire *wire, int side, uint64_t wait_ns)
{
    struct pipe *pipe = &wire->pipes[side];
    pipe->scheduled = true;
    wire->events++;
    world_after(wait_ns, pipe_due, wire, ++pipe->call * 2 + (uint64_t)side);
}

static void free_pieces(struct pipe *pipe)
{
    struct list_link *at;
    while ((at = list_pop_front(&pipe->pieces)) != NULL) {
        free(container_of(at, struct piece, link));
    }
}

static void free_if_done(struct wire *wire)
{
    if (wire->dead && wire->events == 0) {
        list_remove(&wire->link);
        free_pieces(&wire->pipes[0]);
        free_pieces(&wire->pipes[1]);
        free(wire);
    }
}

static uint64_t delay_ns(int from, int to)
{
    uint64_t us = LEAST_DELAY_US + world_random(network.usual_us + 1) + network.delay_us[from][to];
    return us * 1000;
}

static void push(struct wire *wire, int side, int kind, const uint8_t *bytes, size_t length)
{
    struct pipe *pipe = &wire->pipes[side];
    struct piece *piece = memory_new_zero(1, sizeof *piece + length);
    uint64_t due_ns = world.now_ns + delay_ns(wire->ends[side].place, wire->ends[1 - side].place);
    piece->due_ns = due_ns > pipe->last_ns ? due_ns : pipe->last_ns;
    pipe->last_ns = piece->due_ns;
    piece->kind = kind;
    piece->length = length;
    if (length > 0) {
        memcpy(piece->bytes, bytes, length);
    }
    list_push_back(&pipe->pieces, &piece->link);
    if (!pipe->scheduled && !pipe->blocked) {
        schedule(wire, side, piece->due_ns - world.now_ns);
    }
}

static void detach(struct wire *wire, int side)
{
    if (!wire->attached[side]) {
        return;
    }
    wire->attached[side] = false;
    node_enter_place(wire->ends[side].place);
    wire->ends[side].broke(wire->ends[side].owner);
    node_leave_place(wire->ends[side].place);
}

static void break_both(struct wire *wire)
{
    wire->dead = true;
    detach(wire, 0);
    detach(wire, 1);
}

static void deliver(struct wire *wire, int to_side, const struct piece *piece)
{
    struct wire_end *end = &wire->ends[to_side];
    world_note(wire->id * 8 + (uint64_t)piece->kind);
    if (piece->kind == ACCEPT) {
        node_enter_place(end->place);
        wire->attached[1] = network.accept(wire, end->place, wire->ends[0].place, wire->port, end);
        node_leave_place(end->place);
        if (!wire->attached[1]) {
            push(wire, 1, CLOSE, NULL, 0);
        }
    } else if (piece->kind == CLOSE) {
        wire->dead = true;
        detach(wire, to_side);
    } else if (!wire->attached[to_side]) {
        wire->dead = true; /* a reset: the process that had this connection is no more */
        detach(wire, 1 - to_side);
    } else {
        for (size_t i = 0; i < piece->length; i += 61) {
            world_note(piece->bytes[i]);
        }
        node_enter_place(end->place);
        end->received(end->owner, piece->bytes, piece->length);
        node_leave_place(end->place);
    }
}

/* The way is cut or its end does not take anything. It is tried again when that changes; on a way
 * that is cut for too long the connection breaks. */
static void wait_for_way(struct wire *wire, int side, struct piece *piece, bool is_cut)
{
    wire->pipes[side].blocked = true;
    if (!is_cut) {
        return;
    }
    piece->since_ns = piece->since_ns == 0 ? world.now_ns : piece->since_ns;
    uint64_t end_ns = piece->since_ns + (uint64_t)PATIENCE_MS * MS_NS;
    if (world.now_ns >= end_ns) {
        break_both(wire);
        free_if_done(wire);
        return;
    }
    schedule(wire, side, end_ns - world.now_ns);
}

static void deliver_first(struct wire *wire, int side, struct piece *piece)
{
    struct pipe *pipe = &wire->pipes[side];
    list_pop_front(&pipe->pieces);
    wire->events++; /* held: the callbacks may end it */
    deliver(wire, 1 - side, piece);
    wire->events--;
    free(piece);
    struct list_link *at = wire->dead ? NULL : list_first(&pipe->pieces);
    if (at != NULL && !pipe->scheduled) {
        struct piece *next = container_of(at, struct piece, link);
        schedule(wire, side, next->due_ns > world.now_ns ? next->due_ns - world.now_ns : 0);
    }
    free_if_done(wire);
}

static void pipe_due(void *context, uint64_t tag)
{
    struct wire *wire = context;
    int side = (int)(tag % 2);
    struct pipe *pipe = &wire->pipes[side];
    int from = wire->ends[side].place;
    int to = wire->ends[1 - side].place;
    wire->events--;
    if (pipe->call != tag / 2) {
        free_if_done(wire);
        return;
    }
    pipe->scheduled = false;
    pipe->blocked = false;
    struct list_link *at = wire->dead ? NULL : list_first(&pipe->pieces);
    if (at == NULL) {
        free_if_done(wire);
        return;
    }
    struct piece *piece = container_of(at, struct piece, link);
    bool is_cut = network.cut[from][to] || node_place_is_off(to);
    if (is_cut || node_place_is_paused(to)) {
        wait_for_way(wire, side, piece, is_cut);
    } else {
        deliver_first(wire, side, piece);
    }
}

void network_look_again(void)
{
    struct list_link *at;
    for (at = list_first(&wires); at != NULL; at = list_next(&wires, at)) {
        struct wire *wire = container_of(at, struct wire, link);
        for (int side = 0; side < 2; side++) {
            if (wire->pipes[side].blocked && !wire->dead) {
                wire->pipes[side].blocked = false;
                schedule(wire, side, world_random((uint64_t)NETWORK_LOOK_AGAIN_MS * MS_NS));
            }
        }
    }
}

void network_start(wire_accept *accept)
{
    memset(&network, 0, sizeof network);
    network.accept = accept;
    network.usual_us = 200;
    list_init(&wires);
    last_id = 0;
}

void network_end(void)
{
    struct list_link *at;
    while ((at = list_pop_front(&wires)) != NULL) {
        struct wire *wire = container_of(at, struct wire, link);
        free_pieces(&wire->pipes[0]);
        free_pieces(&wire->pipes[1]);
        free(wire);
    }
}

struct wire *wire_open(const struct wire_end *opener, int to, unsigned port)
{
    struct wire *wire = memory_new_zero(1, sizeof *wire);
    assert(opener->place != to);
    wire->id = ++last_id;
    wire->port = port;
    wire->ends[0] = *opener;
    wire->ends[1].place = to;
    wire->attached[0] = true;
    list_init(&wire->pipes[0].pieces);
    list_init(&wire->pipes[1].pieces);
    list_push_back(&wires, &wire->link);
    push(wire, 0, ACCEPT, NULL, 0);
    return wire;
}

void wire_send(struct wire *wire, int side, const uint8_t *bytes, size_t length)
{
    assert(length > 0);
    if (wire->attached[side] && !wire->dead) {
        push(wire, side, BYTES, bytes, length);
    }
}

void wire_close(struct wire *wire, int side)
{
    bool was_attached = wire->attached[side];
    wire->attached[side] = false;
    if (was_attached && !wire->dead) {
        push(wire, side, CLOSE, NULL, 0);
    }
}

void network_place_died(int place)
{
    struct list_link *at;
    for (at = list_first(&wires); at != NULL; at = list_next(&wires, at)) {
        struct wire *wire = container_of(at, struct wire, link);
        for (int side = 0; side < 2; side++) {
            if (wire->ends[side].place == place && wire->attached[side]) {
                wire_close(wire, side);
            }
        }
    }
}

/* Nothing was sent, but the connection is kept alive by probes that nobody answers. */
static void probes_failed(void *context, uint64_t unused)
{
    struct wire *wire = context;
    (void)unused;
    wire->events--;
    if (!wire->dead) {
        break_both(wire);
    }
    free_if_done(wire);
}

void network_place_vanished(int place)
{
    struct list_link *at;
    for (at = list_first(&wires); at != NULL; at = list_next(&wires, at)) {
        struct wire *wire = container_of(at, struct wire, link);
        for (int side = 0; side < 2; side++) {
            if (wire->ends[side].place == place) {
                wire->attached[side] = false;
                free_pieces(&wire->pipes[side]);
                if (wire->attached[1 - side]) {
                    wire->events++;
                    world_after((uint64_t)PROBES_MS * MS_NS, probes_failed, wire, 0);
                }
            }
        }
    }
}

void network_heal(void)
{
    memset(network.cut, 0, sizeof network.cut);
    memset(network.delay_us, 0, sizeof network.delay_us);
    network_look_again();
}
