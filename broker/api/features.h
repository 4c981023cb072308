/* The features that Kafka's clients and tools know by level (KIP-584), as far as there are any
 * here. Their levels follow from the version and the configuration; nothing changes them. */
#ifndef OTTLA_BROKER_API_FEATURES_H
#define OTTLA_BROKER_API_FEATURES_H

#include <stdint.h>

#include "base/view.h"

struct broker;

enum { FEATURE_COUNT = 2 };

struct feature {
    struct view name;
    int16_t lowest;              /* that this version supports */
    int16_t highest;
    int16_t level;               /* in force; 0: off */
};

/* Fills in all of them, sorted by name. */
void features_list(const struct broker *broker, struct feature features[FEATURE_COUNT]);

#endif
