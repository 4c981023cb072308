/* The follower's side of the log: appends and heartbeats from the leader, durability notices.
 *
 * `matched` is how far this log is known to equal the leader's, `durable` how far it is on disk;
 * the leader is told the smaller one, and not before the current term is saved. An append that does
 * not fit is refused with the nearest index that may.
 *
 * A message that contradicts itself or what is committed is dropped with RAFT_INVALID: it comes
 * from a broken peer, and following it would lose data here too.
 */
#include "base/planted.h"
#include "raft/state.h"

uint64_t raft_acknowledgeable(const struct raft *raft)
{
    if (planted(PLANT_FOLLOWER_ACKS_UNSYNCED)) {
        return raft->matched;
    }
    return raft->durable < raft->matched ? raft->durable : raft->matched;
}

void raft_acknowledge(struct raft *raft, bool even_if_same)
{
    if (raft->role != RAFT_FOLLOWER || raft->leader == RAFT_NO_NODE ||
        raft->saved_term < raft->term) {
        return;
    }
    uint64_t index = raft_acknowledgeable(raft);
    if (index <= raft->acked && !even_if_same) {
        return;
    }
    raft->acked = index > raft->acked ? index : raft->acked;
    struct raft_message *reply = raft_emit_message(raft, RAFT_APPEND_REPLY, raft->leader);
    reply->accepted = true;
    reply->index = index;
}

/* Entries follow each other and their predecessor, and none is of a term that is yet to come. */
static bool is_well_formed(const struct raft_message *message)
{
    uint64_t term = message->log_term;
    if ((message->index == 0) != (term == 0) || (message->entry_count > 0 && !message->entries)) {
        return false;
    }
    for (size_t i = 0; i < message->entry_count; i++) {
        const struct raft_entry *entry = &message->entries[i];
        if (entry->index != message->index + 1 + i || entry->term < term || entry->term == 0 ||
            entry->term > message->term || !raft_entry_valid(entry)) {
            return false;
        }
        term = entry->term;
    }
    return term <= message->term;
}

static void refuse(struct raft *raft, const struct raft_message *message)
{
    uint64_t last = raft_window_last(&raft->window);
    uint64_t from = message->index - 1 < last ? message->index - 1 : last;
    uint64_t hint = raft_window_find_term(&raft->window, from, message->log_term);
    hint = hint < raft->commit ? raft->commit : hint;
    struct raft_message *reply = raft_emit_message(raft, RAFT_APPEND_REPLY, message->from);
    reply->index = message->index;
    reply->hint_index = hint;
    bool known = raft_window_term(&raft->window, hint, &reply->log_term);
    assert(known);
    raft_reason(raft, message->index > last ? "the log ends before" : "another term there");
}

/* Whether this log has the entry before the message's first; what is committed always fits. */
static bool fits(const struct raft *raft, const struct raft_message *message)
{
    uint64_t term;
    if (message->index <= raft->commit) {
        return true;
    }
    return raft_window_term(&raft->window, message->index, &term) &&
           (term == message->log_term || planted(PLANT_PREVIOUS_TERM_IGNORED));
}

/* Takes what is new of the message; false when it contradicts what is committed. */
static bool take_entries(struct raft *raft, const struct raft_message *message)
{
    size_t at = 0;
    for (; at < message->entry_count; at++) {
        const struct raft_entry *entry = &message->entries[at];
        uint64_t term;
        if (entry->index <= raft->window.start_index) {
            continue;
        }
        if (!raft_window_term(&raft->window, entry->index, &term)) {
            break;
        }
        if (term != entry->term && !planted(PLANT_TRUNCATION_SKIPPED)) {
            if (entry->index <= raft->commit) {
                return false;
            }
            raft_reason(raft, "entries of another term are replaced");
            raft_truncate_log(raft, entry->index);
            break;
        }
    }
    if (at == message->entry_count) {
        return true;
    }
    struct raft_action *action = raft_emit(raft, RAFT_ACTION_APPEND);
    action->append.first = message->entries[at].index;
    action->append.last = message->entries[message->entry_count - 1].index;
    action->append.term = raft->term;
    for (; at < message->entry_count; at++) {
        const struct raft_entry *entry = &message->entries[at];
        raft_window_append(&raft->window, entry);
        if (entry->kind == RAFT_ENTRY_CONFIGURATION) {
            raft_adopt_configuration(raft, entry);
        }
    }
    return true;
}

enum raft_result raft_handle_append(struct raft *raft, const struct raft_message *message)
{
    assert(raft->role == RAFT_FOLLOWER && raft->leader == message->from);
    if (!is_well_formed(message)) {
        raft_reason(raft, "malformed entries");
        return RAFT_INVALID;
    }
    raft_wake(raft);
    if (!fits(raft, message)) {
        refuse(raft, message);
        return RAFT_OK;
    }
    if (!take_entries(raft, message)) {
        raft_reason(raft, "an entry that contradicts a committed one");
        return RAFT_INVALID;
    }
    uint64_t end = message->index + message->entry_count;
    raft->matched = end > raft->matched ? end : raft->matched;
    if (planted(PLANT_TAIL_MATCHED)) {
        raft->matched = raft_window_last(&raft->window);
    }
    uint64_t commit = message->commit < raft->matched ? message->commit : raft->matched;
    if (commit > raft->commit) {
        raft_commit_to(raft, commit);
    }
    raft_acknowledge(raft, raft->durable >= end);
    return RAFT_OK;
}

void raft_handle_heartbeat(struct raft *raft, const struct raft_message *message)
{
    assert(raft->role == RAFT_FOLLOWER && raft->leader == message->from);
    uint64_t commit = message->commit < raft->matched ? message->commit : raft->matched;
    if (commit > raft->commit) {
        raft_commit_to(raft, commit);
    }
    bool rests = raft_rest_if_complete(raft, message);
    if (!rests) {
        raft_wake(raft);
    }
    struct raft_message *reply = raft_emit_message(raft, RAFT_HEARTBEAT_REPLY, message->from);
    reply->index = raft->matched;
    reply->hint_index = raft->saved_term == raft->term ? raft_acknowledgeable(raft) : 0;
    reply->round = message->round;
    reply->sleep = rests;
}

void raft_handle_persisted(struct raft *raft, uint64_t term, uint64_t index)
{
    assert(term <= raft->term);
    if (term < raft->truncated_term) {
        /* It may speak of entries that were cut away meanwhile; a later notice covers the rest. */
        raft_reason(raft, "the log was cut after that append");
        return;
    }
    assert(index <= raft_window_last(&raft->window));
    if (index <= raft->durable) {
        return;
    }
    raft->durable = index;
    if (raft->role == RAFT_LEADER) {
        raft_advance_commit(raft);
        raft_tell_commit(raft);
        raft_serve_reads(raft);
    } else {
        raft_acknowledge(raft, false);
    }
}
