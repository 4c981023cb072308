/* A cluster of raft cores in memory under one seed: the parts of the simulation.
 *
 * main.c runs seeds; cluster.c is the loop, faults.c and clients.c what disturbs and uses the
 * cluster, network.c carries messages, disk.c is a node's journal, node.c carries out actions as a
 * broker would, check.c holds the invariants. A broken invariant ends the process with the seed.
 * Time is a counter of units; TICK_UNITS of them are one tick.
 */
#ifndef OTTLA_TESTS_SIM_RAFT_SIM_H
#define OTTLA_TESTS_SIM_RAFT_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "raft/raft.h"

enum {
    NODES_MAX = 7,
    INDEX_MAX = 20000,
    TERM_MAX = 20000,
    TICK_UNITS = 10,
    SILENT_TICKS = 12, /* until a silent peer counts as lost */
    GONE_TICKS = 30,   /* and until nobody waits for it any more */
    READS_MAX = 4096,
};

/* ---- Randomness ---- */

struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *rng);
/* A number below `bound`, which is above 0. */
uint32_t rng_below(struct rng *rng, uint32_t bound);
/* True in `parts` of a million cases. */
bool rng_chance(struct rng *rng, uint32_t parts);
uint64_t hash_mix(uint64_t hash, uint64_t value);

/* ---- Disk ---- */

enum record_kind { RECORD_SAVE, RECORD_TRUNCATE, RECORD_ENTRY, RECORD_NOTHING };

struct record {
    enum record_kind kind;
    uint64_t term; /* SAVE */
    int32_t voted_for;
    uint64_t index;       /* TRUNCATE */
    uint64_t notice_term; /* ENTRY: the last of its APPEND if not 0 */
    struct raft_entry entry;
};

/* What a node's partition logs and checkpoint file hold; written at once and for good. */
struct checkpoint {
    uint64_t index;
    uint64_t term;
    uint64_t hash;
    uint64_t members_index;
    size_t member_count;
    struct raft_member members[NODES_MAX];
};

/* The journal: [0, durable) is on disk, [durable, writing) is being written, the rest waits. */
struct disk {
    struct record *records;
    uint32_t count;
    uint32_t capacity;
    uint32_t durable;
    uint32_t writing;
    uint64_t write_due;
    struct checkpoint checkpoint;
    /* The log as it would be read back now, kept along with `durable`. */
    uint64_t last;
    uint64_t terms[INDEX_MAX];
    uint64_t saved_term;
    int32_t saved_vote;
};

/* ---- Nodes and messages ---- */

struct node {
    int32_t id;
    bool up;
    bool withdrawn;
    bool damaged;       /* lost entries it had acknowledged; withdrawn until they are back */
    uint64_t rejoin_at; /* the last index of the leader it followed first; 0 = none yet */
    uint64_t strike_at; /* 0 = not to be struck; see faults.c */
    uint64_t restart_at;
    uint64_t paused_until;
    uint64_t silent_ticks[NODES_MAX]; /* ticks since the peer could be reached */
    uint64_t back_ticks[NODES_MAX];   /* since it can be reached again after it was gone; or 0 */
    uint64_t snapshot_until[NODES_MAX];
    uint64_t alone_ticks; /* leading without a majority in reach */
    struct raft *raft;
    struct raft_actions actions;
    struct disk disk;
    struct checkpoint applied; /* the state machine */
    uint64_t term_seen;        /* of this life */
    uint64_t commit_seen;
};

enum packet_kind { PACKET_MESSAGE, PACKET_SNAPSHOT, PACKET_SNAPSHOT_DONE };

struct packet {
    uint64_t due;
    uint64_t sequence;
    enum packet_kind kind;
    int32_t from;
    int32_t to;
    struct raft_message message;
    struct raft_entry *entries;
    struct checkpoint snapshot;
};

struct network {
    struct packet **heap;
    uint32_t count;
    uint32_t capacity;
    uint64_t sequence;
    uint64_t latest[NODES_MAX][NODES_MAX];
    bool cut[NODES_MAX][NODES_MAX]; /* from, to */
};

/* What one seed may do; chances are parts of a million per unit or message. */
struct plan {
    uint32_t loss, duplicate, slow, reorder;
    uint32_t delay_max;
    uint32_t disk_max, disk_slow;
    uint32_t crash, pause, partition, one_way, heal;
    uint32_t propose, read, change, transfer, campaign, withdraw, damage, release, lost_link, hold;
    uint32_t strike;
    uint32_t jitter;
    bool crash_after_snapshot;
};

struct read {
    uint64_t committed; /* what was acknowledged when it was asked */
    int32_t node;
    bool open;
};

/* What is known of the whole run, to judge each step by. */
struct history {
    uint64_t committed; /* the largest index committed anywhere */
    uint64_t terms[INDEX_MAX];
    uint64_t hashes[INDEX_MAX];
    uint64_t commit_terms[INDEX_MAX]; /* the term in which it was first committed */
    int32_t leaders[TERM_MAX];        /* by term; 0 = none */
    int32_t votes[TERM_MAX][NODES_MAX];
    struct read reads[READS_MAX];
    uint32_t read_count;
    struct log_cell *cells; /* (index, term) -> what the entry is; see check.c */
    uint32_t cell_count;
    uint32_t cell_capacity;
};

struct cluster {
    uint64_t seed;
    uint64_t now;
    bool trace;
    bool healed;
    uint32_t node_count;
    struct rng rng;
    struct plan plan;
    struct raft_limits limits;
    struct network network;
    struct history history;
    struct node nodes[NODES_MAX];
    uint64_t hash;
    uint64_t payloads;
    uint64_t steps, leaders, commits, snapshots, changes, crashes, damages, reads_served, rests;
};

static inline struct node *cluster_node(struct cluster *cluster, int32_t id)
{
    return &cluster->nodes[id - 1];
}

/* ---- network.c ---- */

void network_send(struct cluster *cluster, const struct raft_message *message);
void network_send_snapshot(struct cluster *cluster, int32_t from, int32_t to,
                           const struct checkpoint *snapshot);
void network_send_snapshot_done(struct cluster *cluster, int32_t from, int32_t to,
                                const struct checkpoint *snapshot);
/* The next packet that is due, to be given back with network_drop(); null when there is none. */
struct packet *network_next(struct cluster *cluster);
void network_requeue(struct cluster *cluster, struct packet *packet, uint64_t due);
void network_drop(struct packet *packet);
void network_free(struct network *network);

/* ---- disk.c ---- */

void disk_add(struct cluster *cluster, struct disk *disk, const struct record *record);
/* Loses what was not written; a part of the write under way may have been. */
void disk_crash(struct cluster *cluster, struct disk *disk);
/* Loses the latest entries of the durable part, up to `count`, but not what a checkpoint covers. */
void disk_damage(struct disk *disk, uint32_t count);
/* Forgets entries that a checkpoint covers. */
void disk_trim(struct disk *disk);
void disk_free(struct disk *disk);
/* Begins a write if there is one to begin; true when a write is complete: its records are
 * [from, to) and are durable now. */
bool disk_progress(struct cluster *cluster, struct disk *disk, uint32_t *from, uint32_t *to);
bool disk_has(const struct disk *disk, uint64_t index, uint64_t term);

/* ---- node.c ---- */

void node_boot(struct cluster *cluster, struct node *node, const struct checkpoint *first);
void node_crash(struct cluster *cluster, struct node *node);
void node_event(struct cluster *cluster, struct node *node, struct raft_event event);
void node_disk(struct cluster *cluster, struct node *node);
void node_release(struct cluster *cluster, struct node *node);
void node_receive(struct cluster *cluster, struct node *node, const struct packet *packet);
enum raft_result node_propose(struct cluster *cluster, struct node *node, uint32_t count);

/* ---- check.c ---- */

void check_fail(const struct cluster *cluster, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void check_appended(struct cluster *cluster, const struct node *node, uint64_t first,
                    uint64_t last);
void check_committed(struct cluster *cluster, const struct node *node, uint64_t index,
                     uint64_t term, uint64_t hash);
/* The node committed up to `last` in one action. */
void check_counted(const struct cluster *cluster, const struct node *node, uint64_t last);
void check_leader(struct cluster *cluster, const struct node *node);
void check_sent(struct cluster *cluster, const struct node *node,
                const struct raft_message *message);
void check_step(struct cluster *cluster, struct node *node);
void check_read(struct cluster *cluster, const struct node *node, uint64_t context,
                uint64_t index);
/* Once per tick of a node: it must not lead or rest without those it needs. */
void check_contact(const struct cluster *cluster, struct node *node);
void check_free(struct history *history);

/* ---- faults.c, clients.c, cluster.c ---- */

void plan_draw(struct cluster *cluster);
void faults_step(struct cluster *cluster);
void faults_heal(struct cluster *cluster);
void clients_step(struct cluster *cluster);
/* A node has become leader: it may be struck soon. */
void faults_new_leader(struct cluster *cluster, struct node *node);
/* A damaged node that is repaired takes part again. */
void faults_repair(struct cluster *cluster, struct node *node);
bool faults_is_damaged(const struct cluster *cluster);
/* The running leader of the highest term, or null. */
struct node *cluster_leader(struct cluster *cluster);
struct cluster *cluster_run(uint64_t seed, bool trace);
void cluster_free(struct cluster *cluster);

#endif
