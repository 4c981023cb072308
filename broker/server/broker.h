/* The broker process: what its parts share. Everything here is set up before the shards run and
 * stays as it is, or is safe from every thread by itself.
 */
#ifndef OTTLA_BROKER_SERVER_BROKER_H
#define OTTLA_BROKER_SERVER_BROKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "broker/config/config.h"
#include "broker/config/listeners.h"
#include "broker/controller/cluster_image.h"
#include "broker/group/boot.h"
#include "broker/group/directory.h"
#include "broker/net/acceptor.h"
#include "broker/net/connection.h"
#include "broker/net/shard.h"
#include "broker/peer/liveness.h"
#include "broker/peer/places.h"
#include "broker/peer/resolver.h"
#include "storage/journal.h"
#include "storage/log_dir.h"
#include "storage/log_writer.h"

enum { SHARDS_MAX = 64, BROKER_RUN_AGAIN = 100 };

struct broker {
    const struct config *config;
    bool threaded;                       /* false: a simulation runs what threads do */
    int32_t node_id;
    const char *cluster_id;
    const char *rack;                    /* null: none */
    struct quorum_voter *voters;         /* at the start; see cluster_voters */
    int voter_count;
    struct quorum_voter *first_voters;   /* of this node's empty metadata log */
    int first_voter_count;
    bool in_cluster;                     /* there are other nodes, or may be */
    bool changes_voters;                 /* they are found by controller.quorum.bootstrap.servers */
    uint64_t groups_before;              /* groups below this id were here when this process
                                          * registered; set before the first round */
    struct liveness liveness;            /* of the other nodes */
    struct resolver *resolver;           /* of their names; null without others */
    struct place own_place;              /* where they reach this one; port 0: it does not say */
    struct meeting_places meeting_places; /* where any controller may be met */
    struct cluster_broker self;          /* this process as it registers; ports as bound */
    struct arena arena;                  /* for what is read from the configuration */
    struct listeners listeners;
    struct acceptor *acceptors[LISTENER_LIMIT];
    int acceptor_count;
    bool accepting;
    struct shard *shards;
    int shard_count;
    struct connection_limits connection_limits;
    struct connection_register connection_register;
    struct directory directory;
    struct log_dir *log_dir;
    struct log_writer *writer;
    struct journal *journal;
    struct boot boot;
    struct metadata_log *metadata;       /* broker/server/metadata_log.h; lives on shard 0 */
    struct registration *registration;   /* broker/server/registration.h; null: stands alone */
    atomic_bool keeps_metadata;          /* the metadata log has something here (PeerHello) */
    atomic_int groups_catching_up;       /* broker/group/group_loss.h */
    struct departure *departure;         /* broker/server/departure.h; null: no stop, or alone */
    atomic_bool serving;                 /* clients' requests are run, and do not wait */
    atomic_bool stopping;
    atomic_bool closing;                 /* all is handed over: no group is opened or ended now */
    atomic_int handing_over;             /* shards that do, at the stop of a node of a cluster */
    _Atomic uint64_t stop_deadline_ms;   /* monotonic */
    _Atomic int storage_failure;         /* enum status of the first failure; 0: none */
    atomic_bool metadata_is_unread;      /* that failure was a read of the metadata */
    pid_t guard;                         /* broker/server/guard.h; 0: none */
    uint64_t started_ns;
};

/* Runs a broker until it is told to stop by SIGTERM or SIGINT. Exit code: 0 after a clean stop, 1
 * when it could not start; then one line in the log says why. */
int broker_run(const struct config *config);

/* Where the partition group lives. */
static inline struct shard *broker_shard_of(const struct broker *broker, uint64_t group)
{
    return &broker->shards[group % (unsigned)broker->shard_count];
}

/* A broker that is not open yet. With `threaded` false it starts no thread: who owns it runs its
 * shards, journal and log writer (simulation). The configuration must outlive it. */
struct broker *broker_new(const struct config *config, bool threaded);

/* Opens ports, data directory and journal and starts the shards. On failure one line in the log
 * says why; stop and free it all the same. */
MUST_USE enum status broker_open(struct broker *broker);

/* Ends connections, writes checkpoints for a bounded time, ends the shards. */
void broker_stop(struct broker *broker);

/* Releases a stopped broker; what was not written is in the journal. */
void broker_free(struct broker *broker);

/* For the metadata log, on shard 0: every group that was here at the start is open. */
void broker_opened(struct broker *broker);

/* For the registration, on shard 0: what clients are told is true from now on. */
void broker_ready(struct broker *broker);

#endif
