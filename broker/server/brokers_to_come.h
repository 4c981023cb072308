/* Which brokers the cluster is to have and has not yet: what the cluster makes for itself once and
 * for all, with as many replicas as there are brokers, waits for them.
 */
#ifndef OTTLA_BROKER_SERVER_BROKERS_TO_COME_H
#define OTTLA_BROKER_SERVER_BROKERS_TO_COME_H

#include "broker/controller/image.h"

struct broker;

/* A voter that lives for so long and does not register is a controller alone. */
enum { BROKERS_TO_COME_MS = 30000 };

/* How many voters on metadata are to be brokers, as far as is known, and are not registered. What
 * a voter's roles are it does not say: where this node is a controller alone the others are held
 * for the same, and 0 are to come. 0 for a node that stands alone. */
int brokers_to_come(const struct broker *broker, const struct image *image);

#endif
