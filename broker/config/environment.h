/* How container images name configuration keys in the environment: KAFKA_X_Y and KAFKA_CFG_X_Y are
 * the key x.y, two underscores stand for one, three for a dash. Some names are aliases of keys,
 * some are meant for a JVM or for start scripts and mean nothing here. */
#ifndef OTTLA_BROKER_CONFIG_ENVIRONMENT_H
#define OTTLA_BROKER_CONFIG_ENVIRONMENT_H

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"

/* Reads one variable "NAME=value". STATUS_OK: *key and *value are set, in the arena or in the text.
 * STATUS_NOT_FOUND: the variable is none of ours. STATUS_LIMIT: the arena is full. */
MUST_USE enum status environment_key(const char *variable, struct arena *arena, struct view *key,
                                     struct view *value);

/* Why a name that is no key is left out on purpose: a short text for the log, "" when it is not
 * worth a line, null when the name is simply not known. */
const char *environment_excuse(struct view key);

#endif
