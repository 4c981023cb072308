/* What a topic's settings ask of a produced batch beyond its header, where records have to be
 * looked at: another compression (compression.type), keys on compacted topics. */
#ifndef OTTLA_BROKER_API_BATCH_RULES_H
#define OTTLA_BROKER_API_BATCH_RULES_H

#include <stdint.h>

#include "base/block.h"
#include "base/view.h"
#include "broker/config/topic_config.h"
#include "protocol/records.h"

/* Checks a valid batch against the settings. KAFKA_NONE, or the error with a sentence in *why (a
 * literal). When the batch has to be stored in another compression, *repacked is a new block with
 * `prefix_bytes` of room and then the batch, whose reference the caller owns; else it is null. */
int16_t batch_rules_apply(const struct topic_settings *settings, struct view batch,
                          const struct batch_header *header, size_t prefix_bytes,
                          struct block **repacked, const char **why);

#endif
