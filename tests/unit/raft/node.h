/* One group with its list of actions, for the unit tests of the core: feeds events in short form
 * and finds actions again. Nothing is carried out by itself; each test says what became durable. */
#ifndef OTTLA_TESTS_UNIT_RAFT_NODE_H
#define OTTLA_TESTS_UNIT_RAFT_NODE_H

#include <string.h>

#include "raft/raft.h"
#include "tests/unit/runner.h"

struct node {
    struct raft *raft;
    struct raft_actions actions;
    enum raft_result result;
};

/* Ids 1.. `voters` are the voters; this node is number 1 unless the test changes the config. */
static inline struct raft_config node_config(const struct raft_member *members, size_t count)
{
    return (struct raft_config){
        .id = 1, .seed = 7, .voted_for = RAFT_NO_NODE, .members = members, .member_count = count};
}

static inline void node_open(struct node *node, const struct raft_config *config)
{
    *node = (struct node){.raft = raft_create(config)};
    raft_actions_init(&node->actions);
}

static inline void node_close(struct node *node)
{
    raft_free(node->raft);
    raft_actions_free(&node->actions);
}

/* One step; the actions of the step before are forgotten. */
static inline void node_step(struct node *node, struct raft_event event)
{
    raft_actions_clear(&node->actions);
    node->result = raft_step(node->raft, &event, &node->actions);
}

static inline void node_start(struct node *node)
{
    node_step(node, (struct raft_event){.kind = RAFT_EVENT_START});
}

static inline void node_tick(struct node *node)
{
    node_step(node, (struct raft_event){.kind = RAFT_EVENT_TICK});
}

static inline void node_saved(struct node *node, uint64_t term, int32_t voted_for)
{
    struct raft_event event = {.kind = RAFT_EVENT_SAVED};
    event.saved.term = term;
    event.saved.voted_for = voted_for;
    node_step(node, event);
}

static inline void node_persisted(struct node *node, uint64_t term, uint64_t index)
{
    struct raft_event event = {.kind = RAFT_EVENT_PERSISTED};
    event.persisted.term = term;
    event.persisted.index = index;
    node_step(node, event);
}

static inline void node_message(struct node *node, struct raft_message message)
{
    message.to = raft_id(node->raft);
    node_step(node, (struct raft_event){.kind = RAFT_EVENT_MESSAGE, .message = &message});
}

/* Proposes one payload with this text. */
static inline void node_propose(struct node *node, const char *text)
{
    struct block *block = block_copy(view_text(text));
    struct slice payload = slice_of(block, 0, strlen(text));
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE};
    event.propose.payloads = &payload;
    event.propose.count = 1;
    node_step(node, event);
    block_unref(block);
}

/* The nth action of this kind of the latest step (0 = first), or null. */
static inline const struct raft_action *node_find(const struct node *node,
                                                  enum raft_action_kind kind, size_t nth)
{
    for (size_t i = 0; i < node->actions.count; i++) {
        if (node->actions.list[i].kind == kind && nth-- == 0) {
            return &node->actions.list[i];
        }
    }
    return NULL;
}

/* The message of this kind to this node of the latest step, or null. */
static inline const struct raft_message *node_sent(const struct node *node,
                                                   enum raft_message_kind kind, int32_t to)
{
    for (size_t i = 0; i < node->actions.count; i++) {
        const struct raft_action *action = &node->actions.list[i];
        if (action->kind == RAFT_ACTION_SEND && action->message.kind == kind &&
            action->message.to == to) {
            return &action->message;
        }
    }
    return NULL;
}

#endif
