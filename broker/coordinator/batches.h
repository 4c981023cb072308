/* Records on their way into the log, and what is to be done once their fate is known. A batch keeps
 * its own copy of the records; the host sees views of it. */
#ifndef OTTLA_BROKER_COORDINATOR_BATCHES_H
#define OTTLA_BROKER_COORDINATOR_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/list.h"
#include "base/view.h"
#include "broker/coordinator/consumer_group.h"
#include "broker/coordinator/coordinator.h"
#include "broker/coordinator/records.h"

enum batch_kind {
    BATCH_NEW_GROUP,     /* an empty group was made */
    BATCH_EMPTY_GROUP,   /* the last member went */
    BATCH_ASSIGNMENT,    /* the leader's assignment of a generation */
    BATCH_STATIC_MEMBER, /* a static member came back under a new id */
    BATCH_OFFSETS,       /* committed offsets */
    BATCH_DELETE_OFFSETS,
    BATCH_DELETE_GROUPS,
    BATCH_EXPIRY         /* offsets and groups past their retention */
};

/* An answer that waits for a batch. The response lies in the request's arena. */
struct batch_answer {
    bool waiting;
    enum api_key api;
    int16_t version;
    void *token;
    void *response;
};

/* What a static member was before it was replaced. */
struct static_undo {
    struct view old_id;                /* owned */
    struct view old_leader;            /* owned; the leader's id before, null: none */
    struct member_protocol *protocols; /* owned */
    size_t protocol_count;
    int32_t session_timeout_ms;
    int32_t rebalance_timeout_ms;
};

struct batch_record {
    size_t key_at;
    size_t key_length;
    size_t value_at;
    size_t value_length;
    bool tombstone;
};

struct batch {
    struct list_link link;
    enum batch_kind kind;
    uint64_t id;
    struct view group;  /* owned; the group it is about; null: several */
    struct view member; /* owned; BATCH_STATIC_MEMBER: the new id */
    int32_t generation; /* BATCH_ASSIGNMENT */
    int64_t producer_id;
    int16_t producer_epoch;
    struct buffer bytes;
    struct batch_record *records;
    size_t count;
    size_t capacity;
    struct coordinator_record *views; /* made when it is emitted */
    struct batch_answer answer;
    struct static_undo undo;
};

/* A batch without records. `group` is copied and may be null. */
struct batch *coordinator_batch_new(enum batch_kind kind, struct view group);

/* Releases a batch whose answer was given. */
void coordinator_batch_free(struct batch *batch);

/* Releases what the undo owns; it is zeroed. */
void coordinator_static_undo_free(struct static_undo *undo);

/* Add one record. */
void coordinator_batch_put_group(struct batch *batch, struct view group,
                                 const struct group_metadata_value *value);
void coordinator_batch_put_offset(struct batch *batch, struct view group, struct view topic,
                                  int32_t partition, const struct coordinator_offset *offset);
void coordinator_batch_drop_group(struct batch *batch, struct view group);
void coordinator_batch_drop_offset(struct batch *batch, struct view group, struct view topic,
                                   int32_t partition);

/* The records as views into the batch; no record may be added afterwards. */
const struct coordinator_record *coordinator_batch_views(struct batch *batch);

#endif
