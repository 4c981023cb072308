/* Zig-zag varints of records: 7 bits a byte, lowest first, the high bit says that more follow.
 * A reader that runs dry or meets too many bytes returns false and says why. */
#ifndef OTTLA_PROTOCOL_VARINT_H
#define OTTLA_PROTOCOL_VARINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/view.h"

enum { VARINT32_LIMIT_BYTES = 5, VARINT64_LIMIT_BYTES = 10 };

/* Takes an unsigned varint of at most `limit_bytes` off the front. STATUS_TRUNCATED or, when it
 * goes on for longer, STATUS_INVALID. */
MUST_USE static inline enum status varint_take_unsigned(struct view *from, size_t limit_bytes,
    uint64_t *value)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < limit_bytes; i++) {
        if (i == from->length) {
            return STATUS_TRUNCATED;
        }
        sum |= (uint64_t)(from->data[i] & 0x7f) << (7 * i);
        if (from->data[i] < 0x80) {
            *from = (struct view){from->data + i + 1, from->length - i - 1};
            *value = sum;
            return STATUS_OK;
        }
    }
    return STATUS_INVALID;
}

/* A zig-zag 64-bit value (Kafka's varlong). */
MUST_USE static inline enum status varint_take_64(struct view *from, int64_t *value)
{
    uint64_t raw = 0;
    enum status status = varint_take_unsigned(from, VARINT64_LIMIT_BYTES, &raw);
    *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    return status;
}

/* A zig-zag 32-bit value (Kafka's varint). */
MUST_USE static inline enum status varint_take_32(struct view *from, int32_t *value)
{
    uint64_t raw = 0;
    enum status status = varint_take_unsigned(from, VARINT32_LIMIT_BYTES, &raw);
    uint32_t low = (uint32_t)raw;
    *value = (int32_t)(low >> 1) ^ -(int32_t)(low & 1);
    return status == STATUS_OK && raw > UINT32_MAX ? STATUS_INVALID : status;
}

/* Writes a zig-zag value; returns its bytes, at most VARINT64_LIMIT_BYTES. 32-bit values have the
 * same bytes. */
static inline size_t varint_store(uint8_t *at, int64_t value)
{
    uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    size_t bytes = 0;
    while (left >= 0x80) {
        at[bytes++] = (uint8_t)(left | 0x80);
        left >>= 7;
    }
    at[bytes++] = (uint8_t)left;
    return bytes;
}

/* Bytes that varint_store writes. */
static inline size_t varint_size(int64_t value)
{
    uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    size_t bytes = 1;
    for (; left >= 0x80; left >>= 7) {
        bytes++;
    }
    return bytes;
}

#endif
