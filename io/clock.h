/* Time, as a seam: clock.c asks the kernel, a simulation links its own implementation. */
#ifndef OTTLA_IO_CLOCK_H
#define OTTLA_IO_CLOCK_H

#include <stdint.h>

/* Milliseconds since 1970 (UTC), as Kafka's timestamps. May jump. */
int64_t clock_wall_ms(void);

/* Nanoseconds since some start; never goes back. For timeouts and measuring. */
uint64_t clock_monotonic_ns(void);

/* Milliseconds since some start; never goes back. */
uint64_t clock_monotonic_ms(void);

#endif
