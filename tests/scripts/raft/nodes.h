/* The cluster that a script commands: nothing moves by itself, neither messages nor disks. */
#ifndef OTTLA_TESTS_SCRIPTS_RAFT_NODES_H
#define OTTLA_TESTS_SCRIPTS_RAFT_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "raft/raft.h"

enum { NODES_MAX = 9, MESSAGES_MAX = 256, WRITES_MAX = 256, ENTRIES_MAX = 256 };

struct queued {
    struct raft_message message;
    struct raft_entry *entries;
};

/* A write that waits for the disk: what SAVE, TRUNCATE and APPEND asked for. */
struct write {
    struct raft_action action;
    struct raft_entry *entries;
    uint32_t entry_count;
};

struct node {
    int32_t id;
    struct raft *raft; /* null = crashed */
    struct raft_actions actions;
    struct write writes[WRITES_MAX]; /* [0, durable) are on disk */
    uint32_t write_count;
    uint32_t durable;
};

struct nodes {
    struct raft_limits limits;
    struct raft_member members[NODES_MAX];
    size_t member_count;
    struct node nodes[NODES_MAX];
    uint32_t count;
    struct queued queue[MESSAGES_MAX];
    uint32_t queued;
    FILE *out;
};

void nodes_init(struct nodes *nodes, FILE *out);
void nodes_free(struct nodes *nodes);

/* Creates and starts one node per member (and `spare` others that are none). */
void nodes_start(struct nodes *nodes, uint32_t spare);
struct node *nodes_find(struct nodes *nodes, int32_t id);

/* Feeds one event and narrates what follows from it. */
void node_event(struct nodes *nodes, struct node *node, struct raft_event event);
void node_propose(struct nodes *nodes, struct node *node, const char *text);
/* Completes the writes that wait; whether there were any. */
bool node_disk(struct nodes *nodes, struct node *node);
/* Loses what was not written, and starts again from the journal. */
void node_restart(struct nodes *nodes, struct node *node);
void node_crash(struct nodes *nodes, struct node *node);
/* Damages the journal: the latest `count` appends are gone; then restarts. */
void node_lose(struct nodes *nodes, struct node *node, uint32_t count);

/* Delivers the messages that wait now from and to these nodes (0 = any); whether there were any.
 * With `drop` they are lost instead. */
bool nodes_deliver(struct nodes *nodes, int32_t from, int32_t to, bool drop);

#endif
