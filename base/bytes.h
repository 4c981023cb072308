/* Integers in byte order: big endian as Kafka writes them. Plain loads and stores at any
 * alignment; the caller has checked the length. */
#ifndef OTTLA_BASE_BYTES_H
#define OTTLA_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load_be16(const void *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return be16toh(value);
}

static inline uint32_t load_be32(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static inline uint64_t load_be64(const void *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return be64toh(value);
}

static inline void store_be16(void *at, uint16_t value)
{
    value = htobe16(value);
    memcpy(at, &value, sizeof value);
}

static inline void store_be32(void *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof value);
}

static inline void store_be64(void *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, sizeof value);
}

#endif
