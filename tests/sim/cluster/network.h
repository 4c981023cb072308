/* The simulated network: connections between places, with delays, one-way and full partitions,
 * stalls and breaks. A place is a node (by its id) or a client (CLIENT_PLACE and above).
 *
 * As with TCP, what is sent on a connection arrives whole and in order, or the connection breaks.
 * Where a partition lies on the way it waits; after two seconds the connection breaks at both ends.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_NETWORK_H
#define OTTLA_TESTS_SIM_CLUSTER_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NODES_MAX = 8, CLIENT_PLACE = 100, PLACES_MAX = 132,
    NETWORK_LOOK_AGAIN_MS = 10   /* what was held back comes within that */
};

struct wire;

/* One end of a connection. Callbacks run in the place's context. */
struct wire_end {
    int place;
    void *owner;
    /* Bytes that came, as one piece for each that was sent. */
    void (*received)(void *owner, const uint8_t *bytes, size_t length);
    /* The connection is gone; the wire must not be used any more. */
    void (*broke)(void *owner);
};

/* What a place does with a new connection: fills its own end, or refuses with false. */
typedef bool wire_accept(struct wire *wire, int place, int from, unsigned port,
                         struct wire_end *end);

/* How long a way takes and what is cut. */
struct network {
    bool cut[PLACES_MAX][PLACES_MAX];  /* from, to: nothing arrives */
    uint32_t delay_us[PLACES_MAX][PLACES_MAX]; /* added to the usual delay */
    uint32_t usual_us;                 /* the longest usual delay */
    wire_accept *accept;
};

extern struct network network;

/* No connections, nothing cut. */
void network_start(wire_accept *accept);

/* Releases all connections without telling anybody. */
void network_end(void);

/* A connection to a port of a node. `broke` may come at any time from now on; what is sent before
 * it is accepted waits. */
struct wire *wire_open(const struct wire_end *opener, int to, unsigned port);

/* Sends a copy of the bytes from the opener's side (0) or the other (1). */
void wire_send(struct wire *wire, int side, const uint8_t *bytes, size_t length);

/* This side closes: its callbacks do not run any more; the other side hears of it. */
void wire_close(struct wire *wire, int side);

/* Everything that a place had is closed: its process died. */
void network_place_died(int place);

/* Its machine died: what it had sent and was not delivered is gone, and nobody hears of its end
 * until something is sent to it. */
void network_place_vanished(int place);

/* Something that held back what was sent is so no more: a cut, a pause, a machine without power. */
void network_look_again(void);

/* Nothing is cut, no delay is added. */
void network_heal(void);

#endif
