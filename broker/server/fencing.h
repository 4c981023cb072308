/* What the node that leads the metadata log does about the other brokers: fences those that nobody
 * has heard for broker.session.timeout.ms, takes them back when they are there again, and has
 * brokers that are no voters learn the metadata. */
#ifndef OTTLA_BROKER_SERVER_FENCING_H
#define OTTLA_BROKER_SERVER_FENCING_H

#include <stdint.h>

#include "broker/server/metadata_state.h"

/* Starts with nobody missed. */
void fencing_init(struct fencing *fencing);

/* Time passes; on shard 0, on whichever node. */
void fencing_tick(struct metadata_log *log, uint64_t now_ms);

/* Releases the memory. */
void fencing_free(struct fencing *fencing);

#endif
