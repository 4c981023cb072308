/* Producer ids for idempotent producers: each shard hands them out of a block of its own, which the
 * metadata log gave to it. What is left of a block at a restart is never used; so no id is given
 * twice. */
#ifndef OTTLA_BROKER_API_PRODUCER_IDS_H
#define OTTLA_BROKER_API_PRODUCER_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "broker/api/controller_call.h"

struct producer_ids {
    struct controller_call call;      /* the one that asks for the next block */
    struct buffer body;               /* of the call */
    int64_t next;
    int64_t end;                      /* of the block; next == end: used up */
    bool asking;
    struct list waiting;              /* struct producer_id_wait */
};

/* Somebody who waits for an id. */
struct producer_id_wait {
    struct list_link link;
    /* KAFKA_NONE and an id, or why there is none. */
    void (*done)(struct producer_id_wait *wait, int16_t error, int64_t id);
};

/* Starts without a block: the first id asks for one. */
void producer_ids_init(struct producer_ids *ids);

/* Releases the memory; nobody waits any more. */
void producer_ids_free(struct producer_ids *ids);

/* Gives the next id, at once or when a block has come. On the shard that owns `ids`. */
void producer_ids_take(struct shard *shard, struct producer_ids *ids,
                       struct producer_id_wait *wait);

#endif
