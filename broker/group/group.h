/* A partition group: one Raft group joined to the shared journal and the logs of its partitions
 * (architecture: partition groups).
 *
 * Happy path: group_propose hands a payload to Raft, its entry goes to the journal, the durable
 * notice comes back to Raft, committed entries are applied: batches go to their partition's log,
 * whoever waits for the proposal is told. Failures: the journal or a log cannot be written; then
 * the group withdraws from Raft, acknowledges nothing more and says so to everybody who asks.
 *
 * A group lives on one shard; only the journal's and log writer's notices come from elsewhere, as
 * mail.
 */
#ifndef OTTLA_BROKER_GROUP_GROUP_H
#define OTTLA_BROKER_GROUP_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/block.h"
#include "base/list.h"
#include "base/status.h"
#include "broker/net/shard.h"
#include "raft/raft.h"
#include "storage/checkpoint.h"
#include "storage/partition_log.h"

struct group;
struct group_loss;
struct in_sync;
struct journal_boot;
struct partition;
struct topic_image;

/* A payload is four bytes of partition number, big endian, and then one record batch. */
enum { GROUP_PAYLOAD_PREFIX = 4 };

/* Somebody who waits for a proposed entry. `done` and what follows it are set by who proposes. */
struct proposal {
    struct list_link link;
    uint64_t index;
    uint64_t term;
    uint64_t deadline_ms;    /* monotonic; 0: none. Of groups with peers only */
    bool when_durable;       /* done when it is durable here, committed or not (acks=1) */
    /* STATUS_OK: committed and applied, or durable. STATUS_CLOSED: leadership was lost first;
     * STATUS_TIMEOUT: the deadline passed. In both cases the entry may or may not survive. Other:
     * the storage failed. Called once, on the group's shard. */
    void (*done)(struct proposal *proposal, enum status status);
};

/* What a group with a meaning of its own (metadata, consumer offsets) adds. */
struct group_machine {
    /* A committed batch was put into the partition's log. */
    void (*applied)(struct group *group, struct partition *partition, struct view batch);
    /* This node became or ceased to be the leader; as leader, everything before is applied. */
    void (*led)(struct group *group, bool leads);
    /* The group has got partitions that it had not. May be null. */
    void (*grown)(struct group *group);
    /* The partition's log begins anew, empty: what was made from it before does not count. May be
     * null. */
    void (*restarted)(struct group *group, struct partition *partition);
    /* Lets go of machine_state. */
    void (*close)(struct group *group);
};

struct group {
    UT_hash_handle by_id;             /* in the shard's replicas */
    uint64_t id;
    struct shard *shard;
    struct raft *raft;
    struct topic_image *topic;        /* a reference; null for the metadata group */
    char *topic_name;
    struct log_settings log_settings; /* borrowed by the partitions' logs */
    struct partition **partitions;    /* in order of their number */
    int32_t partition_count;
    const struct group_machine *machine; /* may be null */
    void *machine_state;
    struct list proposals;            /* struct proposal, in order of index */
    struct list durable_waits;        /* those that wait for durability alone, likewise */
    struct list confirms;             /* struct confirm, oldest first */
    uint64_t confirm_round;           /* the latest one begun, from 1 */
    uint64_t confirm_ended;           /* the latest one that is over */
    uint64_t deadline_ms;             /* no proposal's is before; UINT64_MAX: there is none */
    struct list_link dirty;           /* in the shard's groups with something to checkpoint */
    struct list_link ticking;         /* in the shard's groups that need ticks */
    struct list_link election;        /* in the shard's groups whose election waits (elections.h) */
    struct list_link moving;          /* in the shard's groups that move (group_move.h) */
    struct in_sync *in_sync;          /* of the replicas, while it is led here (in_sync.h) */
    int32_t move;                     /* the number of its move; 0: it stays */
    uint64_t move_told_ms;            /* that the move is over */
    struct raft_member *members;      /* as of applied_index (group_members.h); null: this node */
    uint64_t members_index;
    uint32_t member_count;
    uint32_t steps;                   /* nested ones under way */
    uint64_t window_bytes;            /* counted in the shard's */
    uint64_t catch_up_to;             /* what the leader had at first contact, or when confirmed;
                                       * UINT64_MAX: none yet. Of the metadata group, and of one
                                       * with a loss */
    struct group_loss *loss;          /* its votes and entries are gone: it does not vote yet;
                                       * null: nothing is lost (group_loss.h) */
    bool is_rejoining;                /* that is over, and its vote not on the disk yet */
    bool records_loss;                /* the latest vote in the journal says that it is held back */
    uint64_t start_deadline_ms;       /* counts as started then, whatever happens */
    uint64_t applied_index;
    uint64_t applied_term;
    uint64_t marked_index;            /* of the last checkpoint */
    uint64_t lead_index;              /* leader: applied up to here means that all is there */
    uint64_t dirty_since_ms;
    enum status storage;              /* STATUS_OK, or why the group is offline */
    struct list installs;             /* of replicas, asked for by this leader (install.h) */
    struct list writes;               /* under way to the journal, of a group with peers */
    unsigned io_pending;              /* journal and writer operations under way */
    struct list_link unread;          /* in the shard's groups that are to be opened again */
    struct journal_boot *boot;        /* of one that could not be read (unread.h), */
    bool existed;                     /* and the same of its start */
    bool is_unread;                   /* it takes no part, and its Raft is none yet */
    uint64_t unread_ms;               /* when a read failed last; 0: never */
    bool leads;                       /* leader, and all that came before is applied */
    bool is_electing;                 /* asks for votes */
    bool counts_election;             /* and is counted among those that do */
    bool checkpointing;
    bool checkpoint_again;            /* asked for while one was under way */
    bool damaged;                     /* stored bytes are lost: offline until repaired */
    bool installing;                  /* applies nothing: its logs are brought up to date */
    bool starting;                    /* counted in the shard's groups_starting */
    bool closed;                      /* deleted; freed when io_pending is 0 */
};

/* What a group starts from. */
struct group_start {
    uint64_t id;
    struct topic_image *topic;          /* the group takes its own ref; null: metadata */
    const struct group_machine *machine;
    void *machine_state;
    struct journal_boot *boot;          /* what the journal held; null: nothing */
    /* Members at the creation; none: the replicas that the topic names, else this node alone. The
     * first one campaigns at once when the group is new. Borrowed. */
    const struct raft_member *members;
    size_t member_count;
    /* Those that were heard of last, where they are not the first ones for ever: if the checkpoint
     * is lost, the group begins with them. `begin_with_latest` makes that so for later starts too,
     * on the disk; null: they are the members above. */
    const struct raft_member *latest;
    size_t latest_count;
    enum status (*begin_with_latest)(void *machine_state);
    bool existed;                       /* perhaps before this node's latest registration */
};

/* A group counts as started at the latest after this time: a replica set that is down must not hold
 * up the others. */
enum { GROUP_START_MS = 2000 };

/* Opens the group's logs, replays its journal entries into Raft and starts it. STATUS_OK also when
 * its storage is damaged: the group then exists, offline. */
MUST_USE enum status group_open(struct shard *shard, const struct group_start *start,
                                struct group **group);

/* A group without entries: this node asks to lead it if it is the first of those that live. */
void group_campaign_first(struct group *group);

/* Proposes a payload; the group takes its own reference on the block. `proposal` is told later,
 * unless the result is not RAFT_OK. Only the leader takes proposals. */
MUST_USE enum raft_result group_propose(struct group *group, struct slice payload,
                                        struct proposal *proposal);

/* Whether the group can take a proposal now, as a Kafka error code: none, NOT_LEADER_OR_FOLLOWER,
 * KAFKA_STORAGE_ERROR. */
int16_t group_error(const struct group *group);

/* The partition with this number, or null when the group does not have it. */
struct partition *group_partition(const struct group *group, int32_t number);

/* Adds the partitions that a newer image of the topic gives to this group. */
void group_update_topic(struct group *group, struct topic_image *topic);

/* Writes a checkpoint in the background: the logs are synced, then the journal is told. */
void group_checkpoint(struct group *group);

/* The storage failed: withdraw, fail who waits. */
void group_fail(struct group *group, enum status status);

/* Ends the group; its data is removed when `deleted`. Memory goes when nothing is under way. */
void group_close(struct group *group, bool deleted);

/* Releases a closed group when nothing of it is under way. */
void group_free(struct group *group);

#endif
