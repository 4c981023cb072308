/* One node as a broker would drive it: actions are carried out in order, completed writes are told
 * in order, the state machine applies what is committed, a checkpoint lets the window go. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/raft/sim.h"

static void trace_event(const struct cluster *cluster, const struct node *node,
                        const struct raft_event *event)
{
    if (cluster->trace && (event->kind != RAFT_EVENT_TICK)) {
        char text[2000];
        raft_event_text(event, text, sizeof text);
        printf("%6llu n%d <- %s\n", (unsigned long long)cluster->now, node->id, text);
    }
}

static void trace_actions(const struct cluster *cluster, const struct node *node)
{
    if (!cluster->trace) {
        return;
    }
    char text[2000];
    for (size_t i = 0; i < node->actions.count; i++) {
        raft_action_text(&node->actions.list[i], text, sizeof text);
        printf("%6llu n%d    %s\n", (unsigned long long)cluster->now, node->id, text);
    }
    if (node->actions.reason != NULL) {
        printf("%6llu n%d    (%s)\n", (unsigned long long)cluster->now, node->id,
               node->actions.reason);
    }
}

/* ---- State machine ---- */

static uint64_t entry_hash(uint64_t before, const struct raft_entry *entry)
{
    uint64_t hash = hash_mix(hash_mix(before, entry->index), entry->term);
    hash = hash_mix(hash, entry->kind);
    for (size_t i = 0; i < entry->payload.length; i++) {
        hash = hash_mix(hash, entry->payload.data[i]);
    }
    return hash;
}

static void apply(struct cluster *cluster, struct node *node, uint64_t first, uint64_t last)
{
    for (uint64_t index = first; index <= last; index++) {
        const struct raft_entry *entry = raft_entry_at(node->raft, index);
        if (index != node->applied.index + 1) {
            check_fail(cluster, "node %d applies %llu after %llu", node->id,
                       (unsigned long long)index, (unsigned long long)node->applied.index);
        }
        node->applied.hash = entry_hash(node->applied.hash, entry);
        node->applied.index = index;
        node->applied.term = entry->term;
        if (entry->kind == RAFT_ENTRY_CONFIGURATION) {
            node->applied.members_index = index;
            enum status status =
                raft_members_decode(slice_view(entry->payload), node->applied.members, NODES_MAX,
                                    &node->applied.member_count);
            assert(status == STATUS_OK);
        }
        check_committed(cluster, node, index, entry->term, node->applied.hash);
        cluster->commits++;
    }
}

/* ---- Actions ---- */

static void write_entries(struct cluster *cluster, struct node *node,
                          const struct raft_action *action)
{
    check_appended(cluster, node, action->append.first, action->append.last);
    for (uint64_t index = action->append.first; index <= action->append.last; index++) {
        struct record record = {.kind = RECORD_ENTRY, .entry = *raft_entry_at(node->raft, index)};
        record.notice_term = index == action->append.last ? action->append.term : 0;
        disk_add(cluster, &node->disk, &record);
    }
}

static void begin_snapshot(struct cluster *cluster, struct node *node, int32_t to)
{
    cluster->snapshots++;
    node->snapshot_until[to - 1] = cluster->now + 30 * TICK_UNITS;
    network_send_snapshot(cluster, node->id, to, &node->applied);
}

static void act(struct cluster *cluster, struct node *node, const struct raft_action *action)
{
    switch ((enum raft_action_kind)action->kind) {
    case RAFT_ACTION_SEND:
        check_sent(cluster, node, &action->message);
        network_send(cluster, &action->message);
        break;
    case RAFT_ACTION_SAVE:
        disk_add(cluster, &node->disk,
                 &(struct record){.kind = RECORD_SAVE, .term = action->save.term,
                                  .voted_for = action->save.voted_for});
        break;
    case RAFT_ACTION_TRUNCATE:
        disk_add(cluster, &node->disk,
                 &(struct record){.kind = RECORD_TRUNCATE, .index = action->index});
        break;
    case RAFT_ACTION_APPEND:
        write_entries(cluster, node, action);
        break;
    case RAFT_ACTION_COMMIT:
        check_counted(cluster, node, action->commit.last);
        apply(cluster, node, action->commit.first, action->commit.last);
        break;
    case RAFT_ACTION_ROLE:
        if (action->role.role == RAFT_LEADER) {
            check_leader(cluster, node);
            faults_new_leader(cluster, node);
        }
        break;
    case RAFT_ACTION_SNAPSHOT_NEEDED:
        begin_snapshot(cluster, node, action->snapshot.node);
        break;
    case RAFT_ACTION_READ_READY:
        check_read(cluster, node, action->read.context, action->read.index);
        break;
    case RAFT_ACTION_SLEEP:
        cluster->rests++;
        break;
    case RAFT_ACTION_MEMBERS:
        cluster->changes++;
        break;
    case RAFT_ACTION_READ_FAILED:
    case RAFT_ACTION_TRANSFER_FAILED:
    case RAFT_ACTION_WAKE:
        break;
    }
}

static void fold(struct cluster *cluster, const struct node *node)
{
    for (size_t i = 0; i < node->actions.count; i++) {
        const struct raft_action *action = &node->actions.list[i];
        cluster->hash = hash_mix(cluster->hash, action->kind);
        if (action->kind == RAFT_ACTION_SEND) {
            const struct raft_message *m = &action->message;
            cluster->hash = hash_mix(cluster->hash, m->kind * 2u + (m->accepted ? 1 : 0));
            cluster->hash = hash_mix(cluster->hash, m->term ^ (m->index << 20) ^ m->round << 40);
            cluster->hash = hash_mix(cluster->hash, m->commit ^ (m->entry_count << 32));
        }
    }
    cluster->hash = hash_mix(cluster->hash, cluster->now * 8 + (uint64_t)node->id);
}

static enum raft_result step(struct cluster *cluster, struct node *node,
                             const struct raft_event *event)
{
    assert(node->up);
    trace_event(cluster, node, event);
    raft_actions_clear(&node->actions);
    enum raft_result result = raft_step(node->raft, event, &node->actions);
    trace_actions(cluster, node);
    cluster->steps++;
    fold(cluster, node);
    for (size_t i = 0; i < node->actions.count; i++) {
        act(cluster, node, &node->actions.list[i]);
    }
    check_step(cluster, node);
    return result;
}

void node_event(struct cluster *cluster, struct node *node, struct raft_event event)
{
    enum raft_result result = step(cluster, node, &event);
    if (result == RAFT_INVALID && event.kind == RAFT_EVENT_MESSAGE) {
        check_fail(cluster, "node %d finds a message invalid: %s", node->id,
                   node->actions.reason != NULL ? node->actions.reason : "?");
    }
}

enum raft_result node_propose(struct cluster *cluster, struct node *node, uint32_t count)
{
    struct slice payloads[8];
    assert(count >= 1 && count <= 8);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = ++cluster->payloads;
        struct block *block = block_copy((struct view){(const uint8_t *)&value, sizeof value});
        payloads[i] = slice_of(block, 0, sizeof value);
    }
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
    event.propose.payloads = payloads;
    event.propose.count = count;
    enum raft_result result = step(cluster, node, &event);
    for (uint32_t i = 0; i < count; i++) {
        block_unref(payloads[i].block);
    }
    return result;
}

/* ---- Disk ---- */

void node_disk(struct cluster *cluster, struct node *node)
{
    uint32_t from;
    uint32_t to;
    if (!disk_progress(cluster, &node->disk, &from, &to)) {
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        struct record record = node->disk.records[i];
        struct raft_event event = {0};
        if (record.kind == RECORD_SAVE) {
            event.kind = RAFT_EVENT_SAVED;
            event.saved.term = record.term;
            event.saved.voted_for = record.voted_for;
        } else if (record.kind == RECORD_ENTRY && record.notice_term != 0) {
            event.kind = RAFT_EVENT_PERSISTED;
            event.persisted.term = record.notice_term;
            event.persisted.index = record.entry.index;
        } else {
            continue;
        }
        node_event(cluster, node, event);
    }
}

void node_release(struct cluster *cluster, struct node *node)
{
    uint64_t to = node->applied.index;
    uint64_t durable = raft_durable_index(node->raft);
    if (to <= node->disk.checkpoint.index) {
        return;
    }
    node->disk.checkpoint = node->applied;
    uint64_t more = rng_below(&cluster->rng, 3); /* the core must not give away too much */
    uint64_t start = raft_release(node->raft, to + more);
    if (start != (to < durable ? to : durable)) {
        check_fail(cluster, "node %d released up to %llu", node->id, (unsigned long long)start);
    }
    if (rng_chance(&cluster->rng, 500000)) {
        disk_trim(&node->disk);
    }
}

/* ---- Life ---- */

static void replay(struct cluster *cluster, struct node *node)
{
    for (uint32_t i = 0; i < node->disk.count; i++) {
        const struct record *record = &node->disk.records[i];
        if (record->kind == RECORD_SAVE) {
            raft_restore_vote(node->raft, record->term, record->voted_for);
        } else if (record->kind == RECORD_TRUNCATE) {
            raft_restore_truncate(node->raft, record->index);
        } else if (record->kind == RECORD_ENTRY &&
                   raft_restore_entry(node->raft, &record->entry) != STATUS_OK) {
            check_fail(cluster, "node %d cannot replay entry %llu@%llu", node->id,
                       (unsigned long long)record->entry.index,
                       (unsigned long long)record->entry.term);
        }
    }
}

void node_boot(struct cluster *cluster, struct node *node, const struct checkpoint *first)
{
    if (first != NULL) {
        node->disk.checkpoint = *first;
    }
    const struct checkpoint *from = &node->disk.checkpoint;
    struct raft_config config = {
        .id = node->id,
        .seed = cluster->seed * 31 + (uint64_t)node->id + cluster->now * 131,
        .limits = &cluster->limits,
        .voted_for = RAFT_NO_NODE,
        .start_index = from->index,
        .start_term = from->term,
        .members = from->members,
        .member_count = from->member_count,
        .members_index = from->members_index,
        .withdrawn = node->withdrawn,
    };
    node->raft = raft_create(&config);
    node->up = true;
    node->applied = *from;
    node->term_seen = 0;
    node->commit_seen = 0;
    node->alone_ticks = 0;
    memset(node->snapshot_until, 0, sizeof node->snapshot_until);
    memset(node->silent_ticks, 0, sizeof node->silent_ticks);
    raft_actions_init(&node->actions);
    replay(cluster, node);
    node_event(cluster, node, (struct raft_event){.kind = RAFT_EVENT_START});
}

void node_crash(struct cluster *cluster, struct node *node)
{
    assert(node->up);
    raft_free(node->raft);
    raft_actions_free(&node->actions);
    node->raft = NULL;
    node->up = false;
    cluster->crashes++;
    disk_crash(cluster, &node->disk);
}

/* ---- Arrivals ---- */

static void tell_restored(struct cluster *cluster, struct node *node,
                          const struct checkpoint *snapshot)
{
    struct raft_event event = {.kind = RAFT_EVENT_RESTORED};
    event.snapshot.node = node->id;
    event.snapshot.index = snapshot->index;
    event.snapshot.term = snapshot->term;
    event.snapshot.members = snapshot->members;
    event.snapshot.member_count = snapshot->member_count;
    node_event(cluster, node, event);
    check_committed(cluster, node, snapshot->index, snapshot->term, snapshot->hash);
}

/* The snapshot of an older state changes nothing, and the core must see that. */
static void restore(struct cluster *cluster, struct node *node, const struct packet *packet)
{
    const struct checkpoint *snapshot = &packet->snapshot;
    if (raft_role(node->raft) == RAFT_LEADER) {
        return;
    }
    if (snapshot->index > node->applied.index) {
        node->disk.checkpoint = *snapshot;
        if (cluster->plan.crash_after_snapshot && !cluster->healed &&
            rng_chance(&cluster->rng, 400000)) {
            node_crash(cluster, node);
            node->restart_at = cluster->now + rng_below(&cluster->rng, 20 * TICK_UNITS);
            return;
        }
        node->applied = *snapshot;
    }
    tell_restored(cluster, node, snapshot);
    network_send_snapshot_done(cluster, node->id, packet->from, snapshot);
}

void node_receive(struct cluster *cluster, struct node *node, const struct packet *packet)
{
    struct raft_event event = {0};
    switch (packet->kind) {
    case PACKET_MESSAGE:
        event.kind = RAFT_EVENT_MESSAGE;
        event.message = &packet->message;
        node_event(cluster, node, event);
        break;
    case PACKET_SNAPSHOT:
        restore(cluster, node, packet);
        break;
    case PACKET_SNAPSHOT_DONE:
        node->snapshot_until[packet->from - 1] = 0;
        event.kind = RAFT_EVENT_SNAPSHOT_DONE;
        event.snapshot.node = packet->from;
        event.snapshot.index = packet->snapshot.index;
        event.snapshot.term = packet->snapshot.term;
        node_event(cluster, node, event);
        break;
    }
}
