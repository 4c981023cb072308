/* The inside of the metadata log, for its own files alone: metadata_log.c (the group's machine and
 * the image), metadata_rounds.c (changes through the shards), metadata_commands.c (the queue),
 * metadata_snapshot.c, fencing.c, metadata_members.c, voter_wait.c, voter_address.c. All of it
 * lives on shard 0.
 */
#ifndef OTTLA_BROKER_SERVER_METADATA_STATE_H
#define OTTLA_BROKER_SERVER_METADATA_STATE_H

#include <stdatomic.h>

#include "broker/group/log_reader.h"
#include "broker/api/controller_call.h"
#include "broker/group/partition.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "broker/server/quorum_times.h"

/* Records of a snapshot have this key; all others have none. */
#define SNAPSHOT_KEY VIEW_LITERAL("snapshot")

struct metadata_update;

/* See first_start.h. */
enum first_start { FIRST_START_UNKNOWN, FIRST_START_NEW, FIRST_START_OVER };

/* When a broker was last heard, or the leadership began. */
struct broker_heard {
    int32_t node;
    uint64_t at_ms;
};

/* See fencing.h. */
struct fencing {
    struct metadata_command command;
    struct broker_heard *heard;
    int heard_count;
    uint64_t next_look_ms;
    int32_t node;                        /* of the command */
    bool fence;
    bool is_under_way;
};

/* See voter_address.h. */
struct voter_address {
    struct controller_call call;
    struct buffer body;
    bool is_asking;
    bool is_new;                         /* it is another one than was known here */
    uint64_t next_try_ms;                /* monotonic; 0: not looked yet */
};

struct metadata_log {
    struct broker *broker;
    struct group *group;
    struct image *image;
    struct log_reader reader;            /* its offset: the first that the image lacks */
    struct mail start;
    int64_t first_offset;                /* where the image began to be read */
    uint64_t opened_index;               /* the group's last entry when it was opened */
    bool ready;                          /* the image has what was there at the start */
    enum first_start first_start;
    uint64_t first_start_ms;             /* when the group was first looked at */
    bool clearing;                       /* leftovers go first: no round begins (leftovers.h) */
    bool announced;                      /* the first round is over */
    bool closed;                         /* the broker ends: nothing is taken any more */

    struct image_changes changes;        /* applied, and not yet given to a round */
    struct metadata_update *update;      /* the round under way; null: none */
    struct list updates;                 /* the rounds to come, in order */
    int64_t rounds_end;                  /* what is below was given to rounds, or changed nothing */
    struct shard_task round;             /* begins the next one */
    _Atomic int64_t delivered;           /* what is below is in force on every shard */
    struct list waits;                   /* struct metadata_wait */

    struct list commands;                /* struct metadata_command, waiting for their turn */
    struct metadata_command *current;    /* its records are not committed yet */
    struct append append;                /* of the current command */

    struct fencing fencing;
    struct quorum_times times;           /* of the other members */

    struct list voter_waits;             /* struct voter_wait */
    struct voter_address address;        /* this node's own, if it votes */

    struct metadata_command record_voters; /* the log's own command, see metadata_members.c */
    bool is_recording_voters;

    struct metadata_command snapshot;    /* the log's own command */
    struct proposal log_start;           /* follows a snapshot */
    int64_t snapshot_offset;             /* of the last snapshot's batch */
    uint64_t snapshot_bytes;             /* of the last snapshot; 0: none yet */
    bool snapshotting;
};

/* The image has moved on to where the reader is: its changes go to the rounds to come. */
void metadata_rounds_take(struct metadata_log *log);

/* Begins the next round when none is under way. */
void metadata_rounds_go(struct metadata_log *log);

/* Forgets the rounds to come; for metadata_log_free. */
void metadata_rounds_free(struct metadata_log *log);

/* Starts with no round; for metadata_log_start. */
void metadata_rounds_init(struct metadata_log *log);

/* Adds somebody who waits; told at once when there is nothing to wait for. */
void metadata_rounds_wait(struct metadata_log *log, struct metadata_wait *wait);

/* Everybody who waits is told the error. */
void metadata_rounds_fail_waits(struct metadata_log *log, int16_t error);

/* Tells those whose deadline has passed. */
void metadata_rounds_tick(struct metadata_log *log, uint64_t now_ms);

/* Sends the wait home with its result. */
void metadata_wait_end(struct metadata_wait *wait, int16_t error);

/* Puts a command at the end of the queue. */
void metadata_commands_add(struct metadata_log *log, struct shard *from,
                           struct metadata_command *command);

/* Runs the commands whose turn it is. */
void metadata_commands_go(struct metadata_log *log);

/* This node does not lead any more, or the log is closed: whoever waits for a turn is refused. */
void metadata_commands_refuse(struct metadata_log *log);

/* Queues a snapshot when the log has grown well beyond its image. */
void metadata_snapshot_consider(struct metadata_log *log);

#endif
