/* Raft messages for groups that are not here yet: another node may hear of a new topic first.
 *
 * They wait for some seconds, in a bounded number, and are given to the group when it is opened.
 * Entries are not kept; their sender notices and sends them again.
 */
#ifndef OTTLA_BROKER_GROUP_EARLY_H
#define OTTLA_BROKER_GROUP_EARLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "raft/raft.h"

enum { EARLY_MESSAGES_MAX = 1024, EARLY_KEEP_MS = 5000 };

/* The messages of one shard; costs nothing while it is empty. */
struct early {
    struct list messages;  /* oldest first */
    size_t count;
};

/* Empty. */
void early_init(struct early *early);

/* Keeps a copy of the message if it has no entries; the oldest one makes room. */
void early_add(struct early *early, uint64_t group, const struct raft_message *message,
               uint64_t now_ms);

/* Takes the group's oldest message out into *message; false when there is none. */
bool early_take(struct early *early, uint64_t group, struct raft_message *message);

/* Drops what waited too long. */
void early_tick(struct early *early, uint64_t now_ms);

/* Drops everything. */
void early_free(struct early *early);

#endif
