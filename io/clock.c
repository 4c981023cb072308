/* The kernel's clocks behind io/clock.h. */
#include "io/clock.h"

#include <assert.h>
#include <time.h>

static uint64_t read_clock_ns(clockid_t id)
{
    struct timespec now;
    int failed = clock_gettime(id, &now);
    assert(failed == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t clock_wall_ms(void)
{
    return (int64_t)(read_clock_ns(CLOCK_REALTIME) / 1000000u);
}

uint64_t clock_monotonic_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_ms(void)
{
    return clock_monotonic_ns() / 1000000u;
}
