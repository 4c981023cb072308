/* Replaying the journal into a group that has not started.
 *
 * The checkpoint says what is applied; the journal brings votes, entries and truncations since (and
 * from before, which are skipped). What does not continue the log is STATUS_CORRUPT, and the caller
 * repairs the group from its peers.
 */
#include "raft/state.h"

/* A snapshot can become durable just before the truncation that goes with it. Then the journal's
 * entry at start_index has another term than the checkpoint, and what follows it is void until a
 * truncation says how the log goes on; START asks for one if there is none. */
static void skip_entry(struct raft *raft, const struct raft_entry *entry)
{
    raft_restore_truncate(raft, raft->window.start_index + 1);
    raft->stale_tail = entry->index == raft->window.start_index &&
                       entry->term != raft->window.start_term;
}

enum status raft_restore_entry(struct raft *raft, const struct raft_entry *entry)
{
    assert(!raft->started);
    if (entry->index <= raft->window.start_index) {
        skip_entry(raft, entry);
        return STATUS_OK;
    }
    if (raft->stale_tail || entry->term < raft->window.start_term) {
        return STATUS_OK;
    }
    if (entry->index > raft_window_last(&raft->window) + 1 || !raft_entry_valid(entry)) {
        return STATUS_CORRUPT;
    }
    uint64_t before;
    bool known = raft_window_term(&raft->window, entry->index - 1, &before);
    assert(known);
    if (entry->term < before || entry->term == 0) {
        return STATUS_CORRUPT;
    }
    if (entry->index <= raft_window_last(&raft->window)) {
        raft_truncate_log(raft, entry->index);
    }
    raft_window_append(&raft->window, entry);
    if (entry->kind == RAFT_ENTRY_CONFIGURATION) {
        raft_adopt_configuration(raft, entry);
    }
    raft->durable = entry->index;
    raft_restore_vote(raft, entry->term, RAFT_NO_NODE);
    return STATUS_OK;
}

void raft_restore_truncate(struct raft *raft, uint64_t index)
{
    assert(!raft->started);
    uint64_t from = raft->window.start_index + 1;
    raft->stale_tail = raft->stale_tail && index > from;
    from = index > from ? index : from;
    if (from <= raft_window_last(&raft->window)) {
        raft_truncate_log(raft, from);
    }
}

void raft_restore_vote(struct raft *raft, uint64_t term, int32_t voted_for)
{
    assert(!raft->started);
    if (term > raft->term || (term == raft->term && voted_for != RAFT_NO_NODE)) {
        raft->term = term;
        raft->voted_for = voted_for;
    }
}
