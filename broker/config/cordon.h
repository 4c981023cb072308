/* cordoned.log.dirs (KIP-1066): the directories that get no new replicas. A node has one data
 * directory, the first of log.dirs, so the whole node is cordoned or nothing of it is. */
#ifndef OTTLA_BROKER_CONFIG_CORDON_H
#define OTTLA_BROKER_CONFIG_CORDON_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include "broker/config/config.h"

/* Whether this node is cordoned by its configuration, which config_load checked. */
bool cordon_is_configured(const struct config *config);

/* Whether the text can be this node's value: empty, a star alone, or its data directory as log.dirs
 * writes it. STATUS_INVALID: *why says what is wrong, in the arena. STATUS_LIMIT: the arena is
 * full. */
MUST_USE enum status cordon_check(const struct config *config, struct view text,
                                  struct arena *arena, struct view *why);

/* Whether a value that was checked, of any broker, says that it is cordoned. */
bool cordon_is_set(struct view text);

#endif
