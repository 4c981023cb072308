/* What clients know for certain, and what they saw: for every partition of the topics that
 * producers write to, which record is at which offset.
 *
 * A record has a serial number of its own (its value). Acknowledged or read once, it stays at its
 * offset for ever, and at no other.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_MODEL_H
#define OTTLA_TESTS_SIM_CLUSTER_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_PARTITIONS = 4 };

/* Nothing was written yet; and forgets it again. */
void model_start(void);
void model_end(void);

/* A producer was told that its record is at this offset. */
void model_acked(int partition, int64_t offset, uint64_t serial);

/* A consumer read this record there. */
void model_read(int partition, int64_t offset, uint64_t serial);

/* Offsets below are known to be read by the caller: every acknowledged record among them was. */
void model_check_read(int partition, int64_t end_offset);

/* How many records were acknowledged, and the end of what is known of a partition. */
uint64_t model_acked_count(void);
int64_t model_end_offset(int partition);

#endif
