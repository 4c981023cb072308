/* __cluster_metadata on this node: the metadata group on shard 0, the image it makes, and the
 * commands that change it.
 *
 * A command is run against the image when its turn comes, one at a time, so that it sees what all
 * before it did. Its records are appended as one batch; when they are committed the image changes,
 * every shard takes the changes over (opening and ending groups), and only when all have done so
 * and new groups lead is the command done: what it made can be used at once (field case M3).
 */
#ifndef OTTLA_BROKER_SERVER_METADATA_LOG_H
#define OTTLA_BROKER_SERVER_METADATA_LOG_H

#include <stdint.h>

#include "base/list.h"
#include "broker/controller/image.h"
#include "broker/net/shard.h"

struct broker;
struct metadata_log;

struct metadata_command {
    struct mail mail;
    struct list_link link;
    struct shard *from;
    /* On shard 0 at its turn: looks at the image and adds the records that change it. None: nothing
     * is to be written, the command is done at once. */
    void (*run)(struct metadata_command *command, struct image *image,
                struct record_list *records);
    /* On `from`: KAFKA_NONE when the records are in force, else why they are not. */
    void (*done)(struct metadata_command *command, int16_t error);
    int16_t error;
};

/* Hands a command over; `done` runs later on `from`. Memory stays the caller's until then. */
void metadata_submit(struct shard *from, struct metadata_command *command);

/* Opens the metadata group when shard 0 runs; ends in broker_ready. */
void metadata_log_start(struct broker *broker);

/* On its own shard: no group of the shard is starting any more. */
void metadata_log_groups_started(struct shard *shard);

/* Releases image and queue, after the shards have ended. Null is allowed. */
void metadata_log_free(struct metadata_log *log);

#endif
