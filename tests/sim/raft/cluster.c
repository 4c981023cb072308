/* The loop of one seed: a time with faults, then a time without in which the cluster must come to
 * agree, every member having applied everything; at last the leader goes for good, out of whatever
 * rest the cluster has come to, and another one must take over. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/sim/raft/sim.h"

enum { BEGUN_PER_TICK = 300000 }; /* parts of a million: elections that were held back */
enum { FAULT_TICKS = 1000, HEAL_TICKS = 300, HEAL_TICKS_MAX = 10000, IDLE_TICKS = 60 };

/* ---- Randomness ---- */

uint64_t rng_next(struct rng *rng)
{
    rng->state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = rng->state;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

uint32_t rng_below(struct rng *rng, uint32_t bound)
{
    assert(bound > 0);
    return (uint32_t)((rng_next(rng) >> 32) * bound >> 32);
}

bool rng_chance(struct rng *rng, uint32_t parts)
{
    return parts > 0 && rng_below(rng, 1000000) < parts;
}

uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    struct rng rng = {hash ^ (value * 0xff51afd7ed558ccdu)};
    return rng_next(&rng);
}

/* ---- One unit of time ---- */

static bool runs(const struct cluster *cluster, const struct node *node)
{
    return node->up && node->paused_until <= cluster->now;
}

static void deliver(struct cluster *cluster)
{
    struct packet *packet;
    while ((packet = network_next(cluster)) != NULL) {
        struct node *node = cluster_node(cluster, packet->to);
        if (runs(cluster, node)) {
            node_receive(cluster, node, packet);
            network_drop(packet);
        } else if (node->up) {
            network_requeue(cluster, packet, node->paused_until);
        } else {
            network_drop(packet);
        }
    }
}

static bool reachable(const struct cluster *cluster, const struct node *from,
                      const struct node *to)
{
    return runs(cluster, to) && !cluster->network.cut[from->id - 1][to->id - 1] &&
           !cluster->network.cut[to->id - 1][from->id - 1];
}

static void node_feed(struct cluster *cluster, struct node *node, enum raft_event_kind kind,
                      int32_t peer)
{
    bool hold = kind == RAFT_EVENT_PEER_LOST && rng_chance(&cluster->rng, cluster->plan.hold);
    struct raft_event event = {.kind = (uint8_t)kind, .hold = hold, .node = peer};
    node_event(cluster, node, event);
}

static void watch_link(struct cluster *cluster, struct node *node, const struct node *peer)
{
    uint64_t *silent = &node->silent_ticks[peer->id - 1];
    uint64_t *back = &node->back_ticks[peer->id - 1];
    bool is_silent = peer != node && !reachable(cluster, node, peer);
    if (is_silent) {
        *silent += 1;
        *back = 0;
        if (*silent % SILENT_TICKS == 0 && *silent <= GONE_TICKS) {
            node_feed(cluster, node, RAFT_EVENT_PEER_LOST, peer->id);
        }
        if (*silent > GONE_TICKS) {
            node_feed(cluster, node, RAFT_EVENT_PEER_GONE, peer->id);
        }
        return;
    }
    *back = *silent > GONE_TICKS ? 1 : *back + (*back > 0 ? 1 : 0);
    if (*silent >= SILENT_TICKS) {
        node_feed(cluster, node, RAFT_EVENT_PEER_BACK, peer->id);
    }
    *silent = 0;
}

/* What a broker knows of its links: a peer that is silent for a while is lost to all groups, then
 * gone, and perhaps back. */
static void watch_links(struct cluster *cluster, struct node *node)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct node *peer = &cluster->nodes[i];
        watch_link(cluster, node, peer);
        if (node->snapshot_until[i] != 0 && cluster->now >= node->snapshot_until[i]) {
            node->snapshot_until[i] = 0;
            struct raft_event event = {.kind = RAFT_EVENT_SNAPSHOT_DONE};
            event.snapshot.node = peer->id;
            node_event(cluster, node, event);
        }
    }
}

static void tick(struct cluster *cluster, struct node *node)
{
    uint32_t ticks = 1;
    if (rng_chance(&cluster->rng, cluster->plan.jitter)) {
        ticks = rng_below(&cluster->rng, 4);
    }
    for (uint32_t i = 0; i < ticks; i++) {
        if (raft_needs_ticks(node->raft)) {
            bool hold = rng_chance(&cluster->rng, cluster->plan.hold);
            node_event(cluster, node,
                       (struct raft_event){.kind = RAFT_EVENT_TICK, .hold = hold});
        }
    }
    if (raft_awaits_election(node->raft) && rng_chance(&cluster->rng, BEGUN_PER_TICK)) {
        node_event(cluster, node, (struct raft_event){.kind = RAFT_EVENT_CAMPAIGN});
    }
    watch_links(cluster, node);
    faults_repair(cluster, node);
    check_contact(cluster, node);
}

static void unit(struct cluster *cluster)
{
    cluster->now++;
    deliver(cluster);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct node *node = &cluster->nodes[i];
        if (!node->up && node->restart_at <= cluster->now) {
            node_boot(cluster, node, NULL);
        }
        if (!runs(cluster, node)) {
            continue;
        }
        node_disk(cluster, node);
        if (cluster->now % TICK_UNITS == i) {
            tick(cluster, node);
        }
    }
    faults_step(cluster);
    clients_step(cluster);
}

/* ---- The end ---- */

struct node *cluster_leader(struct cluster *cluster)
{
    struct node *leader = NULL;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct node *node = &cluster->nodes[i];
        if (node->up && raft_role(node->raft) == RAFT_LEADER &&
            (leader == NULL || raft_term(node->raft) > raft_term(leader->raft))) {
            leader = node;
        }
    }
    return leader;
}

/* Whether the leader's members have all applied `index` and are in one state. */
static bool is_settled(struct cluster *cluster, const struct node *leader, uint64_t index)
{
    size_t count;
    const struct raft_member *members = raft_members(leader->raft, &count);
    for (size_t i = 0; i < count; i++) {
        const struct node *node = cluster_node(cluster, members[i].id);
        if ((members[i].flags & RAFT_OLD_VOTER) != 0 || !node->up ||
            node->applied.index < index || node->applied.index != leader->applied.index ||
            node->applied.hash != leader->applied.hash) {
            return false;
        }
    }
    return leader->applied.index == raft_last_index(leader->raft);
}

/* Rises while logs or states still move. */
static uint64_t progress_of(const struct cluster *cluster)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        sum += cluster->nodes[i].applied.index + cluster->nodes[i].disk.last;
    }
    return sum;
}

/* Runs on without faults; fails when nothing moves for HEAL_TICKS and it is not settled. */
static void settle(struct cluster *cluster)
{
    faults_heal(cluster);
    uint64_t begin = cluster->now;
    uint64_t moved_at = begin;
    uint64_t progress = 0;
    uint64_t marker = 0;
    const struct node *proposer = NULL;
    while (cluster->now < moved_at + HEAL_TICKS * TICK_UNITS &&
           cluster->now < begin + HEAL_TICKS_MAX * TICK_UNITS) {
        unit(cluster);
        if (progress_of(cluster) > progress) {
            progress = progress_of(cluster);
            moved_at = cluster->now;
        }
        struct node *leader = cluster_leader(cluster);
        if (leader == NULL) {
            continue;
        }
        if (leader != proposer && node_propose(cluster, leader, 1) == RAFT_OK) {
            proposer = leader;
            marker = raft_last_index(leader->raft);
        }
        if (leader == proposer && is_settled(cluster, leader, marker)) {
            return;
        }
    }
    check_fail(cluster, "liveness: not settled, and nothing moved for %d ticks", HEAL_TICKS);
}

static void run_ticks(struct cluster *cluster, uint32_t ticks)
{
    for (uint32_t i = 0; i < ticks * TICK_UNITS; i++) {
        unit(cluster);
    }
}

static void cut_off(struct cluster *cluster, const struct node *node, bool cut)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        cluster->network.cut[node->id - 1][i] = cut;
        cluster->network.cut[i][node->id - 1] = cut;
    }
}

/* A member that rests is stopped and cut off until it is gone for the others, who go on and rest
 * without it. It is back and knows of nothing: the leader brings it up to date (check_contact). */
static void leave_behind(struct cluster *cluster)
{
    run_ticks(cluster, IDLE_TICKS);
    struct node *leader = cluster_leader(cluster);
    size_t count;
    const struct raft_member *members = raft_members(leader->raft, &count);
    uint32_t which = rng_below(&cluster->rng, (uint32_t)count);
    struct node *left = cluster_node(cluster, members[which].id);
    if (left == leader || count < 3 || !left->up) {
        return;
    }
    left->paused_until = cluster->now + (GONE_TICKS + 2 * IDLE_TICKS) * TICK_UNITS;
    cut_off(cluster, left, true);
    run_ticks(cluster, GONE_TICKS + 1);
    if (cluster_leader(cluster) == leader) {
        node_propose(cluster, leader, 1);
    }
    run_ticks(cluster, 2 * IDLE_TICKS);
    cut_off(cluster, left, false);
    run_ticks(cluster, 2 * IDLE_TICKS);
}

/* The leader is lost for good, after a time of rest; its voters must go on without it. */
static void fail_over(struct cluster *cluster)
{
    struct node *lost = cluster_leader(cluster);
    size_t count;
    const struct raft_member *members = raft_members(lost->raft, &count);
    uint32_t voters = 0;
    for (size_t i = 0; i < count; i++) {
        voters += (members[i].flags & RAFT_VOTER) != 0 ? 1 : 0;
    }
    run_ticks(cluster, IDLE_TICKS);
    if (voters < 3 || !lost->up || cluster_leader(cluster) != lost) {
        return;
    }
    node_crash(cluster, lost);
    lost->restart_at = UINT64_MAX;
    uint64_t marker = 0;
    const struct node *proposer = NULL;
    for (uint32_t i = 0; i < HEAL_TICKS * TICK_UNITS; i++) {
        unit(cluster);
        struct node *leader = cluster_leader(cluster);
        if (leader != NULL && leader != proposer && node_propose(cluster, leader, 1) == RAFT_OK) {
            proposer = leader;
            marker = raft_last_index(leader->raft);
        }
        if (leader != NULL && leader == proposer && leader->applied.index >= marker) {
            return;
        }
    }
    check_fail(cluster, "liveness: nobody took over from node %d", lost->id);
}

/* ---- A run ---- */

static void open_nodes(struct cluster *cluster)
{
    struct rng *rng = &cluster->rng;
    struct checkpoint first = {0};
    uint32_t voters = 1 + 2 * rng_below(rng, 3); /* 1, 3 or 5 */
    voters = rng_below(rng, 4) == 0 ? voters : (voters == 1 ? 3 : voters);
    cluster->node_count = voters + rng_below(rng, NODES_MAX - voters + 1);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        bool votes = i < voters;
        if (votes || rng_below(rng, 2) == 0) {
            first.members[first.member_count++] = (struct raft_member){
                (int32_t)i + 1, (uint8_t)(votes ? RAFT_VOTER : RAFT_LEARNER)};
        }
    }
    /* Nodes that are no members yet know the members of the group's creation too. */
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct node *node = &cluster->nodes[i];
        node->id = (int32_t)i + 1;
        node_boot(cluster, node, &first);
    }
}

struct cluster *cluster_run(uint64_t seed, bool trace)
{
    struct cluster *cluster = memory_new_zero(1, sizeof *cluster);
    cluster->seed = seed;
    cluster->trace = trace;
    cluster->rng.state = seed * 0x2545f4914f6cdd1du;
    plan_draw(cluster);
    open_nodes(cluster);
    while (cluster->now < FAULT_TICKS * TICK_UNITS) {
        unit(cluster);
    }
    settle(cluster);
    leave_behind(cluster);
    fail_over(cluster);
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct node *node = &cluster->nodes[i];
        if (node->up) {
            raft_free(node->raft);
            raft_actions_free(&node->actions);
        }
        disk_free(&node->disk);
    }
    network_free(&cluster->network);
    check_free(&cluster->history);
    free(cluster);
}
