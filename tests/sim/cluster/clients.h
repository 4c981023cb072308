/* Simulated clients, as stock ones behave: they ask for metadata, send to leaders, and try again
 * what may be tried again. What they are told goes into the model.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_CLIENTS_H
#define OTTLA_TESTS_SIM_CLUSTER_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"
#include "tests/sim/cluster/caller.h"
#include "tests/sim/cluster/model.h"

/* The topic that producers write to. */
#define WORK_TOPIC "work"

/* How many tries without an answer a committer remembers. */
enum { DOUBTFUL_MOST = 64 };

/* The longest name of a member. */
enum { MEMBER_ID_BYTES = 80 };

/* Replicas of the work topic's partitions. */
enum { REPLICAS_MOST = 3 };

/* How many batches a producer has under way: as many as a broker remembers of it. */
enum { BATCHES_MOST = 5 };

enum client_kind {
    CLIENT_PRODUCER, CLIENT_CONSUMER, CLIENT_COMMITTER, CLIENT_ADMIN, CLIENT_MEMBER, CLIENT_MOVER,
    CLIENT_VOTERS, CLIENT_WITNESS
};

/* A batch under way. */
struct produced {
    int32_t sequence;
    int records;
    uint64_t first_serial;
    int64_t offset;              /* acknowledged; -1: not */
    bool is_sent;                /* and not answered */
};

/* What a member of a consumer group knows of itself. */
struct member {
    char id[MEMBER_ID_BYTES];    /* empty: none yet */
    bool is_in;                  /* it has its part of `generation` */
    int32_t generation;
    int32_t newest;              /* the group's, when the request under way was sent */
    unsigned owned;              /* bit by bit: its partitions */
    bool must_read;              /* where they were left is not known yet */
    bool is_late;                /* the commit under way is one of an old generation */
    int partition;               /* of the commit under way */
    int64_t positions[MODEL_PARTITIONS];
    int64_t floors[MODEL_PARTITIONS]; /* acknowledged, when the request under way was sent */
    uint64_t joins;
};

/* What a mover knows of a partition's replicas. */
struct wanted {
    int32_t replicas[REPLICAS_MOST]; /* in the order of the last move that was acknowledged */
    bool is_known;               /* and nothing else can have come after it */
    uint64_t doubt_ns;           /* when a try without an answer was sent; 0: never */
};

struct mover {
    struct wanted wanted[MODEL_PARTITIONS];
    int32_t asked[REPLICAS_MOST]; /* in the move under way */
    bool cancels;                /* the one under way */
    bool repeats;                /* another one comes soon, perhaps just when this one ends */
    int partition_count;         /* that were asked for */
};

struct client {
    struct caller caller;
    enum client_kind kind;
    int number;                  /* among those of its kind */
    int node;                    /* asked last, or the leader or coordinator */
    bool knows;                  /* `node` is the leader or coordinator */
    bool done;                   /* nothing left to do, once the clients are to stop */
    int partition;
    bool waking;                 /* its next turn is on its way */
    /* producer */
    int64_t producer_id;         /* -1: none yet */
    int32_t sequence;            /* of the next batch */
    struct produced batches[BATCHES_MOST]; /* in the order of their sequences, from the first one
                                              that is not acknowledged on */
    int batch_count;
    int64_t last_offset;         /* acknowledged; of the last batch that is not among these */
    bool resends;                /* one is to be sent again: nothing else before */
    bool careful;                /* and then one at a time */
    /* consumer */
    int64_t position;
    int32_t leader_epoch;        /* as the metadata said */
    /* committer */
    int64_t committed;           /* acknowledged */
    int64_t sent;                /* the highest one that was tried */
    bool checks;                 /* the next thing is to read it back */
    int64_t doubtful[DOUBTFUL_MOST]; /* tried, outcome unknown; the latest ones */
    unsigned doubtful_count;
    /* member */
    struct member member;
    /* mover */
    struct mover mover;
    /* admin */
    int replicas;                /* of the topics that it makes */
    int topic;                   /* number of the topic under way */
    bool deletes;
    uint64_t unsure;             /* bit by bit: topics with a try whose outcome is not known; it may
                                    still take effect, at any later time */
    uint64_t existing;           /* bit by bit: topics that were acknowledged and not deleted */
    /* witness; `committed` is what was acknowledged before it asked */
    const struct client *asked;  /* the committer that it asks about */
};

/* So many clients of each kind; one consumer for each partition, and one witness. */
struct crowd {
    int producers;
    int committers;
    int admins;
    int members;
    int movers;
    int voters;                  /* who change the voters on metadata */
    int replicas;                /* of each topic */
};

/* Makes the work topic and the clients. */
void clients_start(const struct crowd *crowd);

/* From now on nothing new is begun; consumers read to the end. */
void clients_stop(void);

/* Whether nothing is under way and everything is read. */
bool clients_are_done(void);

/* What the topics in the end must be, asked of every node: tells whether all answers fit. */
void clients_end(void);

/* ---- Shared by the kinds ---- */

/* Does the next thing after a while; sooner in a seed whose clients are in a hurry. */
void client_later(struct client *client, uint64_t most_ms);

/* Whether the answer's error only means that it is to be tried again, elsewhere or later. */
bool client_may_retry(int16_t error);

/* A node at random. */
int client_any_node(void);

/* Asks the node where the work topic's partitions are; `done` gets its metadata_response. */
void client_ask_places(struct client *client, int node, answered *done);

/* Finds the leader of a partition of the work topic, then does the next thing. */
void client_find_leader(struct client *client);

void producer_next(struct client *client);
void consumer_next(struct client *client);
void committer_next(struct client *client);
void admin_next(struct client *client);
void witness_next(struct client *client);
void member_next(struct client *client);
void mover_next(struct client *client);
void voters_next(struct client *client);

/* Groups of members that nobody has joined yet. */
void members_start(void);

/* The work topic is there, and so all of its replicas' brokers: before, the coordinators' topic
 * would be made with fewer replicas than it is to have. */
void clients_topic_is_made(void);

/* Whether it is; else the client is called again later. */
bool client_may_begin(struct client *client);

/* Finds the coordinator of a group, then does the next thing. */
void client_find_coordinator(struct client *client, struct view group);

/* Whether no producer has anything under way any more. */
bool clients_producers_are_done(void);

/* One of a kind, at random. */
const struct client *clients_any(enum client_kind kind);

/* Whether a committer's offset may be read when everything up to `floor` was acknowledged before:
 * a try that was given up may still wait on its connection, and come in behind a later one. */
bool committer_may_have(const struct client *committer, int64_t floor, int64_t offset);

/* Asks a node what the group of the committer of that number has committed. */
void committer_ask_offset(struct client *client, int number, int node, answered *done);

/* Whether clients are to stop. */
bool clients_are_stopping(void);

/* The time by a client's clock, which nobody sets. */
int64_t client_time_ms(void);

/* A serial number that no record has. */
uint64_t client_new_serial(void);

#endif
