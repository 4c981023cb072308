/* Runs are divided among processes, one for each processor: a run needs no other one. */
#ifndef OTTLA_TESTS_SIM_CLUSTER_WORKERS_H
#define OTTLA_TESTS_SIM_CLUSTER_WORKERS_H

#include <stdint.h>

/* What all runs came to; the same whoever did them. */
struct tally {
    _Atomic uint64_t acked;
    _Atomic uint64_t virtual_ns;
    _Atomic uint64_t trace;      /* of every run */
};

/* The processors this process may use. */
int workers_usable(void);

/* Calls `run` for each number below `count`, in so many processes, or here when it is one. When one
 * of them fails the others are ended, and this process fails as it did. */
struct tally workers_run(int workers, uint64_t count,
                         void (*run)(uint64_t number, struct tally *tally));

#endif
