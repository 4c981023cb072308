/* One turn of a simulated loop, for the node that owns it. */
#ifndef OTTLA_TESTS_SIM_CLUSTER_LOOP_H
#define OTTLA_TESTS_SIM_CLUSTER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct sim_loop;

/* Runs what is due; whether there was anything. */
bool loop_run(struct sim_loop *loop);

/* When something is due next. */
uint64_t loop_next_ns(struct sim_loop *loop);

#endif
