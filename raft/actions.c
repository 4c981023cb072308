/* The list of actions and how the core adds to it.
 *
 * Entries of outgoing messages are copied (not their payloads) into one array behind the list, so
 * that a message's entries are contiguous whatever the ring looks like. When that array moves, the
 * messages that point into it are moved along.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "raft/state.h"

void raft_actions_init(struct raft_actions *actions)
{
    *actions = (struct raft_actions){0};
}

void raft_actions_clear(struct raft_actions *actions)
{
    actions->count = 0;
    actions->entry_count = 0;
    actions->step_from = 0;
    actions->reason = NULL;
}

void raft_actions_free(struct raft_actions *actions)
{
    free(actions->list);
    free(actions->entries);
    raft_actions_init(actions);
}

struct raft_action *raft_emit(struct raft *raft, enum raft_action_kind kind)
{
    struct raft_actions *out = raft->out;
    assert(out != NULL);
    if (out->count == out->capacity) {
        out->capacity = out->capacity == 0 ? 16 : out->capacity * 2;
        out->list = memory_resize(out->list, out->capacity, sizeof *out->list);
    }
    struct raft_action *action = &out->list[out->count++];
    *action = (struct raft_action){.kind = (uint8_t)kind};
    return action;
}

struct raft_message *raft_emit_message(struct raft *raft, enum raft_message_kind kind, int32_t to)
{
    assert(to != raft->id && to >= 0);
    struct raft_action *action = raft_emit(raft, RAFT_ACTION_SEND);
    action->message = (struct raft_message){
        .kind = (uint8_t)kind, .from = raft->id, .to = to, .term = raft->term};
    bool is_answer = kind == RAFT_APPEND_REPLY || kind == RAFT_HEARTBEAT_REPLY;
    action->message.withdrawn = is_answer && raft->withdrawn;
    return &action->message;
}

static void grow_entries(struct raft_actions *out, size_t wanted)
{
    if (wanted <= out->entry_capacity) {
        return;
    }
    size_t capacity = out->entry_capacity == 0 ? 64 : out->entry_capacity;
    while (capacity < wanted) {
        capacity *= 2;
    }
    struct raft_entry *entries = memory_new(capacity * sizeof *entries);
    for (size_t i = 0; i < out->entry_count; i++) {
        entries[i] = out->entries[i];
    }
    for (size_t i = 0; i < out->count; i++) {
        struct raft_message *message = &out->list[i].message;
        if (out->list[i].kind == RAFT_ACTION_SEND && message->entry_count > 0) {
            message->entries = entries + (message->entries - out->entries);
        }
    }
    free(out->entries);
    out->entries = entries;
    out->entry_capacity = capacity;
}

void raft_emit_entries(struct raft *raft, uint64_t first, uint64_t last)
{
    struct raft_actions *out = raft->out;
    assert(first <= last && out->count > 0);
    struct raft_action *action = &out->list[out->count - 1];
    assert(action->kind == RAFT_ACTION_SEND && action->message.kind == RAFT_APPEND);
    size_t count = (size_t)(last - first + 1);
    grow_entries(out, out->entry_count + count);
    action->message.entries = out->entries + out->entry_count;
    action->message.entry_count = count;
    for (uint64_t index = first; index <= last; index++) {
        out->entries[out->entry_count++] = *raft_window_at(&raft->window, index);
    }
}

void raft_emit_save(struct raft *raft)
{
    struct raft_actions *out = raft->out;
    struct raft_action *save = NULL;
    for (size_t i = out->step_from; i < out->count; i++) {
        save = out->list[i].kind == RAFT_ACTION_SAVE ? &out->list[i] : save;
    }
    if (save == NULL) {
        save = raft_emit(raft, RAFT_ACTION_SAVE);
    }
    assert(save->save.term <= raft->term);
    save->save.term = raft->term;
    save->save.voted_for = raft->voted_for;
}

void raft_emit_role(struct raft *raft)
{
    if (raft->role == raft->told_role && raft->term == raft->told_term &&
        raft->leader == raft->told_leader) {
        return;
    }
    raft->told_role = raft->role;
    raft->told_term = raft->term;
    raft->told_leader = raft->leader;
    struct raft_action *action = raft_emit(raft, RAFT_ACTION_ROLE);
    action->role.role = (enum raft_role)raft->role;
    action->role.term = raft->term;
    action->role.leader = raft->leader;
}
