/* The coordinator simulation: clients that join, sync, heartbeat, commit, leave and crash at random
 * times, a log that commits, fails and changes its leader, and an observer that holds every answer
 * against what may be true. One seed, one run. */
#ifndef OTTLA_TESTS_UNIT_BROKER_COORDINATOR_SIM_H
#define OTTLA_TESTS_UNIT_BROKER_COORDINATOR_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/broker/coordinator/harness.h"

enum {
    SIM_GROUPS = 3,
    SIM_CLIENTS = 8,
    SIM_PARTITIONS = 3,
    SIM_ID_BYTES = 64,
    SIM_GENERATIONS_MAX = 512,
    SIM_MEMBERS_MAX = 16
};

enum sim_client_state { CLIENT_OUT, CLIENT_JOINING, CLIENT_JOINED, CLIENT_SYNCING, CLIENT_STABLE };

struct sim_client {
    enum sim_client_state state;
    int index;
    int group;
    char id[SIM_ID_BYTES]; /* empty: none yet */
    char instance[16];     /* empty: dynamic */
    int32_t generation;
    bool leads;
    char members[SIM_MEMBERS_MAX][SIM_ID_BYTES]; /* of a leader */
    int member_count;
    int protocols; /* which of the lists it offers */
    void *expected; /* the request whose answer counts; older ones are ignored */
};

/* What was said about one generation of a group. */
struct sim_generation {
    bool seen;
    bool leader_known;
    char leader[SIM_ID_BYTES];
    char protocol[16];
    char members[SIM_MEMBERS_MAX][SIM_ID_BYTES];
    int member_count;
    char answered[SIM_MEMBERS_MAX][SIM_ID_BYTES];
    int answered_count;
};

struct sim_group {
    char name[8];
    bool has_static;            /* a static member was or is in it */
    struct sim_generation *generations;
    int32_t newest;             /* generation told last */
    int64_t acked[SIM_PARTITIONS];   /* highest offset whose commit was answered, -1: none */
    int64_t next[SIM_PARTITIONS];    /* offsets to commit only grow */
    int deletions;              /* of offsets or group, under way */
};

struct sim {
    struct harness harness;
    struct coordinator *replica; /* replays what is committed, step by step */
    size_t replica_at;           /* log records it has seen */
    uint64_t seed;
    uint64_t state;
    struct sim_client clients[SIM_CLIENTS];
    struct sim_group groups[SIM_GROUPS];
    uint64_t sent, answered;
    uint64_t counts[8]; /* joins, syncs, ... that ended well; for the summary */
};

/* A random number in [0, bound). */
uint64_t sim_below(struct sim *sim, uint64_t bound);

/* Prints what is broken with the seed, and aborts. */
void sim_fail(struct sim *sim, const char *what, const char *detail) __attribute__((noreturn));

/* One random step of one random client, or of an administrator. */
void sim_client_step(struct sim *sim);
void sim_admin_step(struct sim *sim);

/* Every answer comes here. */
void sim_on_answer(struct harness *harness, struct harness_request *request, const void *response);

/* The group is gone, or the leadership changed: what was only live is forgotten. */
void sim_forget_generations(struct sim *sim, int group);

#endif
