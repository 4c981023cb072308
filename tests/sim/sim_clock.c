/* Virtual time and seeded randomness behind io/clock.h and io/random.h. */
#include "tests/sim/sim_clock.h"

#include <string.h>

#include "io/clock.h"
#include "io/random.h"

static uint64_t now_ns;
static int64_t wall_ahead_ms;
static uint64_t state;

void sim_clock_reset(uint64_t seed)
{
    now_ns = 1000000000u;
    wall_ahead_ms = 0;
    state = seed * 2 + 1;
}

void sim_clock_pass(uint64_t ms)
{
    now_ns += ms * 1000000u;
}

void sim_clock_set(uint64_t ns, int64_t ahead_ms)
{
    now_ns = ns;
    wall_ahead_ms = ahead_ms;
}

int64_t clock_wall_ms(void)
{
    return 1700000000000 + (int64_t)(now_ns / 1000000u) + wall_ahead_ms;
}

uint64_t clock_monotonic_ns(void)
{
    return now_ns;
}

uint64_t clock_monotonic_ms(void)
{
    return now_ns / 1000000u;
}

static uint64_t next(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void random_fill(void *bytes, size_t length)
{
    uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++) {
        at[i] = (uint8_t)next();
    }
}

uint64_t random_below(uint64_t bound)
{
    return next() % bound;
}

struct uuid random_uuid(void)
{
    struct uuid uuid;
    random_fill(uuid.bytes, sizeof uuid.bytes);
    uuid.bytes[0] &= 0x7f;
    return uuid;
}
