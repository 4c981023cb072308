/* Whole clusters in one process: brokers as they are, on simulated disks, clocks and networks, with
 * clients that write, read, commit offsets and change topics while everything goes wrong.
 *
 *   sim_cluster [--jobs N] [--plant BUG] [SEED [COUNT [tell]]]
 *   sim_cluster --list
 *
 * Each seed is a cluster of three to seven nodes. For some virtual time faults happen; then they
 * stop, and within a bounded time the cluster must be whole, every acknowledged record readable and
 * every committed offset there. The invariants of check.h hold at every moment. A seed that breaks
 * a promise is printed and aborts; the same seed runs the same way, with the same trace hash (the
 * first seed is run twice to see that). Seeds are divided among N processes: as many as there are
 * processors, unless there are few seeds. About every second cluster changes who votes on metadata:
 * the first node begins alone, others come and go, and nodes move.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/planted.h"
#include "tests/sim/cluster/check.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/faults.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/workers.h"
#include "tests/sim/cluster/world.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"

enum {
    DEFAULT_COUNT = 20,
    CALM_MS = 3000,          /* before the first fault */
    FAULTS_LEAST_MS = 5000,
    FAULTS_MOST_MS = 30000,
    AFTER_MS = 500,          /* they go on for so long after the last one */
    LIVENESS_MS = 60000      /* after the last one everything must be well again */
};

static void run_for(uint64_t ms)
{
    uint64_t until_ns = world.now_ns + ms * MS_NS;
    while (world_next(until_ns)) {
    }
}

/* Whether it came to be within the time; looks every 100 ms. */
static bool run_until(bool (*holds)(void), uint64_t most_ms)
{
    for (uint64_t ms = 0; ms < most_ms; ms += 100) {
        if (holds()) {
            return true;
        }
        run_for(100);
    }
    return holds();
}

static bool is_whole(void)
{
    bool all_known = true;
    for (int i = 0; i < cluster.count; i++) {
        all_known = all_known && check_is_known(cluster.nodes[i].id, false);
    }
    return all_known && check_is_whole(false);
}

static bool is_over(void)
{
    return clients_are_done();
}

static void require_soon(bool (*holds)(void), void (*tell)(void), const char *what)
{
    if (run_until(holds, LIVENESS_MS)) {
        return;
    }
    world.verbose = true;
    tell();
    world_require(false, "%s", what);
}

static void tell_whole(void)
{
    check_is_whole(true);
}

static void tell_over(void)
{
    clients_are_done();
    check_is_whole(true);
}

static struct sim_node *away;

static bool is_fenced(void)
{
    return check_is_known(away->id, true);
}

static bool is_back(void)
{
    return check_is_known(away->id, false) && check_is_whole(false);
}

/* One node is away for long, and nothing else is wrong. */
static void fence_one(void)
{
    away = &cluster.nodes[world_random((uint64_t)cluster.count)];
    node_kill(away, true);
    away->is_away = true;
    require_soon(is_fenced, tell_whole, "a broker that is gone is not fenced");
    away->is_away = false;
    node_start(away);
    require_soon(is_back, tell_whole, "a broker that is back is not taken in again");
}

static void finish(void)
{
    faults_stop();
    world_say("the faults stop");
    run_for(AFTER_MS);
    clients_stop();
    require_soon(is_over, tell_over, "the clients do not come to an end");
    for (int i = 0; i < MODEL_PARTITIONS; i++) {
        model_check_read(i, model_end_offset(i));
    }
    require_soon(is_whole, tell_whole, "the cluster does not become whole");
    if (world_chance(4)) {
        fence_one();
    }
    check_replicas();
}

struct outcome {
    uint64_t trace;
    uint64_t acked;
    uint64_t virtual_ns;
    uint64_t events;
};

/* Three nodes mostly; six and seven are rare, since they take long. */
static int draw_nodes(void)
{
    static const int least_draw[] = {[4] = 18, [5] = 24, [6] = 30, [7] = 31};
    int draw = (int)world_random(32);
    int nodes = 3;
    while (nodes < 7 && draw >= least_draw[nodes + 1]) {
        nodes++;
    }
    return nodes;
}

static struct outcome run(uint64_t seed, bool tell)
{
    world_start(seed, tell);
    check_start();
    network_start(node_accept);
    int nodes = draw_nodes();
    bool changes_voters = world_chance(2);
    cluster_start(nodes, changes_voters, seed);
    for (int i = 0; i < nodes; i++) {
        node_start(&cluster.nodes[i]);
    }
    struct crowd crowd = {.replicas = 3};
    crowd.producers = 2 + (int)world_random(4);
    crowd.committers = 1 + (int)world_random(3);
    crowd.admins = 1 + (int)world_random(2);
    crowd.members = world_chance(3) ? 0 : 2 + (int)world_random(2);
    crowd.movers = world_chance(2) ? 0 : 1;
    crowd.voters = changes_voters ? 1 : 0;
    clients_start(&crowd);
    run_for(CALM_MS);
    if (!world_chance(10)) {
        faults_start();
    }
    run_for(FAULTS_LEAST_MS + world_random(FAULTS_MOST_MS - FAULTS_LEAST_MS));
    finish();
    struct outcome outcome = {world.trace, model_acked_count(), world.now_ns, world.events_run};
    clients_end();
    cluster_end();
    network_end();
    world_end();
    check_end();
    return outcome;
}

#ifdef OTTLA_PLANTED

static const char *const planted_names[] = {
#define PLANTED_NAME(name, what) [PLANT_##name] = #name,
    PLANTED_BUGS(PLANTED_NAME)
};

static void list_bugs(void)
{
#define PLANTED_LINE(name, what) printf("%s\t%s\n", #name, what);
    PLANTED_BUGS(PLANTED_LINE)
}

static void plant(const char *name)
{
    for (int bug = 1; bug < PLANTED_COUNT; bug++) {
        if (strcmp(planted_names[bug], name) == 0) {
            planted_in_force = (enum planted_bug)bug;
            return;
        }
    }
    fprintf(stderr, "sim_cluster: no bug is called %s; --list names them\n", name);
    exit(2);
}

#else

static void list_bugs(void)
{
}

static void plant(const char *name)
{
    fprintf(stderr, "sim_cluster: %s: this build has no planted bugs (-Dplanted=true)\n", name);
    exit(2);
}

#endif

static int workers; /* 0: as many as there are processors */

/* Takes the options off the front; how many arguments they were. */
static int take_options(int count, char **arguments)
{
    int taken = 0;
    while (count - taken > 1) {
        const char *option = arguments[taken + 1];
        const char *value = count - taken > 2 ? arguments[taken + 2] : NULL;
        if (strcmp(option, "--list") == 0) {
            list_bugs();
            exit(0);
        }
        if (value != NULL && strcmp(option, "--plant") == 0) {
            plant(value);
            workers = workers == 0 ? 1 : workers; /* whoever hunts bugs hunts several at a time */
        } else if (value != NULL && strcmp(option, "--jobs") == 0) {
            workers = atoi(value);
        } else {
            break;
        }
        taken += 2;
    }
    return taken;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* As the real process has it: large blocks are kept, rather than mapped anew each time. */
static void tune_allocator(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);
    mallopt(M_TOP_PAD, 1024 * 1024);
}

static uint64_t first_seed;
static bool are_few; /* each is printed */
static bool tells;
static bool compares; /* two runs of the first */

static void run_one(uint64_t number, struct tally *tally)
{
    uint64_t seed = first_seed + number;
    struct outcome outcome = run(seed, tells);
    if (number == 0 && compares) {
        world_require(run(seed, false).trace == outcome.trace, "the same seed gives another run");
    }
    tally->virtual_ns += outcome.virtual_ns;
    tally->acked += outcome.acked;
    tally->trace += outcome.trace;
    if (are_few) {
        printf("seed %" PRIu64 ": trace %016" PRIx64 ", %" PRIu64 " records acknowledged, "
               "%.1f s, %" PRIu64 " events\n", seed, outcome.trace, outcome.acked,
               (double)outcome.virtual_ns / 1e9, outcome.events);
    }
}

int main(int argument_count, char **arguments)
{
    tune_allocator();
    int options = take_options(argument_count, arguments);
    argument_count -= options;
    arguments += options;
    first_seed = argument_count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    uint64_t count = argument_count > 2 ? strtoull(arguments[2], NULL, 10) : DEFAULT_COUNT;
    tells = argument_count > 3 && strcmp(arguments[3], "tell") == 0;
    are_few = count <= 5;
    compares = count > 1;
    workers = workers > 0 ? workers : are_few ? 1 : workers_usable();
    log_set_level(getenv("SIM_LOG") != NULL ? LOG_DEBUG : LOG_OFF);
    double began = seconds();
    struct tally tally = workers_run(workers, count, run_one);
    double took = seconds() - began;
    double virtual_s = (double)tally.virtual_ns / 1e9;
    printf("%" PRIu64 " clusters from seed %" PRIu64 " on kept their promises: %" PRIu64
           " records acknowledged, %.0f s of their time in %.1f s (%.0f times as fast) by %d "
           "processes, traces %016" PRIx64 "\n",
           count, first_seed, (uint64_t)tally.acked, virtual_s, took, virtual_s / took, workers,
           (uint64_t)tally.trace);
    return 0;
}
