/* The clock and the randomness of simulations: io/clock.h stands still until it is moved,
 * io/random.h comes from a seed. */
#ifndef OTTLA_TESTS_SIM_SIM_CLOCK_H
#define OTTLA_TESTS_SIM_SIM_CLOCK_H

#include <stdint.h>

/* Starts at a fixed time, with a new generator. */
void sim_clock_reset(uint64_t seed);

/* Sets the monotonic clock, and how far the wall clock is ahead of its usual place. */
void sim_clock_set(uint64_t ns, int64_t ahead_ms);

/* Moves both clocks. */
void sim_clock_pass(uint64_t ms);

#endif
