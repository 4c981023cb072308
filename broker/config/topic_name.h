/* What may be a topic's name, and which topics belong to the broker itself. */
#ifndef OTTLA_BROKER_CONFIG_TOPIC_NAME_H
#define OTTLA_BROKER_CONFIG_TOPIC_NAME_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"

enum { TOPIC_NAME_LONGEST = 249 };

#define TOPIC_CONSUMER_OFFSETS "__consumer_offsets"
#define TOPIC_TRANSACTION_STATE "__transaction_state"
#define TOPIC_SHARE_GROUP_STATE "__share_group_state"
#define TOPIC_CLUSTER_METADATA "__cluster_metadata"

/* STATUS_OK when a topic may have this name: 1 to 249 of a-z A-Z 0-9 . _ -, not "." nor "..".
 * STATUS_INVALID: *why is a sentence for INVALID_TOPIC_EXCEPTION, in the arena (the null view
 * when that is full). */
MUST_USE enum status topic_name_check(struct view name, struct arena *arena, struct view *why);

/* Whether the two names differ only in "." and "_" at the same places, or not at all: Kafka refuses
 * the second, because metric names are made of them. */
bool topic_names_collide(struct view a, struct view b);

/* Whether Metadata marks the topic as internal. */
bool topic_is_internal(struct view name);

#endif
