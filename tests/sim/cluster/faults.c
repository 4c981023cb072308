/* One fault at a time, each mended a while later; several may overlap. */
#include "tests/sim/cluster/faults.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "broker/controller/topic_image.h"
#include "broker/group/group.h"
#include "broker/group/replicas.h"
#include "broker/server/metadata_state.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/network.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/voters.h"
#include "tests/sim/cluster/world.h"

enum fault_kind {
    FAULT_KILL, FAULT_POWER, FAULT_PAUSE, FAULT_CUT, FAULT_ONE_WAY, FAULT_ISOLATE, FAULT_SLOW_WAY,
    FAULT_SLOW_DISK, FAULT_STALL, FAULT_CLOCK, FAULT_ALL_POWER, FAULT_LOSE_DISK, FAULT_TORN,
    FAULT_HALVES, FAULT_FULL_DISK, FAULT_BAD_DISK, FAULT_WITNESS, FAULT_ROT, FAULT_RETURN,
    FAULT_UNREAD,
    FAULT_KINDS
};

static bool active;
static unsigned weights[FAULT_KINDS];
static unsigned weight_sum;
static uint64_t pace_ms;
static uint64_t hurry;           /* how many times shorter than usual everything is */

static struct sim_node *any_node(void)
{
    return &cluster.nodes[world_random((uint64_t)cluster.count)];
}

static uint64_t a_while_ns(uint64_t most_ms)
{
    return (50 + world_random(most_ms / hurry)) * MS_NS;
}

static void kill_node(struct sim_node *node, bool power);

static void lose_power(void *context, uint64_t life)
{
    struct sim_node *node = context;
    if (node->life == life) {
        kill_node(node, true);
    }
}

/* A write is cut off in the middle, after at most so many others. */
static void tear(struct sim_node *node, uint64_t operations)
{
    if (node->broker != NULL) {
        node_tear(node, world_random(operations), lose_power);
    }
}

/* Some lose their power again before they have well begun. */
static void start_again(void *context, uint64_t tag)
{
    struct sim_node *node = context;
    (void)tag;
    if (node->broker == NULL && !node->is_away) {
        node_start(node);
        if (active && world_chance(6)) {
            tear(node, 40);
        }
    }
}

static void kill_node(struct sim_node *node, bool power)
{
    if (node->broker == NULL) {
        return;
    }
    node_kill(node, power);
    world_after(a_while_ns(world_chance(3) ? 6000 : 800), start_again, node, 0);
}

static void go_on(void *context, uint64_t life)
{
    struct sim_node *node = context;
    if (node->life == life && node->is_paused) {
        node_pause(node, false);
    }
}

static void pause_node(struct sim_node *node)
{
    if (node->broker == NULL || node->is_paused) {
        return;
    }
    node_pause(node, true);
    world_after(a_while_ns(world_chance(2) ? 4000 : 300), go_on, node, node->life);
}

/* What a mend puts back, by place: from * PLACES_MAX + to. */
static void mend_way(void *context, uint64_t way)
{
    (void)context;
    int from = (int)(way / PLACES_MAX);
    int to = (int)(way % PLACES_MAX);
    network.cut[from][to] = false;
    network.delay_us[from][to] = 0;
    network_look_again();
}

static void cut_way(int from, int to, uint64_t for_ns)
{
    network.cut[from][to] = true;
    world_after(for_ns, mend_way, NULL, (uint64_t)from * PLACES_MAX + (uint64_t)to);
}

static void cut(int a, int b, bool both)
{
    uint64_t for_ns = a_while_ns(world_chance(2) ? 6000 : 700);
    world_say("cut %d -> %d%s for %.1f s", a, b, both ? " and back" : "", (double)for_ns / 1e9);
    cut_way(a, b, for_ns);
    if (both) {
        cut_way(b, a, for_ns);
    }
}

static void isolate(const struct sim_node *node, uint64_t for_ns)
{
    world_say("node %d is alone for %.1f s", node->id, (double)for_ns / 1e9);
    for (int i = 1; i <= cluster.count; i++) {
        if (i != node->id) {
            cut_way(node->id, i, for_ns);
            cut_way(i, node->id, for_ns);
        }
    }
}

static void slow_way(int from, int to)
{
    network.delay_us[from][to] = (uint32_t)(1000 + world_random(200000));
    world_say("%d -> %d takes %u us more", from, to, network.delay_us[from][to]);
    world_after(a_while_ns(4000), mend_way, NULL, (uint64_t)from * PLACES_MAX + (uint64_t)to);
}

static void quick_disk(void *context, uint64_t tag)
{
    struct sim_node *node = context;
    (void)tag;
    node->disk_us = 300;
}

static void slow_disk(struct sim_node *node)
{
    node->disk_us = (uint32_t)(2000 + world_random(100000));
    world_say("node %d: writes take up to %u us", node->id, node->disk_us);
    world_after(a_while_ns(4000), quick_disk, node, 0);
}

static void stall_disk(struct sim_node *node)
{
    node->disk_stall_ns = world.now_ns + a_while_ns(4000);
    world_say("node %d: nothing is written for %.1f s", node->id,
              (double)(node->disk_stall_ns - world.now_ns) / 1e9);
}

static void mend_disk(void *context, uint64_t tag)
{
    struct sim_node *node = context;
    (void)tag;
    if (node->bad_disk) {
        world_say("node %d: its disk is well again", node->id);
        node_mend_disk(node);
    }
}

static void fill_disk(struct sim_node *node)
{
    uint64_t room_bytes = world_chance(2) ? 0 : world_random(200000);
    world_say("node %d: its disk is full but for %u bytes", node->id, (unsigned)room_bytes);
    node_fill_disk(node, room_bytes);
    world_after(a_while_ns(6000), mend_disk, node, 0);
}

/* Some of them stay so until the faults stop. */
static void break_disk(struct sim_node *node)
{
    world_say("node %d: its disk fails", node->id);
    node_break_disk(node);
    if (!world_chance(8)) {
        world_after(a_while_ns(6000), mend_disk, node, 0);
    }
}

/* Most of what a node reads it reads when it starts. */
static void break_reads(struct sim_node *node)
{
    bool part = world_chance(2);
    world_say("node %d: its disk cannot be read", node->id);
    node_break_reads(node, part);
    if (!world_chance(8)) {
        world_after(a_while_ns(6000), mend_disk, node, 0);
    }
    if (world_chance(2)) {
        kill_node(node, world_chance(2));
    }
}

static void set_clock(struct sim_node *node)
{
    node->wall_ahead_ms = (int64_t)world_random(3000000) - 1500000;
    world_say("node %d: its clock is %.1f s ahead", node->id,
              (double)node->wall_ahead_ms / 1000);
}

static void all_lose_power(void)
{
    for (int i = 0; i < cluster.count; i++) {
        kill_node(&cluster.nodes[i], true);
    }
}

/* What was on one disk may be lost, as long as the others have theirs: no other node may still be
 * on its way back from such a loss. */
static bool may_lose_disk(void)
{
    if (!voters_may_lose_disk()) {
        return false;
    }
    for (int i = 0; i < cluster.count; i++) {
        struct sim_node *node = &cluster.nodes[i];
        if (!node_is_whole(node)) {
            return false;
        }
    }
    return true;
}

static void lose_disk(struct sim_node *node)
{
    if (node->broker == NULL || !may_lose_disk()) {
        return;
    }
    node_kill(node, false);
    node_lose_disk(node);
    world_after(a_while_ns(3000), start_again, node, 0);
}

/* While it is away a checkpoint rots. What the node promised in that group counts as lost. */
static void rot(struct sim_node *node)
{
    if (node->broker != NULL && may_lose_disk()) {
        kill_node(node, world_chance(2));
        node_rot_checkpoint(node);
    }
}

/* Some nodes hear only each other, and so do the others. */
static void cut_in_halves(void)
{
    uint64_t side = world_random((uint64_t)1 << cluster.count);
    uint64_t for_ns = a_while_ns(6000);
    world_say("two halves, by bits of %x, for %.1f s", (unsigned)side, (double)for_ns / 1e9);
    for (int a = 1; a <= cluster.count; a++) {
        for (int b = 1; b <= cluster.count; b++) {
            if ((side >> (a - 1) & 1) != (side >> (b - 1) & 1)) {
                cut_way(a, b, for_ns);
            }
        }
    }
}

/* While one of three stood still the others went on; now one of them is away, and the other one has
 * forgotten all about it. */
static void lose_witness(void *context, uint64_t life)
{
    struct sim_node *sleeper = context;
    struct sim_node *forgetful = &cluster.nodes[sleeper->id % cluster.count];
    struct sim_node *away = &cluster.nodes[forgetful->id % cluster.count];
    if (sleeper->life != life || !sleeper->is_paused || forgetful->broker == NULL ||
        away->broker == NULL || !may_lose_disk()) {
        return;
    }
    world_say("node %d forgets what it did with node %d", forgetful->id, away->id);
    node_kill(away, true);
    node_kill(forgetful, true);
    node_lose_disk(forgetful);
    node_pause(sleeper, false);
    world_after(a_while_ns(200), start_again, forgetful, 0);
    world_after(a_while_ns(6000), start_again, away, 0);
}

static void begin_witness(struct sim_node *node)
{
    if (cluster.count != 3 || node->broker == NULL || node->is_paused) {
        return;
    }
    node_pause(node, true);
    world_after(1000 * (uint64_t)MS_NS + a_while_ns(2000), lose_witness, node, node->life);
    world_after(4000 * (uint64_t)MS_NS, go_on, node, node->life);
}

/* Whoever leads a group in the latest term; null: nobody does. */
static struct sim_node *leader_of(uint64_t group)
{
    struct sim_node *found = NULL;
    uint64_t term = 0;
    for (int i = 0; i < cluster.count; i++) {
        struct broker *broker = cluster.nodes[i].broker;
        const struct group *here =
            broker == NULL ? NULL
                           : replicas_group(broker->shards[group % (unsigned)broker->shard_count]
                                                .replicas, group);
        if (here != NULL && here->leads && raft_term(here->raft) >= term) {
            term = raft_term(here->raft);
            found = &cluster.nodes[i];
        }
    }
    return found;
}

/* Its successor stands still, so that it may lead again. */
static void unseat(void *context, uint64_t group)
{
    struct sim_node *leader = leader_of(group);
    (void)context;
    if (active && leader != NULL) {
        pause_node(leader);
    }
}

/* A leader is cut off while clients still write to it, sees what they wrote replaced, and may lead
 * again soon after. */
static void cut_off_leader(void)
{
    const struct topic_image *topic = NULL;
    for (int i = 0; i < cluster.count && topic == NULL; i++) {
        struct broker *broker = cluster.nodes[i].broker;
        topic = broker == NULL ? NULL
                               : replicas_topic(broker->shards[0].replicas,
                                                VIEW_LITERAL(WORK_TOPIC));
    }
    if (topic == NULL) {
        return;
    }
    uint64_t group = topic->groups[world_random(topic->group_count)].id;
    struct sim_node *leader = leader_of(group);
    if (leader != NULL) {
        uint64_t for_ns = (1500 + world_random(1500)) * MS_NS;
        isolate(leader, for_ns);
        world_after(for_ns + (300 + world_random(1000)) * MS_NS, unseat, NULL, group);
    }
}

static void one_fault(enum fault_kind kind)
{
    struct sim_node *node = any_node();
    int other = 1 + (node->id + (int)world_random((uint64_t)cluster.count - 1)) % cluster.count;
    switch (kind) {
    case FAULT_KILL:
        kill_node(node, false);
        break;
    case FAULT_POWER:
        kill_node(node, true);
        break;
    case FAULT_PAUSE:
        pause_node(node);
        break;
    case FAULT_CUT:
        cut(node->id, other, true);
        break;
    case FAULT_ONE_WAY:
        cut(node->id, other, false);
        break;
    case FAULT_ISOLATE:
        isolate(node, a_while_ns(5000));
        break;
    case FAULT_SLOW_WAY:
        slow_way(node->id, other);
        break;
    case FAULT_SLOW_DISK:
        slow_disk(node);
        break;
    case FAULT_STALL:
        stall_disk(node);
        break;
    case FAULT_CLOCK:
        set_clock(node);
        break;
    case FAULT_ALL_POWER:
        all_lose_power();
        break;
    case FAULT_LOSE_DISK:
        lose_disk(node);
        break;
    case FAULT_TORN:
        tear(node, world_chance(2) ? 3 : 60);
        break;
    case FAULT_HALVES:
        cut_in_halves();
        break;
    case FAULT_FULL_DISK:
        fill_disk(node);
        break;
    case FAULT_BAD_DISK:
        break_disk(node);
        break;
    case FAULT_WITNESS:
        begin_witness(node);
        break;
    case FAULT_ROT:
        rot(node);
        break;
    case FAULT_RETURN:
        cut_off_leader();
        break;
    case FAULT_UNREAD:
        break_reads(node);
        break;
    case FAULT_KINDS:
        break;
    }
}

static void next_fault(void *context, uint64_t tag)
{
    (void)context;
    (void)tag;
    if (!active) {
        return;
    }
    uint64_t choice = world_random(weight_sum);
    int kind = 0;
    while (choice >= weights[kind]) {
        choice -= weights[kind++];
    }
    one_fault((enum fault_kind)kind);
    world_after(world_random(2 * pace_ms) * MS_NS, next_fault, NULL, 0);
}

void faults_start(void)
{
    static const unsigned usual[FAULT_KINDS] = {
        [FAULT_KILL] = 8, [FAULT_POWER] = 6, [FAULT_PAUSE] = 6, [FAULT_CUT] = 5,
        [FAULT_ONE_WAY] = 5, [FAULT_ISOLATE] = 5, [FAULT_SLOW_WAY] = 4, [FAULT_SLOW_DISK] = 4,
        [FAULT_STALL] = 3, [FAULT_CLOCK] = 2, [FAULT_ALL_POWER] = 1, [FAULT_LOSE_DISK] = 2,
        [FAULT_TORN] = 5, [FAULT_HALVES] = 4, [FAULT_FULL_DISK] = 3,
        [FAULT_BAD_DISK] = 3, [FAULT_WITNESS] = 2, [FAULT_ROT] = 3,
        [FAULT_RETURN] = 4, [FAULT_UNREAD] = 3,
    };
    active = true;
    weight_sum = 0;
    for (int i = 0; i < FAULT_KINDS; i++) {
        weights[i] = world_chance(3) ? 0 : usual[i];
        weight_sum += weights[i];
    }
    if (weight_sum == 0) {
        weights[FAULT_KILL] = 1;
        weight_sum = 1;
    }
    hurry = world_chance(4) ? 10 : 1;
    pace_ms = (300 + world_random(3000)) / hurry;
    next_fault(NULL, 0);
}

void faults_stop(void)
{
    active = false;
    network_heal();
    for (int i = 0; i < cluster.count; i++) {
        struct sim_node *node = &cluster.nodes[i];
        node->disk_us = 300;
        node->disk_stall_ns = 0;
        node_mend_disk(node);
        if (node->broker == NULL) {
            node_start(node);
        } else if (node->is_paused) {
            node_pause(node, false);
        }
    }
}
