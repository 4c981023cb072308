/* The topics that the members of a "consumer" group are subscribed to, read from their opaque
 * metadata: offsets of such topics neither expire nor can be deleted (KIP-211, KIP-496). */
#ifndef OTTLA_BROKER_COORDINATOR_SUBSCRIPTIONS_H
#define OTTLA_BROKER_COORDINATOR_SUBSCRIPTIONS_H

#include "broker/coordinator/consumer_group.h"

/* Reads the subscriptions of this generation's protocol into group->subscribed. */
void consumer_group_read_subscriptions(struct consumer_group *group);

/* Releases group->subscribed. */
void consumer_group_forget_subscriptions(struct consumer_group *group);

#endif
