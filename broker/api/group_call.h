/* How requests reach the coordinators: to the shard of the group's partition and back. */
#ifndef OTTLA_BROKER_API_GROUP_CALL_H
#define OTTLA_BROKER_API_GROUP_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/api/request.h"
#include "broker/coordinator/coordinator.h"

struct topic_image;

/* The whole request goes to the coordinator of this group, whose answer is the answer. */
void group_call(struct request *request, struct view group_id);

/* The context of a coordinator's request: who asks, from where. Memory is the request's. */
struct coordinator_context group_call_context(struct request *request);

/* __consumer_offsets as this shard knows it; null before it was made. Borrowed. */
struct topic_image *group_call_topic(const struct request *request);

#endif
