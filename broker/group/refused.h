/* What idempotent producers were refused for now, so that what they sent behind it is refused
 * alike.
 *
 * Producers have several batches under way (KIP-98). When one is refused because the group has no
 * leader here yet or too few replicas are in sync, and that has passed when the next one comes,
 * OUT_OF_ORDER_SEQUENCE_NUMBER would be true and do harm: librdkafka then takes a new epoch in all
 * partitions and sends again everything that is not acknowledged, and what was written of it is
 * there twice. So the next one gets the error of the first one, until that one comes again: both
 * were not written, and come again in order. The same holds for what a leader had proposed and lost
 * with its leadership, and for what is missing before the first batch that comes to a new leader:
 * it is on its way elsewhere, and librdkafka may take up the next one before it has put that one
 * back.
 *
 * Bounded: REFUSED_MOST producers for a partition, each for REFUSED_MS after its batch was refused
 * last; a producer that gave up hears OUT_OF_ORDER_SEQUENCE_NUMBER then.
 */
#ifndef OTTLA_BROKER_GROUP_REFUSED_H
#define OTTLA_BROKER_GROUP_REFUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/producer_state.h"

struct refused; /* a partition's; null while there is nothing, as nearly always */

enum { REFUSED_MOST = 64, REFUSED_MS = 30000 };

/* The batch was refused with the Kafka error code, at that monotonic time. Of a producer the first
 * batch in sequence is kept. */
void refused_note(struct refused **refused, const struct producer_batch *batch, int16_t error,
                  uint64_t now_ms);

/* The error of a batch that comes behind one that was refused: the same one. KAFKA_NONE: there is
 * none, or this is the one, or it does not come again. */
int16_t refused_error(const struct refused *refused, const struct producer_batch *batch,
                      uint64_t now_ms);

/* Whether something was refused of the producer in this epoch, however long ago, and is not here
 * yet. */
bool refused_knows(const struct refused *refused, const struct producer_batch *batch);

/* The batch is proposed or in the log: nothing up to there is refused any more. */
void refused_taken(struct refused **refused, const struct producer_batch *batch);

/* Forgets everything. */
void refused_free(struct refused **refused);

#endif
