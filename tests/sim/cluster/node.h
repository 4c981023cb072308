/* A simulated node: the broker as it is, on a disk, a clock, a network and event loops that are
 * simulated. What it does happens in its context (node_enter): its disk and its clock are in use.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_NODE_H
#define OTTLA_TESTS_SIM_CLUSTER_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/server/broker.h"
#include "tests/sim/cluster/network.h"

struct sim_disk;
struct shard_timer;

/* The loop of one shard. */
struct sim_loop {
    struct sim_node *node;
    struct shard *shard;
    struct shard_timer **timers;
    uint64_t *due_ns;            /* of each timer */
    size_t timer_count;
    size_t timer_capacity;
    uint64_t tick_ns;            /* of the next tick */
    uint64_t next_ns;            /* nothing is due before; 0: it is to be looked for */
};

struct sim_node {
    int32_t id;
    struct config *config;       /* of its process now, or the one before */
    int shard_count;
    int elections_most;
    unsigned controller_port;
    struct broker *broker;       /* null: it is down */
    unsigned life;               /* counts starts and ends */
    uint64_t start_ns;           /* of the process */
    bool is_paused;
    bool is_off;                 /* the whole machine */
    uint64_t journal_turns;
    bool lost_disk;              /* or a part of it, and has not caught up since */
    bool is_away;                /* and no fault's end starts it */
    bool missed;                 /* something was due while it was paused */
    uint64_t gathers_ns;         /* it reads until then, and runs its loops once for all of it */
    bool bad_disk;               /* it fails or is full, so that a start may fail */
    bool is_running;             /* its loops are being run now */
    uint64_t run_ns;             /* when it is to be run next; UINT64_MAX: not known */
    uint64_t call_ns;            /* when the latest call comes; UINT64_MAX: there is none */
    bool journal_has_work;       /* something was submitted, or it is time to look */
    bool writer_has_work;
    bool journal_due;
    bool writer_due;
    uint32_t disk_us;            /* the longest usual write */
    uint64_t disk_stall_ns;      /* nothing is written before that */
    int64_t wall_ahead_ms;
    struct sim_disk *disk;
    void (*torn)(void *context, uint64_t life); /* its power went while it wrote */
    struct sim_loop loops[SHARDS_MAX];
    int loop_count;
    unsigned next_loop;          /* for the next connection */
};

struct cluster {
    struct sim_node nodes[NODES_MAX]; /* by number, from 0; ids count from 1 */
    int count;
    bool changes_voters;         /* on metadata: at the beginning the first node votes alone */
};

extern struct cluster cluster;

/* So many nodes with empty disks, none of them started. */
void cluster_start(int count, bool changes_voters, uint64_t seed);

/* Kills and forgets all. */
void cluster_end(void);

/* The node of this id, or null. */
struct sim_node *node_find(int32_t id);

/* Starts the node's process. */
void node_start(struct sim_node *node);

/* The process is killed; with `power`, what was not synced may be lost. */
void node_kill(struct sim_node *node, bool power);

/* Its power goes in the middle of the disk's operation after so many more; `torn` runs then. */
void node_tear(struct sim_node *node, uint64_t operations,
               void (*torn)(void *context, uint64_t life));

/* Its disk is full but for so many bytes, or fails every change from now on, or is well again. A
 * process that sees it starts again when its disk takes writes, as the real one does. */
void node_fill_disk(struct sim_node *node, uint64_t room_bytes);
void node_break_disk(struct sim_node *node);

/* Its disk cannot be read any more, or with `part` only some of the bytes of one of its files. */
void node_break_reads(struct sim_node *node, bool part);
void node_mend_disk(struct sim_node *node);

/* Its whole data directory is lost; the node is down. */
void node_lose_disk(struct sim_node *node);

/* Whether it has made up for the disk or the checkpoint that it lost, or has lost none. */
bool node_is_whole(struct sim_node *node);

/* A bit of one of its checkpoints flips; the node is down. */
void node_rot_checkpoint(struct sim_node *node);

/* The process is stopped, or goes on. */
void node_pause(struct sim_node *node, bool paused);

/* Runs the loops after so long. */
void node_wake(struct sim_node *node, uint64_t wait_ns);

/* The node that is run now; null between events. */
struct sim_node *node_current(void);

/* For the network: callbacks of this place run between the two. Clients have no context. */
void node_enter_place(int place);
void node_leave_place(int place);
bool node_place_is_paused(int place);
bool node_place_is_off(int place);

/* A new connection, as network.accept. */
bool node_accept(struct wire *wire, int place, int from, unsigned port, struct wire_end *end);

#endif
