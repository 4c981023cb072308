/* The clock and the randomness of simulations: io/clock.h stands still until it is moved,
 * io/random.h comes from a seed. */
#ifndef OTTLA_TESTS_SIM_SIM_CLOCK_H
#define OTTLA_TESTS_SIM_SIM_CLOCK_H

#include <stdint.h>

/* Starts at a fixed time, with a new generator. */
void sim_clock_reset(uint64_t seed);

/* Moves both clocks. */
void sim_clock_pass(uint64_t ms);

#endif
