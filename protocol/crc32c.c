/* CRC-32C by ISA-L, which picks the processor's best way by itself. It cannot fail. */
#include "protocol/crc32c.h"

#include <isa-l/crc.h>
#include <limits.h>
#include <stddef.h>

/* A multiple of any vector width below ISA-L's int length. */
enum { CRC32C_STEP_BYTES = 1 << 30 };

uint32_t crc32c_extend(uint32_t crc, struct view bytes)
{
    /* ISA-L takes a pointer to bytes that it does not change, but without saying const. */
    unsigned char *at = (unsigned char *)(uintptr_t)bytes.data;
    size_t left = bytes.length;
    crc = ~crc;
    while (left > 0) {
        size_t step = left < CRC32C_STEP_BYTES ? left : CRC32C_STEP_BYTES;
        crc = crc32_iscsi(at, (int)step, crc);
        at += step;
        left -= step;
    }
    return ~crc;
}

uint32_t crc32c(struct view bytes)
{
    return crc32c_extend(0, bytes);
}
