/* __cluster_metadata on this node: the metadata group on shard 0, the image it makes, and the
 * commands that change it (docs/replication.md: metadata).
 *
 * Every node applies what is committed to its image, whoever leads. Changes go through the node's
 * shards in rounds, one at a time (opening and ending groups). A command runs on the leader against
 * the image, one at a time, so that it sees what all before it did; its records are one batch. It
 * is done when that batch is committed and the round with it is over here: what it made can be used
 * at once (field case M3). A node that does not lead refuses it with NOT_CONTROLLER.
 */
#ifndef OTTLA_BROKER_SERVER_METADATA_LOG_H
#define OTTLA_BROKER_SERVER_METADATA_LOG_H

#include <stdint.h>

#include "base/list.h"
#include "broker/controller/image.h"
#include "broker/group/confirm.h"
#include "broker/net/shard.h"

struct broker;
struct metadata_log;

/* Somebody who waits until this node has what is below an offset of the log: applied, and in force
 * on every shard. */
struct metadata_wait {
    struct mail mail;
    struct list_link link;
    struct shard *from;
    int64_t offset;
    uint64_t deadline_ms; /* monotonic; 0: none */
    /* On `from`: KAFKA_NONE, or REQUEST_TIMED_OUT, also when the log is closed first. */
    void (*done)(struct metadata_wait *wait, int16_t error);
    int16_t error;
};

struct metadata_command {
    struct metadata_wait wait;
    struct confirm confirm;      /* of one that writes nothing: does this node still lead? */
    /* On shard 0 at its turn: looks at the image and adds the records that change it. None: nothing
     * is to be written. */
    void (*run)(struct metadata_command *command, struct image *image,
                struct record_list *records);
    /* On the shard that submitted it: KAFKA_NONE when what the image says is in force, else why the
     * records are not: NOT_CONTROLLER when this node does not lead (or no longer: then they may
     * still come to be). */
    void (*done)(struct metadata_command *command, int16_t error);
};

/* Hands a command over; `done` runs later on `from`. Memory stays the caller's until then. */
void metadata_submit(struct shard *from, struct metadata_command *command);

/* The offset that the first record of the command that is being run will get. */
int64_t metadata_next_offset(const struct broker *broker);

/* Tells when what is below wait->offset is in force here; offset, deadline_ms and done are the
 * caller's. Memory stays the caller's until then. */
void metadata_await(struct shard *from, struct metadata_wait *wait);

/* What is below this offset is in force here; 0 before the log is opened. Any thread. */
int64_t metadata_delivered(const struct broker *broker);

/* Opens the metadata group when shard 0 runs; ends in broker_opened. */
void metadata_log_start(struct broker *broker);

/* On its own shard: no group of the shard is starting any more. */
void metadata_log_groups_started(struct shard *shard);

/* Time passes; on shard 0. */
void metadata_log_tick(struct broker *broker, uint64_t now_ms);

/* On its shard, while this node leads: when (monotonic) the node last had everything of the log; 0
 * when that was not since this node leads. */
uint64_t metadata_log_had_ms(const struct broker *broker, int32_t node);

/* Releases image and queue, after the shards have ended. Null is allowed. */
void metadata_log_free(struct metadata_log *log);

#endif
