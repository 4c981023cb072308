/* Which nodes live, as every thread may ask.
 *
 * Whatever comes from a node proves it alive; a node from which nothing came for
 * LIVENESS_SILENT_MS, or whose last incoming connection broke, is lost, and every shard is told so
 * once; likewise when it is back. The table only grows, by node ids that peers name; reading takes
 * no lock.
 */
#ifndef OTTLA_BROKER_PEER_LIVENESS_H
#define OTTLA_BROKER_PEER_LIVENESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/uuid.h"

struct broker;

enum {
    LIVENESS_NODES = 128,
    LIVENESS_SILENT_MS = 500,
    LIVENESS_BEAT_MS = 100,
    LIVENESS_GONE_MS = 5000,     /* nobody waits for a node that is lost for so long */
};

/* What a node said of its metadata log when a link to it was made. */
enum liveness_metadata { LIVENESS_NOT_ASKED, LIVENESS_EMPTY, LIVENESS_KEPT };

struct liveness_node {
    _Atomic int32_t key;         /* node id + 1; 0: not in use */
    atomic_int incoming;         /* connections on which the node said hello */
    _Atomic uint64_t heard_ms;   /* monotonic */
    atomic_int metadata;         /* enum liveness_metadata */
    atomic_bool alive;           /* not lost since it was last heard */
    atomic_bool back_told;       /* and the shards were told so */
    struct uuid incarnation;     /* of the process that said hello; guarded by the lock */
    _Atomic uint64_t since_ms;   /* when that process was first met */
};

struct liveness {
    pthread_mutex_t lock;        /* for hellos */
    struct liveness_node nodes[LIVENESS_NODES];
    atomic_bool any;             /* a link to another node was made */
};

/* Starts with none. */
void liveness_init(struct liveness *liveness);

/* The node's place, made when it has none; null when the table is full. Any thread. */
struct liveness_node *liveness_add(struct liveness *liveness, int32_t node);

/* The node has answered hello: which process it is, and whether it has anything of the metadata
 * log. A process other than the one before means that the node was lost meanwhile, and every shard
 * is told so. Any thread. */
void liveness_told(struct broker *broker, int32_t node, struct uuid incarnation,
                   bool keeps_metadata);

/* The node's place, or null. Any thread. */
const struct liveness_node *liveness_find(const struct liveness *liveness, int32_t node);

/* The node whose place it is. */
int32_t liveness_id(const struct liveness_node *node);

/* Something came from the node. Any thread. */
void liveness_heard(struct liveness_node *node, uint64_t now_ms);

/* The node said hello on a connection; otherwise as liveness_told. False when another process with
 * the same node id is alive: one of the two has a wrong configuration, and together they would
 * break every promise. Any thread. */
MUST_USE bool liveness_join(struct broker *broker, struct liveness_node *node,
                            struct uuid incarnation, uint64_t now_ms);

/* A connection on which the node had said hello was closed. Any thread. */
void liveness_left(struct broker *broker, struct liveness_node *node);

/* Whether it was heard within LIVENESS_SILENT_MS and is not lost. */
bool liveness_is_alive(const struct liveness_node *node, uint64_t now_ms);

/* The nodes that are lost for LIVENESS_GONE_MS or were never heard; returns how many. The shards
 * are told when one is back. Any thread. */
int liveness_gone(const struct liveness *liveness, uint64_t now_ms, int32_t nodes[LIVENESS_NODES]);

/* For how long its process is known; 0 while it is not alive. */
uint64_t liveness_known_ms(const struct liveness_node *node, uint64_t now_ms);

/* For how long nothing came from it. */
uint64_t liveness_silent_ms(const struct liveness_node *node, uint64_t now_ms);

/* Looks for nodes that fell silent or are back; one thread calls it every LIVENESS_BEAT_MS. */
void liveness_check(struct broker *broker, uint64_t now_ms);

#endif
