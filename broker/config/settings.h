/* What of a broker's configuration may be set while it runs (KIP-226): for all brokers, or for one
 * alone, which counts more. Which keys these are, and what they make of a configuration. */
#ifndef OTTLA_BROKER_CONFIG_SETTINGS_H
#define OTTLA_BROKER_CONFIG_SETTINGS_H

#include <stdbool.h>

#include "broker/config/config.h"

/* Whether the key may be set while brokers run: those that Kafka lets one set for all of them, and
 * cordoned.log.dirs. Not among them are the bounds on connections, which are read at the start. */
bool setting_is_key(enum config_key key);

/* Whether it may be set for one broker alone, or for all of them. What holds for a partition,
 * whoever leads it, is not set for one; what is named as in a broker's own files is not set for
 * all. */
bool setting_is_for_one(enum config_key key);
bool setting_is_for_all(enum config_key key);

/* Whether topics have another value when this one changes. */
bool setting_is_for_topics(enum config_key key);

#endif
