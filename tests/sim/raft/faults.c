/* What disturbs the cluster. Each seed draws which faults it has and how often (a swarm), so that
 * rare ones are not drowned by common ones. New leaders are struck on purpose: the classic mistakes
 * show when several leaders in a row each get a few entries to a few peers. */
#include "tests/sim/raft/sim.h"

/* Zero in half of the seeds, else up to `most`. */
static uint32_t sometimes(struct rng *rng, uint32_t most)
{
    return rng_below(rng, 2) == 0 ? 0 : 1 + rng_below(rng, most);
}

static void draw_limits(struct cluster *cluster)
{
    struct rng *rng = &cluster->rng;
    cluster->limits = raft_limits_default;
    cluster->limits.election_ticks = 10;
    cluster->limits.heartbeat_ticks = 1 + rng_below(rng, 3);
    cluster->limits.hibernate_ticks = rng_below(rng, 2) == 0 ? 0 : 3 + rng_below(rng, 20);
    cluster->limits.message_entries = 1 + rng_below(rng, 2) * rng_below(rng, 16);
    cluster->limits.inflight_entries = 1 + rng_below(rng, 3) * rng_below(rng, 64);
    cluster->limits.message_bytes = 200 + rng_below(rng, 2000);
    cluster->limits.inflight_bytes = 400 + rng_below(rng, 8000);
    cluster->limits.uncommitted_bytes = 2000 + rng_below(rng, 20000);
    cluster->limits.reads = 8;
    cluster->limits.eager_commit = rng_below(rng, 2) == 0;
}

void plan_draw(struct cluster *cluster)
{
    struct rng *rng = &cluster->rng;
    struct plan *plan = &cluster->plan;
    draw_limits(cluster);
    plan->loss = sometimes(rng, 200000);
    plan->duplicate = sometimes(rng, 200000);
    plan->slow = sometimes(rng, 50000);
    plan->reorder = sometimes(rng, 300000);
    plan->delay_max = 1 + rng_below(rng, 15);
    plan->disk_max = 1 + rng_below(rng, 20);
    plan->disk_slow = sometimes(rng, 50000);
    plan->crash = sometimes(rng, 3000);
    plan->pause = sometimes(rng, 2000);
    plan->partition = sometimes(rng, 1500);
    plan->one_way = sometimes(rng, 2000);
    plan->heal = 1000 + rng_below(rng, 4000);
    plan->propose = 5000 + rng_below(rng, rng_below(rng, 2) == 0 ? 30000 : 200000);
    plan->read = sometimes(rng, 30000);
    plan->change = sometimes(rng, 4000);
    plan->transfer = sometimes(rng, 4000);
    plan->campaign = sometimes(rng, 1000);
    plan->withdraw = sometimes(rng, 1000);
    plan->damage = sometimes(rng, 2000);
    plan->release = sometimes(rng, 50000);
    plan->lost_link = sometimes(rng, 1000);
    plan->hold = sometimes(rng, 500000);
    plan->strike = sometimes(rng, 900000);
    plan->jitter = sometimes(rng, 100000);
    plan->crash_after_snapshot = rng_below(rng, 2) == 0;
}

static struct node *any_node(struct cluster *cluster)
{
    return &cluster->nodes[rng_below(&cluster->rng, cluster->node_count)];
}

/* Cuts every link between two halves. */
static void partition(struct cluster *cluster)
{
    uint32_t half = rng_below(&cluster->rng, 1u << cluster->node_count);
    for (uint32_t a = 0; a < cluster->node_count; a++) {
        for (uint32_t b = 0; b < cluster->node_count; b++) {
            if (((half >> a) & 1) != ((half >> b) & 1)) {
                cluster->network.cut[a][b] = true;
            }
        }
    }
}

static void join_links(struct cluster *cluster)
{
    for (uint32_t a = 0; a < cluster->node_count; a++) {
        for (uint32_t b = 0; b < cluster->node_count; b++) {
            cluster->network.cut[a][b] = false;
        }
    }
}

static void toggle_withdrawn(struct cluster *cluster, struct node *node)
{
    node->withdrawn = !node->withdrawn;
    node_event(cluster, node,
               (struct raft_event){
                   .kind = node->withdrawn ? RAFT_EVENT_WITHDRAW : RAFT_EVENT_REJOIN});
}

/* ---- Strikes ---- */

void faults_new_leader(struct cluster *cluster, struct node *node)
{
    if (!cluster->healed && rng_chance(&cluster->rng, cluster->plan.strike)) {
        node->strike_at = cluster->now + 1 + rng_below(&cluster->rng, 8 * TICK_UNITS);
    }
}

/* Crashes a leader for a short while, or leaves it with fewer peers. */
static void strike(struct cluster *cluster, struct node *node)
{
    struct rng *rng = &cluster->rng;
    node->strike_at = 0;
    if (rng_below(rng, 2) == 0) {
        node_crash(cluster, node);
        node->restart_at = cluster->now + 1 + rng_below(rng, 15 * TICK_UNITS);
        return;
    }
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        bool cut = rng_below(rng, 2) == 0;
        cluster->network.cut[node->id - 1][i] = cut;
        cluster->network.cut[i][node->id - 1] = cut && rng_below(rng, 2) == 0;
    }
}

static void strike_leaders(struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct node *node = &cluster->nodes[i];
        if (node->strike_at != 0 && node->strike_at <= cluster->now && node->up) {
            strike(cluster, node);
        }
    }
}

/* ---- Damage ---- */

bool faults_is_damaged(const struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        if (cluster->nodes[i].damaged) {
            return true;
        }
    }
    return false;
}

/* Whether the leader's members are settled and can lose one voter's log: three or more voters. */
static bool can_spare_one(const struct node *leader)
{
    size_t count;
    const struct raft_member *members = raft_members(leader->raft, &count);
    uint32_t voters = 0;
    for (size_t i = 0; i < count; i++) {
        voters += (members[i].flags & RAFT_VOTER) != 0 ? 1 : 0;
        if ((members[i].flags & RAFT_OLD_VOTER) != 0) {
            return false;
        }
    }
    return voters >= 3 && raft_members_index(leader->raft) <= raft_commit_index(leader->raft);
}

/* A node loses entries that it had acknowledged, one node at a time; its votes are kept. */
static void damage(struct cluster *cluster, struct node *node)
{
    const struct node *leader = cluster_leader(cluster);
    if (leader == NULL || leader == node || faults_is_damaged(cluster) ||
        !can_spare_one(leader)) {
        return;
    }
    node_crash(cluster, node);
    disk_damage(&node->disk, 1 + rng_below(&cluster->rng, 30));
    node->damaged = true;
    node->withdrawn = true;
    node->rejoin_at = 0;
    node->restart_at = cluster->now + 1 + rng_below(&cluster->rng, 30 * TICK_UNITS);
    cluster->damages++;
}

void faults_repair(struct cluster *cluster, struct node *node)
{
    if (!node->damaged || raft_leader(node->raft) == RAFT_NO_NODE) {
        return;
    }
    const struct node *leader = cluster_node(cluster, raft_leader(node->raft));
    struct raft_peer_info info;
    if (!leader->up || raft_term(leader->raft) != raft_term(node->raft) ||
        !raft_peer_info(leader->raft, node->id, &info)) {
        return;
    }
    if (node->rejoin_at == 0) {
        node->rejoin_at = raft_last_index(leader->raft);
    } else if (node->applied.index >= node->rejoin_at) {
        node->damaged = false;
        toggle_withdrawn(cluster, node);
    }
}

static void disturb_nodes(struct cluster *cluster)
{
    const struct plan *plan = &cluster->plan;
    struct rng *rng = &cluster->rng;
    struct node *node = any_node(cluster);
    if (node->up && rng_chance(rng, plan->crash)) {
        node_crash(cluster, node);
        node->restart_at = cluster->now + 1 + rng_below(rng, 60 * TICK_UNITS);
    }
    node = any_node(cluster);
    if (rng_chance(rng, plan->pause)) {
        node->paused_until = cluster->now + rng_below(rng, 50 * TICK_UNITS);
    }
    node = any_node(cluster);
    if (node->up && !node->damaged && rng_chance(rng, plan->withdraw)) {
        toggle_withdrawn(cluster, node);
    }
    node = any_node(cluster);
    if (node->up && rng_chance(rng, plan->campaign)) {
        bool hold = rng_chance(rng, plan->hold);
        node_event(cluster, node,
                   (struct raft_event){.kind = RAFT_EVENT_CAMPAIGN, .hold = hold});
    }
    node = any_node(cluster);
    if (node->up && rng_chance(rng, plan->damage)) {
        damage(cluster, node);
    }
    node = any_node(cluster);
    if (node->up && rng_chance(rng, plan->lost_link)) {
        struct raft_event event = {.kind = RAFT_EVENT_PEER_LOST, .node = any_node(cluster)->id};
        node_event(cluster, node, event);
    }
}

void faults_step(struct cluster *cluster)
{
    const struct plan *plan = &cluster->plan;
    struct rng *rng = &cluster->rng;
    if (cluster->healed) {
        return;
    }
    disturb_nodes(cluster);
    strike_leaders(cluster);
    if (rng_chance(rng, plan->partition)) {
        partition(cluster);
    }
    if (rng_chance(rng, plan->one_way)) {
        uint32_t from = rng_below(rng, cluster->node_count);
        cluster->network.cut[from][rng_below(rng, cluster->node_count)] = true;
    }
    if (rng_chance(rng, plan->heal)) {
        join_links(cluster);
    }
}

void faults_heal(struct cluster *cluster)
{
    struct plan *plan = &cluster->plan;
    cluster->healed = true;
    join_links(cluster);
    plan->loss = plan->slow = plan->disk_slow = plan->jitter = 0;
    plan->delay_max = plan->delay_max > 10 ? 10 : plan->delay_max;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct node *node = &cluster->nodes[i];
        node->paused_until = 0;
        node->restart_at = cluster->now;
        if (node->up && node->withdrawn && !node->damaged) {
            toggle_withdrawn(cluster, node);
        }
        node->withdrawn = node->damaged;
    }
}
