/* Two features: how the metadata is written, which is as in the Kafka whose requests are served,
 * and whether the voters on it change (KIP-853). */
#include "broker/api/features.h"

#include <assert.h>

#include "broker/server/broker.h"

enum { METADATA_VERSION = 33 /* 4.4-IV2 */, KRAFT_VERSION = 1 };

void features_list(const struct broker *broker, struct feature features[FEATURE_COUNT])
{
    assert(broker != NULL && features != NULL);
    features[0] = (struct feature){.name = VIEW_LITERAL("kraft.version"),
                                   .highest = KRAFT_VERSION,
                                   .level = broker->changes_voters ? KRAFT_VERSION : 0};
    features[1] = (struct feature){.name = VIEW_LITERAL("metadata.version"),
                                   .lowest = METADATA_VERSION,
                                   .highest = METADATA_VERSION,
                                   .level = METADATA_VERSION};
}
