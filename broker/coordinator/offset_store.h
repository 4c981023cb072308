/* The durable layer of the coordinator: what the committed records of the partition say, and
 * nothing else. Per group the newest GroupMetadata value as bytes and the committed offsets; per
 * producer the offsets of its open transaction. Equal records in equal order give equal stores on
 * every replica. */
#ifndef OTTLA_BROKER_COORDINATOR_OFFSET_STORE_H
#define OTTLA_BROKER_COORDINATOR_OFFSET_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/view.h"
#include "broker/coordinator/records.h"

struct stored_offset {
    struct coordinator_offset value; /* metadata owned */
    uint64_t order;                  /* of the record among all applied ones */
    int32_t partition;
};

struct stored_topic {
    UT_hash_handle hh;
    struct view name;              /* owned */
    struct stored_offset *offsets; /* by partition, ascending */
    size_t count;
    size_t capacity;
};

/* Exists while it has a value or an offset. */
struct stored_group {
    UT_hash_handle hh;
    struct view id;              /* owned */
    struct view value;           /* owned GroupMetadata value; null: none (a simple group) */
    struct stored_topic *topics; /* hash by name */
};

struct open_offset;
struct open_transaction;

struct offset_store {
    struct stored_group *groups;            /* hash by id */
    struct open_transaction *transactions;  /* hash by producer id */
    struct open_offset *open_offsets;       /* hash by key: how many transactions hold it */
    size_t offset_count;
    uint64_t order; /* of the record applied last */
};

/* Releases everything; the store is empty and may be used again. */
void offset_store_free(struct offset_store *store);

/* Applies one record; a null value is a tombstone. Foreign and unreadable records change nothing.
 */
void offset_store_apply(struct offset_store *store, struct view key, struct view value);

/* Keeps the record of an open transaction back until its marker. Only offsets are kept. */
void offset_store_apply_open(struct offset_store *store, int64_t producer_id, struct view key,
                             struct view value);

/* Told of each group whose offsets a transaction held, after its end. */
typedef void offset_store_visitor(void *owner, struct view group);

/* Ends the producer's transaction: its offsets are applied, unless a newer plain commit was, or
 * dropped. Nothing when it has none. `visit` may be null. */
void offset_store_end_transaction(struct offset_store *store, int64_t producer_id, bool commit,
                                  offset_store_visitor *visit, void *owner);

/* The group, or null. */
struct stored_group *offset_store_group(const struct offset_store *store, struct view id);

/* The group's offsets of a topic, or null. */
const struct stored_topic *offset_store_topic(const struct stored_group *group, struct view name);

/* The committed offset, or null; `group` may be null. */
const struct stored_offset *offset_store_find(const struct stored_group *group, struct view topic,
                                              int32_t partition);

/* Whether an open transaction holds an offset for this partition. */
bool offset_store_is_open(const struct offset_store *store, struct view group, struct view topic,
                          int32_t partition);

/* Told of a partition. */
typedef void offset_store_key_visitor(void *owner, const struct coordinator_key *key);

/* Calls `visit` for each partition of the group that an open transaction holds. */
void offset_store_each_open(const struct offset_store *store, struct view group,
                            offset_store_key_visitor *visit, void *owner);

/* Whether an open transaction holds any offset of the group. */
bool offset_store_has_open(const struct offset_store *store, struct view group);

#endif
