/* sim_raft [SEED [COUNT]] [trace]: runs COUNT seeds from SEED on (1,000 from 1 by default), checks
 * the invariants of check.c after every step and that a seed run twice is the same run bit for bit.
 * A failure names its seed; `sim_raft SEED 1 trace` shows every event and action of it.
 *
 * mutate.py breaks the core on purpose: votes and acknowledgements before they are durable,
 * forgotten votes and terms, uncompared logs, commits by counting old entries, wrong majorities,
 * lost joint configurations, stale reads, snapshots, releases, rests. Each is caught, most of them
 * within 30 seeds, all within 1,000.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/raft/sim.h"

/* Every so many seeds are run a second time. */
enum { REPEAT_EVERY = 25 };

struct totals {
    uint64_t hash, steps, leaders, commits, snapshots, changes, crashes, damages, reads, rests;
};

static void add(struct totals *totals, const struct cluster *cluster)
{
    totals->hash = hash_mix(totals->hash, cluster->hash);
    totals->steps += cluster->steps;
    totals->leaders += cluster->leaders;
    totals->commits += cluster->commits;
    totals->snapshots += cluster->snapshots;
    totals->changes += cluster->changes;
    totals->crashes += cluster->crashes;
    totals->damages += cluster->damages;
    totals->reads += cluster->reads_served;
    totals->rests += cluster->rests;
}

static bool is_repeatable(uint64_t seed, uint64_t hash)
{
    struct cluster *again = cluster_run(seed, false);
    bool same = again->hash == hash;
    cluster_free(again);
    return same;
}

int main(int count, char **arguments)
{
    bool trace = count > 1 && strcmp(arguments[count - 1], "trace") == 0;
    uint64_t first = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    uint64_t seeds = count > 2 ? strtoull(arguments[2], NULL, 10) : 1000;
    struct totals totals = {0};
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        printf("seed %" PRIu64, seed);
        fflush(stdout); /* an assertion in the core must not hide it */
        struct cluster *cluster = cluster_run(seed, trace);
        printf(" hash %016" PRIx64 " steps %" PRIu64 "\n", cluster->hash, cluster->steps);
        add(&totals, cluster);
        uint64_t hash = cluster->hash;
        cluster_free(cluster);
        if (seed % REPEAT_EVERY == 0 && !is_repeatable(seed, hash)) {
            printf("FAILED seed %" PRIu64 ": two runs differ\n", seed);
            return EXIT_FAILURE;
        }
    }
    printf("%" PRIu64 " seeds: hash %016" PRIx64 ", %" PRIu64 " steps, %" PRIu64
           " leaders, %" PRIu64 " applied, %" PRIu64 " snapshots, %" PRIu64
           " member changes, %" PRIu64
           " crashes, %" PRIu64 " damages, %" PRIu64 " reads, %" PRIu64 " rests\n",
           seeds, totals.hash, totals.steps, totals.leaders, totals.commits, totals.snapshots,
           totals.changes, totals.crashes, totals.damages, totals.reads, totals.rests);
    return EXIT_SUCCESS;
}
