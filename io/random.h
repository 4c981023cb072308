/* Randomness, as a seam: random.c asks the kernel, a simulation links a seeded generator. */
#ifndef OTTLA_IO_RANDOM_H
#define OTTLA_IO_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

/* Fills the bytes. */
void random_fill(void *bytes, size_t length);

/* A number in [0, bound); bound > 0. */
uint64_t random_below(uint64_t bound);

/* A new id (RFC 9562 version 4), never one that Kafka reserves (zero, one) and never with a text
 * form that starts with '-', as Uuid.randomUuid. */
struct uuid random_uuid(void);

#endif
