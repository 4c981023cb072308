/* The kernel's randomness behind io/random.h. */
#include "io/random.h"

#include <assert.h>
#include <sys/random.h>

void random_fill(void *bytes, size_t length)
{
    uint8_t *at = bytes;
    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);
        assert(got > 0);
        at += got;
        length -= (size_t)got;
    }
}

uint64_t random_below(uint64_t bound)
{
    assert(bound > 0);
    uint64_t value;
    random_fill(&value, sizeof value);
    return value % bound;
}

struct uuid random_uuid(void)
{
    struct uuid uuid;
    do {
        random_fill(uuid.bytes, sizeof uuid.bytes);
        uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x40);
        uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
        /* A first digit of '-' has the value 62: the top six bits 111110. */
    } while (uuid.bytes[0] >> 2 == 62);
    return uuid;
}
