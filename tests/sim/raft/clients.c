/* What uses the cluster: proposals, reads, changes of members, transfers, releases. Requests go to
 * nodes that believe they lead, and sometimes to others, which must refuse. */
#include <assert.h>

#include "tests/sim/raft/sim.h"

/* A node that is up; mostly one that leads, if there is one. */
static struct node *target(struct cluster *cluster)
{
    uint32_t from = rng_below(&cluster->rng, cluster->node_count);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        struct node *node = &cluster->nodes[(from + i) % cluster->node_count];
        if (node->up && raft_role(node->raft) == RAFT_LEADER) {
            return node;
        }
    }
    return cluster->nodes[from].up ? &cluster->nodes[from] : NULL;
}

static void read(struct cluster *cluster, struct node *node)
{
    struct history *history = &cluster->history;
    if (history->read_count == READS_MAX) {
        return;
    }
    struct raft_event event = {.kind = RAFT_EVENT_READ};
    event.read.context = history->read_count;
    history->reads[history->read_count++] =
        (struct read){.committed = history->committed, .node = node->id, .open = true};
    node_event(cluster, node, event);
}

/* Makes random nodes voters and learners; more often few voters than many. */
static void change_members(struct cluster *cluster, struct node *node)
{
    struct raft_member members[NODES_MAX];
    size_t count = 0;
    uint32_t voters = 0;
    uint32_t wanted = 1 + rng_below(&cluster->rng, cluster->node_count);
    uint32_t from = rng_below(&cluster->rng, cluster->node_count);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        int32_t id = cluster->nodes[(from + i) % cluster->node_count].id;
        bool votes = voters < wanted && rng_below(&cluster->rng, 3) != 0;
        if (votes || rng_below(&cluster->rng, 3) == 0) {
            members[count++] = (struct raft_member){id, votes ? RAFT_VOTER : RAFT_LEARNER};
            voters += votes ? 1 : 0;
        }
    }
    if (voters == 0) {
        return;
    }
    struct raft_event event = {.kind = RAFT_EVENT_CHANGE_MEMBERS};
    event.change.members = members;
    event.change.count = count;
    node_event(cluster, node, event);
}

static void transfer(struct cluster *cluster, struct node *node)
{
    uint32_t to = rng_below(&cluster->rng, cluster->node_count + 1);
    struct raft_event event = {.kind = RAFT_EVENT_TRANSFER,
                               .node = to == 0 ? RAFT_NO_NODE : (int32_t)to};
    node_event(cluster, node, event);
}

void clients_step(struct cluster *cluster)
{
    const struct plan *plan = &cluster->plan;
    struct rng *rng = &cluster->rng;
    struct node *node = target(cluster);
    if (node == NULL || cluster->healed) {
        return;
    }
    if (rng_chance(rng, plan->propose) && raft_last_index(node->raft) < INDEX_MAX - 2000) {
        bool leads = raft_role(node->raft) == RAFT_LEADER;
        enum raft_result result = node_propose(cluster, node, 1 + rng_below(rng, 4));
        if (leads == (result == RAFT_NOT_LEADER)) {
            check_fail(cluster, "node %d answers a proposal with %d", node->id, (int)result);
        }
    }
    if (rng_chance(rng, plan->read)) {
        read(cluster, node);
    }
    if (rng_chance(rng, plan->change) && !faults_is_damaged(cluster)) {
        change_members(cluster, node);
    }
    if (rng_chance(rng, plan->transfer)) {
        transfer(cluster, node);
    }
    node = &cluster->nodes[rng_below(rng, cluster->node_count)];
    if (node->up && rng_chance(rng, plan->release)) {
        node_release(cluster, node);
    }
}
