/* This broker says that it stops: first that it gets no new replicas, and, when others lead what it
 * led, that it is fenced, so that no client is told of it any more. It is a part of handing over:
 * a stop waits for it as long as for the rest of that, and not at all without a majority. */
#ifndef OTTLA_BROKER_SERVER_DEPARTURE_H
#define OTTLA_BROKER_SERVER_DEPARTURE_H

#include <stdbool.h>

struct broker;
struct departure;

/* Begins, on shard 0, when the stop is asked for. Counts as one shard that hands over. */
void departure_begin(struct broker *broker);

/* On shard 0: takes the next step when nothing else is to be handed over. */
void departure_tick(struct broker *broker);

/* Releases it, after the shards have ended. Null is allowed. */
void departure_free(struct departure *departure);

#endif
