/* This broker's registration: done once for each process, through the node that leads the metadata
 * log; after it, and when this node has what the metadata was then, clients are served. */
#ifndef OTTLA_BROKER_SERVER_REGISTRATION_H
#define OTTLA_BROKER_SERVER_REGISTRATION_H

#include <stdint.h>

struct broker;
struct registration;

/* Begins to register, on shard 0 of a broker in a cluster; ends in broker_ready. */
void registration_start(struct broker *broker);

/* The epoch of this process's registration; -1 before it is registered. On shard 0. */
int64_t registration_epoch(const struct registration *registration);

/* Releases it, after the shards have ended. Null is allowed. */
void registration_free(struct registration *registration);

#endif
