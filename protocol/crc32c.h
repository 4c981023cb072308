/* CRC-32C (Castagnoli), as in record batches, producer snapshots and the journal. */
#ifndef OTTLA_PROTOCOL_CRC32C_H
#define OTTLA_PROTOCOL_CRC32C_H

#include <stdint.h>

#include "base/view.h"

/* The checksum of the bytes; of nothing it is 0. */
uint32_t crc32c(struct view bytes);

/* Goes on from the checksum of what came before, so that parts give the sum of the whole:
 * crc32c_extend(crc32c(a), b) is the checksum of a followed by b. Start with 0. */
uint32_t crc32c_extend(uint32_t crc, struct view bytes);

#endif
