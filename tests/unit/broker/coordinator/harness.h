/* A group coordinator with a log of its own: batches wait until the test commits or fails them,
 * what was committed can be replayed into a fresh machine, time and ids are the test's. Every
 * answer is encoded in its version, and a request that is answered twice or never fails the test.
 */
#ifndef OTTLA_TESTS_UNIT_BROKER_COORDINATOR_HARNESS_H
#define OTTLA_TESTS_UNIT_BROKER_COORDINATOR_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/list.h"
#include "broker/coordinator/coordinator.h"

enum { HARNESS_TOPICS_MAX = 16 };

/* A request under way; the token of the machine. */
struct harness_request {
    struct list_link link;
    char name[32];
    enum api_key api;
    int16_t version;
    struct arena arena;
    void *user;
};

/* A record or marker in the log; key and value owned. */
struct harness_record {
    struct view key;
    struct view value;
    int64_t producer_id; /* -1: none */
    bool is_marker;
    bool commits;
};

struct harness_batch {
    struct list_link link;
    uint64_t id;
    struct harness_record *records;
    size_t count;
};

struct harness {
    struct coordinator *machine;
    struct coordinator_config config;
    struct list requests;          /* not yet answered */
    struct list batches;           /* appended, fate open */
    struct harness_record *log;    /* committed */
    size_t log_count;
    size_t log_capacity;
    struct coordinator_topic topics[HARNESS_TOPICS_MAX];
    size_t topic_count;
    int64_t now_ms;
    uint64_t ids;
    void *user;
    void (*on_answer)(struct harness *harness, struct harness_request *request,
                      const void *response);
    void (*on_append)(struct harness *harness, const struct coordinator_batch *batch);
};

/* A machine that leads at time 0 with an empty log. Hooks may be null; set them afterwards. */
void harness_start(struct harness *harness);

/* Resigns, and checks that every request was answered; releases everything. */
void harness_stop(struct harness *harness);

/* A topic that find_topic knows; `name` must stay. */
void harness_add_topic(struct harness *harness, const char *name, int32_t partition_count);

/* A request to fill: memory from its arena. */
struct harness_request *harness_request_new(struct harness *harness, const char *name,
                                            enum api_key api, int16_t version);

/* Hands the request to the machine. */
void harness_send(struct harness *harness, struct harness_request *request, const char *client,
                  const void *message);

/* The oldest open batch is committed, or failed. False when there is none. */
bool harness_commit_one(struct harness *harness);
bool harness_fail_one(struct harness *harness, enum kafka_error error);

/* Commits until nothing is open. */
void harness_commit_all(struct harness *harness);

/* A marker of the producer goes into the log. */
void harness_marker(struct harness *harness, int64_t producer_id, bool commit);

/* Moves the time forward, running the timers one deadline after the other; `committing` commits
 * what they append. `before` is called with each deadline, may be null. */
void harness_advance(struct harness *harness, int64_t to_ms, bool committing,
                     void (*before)(struct harness *harness, int64_t at_ms));

/* The machine resigns; open batches are lost. */
void harness_resign(struct harness *harness);

/* A fresh machine that has replayed the log, not yet active. The caller frees it. */
struct coordinator *harness_replay(const struct harness *harness);

/* Resigns when active, throws the machine away, and lets one that has replayed the log lead. */
void harness_restart(struct harness *harness);

/* Compares dumps: the machine's durable layer with that of a replay, and with its live layer where
 * groups are at rest. False with both texts in `why`. */
bool harness_is_same(const struct harness *harness, struct buffer *why);

#endif
