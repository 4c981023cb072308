/* One partition of a group: its log, the offsets it will give next, and who waits for more.
 *
 * Happy path of an append on the leader: the batch's producer is checked, offsets and epoch are
 * patched into the batch, it is proposed to the group; when it is committed it is in the log and
 * the appender is told. Everything runs on the group's shard.
 */
#ifndef OTTLA_BROKER_GROUP_PARTITION_H
#define OTTLA_BROKER_GROUP_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/block.h"
#include "base/list.h"
#include "broker/group/confirm.h"
#include "broker/group/group.h"
#include "broker/group/refused.h"
#include "storage/partition_log.h"

/* Somebody who wants to know when the partition has more than it had, or has failed. */
struct watch {
    struct list_link link;
    void (*wake)(struct watch *watch); /* runs once, after the watch was taken off the list */
};

struct partition {
    struct group *group;
    int32_t number;
    struct partition_log *log;
    int64_t next_offset;      /* leader: given to the next batch; at least the log's end */
    int64_t lead_offset;      /* leader: where it began */
    struct list watches;      /* struct watch */
    struct refused *refused;  /* what producers are to send again; null as a rule */
    bool damaged;
};

/* One batch to be appended. The caller fills the upper part, and may give the proposal a deadline
 * and say that durable is enough; the lower part is valid in `done`. */
struct append {
    struct proposal proposal;
    struct partition *partition;
    struct slice payload;     /* GROUP_PAYLOAD_PREFIX bytes of room, then the batch */
    struct confirm confirm;   /* the partition's own */
    bool is_confirmed;        /* likewise: this node led when a refusal was thought of */
    bool is_client;           /* producer rules apply; false for the broker's own records */
    int32_t least_in_sync;    /* refused when fewer are in sync (min.insync.replicas) */
    void (*done)(struct append *append);

    int16_t error;            /* Kafka error code */
    int64_t base_offset;
    int64_t append_time_ms;   /* -1 unless the topic uses LogAppendTime */
};

/* What an entry's first four bytes say, besides the partition's number. */
enum payload_kind { PAYLOAD_BATCH = 0, PAYLOAD_LOG_START = 1 };

/* Makes room for the partition; its log is opened by group_open. */
struct partition *partition_new(struct group *group, int32_t number);

/* Releases it, after partition_end. */
void partition_free(struct partition *partition);

/* Closes the log; wakes who watches. */
void partition_end(struct partition *partition);

/* The same, and its files are to go, also when they could not be read: log_deletion_begin is the
 * caller's. */
struct log_deletion *partition_remove(struct partition *partition);

/* Appends a batch whose header and CRC are checked. `done` runs later, or at once on an error. The
 * caller's reference on the block stays the caller's. */
void partition_append(struct partition *partition, struct append *append);

/* Proposes that the log starts at `offset` (DeleteRecords); -1 means its end. On RAFT_OK the
 * proposal is told when it is done. Returns a Kafka error code. */
int16_t partition_delete_records(struct partition *partition, int64_t offset,
                                 struct proposal *proposal);

/* Whether it can be read here, as a Kafka error code. */
int16_t partition_error(const struct partition *partition);

/* Whether it can be read here by who does not insist on the leader: also on a follower that hears
 * its leader. */
int16_t partition_follower_error(const struct partition *partition);

/* Whether entries are here that are not applied yet. */
bool partition_lags(const struct partition *partition);

/* Whether a client that believes in this leader epoch (below zero: none) is up to date (KIP-320):
 * none, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH. */
int16_t partition_epoch_error(const struct partition *partition, int32_t epoch);

/* A committed payload of this partition. */
MUST_USE enum status partition_apply(struct partition *partition, enum payload_kind kind,
                                     struct slice body, int64_t now_ms);

/* The next batch of the log, committed elsewhere and copied from there; whole and checked. */
MUST_USE enum status partition_take(struct partition *partition, struct slice batch);

/* The log begins anew at this offset, empty: what comes next there is not kept by the leader. */
MUST_USE enum status partition_restart(struct partition *partition, int64_t offset);

/* Wakes everybody who watches. */
void partition_wake(struct partition *partition);

/* The partition's leader epoch as Kafka means it: the Raft term. */
int32_t partition_epoch(const struct partition *partition);

#endif
