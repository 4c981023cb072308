/* Nodes: processes that start, are killed, paused and run when something is due.
 *
 * A journal's write and each job of the log writer take a while of virtual time; what a node has
 * done in memory is lost with its process, what it has on its disk as the simulated disk says.
 */
#include "tests/sim/cluster/node.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/group/replicas.h"
#include "broker/server/metadata_state.h"
#include "broker/server/storage_watch.h"
#include "io/clock.h"
#include "tests/sim/cluster/check.h"
#include "tests/sim/cluster/loop.h"
#include "tests/sim/cluster/settings.h"
#include "tests/sim/cluster/world.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"

enum { TURNS_MOST = 100000, WATCH_MS = 1000, SUPERVISOR_MS = 500 };

struct cluster cluster;
static struct sim_node *current;

struct sim_node *node_current(void)
{
    return current;
}

struct sim_node *node_find(int32_t id)
{
    return id >= 1 && id <= cluster.count ? &cluster.nodes[id - 1] : NULL;
}

static void enter(struct sim_node *node)
{
    current = node;
    sim_disk_use(node->disk);
    sim_clock_set(world.now_ns, node->wall_ahead_ms);
}

/* A machine whose power went while it wrote does nothing after this event. */
static void leave(void)
{
    struct sim_node *node = current;
    if (sim_disk_crashed() && node->broker != NULL && node->torn != NULL) {
        world_after(0, node->torn, node, node->life);
        node->torn = NULL;
    }
    current = NULL;
    sim_disk_use(NULL);
}

static void run_node(struct sim_node *node);

void node_enter_place(int place)
{
    struct sim_node *node = node_find(place);
    if (node != NULL) {
        enter(node);
        node->is_running = true;
    }
}

void node_leave_place(int place)
{
    struct sim_node *node = node_find(place);
    if (node != NULL) {
        leave();
        node->is_running = false;
        if (node->gathers_ns > world.now_ns) {
            node_wake(node, node->gathers_ns - world.now_ns);
        } else {
            run_node(node);
        }
    }
}

bool node_place_is_paused(int place)
{
    const struct sim_node *node = node_find(place);
    return node != NULL && node->is_paused;
}

bool node_place_is_off(int place)
{
    const struct sim_node *node = node_find(place);
    return node != NULL && node->is_off;
}

void __real_journal_submit(struct journal *journal, struct journal_op *op);
void __wrap_journal_submit(struct journal *journal, struct journal_op *op);
void __real_log_writer_submit(struct log_writer *writer, struct log_shard *shard,
                              struct log_job *job);
void __wrap_log_writer_submit(struct log_writer *writer, struct log_shard *shard,
                              struct log_job *job);

/* The linker puts these in front of the storage's own: so the node knows that there is work. */
void __wrap_journal_submit(struct journal *journal, struct journal_op *op)
{
    current->journal_has_work = true;
    check_strays_submitted(op);
    check_losses_submitted(op);
    __real_journal_submit(journal, op);
}

void __wrap_log_writer_submit(struct log_writer *writer, struct log_shard *shard,
                              struct log_job *job)
{
    current->writer_has_work = true;
    __real_log_writer_submit(writer, shard, job);
}

static bool run_loops(struct sim_node *node)
{
    bool any = false;
    for (int i = 0; i < node->loop_count; i++) {
        any |= loop_run(&node->loops[i]);
    }
    return any;
}

static uint64_t disk_wait_ns(const struct sim_node *node)
{
    uint64_t wait_ns = (30 + world_random(node->disk_us)) * 1000;
    uint64_t stall_ns =
        node->disk_stall_ns > world.now_ns ? node->disk_stall_ns - world.now_ns : 0;
    return wait_ns + stall_ns;
}

static void journal_turn(void *context, uint64_t life)
{
    struct sim_node *node = context;
    if (node->life != life || node->broker == NULL) {
        return;
    }
    node->journal_due = false;
    if (node->is_paused) {
        node->missed = true;
        return;
    }
    enter(node);
    node->journal_has_work = false;
    node->journal_turns++;
    bool any = journal_run_once(node->broker->journal, world.now_ns / MS_NS);
    leave();
    if (any) {
        node->journal_has_work = true;
        world_note(3);
        run_node(node);
    }
}

static void writer_turn(void *context, uint64_t life)
{
    struct sim_node *node = context;
    if (node->life != life || node->broker == NULL) {
        return;
    }
    node->writer_due = false;
    if (node->is_paused) {
        node->missed = true;
        return;
    }
    enter(node);
    node->writer_has_work = false;
    bool any = log_writer_run_once(node->broker->writer, clock_wall_ms());
    leave();
    if (any) {
        node->writer_has_work = true;
        world_note(4);
        run_node(node);
    }
}

static void run_node(struct sim_node *node)
{
    if (node->broker == NULL) {
        return;
    }
    if (node->is_paused) {
        node->missed = true;
        return;
    }
    if (node->gathers_ns > world.now_ns) {
        node->run_ns = UINT64_MAX;
        node_wake(node, node->gathers_ns - world.now_ns);
        return;
    }
    enter(node);
    node->is_running = true;
    node->run_ns = UINT64_MAX;
    int turns = 0;
    while (run_loops(node)) {
        world_require(++turns < TURNS_MOST, "node %d does not come to rest", node->id);
    }
    node->is_running = false;
    uint64_t next_ns = UINT64_MAX;
    for (int i = 0; i < node->loop_count; i++) {
        uint64_t loop_ns = loop_next_ns(&node->loops[i]);
        next_ns = loop_ns < next_ns ? loop_ns : next_ns;
    }
    leave();
    node_wake(node, next_ns > world.now_ns ? next_ns - world.now_ns : 0);
    if (!node->journal_due && node->journal_has_work) {
        node->journal_due = true;
        world_after(disk_wait_ns(node), journal_turn, node, node->life);
    }
    if (!node->writer_due && node->writer_has_work) {
        node->writer_due = true;
        world_after(disk_wait_ns(node), writer_turn, node, node->life);
    }
}

static void call_later(struct sim_node *node, uint64_t at_ns);

/* It may come before there is anything to do. */
static void run_due(void *context, uint64_t unused)
{
    struct sim_node *node = context;
    (void)unused;
    node->call_ns = UINT64_MAX;
    if (node->run_ns > world.now_ns) {
        call_later(node, node->run_ns);
    } else {
        run_node(node);
    }
}

static void call_later(struct sim_node *node, uint64_t at_ns)
{
    node->call_ns = at_ns;
    world_alarm((size_t)node->id - 1, at_ns - world.now_ns, run_due, node);
}

void node_wake(struct sim_node *node, uint64_t wait_ns)
{
    uint64_t at_ns = world.now_ns + wait_ns;
    if (node->is_running || node->broker == NULL || node->run_ns <= at_ns) {
        return;
    }
    node->run_ns = at_ns;
    if (at_ns < node->call_ns) {
        call_later(node, at_ns);
    }
}

/* Nothing calls it any more. */
static void forget_calls(struct sim_node *node)
{
    node->run_ns = UINT64_MAX;
    node->call_ns = UINT64_MAX;
    world_alarm_off((size_t)node->id - 1);
}

void cluster_start(int count, bool changes_voters, uint64_t seed)
{
    assert(count <= NODES_MAX);
    memset(&cluster, 0, sizeof cluster);
    cluster.count = count;
    cluster.changes_voters = changes_voters;
    for (int i = 0; i < count; i++) {
        struct sim_node *node = &cluster.nodes[i];
        node->id = i + 1;
        node->disk_us = 300;
        node->disk = sim_disk_new(seed + (uint64_t)i);
        settings_draw(node);
    }
    if (changes_voters) {
        settings_format_first(&cluster.nodes[0]);
    }
}

void cluster_end(void)
{
    for (int i = 0; i < cluster.count; i++) {
        struct sim_node *node = &cluster.nodes[i];
        if (node->broker != NULL) {
            node_kill(node, false);
        }
        sim_disk_free(node->disk);
        config_free(node->config);
    }
}

/* Ends the process; with `vanishes` the machine, with `loses` what was not synced may be lost. */
static void end_process(struct sim_node *node, bool vanishes, bool loses)
{
    assert(node->broker != NULL);
    node->is_running = true; /* what its end wants to do is not done */
    if (vanishes) {
        network_place_vanished(node->id);
    } else {
        network_place_died(node->id);
    }
    node->is_off = vanishes;
    enter(node);
    sim_disk_crash();
    broker_stop(node->broker);
    broker_free(node->broker);
    node->broker = NULL;
    node->torn = NULL;
    if (!loses) {
        sim_disk_keep();
    }
    sim_disk_restart();
    leave();
    node->is_running = false;
    node->is_paused = false;
    node->missed = false;
    node->gathers_ns = 0;
    node->life++;
    forget_calls(node);
}

/* As the real process does: when its disk had failed and takes writes again it starts anew. What
 * was written and not synced when a disk failed may be lost, though the machine goes on. */
static void watch_storage(void *context, uint64_t life)
{
    struct sim_node *node = context;
    if (node->life != life || node->broker == NULL) {
        return;
    }
    world_after((uint64_t)WATCH_MS * MS_NS, watch_storage, node, life);
    if (node->is_paused) {
        return;
    }
    enter(node);
    bool again = storage_watch_recovered(node->broker);
    bool failed = atomic_load(&node->broker->storage_failure) == STATUS_IO;
    leave();
    if (again) {
        world_say("node %d starts again, now that its disk takes writes", node->id);
        end_process(node, false, failed && world_chance(2));
        node_start(node);
    }
}

static void supervisor_starts(void *context, uint64_t life)
{
    struct sim_node *node = context;
    if (node->life == life && node->broker == NULL && !node->is_away) {
        node_start(node);
    }
}

/* It could not start on its disk: the process ends, and its supervisor tries again. */
static void start_failed(struct sim_node *node, enum status status)
{
    world_say("node %d does not start: %s", node->id, status_text(status));
    bool found_nobody = cluster.changes_voters && status == STATUS_CLOSED;
    world_require(found_nobody ||
                      (node->bad_disk && (status == STATUS_IO || status == STATUS_NO_SPACE)),
                  "node %d does not start: %s", node->id, status_text(status));
    end_process(node, false, false);
    world_after((uint64_t)SUPERVISOR_MS * MS_NS, supervisor_starts, node, node->life);
}

void node_start(struct sim_node *node)
{
    assert(node->broker == NULL);
    node->life++;
    node->start_ns = world.now_ns;
    node->loop_count = 0;
    forget_calls(node);
    node->journal_due = false;
    node->writer_due = false;
    node->journal_has_work = true;
    node->writer_has_work = true;
    node->is_paused = false;
    node->is_off = false;
    world_say("node %d starts (life %u)", node->id, node->life);
    enter(node);
    node->is_running = true;
    settings_make(node);
    node->broker = broker_new(node->config, false);
    enum status status = broker_open(node->broker);
    node->is_running = false;
    leave();
    if (status != STATUS_OK) {
        start_failed(node, status);
        return;
    }
    world_after((uint64_t)WATCH_MS * MS_NS, watch_storage, node, node->life);
    node_wake(node, 0);
    network_look_again();
}

void node_kill(struct sim_node *node, bool power)
{
    world_say("node %d is killed%s", node->id, power ? ", with its power" : "");
    end_process(node, power, power);
}

void node_fill_disk(struct sim_node *node, uint64_t room_bytes)
{
    enter(node);
    node->bad_disk = true;
    sim_disk_set_capacity(sim_disk_used() + room_bytes);
    leave();
}

void node_break_disk(struct sim_node *node)
{
    enter(node);
    node->bad_disk = true;
    sim_disk_set_failing(true);
    leave();
}

void node_break_reads(struct sim_node *node, bool part)
{
    enter(node);
    size_t count = 0;
    while (part && sim_disk_file_name(count) != NULL) {
        count++;
    }
    node->bad_disk = true;
    sim_disk_set_reads_failing(count == 0);
    if (count > 0) {
        const char *path = sim_disk_file_name(world_random(count));
        uint64_t size = sim_disk_file_size(path);
        uint64_t from = size == 0 ? 0 : world_random(size);
        world_say("node %d: %s cannot be read from byte %" PRIu64 " on", node->id, path, from);
        sim_disk_spoil(path, from, from + 1 + world_random(4096));
    }
    leave();
}

void node_mend_disk(struct sim_node *node)
{
    enter(node);
    node->bad_disk = false;
    sim_disk_set_reads_failing(false);
    sim_disk_spoil(NULL, 0, 0);
    sim_disk_set_failing(false);
    sim_disk_set_capacity(0);
    leave();
}

void node_tear(struct sim_node *node, uint64_t operations,
               void (*torn)(void *context, uint64_t life))
{
    assert(node->broker != NULL);
    enter(node);
    node->torn = torn;
    sim_disk_crash_after((int64_t)operations);
    leave();
}

void node_lose_disk(struct sim_node *node)
{
    assert(node->broker == NULL);
    world_say("node %d loses its disk", node->id);
    enter(node);
    sim_disk_reset(world_random(UINT32_MAX));
    check_losses_disk_lost(node->id);
    node->lost_disk = true;
    leave();
}

bool node_is_whole(struct sim_node *node)
{
    struct broker *broker = node->broker;
    if (!node->lost_disk) {
        return true;
    }
    if (broker == NULL || broker->metadata == NULL || !broker->metadata->announced ||
        log_dir_is_incomplete(broker->log_dir) || atomic_load(&broker->groups_catching_up) > 0) {
        return false;
    }
    for (int i = 0; i < broker->shard_count; i++) {
        if (!broker->shards[i].replicas->has_image) {
            return false;
        }
    }
    node->lost_disk = false;
    return true;
}

static bool is_checkpoint(const char *path)
{
    static const char ending[] = "/checkpoint";
    size_t length = strlen(path);
    return length >= sizeof ending && strcmp(path + length + 1 - sizeof ending, ending) == 0;
}

/* In its second half, where it does not turn into one of a later version. */
void node_rot_checkpoint(struct sim_node *node)
{
    const char *path;
    size_t count = 0;
    assert(node->broker == NULL);
    enter(node);
    for (size_t i = 0; (path = sim_disk_file_name(i)) != NULL; i++) {
        count += is_checkpoint(path);
    }
    size_t chosen = (size_t)world_random(count + 1); /* none, if it is the last one */
    chosen = world_chance(3) ? 0 : chosen;           /* the first one is the metadata's */
    for (size_t i = 0; (path = sim_disk_file_name(i)) != NULL; i++) {
        if (is_checkpoint(path) && chosen-- == 0) {
            uint64_t size = sim_disk_file_size(path);
            world_say("node %d: %s rots", node->id, path);
            node->lost_disk = true;
            sim_disk_flip(path, size / 2 + world_random(size / 2 + 1), (unsigned)world_random(8));
            break;
        }
    }
    leave();
}

void node_pause(struct sim_node *node, bool paused)
{
    world_say("node %d %s", node->id, paused ? "is paused" : "goes on");
    node->is_paused = paused;
    if (!paused) {
        bool gathers = world_chance(2);
        node->gathers_ns = gathers ? world.now_ns + NETWORK_LOOK_AGAIN_MS * (uint64_t)MS_NS : 0;
        network_look_again();
    }
    if (!paused && node->missed) {
        node->missed = false;
        node->run_ns = UINT64_MAX;
        node_wake(node, 0);
    }
}
