/* The cluster behind a script: queues of messages and of writes that move when they are told to.
 * Each step is narrated: one line per action, and the reason in parentheses. */
#include "tests/scripts/raft/nodes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void nodes_init(struct nodes *nodes, FILE *out)
{
    *nodes = (struct nodes){.limits = raft_limits_default, .out = out};
    nodes->limits.hibernate_ticks = 0;
}

static void free_entries(struct raft_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        block_unref(entries[i].payload.block);
    }
    free(entries);
}

static void free_queued(struct queued *queued)
{
    free_entries(queued->entries, queued->message.entry_count);
}

static void close_node(struct node *node)
{
    for (uint32_t i = 0; i < node->write_count; i++) {
        free_entries(node->writes[i].entries, node->writes[i].entry_count);
    }
    raft_free(node->raft);
    raft_actions_free(&node->actions);
}

void nodes_free(struct nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        close_node(&nodes->nodes[i]);
    }
    for (uint32_t i = 0; i < nodes->queued; i++) {
        free_queued(&nodes->queue[i]);
    }
}

struct node *nodes_find(struct nodes *nodes, int32_t id)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (nodes->nodes[i].id == id) {
            return &nodes->nodes[i];
        }
    }
    return NULL;
}

/* ---- Actions ---- */

static struct raft_entry keep(const struct raft_entry *entry)
{
    if (entry->payload.block != NULL) {
        block_ref(entry->payload.block);
    }
    return *entry;
}

static void enqueue(struct nodes *nodes, const struct raft_message *message)
{
    assert(nodes->queued < MESSAGES_MAX);
    struct queued *queued = &nodes->queue[nodes->queued++];
    *queued = (struct queued){.message = *message};
    if (message->entry_count > 0) {
        queued->entries = memory_new(message->entry_count * sizeof *queued->entries);
        for (size_t i = 0; i < message->entry_count; i++) {
            queued->entries[i] = keep(&message->entries[i]);
        }
    }
    queued->message.entries = queued->entries;
}

static void add_write(struct node *node, const struct raft_action *action)
{
    assert(node->write_count < WRITES_MAX);
    struct write *write = &node->writes[node->write_count++];
    *write = (struct write){.action = *action};
    if (action->kind != RAFT_ACTION_APPEND) {
        return;
    }
    write->entry_count = (uint32_t)(action->append.last - action->append.first + 1);
    write->entries = memory_new(write->entry_count * sizeof *write->entries);
    for (uint32_t i = 0; i < write->entry_count; i++) {
        write->entries[i] = keep(raft_entry_at(node->raft, action->append.first + i));
    }
}

static void carry_out(struct nodes *nodes, struct node *node, const struct raft_action *action)
{
    char text[1000];
    raft_action_text(action, text, sizeof text);
    fprintf(nodes->out, "  n%d %s\n", node->id, text);
    if (action->kind == RAFT_ACTION_SEND) {
        enqueue(nodes, &action->message);
    } else if (action->kind == RAFT_ACTION_SAVE || action->kind == RAFT_ACTION_TRUNCATE ||
               action->kind == RAFT_ACTION_APPEND) {
        add_write(node, action);
    }
}

static const char *result_name(enum raft_result result)
{
    static const char *const names[] = {"ok", "not leader", "busy", "full", "invalid"};
    return names[result];
}

void node_event(struct nodes *nodes, struct node *node, struct raft_event event)
{
    assert(node->raft != NULL);
    raft_actions_clear(&node->actions);
    enum raft_result result = raft_step(node->raft, &event, &node->actions);
    for (size_t i = 0; i < node->actions.count; i++) {
        carry_out(nodes, node, &node->actions.list[i]);
    }
    if (result != RAFT_OK) {
        fprintf(nodes->out, "  n%d answers: %s\n", node->id, result_name(result));
    }
    if (node->actions.reason != NULL) {
        fprintf(nodes->out, "  n%d (%s)\n", node->id, node->actions.reason);
    }
}

void node_propose(struct nodes *nodes, struct node *node, const char *text)
{
    struct block *block = block_copy(view_text(text));
    struct slice payload = slice_of(block, 0, strlen(text));
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
    event.propose.payloads = &payload;
    event.propose.count = 1;
    node_event(nodes, node, event);
    block_unref(block);
}

/* ---- Disk ---- */

bool node_disk(struct nodes *nodes, struct node *node)
{
    uint32_t until = node->write_count;
    bool any = node->raft != NULL && node->durable < until;
    while (node->raft != NULL && node->durable < until) {
        const struct raft_action *action = &node->writes[node->durable++].action;
        struct raft_event event = {0};
        if (action->kind == RAFT_ACTION_SAVE) {
            event.kind = RAFT_EVENT_SAVED;
            event.saved.term = action->save.term;
            event.saved.voted_for = action->save.voted_for;
        } else if (action->kind == RAFT_ACTION_APPEND) {
            event.kind = RAFT_EVENT_PERSISTED;
            event.persisted.term = action->append.term;
            event.persisted.index = action->append.last;
        } else {
            continue;
        }
        node_event(nodes, node, event);
    }
    return any;
}

static void replay(struct node *node)
{
    for (uint32_t i = 0; i < node->write_count; i++) {
        const struct write *write = &node->writes[i];
        if (write->action.kind == RAFT_ACTION_SAVE) {
            raft_restore_vote(node->raft, write->action.save.term, write->action.save.voted_for);
        } else if (write->action.kind == RAFT_ACTION_TRUNCATE) {
            raft_restore_truncate(node->raft, write->action.index);
        }
        for (uint32_t k = 0; k < write->entry_count; k++) {
            enum status status = raft_restore_entry(node->raft, &write->entries[k]);
            assert(status == STATUS_OK);
        }
    }
}

static void open_node(struct nodes *nodes, struct node *node)
{
    struct raft_config config = {.id = node->id,
                                 .seed = (uint64_t)node->id,
                                 .limits = &nodes->limits,
                                 .voted_for = RAFT_NO_NODE,
                                 .members = nodes->members,
                                 .member_count = nodes->member_count};
    node->raft = raft_create(&config);
    raft_actions_init(&node->actions);
    replay(node);
    node_event(nodes, node, (struct raft_event){.kind = RAFT_EVENT_START});
}

void nodes_start(struct nodes *nodes, uint32_t spare)
{
    assert(nodes->count == 0 && nodes->member_count + spare <= NODES_MAX);
    nodes->count = (uint32_t)nodes->member_count + spare;
    int32_t highest = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        struct node *node = &nodes->nodes[i];
        node->id = i < nodes->member_count ? nodes->members[i].id : highest + 1;
        highest = node->id > highest ? node->id : highest;
        open_node(nodes, node);
    }
}

void node_crash(struct nodes *nodes, struct node *node)
{
    (void)nodes;
    raft_free(node->raft);
    raft_actions_free(&node->actions);
    node->raft = NULL;
    while (node->write_count > node->durable) {
        struct write *write = &node->writes[--node->write_count];
        free_entries(write->entries, write->entry_count);
    }
}

void node_restart(struct nodes *nodes, struct node *node)
{
    if (node->raft != NULL) {
        node_crash(nodes, node);
    }
    open_node(nodes, node);
}

void node_lose(struct nodes *nodes, struct node *node, uint32_t count)
{
    node_crash(nodes, node);
    for (uint32_t i = node->write_count; i > 0 && count > 0; i--) {
        struct write *write = &node->writes[i - 1];
        if (write->entry_count > 0) {
            free_entries(write->entries, write->entry_count);
            write->entries = NULL;
            write->entry_count = 0;
            count--;
        }
    }
    open_node(nodes, node);
}

/* ---- Messages ---- */

static bool is_meant(const struct raft_message *message, int32_t from, int32_t to)
{
    return (from == 0 || message->from == from) && (to == 0 || message->to == to);
}

bool nodes_deliver(struct nodes *nodes, int32_t from, int32_t to, bool drop)
{
    uint32_t until = nodes->queued;
    uint32_t kept = 0;
    bool any = false;
    for (uint32_t i = 0; i < until; i++) {
        struct queued queued = nodes->queue[i];
        if (!is_meant(&queued.message, from, to)) {
            nodes->queue[kept++] = queued;
            continue;
        }
        any = true;
        struct node *node = nodes_find(nodes, queued.message.to);
        if (!drop && node != NULL && node->raft != NULL) {
            struct raft_event event = {.kind = RAFT_EVENT_MESSAGE, .message = &queued.message};
            node_event(nodes, node, event);
        }
        free_queued(&queued);
    }
    memmove(nodes->queue + kept, nodes->queue + until,
            (nodes->queued - until) * sizeof *nodes->queue);
    nodes->queued -= until - kept;
    return any;
}
