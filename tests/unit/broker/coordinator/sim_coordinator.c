/* sim_coordinator SEED COUNT [STEPS]: runs COUNT seeds from SEED on. After every step a replica
 * that replays the committed records must have the leader's durable state, and groups at rest their
 * live one; one event raises a group's generation at most once; at the end every request was
 * answered once, without the help of a change of leader. A failure prints the seed and aborts. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/coordinator/machine.h"
#include "tests/unit/broker/coordinator/sim.h"

enum { STEPS = 1500, SETTLE_MS = 30 * 60 * 1000 };

uint64_t sim_below(struct sim *sim, uint64_t bound)
{
    assert(bound > 0);
    sim->state += 0x9e3779b97f4a7c15ULL; /* splitmix64 */
    uint64_t z = sim->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) % bound;
}

void sim_fail(struct sim *sim, const char *what, const char *detail)
{
    fprintf(stderr, "seed %llu, time %lld ms: %s: %s\n", (unsigned long long)sim->seed,
            (long long)sim->harness.now_ms, what, detail);
    abort();
}

static void replicate(struct sim *sim)
{
    for (; sim->replica_at < sim->harness.log_count; sim->replica_at++) {
        const struct harness_record *record = &sim->harness.log[sim->replica_at];
        assert(!record->is_marker && record->producer_id == -1);
        coordinator_replay(sim->replica, record->key, record->value);
    }
}

static void compare_replica(struct sim *sim)
{
    struct buffer leader = {0};
    struct buffer replica = {0};
    coordinator_dump_durable(sim->harness.machine, &leader);
    coordinator_dump_durable(sim->replica, &replica);
    if (!view_equal(buffer_view(&leader), buffer_view(&replica))) {
        fprintf(stderr, "leader:\n%.*s\nreplica:\n%.*s\n", (int)leader.length,
                (const char *)leader.data, (int)replica.length, (const char *)replica.data);
        sim_fail(sim, "the replica differs from the leader", "");
    }
    buffer_free(&leader);
    buffer_free(&replica);
}

static void compare_live(struct sim *sim)
{
    struct buffer why = {0};
    if (!harness_is_same(&sim->harness, &why)) {
        fwrite(why.data, 1, why.length, stderr);
        sim_fail(sim, "live and durable state differ", "");
    }
    buffer_free(&why);
}

/* What was there before an event; -1 for a group that was not. */
struct generations {
    int32_t of[SIM_GROUPS];
};

static struct generations read_generations(const struct sim *sim)
{
    struct generations result;
    for (int i = 0; i < SIM_GROUPS; i++) {
        const struct consumer_group *group =
            coordinator_group(sim->harness.machine, view_text(sim->groups[i].name));
        result.of[i] = group == NULL ? -1 : group->generation;
    }
    return result;
}

/* A group that is gone begins anew. One that a failed deletion brings back has its generation. */
static void check_generations(struct sim *sim, struct generations before, bool is_event)
{
    struct generations after = read_generations(sim);
    for (int i = 0; i < SIM_GROUPS; i++) {
        if (after.of[i] == -1) {
            sim_forget_generations(sim, i);
        }
        if (is_event && before.of[i] != -1 && after.of[i] > before.of[i] + 1) {
            sim_fail(sim, "one event raised the generation twice", sim->groups[i].name);
        }
    }
}

/* Timers run one deadline after the other, so that each is one event. */
static void let_time_pass(struct sim *sim, int64_t by_ms)
{
    struct harness *harness = &sim->harness;
    harness_advance(harness, harness->now_ms + by_ms, false, NULL);
}

static void change_leader(struct sim *sim)
{
    harness_resign(&sim->harness);
    for (int i = 0; i < SIM_GROUPS; i++) {
        sim_forget_generations(sim, i);
    }
    coordinator_free(sim->harness.machine);
    if (sim_below(sim, 2) == 0) {
        sim->harness.machine = sim->replica; /* the replica takes over */
        sim->replica = harness_replay(&sim->harness);
    } else {
        sim->harness.machine = harness_replay(&sim->harness);
    }
    sim->replica_at = sim->harness.log_count;
    coordinator_loaded(sim->harness.machine, sim->harness.now_ms);
}

static void step(struct sim *sim)
{
    struct generations before = read_generations(sim);
    uint64_t dice = sim_below(sim, 1000);
    bool is_event = true;
    if (dice < 450) {
        sim_client_step(sim);
    } else if (dice < 500) {
        sim_admin_step(sim);
    } else if (dice < 750) {
        (void)harness_commit_one(&sim->harness);
    } else if (dice < 755) {
        (void)harness_fail_one(&sim->harness, sim_below(sim, 2) == 0 ? KAFKA_MESSAGE_TOO_LARGE
                                                                     : KAFKA_REQUEST_TIMED_OUT);
    } else if (dice < 998) {
        is_event = false;
        let_time_pass(sim, (int64_t)sim_below(sim, sim_below(sim, 20) == 0 ? 8000 : 300));
    } else {
        is_event = false;
        change_leader(sim);
    }
    check_generations(sim, before, is_event);
    replicate(sim);
    compare_replica(sim);
}

/* Nobody sends any more: whatever waits has to be answered by timers and commits alone. */
static void settle(struct sim *sim)
{
    harness_commit_all(&sim->harness);
    for (int i = 0; i < SIM_CLIENTS; i++) {
        sim->clients[i].expected = NULL; /* no client follows up on its answers */
    }
    harness_advance(&sim->harness, sim->harness.now_ms + SETTLE_MS, true, NULL);
    if (!list_is_empty(&sim->harness.requests)) {
        const struct harness_request *lost = container_of(list_first(&sim->harness.requests),
                                                          struct harness_request, link);
        sim_fail(sim, "a request that nothing answers", lost->name);
    }
    replicate(sim);
    compare_replica(sim);
    compare_live(sim);
    if (sim->sent != sim->answered) {
        sim_fail(sim, "answers are missing or double", "");
    }
}

static void start(struct sim *sim, uint64_t seed)
{
    *sim = (struct sim){.seed = seed, .state = seed};
    harness_start(&sim->harness);
    sim->harness.user = sim;
    sim->harness.on_answer = sim_on_answer;
    sim->harness.config.initial_rebalance_delay_ms = (int32_t)sim_below(sim, 2) * 1000;
    sim->harness.config.group_max_size = sim_below(sim, 4) == 0 ? 2 : 100;
    coordinator_configure(sim->harness.machine, &sim->harness.config);
    harness_add_topic(&sim->harness, "t", SIM_PARTITIONS);
    sim->replica = harness_replay(&sim->harness);
    for (int i = 0; i < SIM_GROUPS; i++) {
        struct sim_group *group = &sim->groups[i];
        snprintf(group->name, sizeof(group->name), "g%d", i);
        group->generations = memory_new_zero(SIM_GENERATIONS_MAX, sizeof(*group->generations));
        memset(group->acked, -1, sizeof(group->acked));
    }
    for (int i = 0; i < SIM_CLIENTS; i++) {
        struct sim_client *client = &sim->clients[i];
        client->index = i;
        client->group = (int)sim_below(sim, SIM_GROUPS);
        client->protocols = (int)sim_below(sim, 3);
        if (sim_below(sim, 4) == 0) {
            snprintf(client->instance, sizeof(client->instance), "s%d", i);
            sim->groups[client->group].has_static = true;
        }
    }
}

static void run(uint64_t seed, int steps, uint64_t totals[8])
{
    struct sim *sim = memory_new(sizeof(*sim));
    start(sim, seed);
    for (int i = 0; i < steps; i++) {
        step(sim);
        if (i % 100 == 0) {
            compare_live(sim);
        }
    }
    settle(sim);
    for (int i = 0; i < 8; i++) {
        totals[i] += sim->counts[i];
    }
    totals[6] += sim->answered;
    harness_stop(&sim->harness);
    coordinator_free(sim->replica);
    for (int i = 0; i < SIM_GROUPS; i++) {
        free(sim->groups[i].generations);
    }
    free(sim);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: sim_coordinator SEED COUNT [STEPS]\n");
        return 2;
    }
    uint64_t first = strtoull(argv[1], NULL, 10);
    uint64_t count = strtoull(argv[2], NULL, 10);
    int steps = argc > 3 ? atoi(argv[3]) : STEPS;
    uint64_t totals[8] = {0};
    log_set_level(LOG_ERROR);
    for (uint64_t i = 0; i < count; i++) {
        run(first + i, steps, totals);
    }
    printf("%llu seeds from %llu: %llu answers; %llu joins, %llu syncs, %llu heartbeats, "
           "%llu commits, %llu fetches, %llu deleted groups\n",
           (unsigned long long)count, (unsigned long long)first, (unsigned long long)totals[6],
           (unsigned long long)totals[0], (unsigned long long)totals[1],
           (unsigned long long)totals[2], (unsigned long long)totals[3],
           (unsigned long long)totals[4], (unsigned long long)totals[5]);
    return 0;
}
