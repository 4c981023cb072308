/* What a shard holds of the cluster's data: its partition groups, the topics by name and id, and
 * the storage they share. Only the shard's own thread touches it.
 */
#ifndef OTTLA_BROKER_GROUP_REPLICAS_H
#define OTTLA_BROKER_GROUP_REPLICAS_H

#include <stdint.h>

#include "base/list.h"
#include "base/status.h"
#include "base/uuid.h"
#include "base/view.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/image.h"
#include "broker/controller/topic_index.h"
#include "broker/group/early.h"
#include "broker/group/elections.h"
#include "broker/group/group.h"
#include "broker/group/throttle.h"
#include "broker/net/shard.h"
#include "raft/raft.h"
#include "storage/journal.h"
#include "storage/log_writer.h"
#include "storage/partition_log.h"

/* Nested steps: a step's actions may lead to another step (a committed record that makes a
 * coordinator append). Deeper than this is a bug. */
enum { REPLICAS_STEP_DEPTH = 8 };

struct awaited;
struct metadata_update;

/* Lines that would come for each of many groups at once: of each kind one a second is enough. */
enum replicas_log {
    REPLICAS_LOG_INVALID,
    REPLICAS_LOG_STALL,
    REPLICAS_LOG_LOSS,
    REPLICAS_LOG_START,
    REPLICAS_LOG_UNREAD,
    REPLICAS_LOGS
};

struct replicas {
    struct shard *shard;
    struct group *groups;             /* uthash by id */
    struct topic_index topics_by_name;
    struct topic_index topics_by_id;
    struct cluster_image *cluster;    /* a reference; never null, always with this node */
    struct log_shard *logs;
    struct log_writer *writer;        /* the process's; not owned */
    struct journal *journal;          /* the process's; not owned; null when it is closed */
    struct list offsets_groups;       /* broker/group/offsets_group.h */
    struct shard_timer offsets_timer; /* the earliest deadline of a coordinator */
    int64_t offsets_deadline_ms;      /* wall clock; INT64_MAX: none */
    int64_t wall_ahead_ms;            /* of the monotonic clock, as the coordinators know it */
    struct list writes;               /* of this turn, on their way to the journal */
    struct shard_task submit;         /* hands them over (group_journal.h) */
    struct list dirty;                /* groups with something to checkpoint, oldest first */
    struct list ticking;              /* groups that need Raft's ticks */
    struct elections elections;
    struct list unread;               /* groups that are to be opened again (unread.h) */
    struct list moving;               /* groups that move to other replicas (group_move.h) */
    uint64_t next_balance_ms;         /* of leaders; 0: the time has not begun */
    bool is_struck_off;               /* was registered, and is not any more (UnregisterBroker) */
    uint64_t next_leave_ms;           /* when what it leads then is handed over again */
    struct early early;               /* messages for groups that are not here yet */
    bool has_image;                   /* the first changes, all that there was, have come */
    struct list paused;               /* installs here that wait, held to a rate (install.h) */
    struct throttle throttle;         /* of the reads of logs for installs */
    unsigned installs_sent;           /* replicas that groups led here bring up to date */
    uint64_t window_bytes;            /* of entries that all groups keep for peers */
    uint64_t lag_ms;                  /* replica.lag.time.max.ms (in_sync.h) */
    uint64_t next_log_ms[REPLICAS_LOGS];
    uint64_t next_gone_ms;            /* when to look for nodes that groups can rest without */
    struct raft_limits raft_limits;   /* of the topics' groups */
    struct raft_limits metadata_limits;
    struct raft_actions actions[REPLICAS_STEP_DEPTH];
    int depth;
    uint64_t checkpoint_interval_ms;
    uint64_t next_retention_ms;
    struct awaited *awaited;          /* broker/group/awaited.h */
    struct metadata_update *update;   /* is here until groups_starting is 0 again */
    unsigned groups_starting;         /* not leading yet, or not yet out of the way when deleted */
    unsigned checkpoints_pending;
};

/* Starts empty; of the cluster it knows this node (broker->self). */
void replicas_open(struct replicas *replicas, struct shard *shard, struct log_writer *writer,
                   struct journal *journal);

/* There is a new picture of the brokers; takes a reference of its own. */
void replicas_set_cluster(struct replicas *replicas, struct cluster_image *cluster);

/* Ends all groups, at the end of the process; who waits is told. */
void replicas_close_groups(struct replicas *replicas);

/* Releases topics and storage; nothing is under way any more. */
void replicas_close(struct replicas *replicas);

/* The group, or null when it is not on this shard (or not at all). */
struct group *replicas_group(const struct replicas *replicas, uint64_t id);

/* The partition of a group of this shard, or null. */
struct partition *replicas_partition(const struct replicas *replicas, uint64_t group_id,
                                     int32_t partition);

/* A topic by name or id, or null. Every shard knows every topic. */
struct topic_image *replicas_topic(const struct replicas *replicas, struct view name);
struct topic_image *replicas_topic_by_id(const struct replicas *replicas, struct uuid id);

/* Calls `each` for every topic, sorted by name. */
void replicas_each_topic(struct replicas *replicas,
                         void (*each)(void *context, struct topic_image *topic), void *context);

/* Topics were added, changed or removed: brings the indexes up to date, opens the groups that
 * belong to this shard, ends those of topics that are gone and removes their data. */
void replicas_change(struct replicas *replicas, const struct image_changes *changes);

/* For groups: enters and leaves the index; leads (or failed) for the first time. */
void replicas_add_group(struct replicas *replicas, struct group *group);
void replicas_drop_group(struct replicas *replicas, struct group *group);
void replicas_group_started(struct replicas *replicas);

/* Time passes: Raft, retention, checkpoints. */
void replicas_tick(struct replicas *replicas, uint64_t now_ms);

/* A Raft message from another node for a group of this shard. Everything is borrowed; an entry's
 * payload is part of a block, and who keeps it calls block_ref. */
void replicas_raft_message(struct replicas *replicas, uint64_t group_id,
                           const struct raft_message *message);

/* The node was silent for too long, or its connections broke: the groups that it is a member of
 * are told. */
void replicas_peer_lost(struct replicas *replicas, int32_t node);

/* The node, which was lost, can be reached again: groups that rest without it wake. */
void replicas_peer_back(struct replicas *replicas, int32_t node);

/* Calls `each` for every group of the shard that this node leads; with what in_sync_lag says. */
void replicas_each_led(struct replicas *replicas,
                       void (*each)(void *context, uint64_t group_id, int32_t epoch,
                                    uint64_t lag),
                       void *context);

/* Ticks come at their time as long as a group needs them. */
void replicas_keep_time(struct replicas *replicas);

/* A tick of Raft's time (SHARD_TICK_MS) for every group that needs it. */
void replicas_raft_tick(struct replicas *replicas, uint64_t now_ms);

/* The node is about to stop: whoever is nearest shall lead the groups that this node leads. It
 * takes some messages until they do. */
void replicas_hand_over(struct replicas *replicas);

/* Whether this node leads a group of the shard that another node, which is alive, could lead. */
bool replicas_may_hand_over(const struct replicas *replicas);

/* Whether a line of this kind may be logged now; then the next one has to wait. */
bool replicas_may_log(struct replicas *replicas, enum replicas_log what);

/* A message broke Raft's rules and was dropped: logs it, but not every one. */
void replicas_log_invalid(struct replicas *replicas, const struct group *group,
                          const struct raft_message *message, const char *reason);

/* Checkpoints every group that has something to checkpoint. */
void replicas_checkpoint_all(struct replicas *replicas);

/* Checkpoints these groups, where they are on this shard (journal pressure). */
void replicas_checkpoint(struct replicas *replicas, const uint64_t *groups, size_t count);

/* The storage failed or works again, for every group of the shard. */
void replicas_fail(struct replicas *replicas, enum status status);

#endif
