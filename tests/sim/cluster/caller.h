/* A client's connections and requests: real frames over the simulated network, one answer or none.
 * Several requests may be under way; a connection's answers come in the order of its requests.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_CALLER_H
#define OTTLA_TESTS_SIM_CLUSTER_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "messages/api_keys.h"
#include "tests/sim/cluster/network.h"

enum { CALL_TIMEOUT_MS = 3000, IMPATIENT_MS = 300, CALLS_MOST = 6 };

struct caller;

/* Gets the decoded answer, or null when there is none: refused, broken, timed out. */
typedef void answered(void *owner, const void *response);

struct line {
    struct caller *caller;
    int node;
    struct wire *wire;           /* null: none */
};

/* A request under way. */
struct call {
    int32_t correlation;
    int node;                    /* that was asked */
    enum api_key api;
    int16_t version;
    answered *done;
    void *owner;
};

struct caller {
    int place;
    struct line lines[NODES_MAX + 1];
    int32_t last_correlation;
    struct call calls[CALLS_MOST]; /* the oldest first */
    int call_count;
    int node;                    /* whose answer, or none, is being told */
    void *owner;
};

/* A client at a place, with no connection. */
void caller_start(struct caller *caller, int place, void *owner);

/* Sends a request in that version; `done` runs once, later, with the caller's owner. */
void caller_ask(struct caller *caller, int node, enum api_key api, int16_t version,
                const void *message, answered *done);

/* The same, with an owner of its own. */
void caller_ask_for(struct caller *caller, int node, enum api_key api, int16_t version,
                    const void *message, answered *done, void *owner);

/* Whether a request is under way. */
bool caller_waits(const struct caller *caller);

#endif
