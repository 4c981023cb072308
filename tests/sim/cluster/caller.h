/* A client's connections and requests: real frames over the simulated network, one answer or none.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_CALLER_H
#define OTTLA_TESTS_SIM_CLUSTER_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "messages/api_keys.h"
#include "tests/sim/cluster/network.h"

enum { CALL_TIMEOUT_MS = 3000, IMPATIENT_MS = 300 };

struct caller;

/* Gets the decoded answer, or null when there is none: refused, broken, timed out. */
typedef void answered(void *owner, const void *response);

struct line {
    struct caller *caller;
    int node;
    struct wire *wire;           /* null: none */
};

/* One request at a time. */
struct caller {
    int place;
    struct line lines[NODES_MAX + 1];
    int32_t correlation;         /* of the request under way; 0: none */
    int32_t last_correlation;
    int node;                    /* that was asked */
    enum api_key api;
    int16_t version;
    answered *done;
    void *owner;
};

/* A client at a place, with no connection. */
void caller_start(struct caller *caller, int place, void *owner);

/* Sends a request in that version; `done` runs once, later. None may be under way. */
void caller_ask(struct caller *caller, int node, enum api_key api, int16_t version,
                const void *message, answered *done);

/* Whether a request is under way. */
bool caller_waits(const struct caller *caller);

#endif
