/* Peers below the window: the state machine's own files are the snapshot, and the caller moves
 * them. The core only knows who is below, and where the log goes on afterwards.
 */
#include "raft/state.h"

enum raft_result raft_snapshot_done(struct raft *raft, int32_t node, uint64_t index)
{
    struct raft_peer *peer = raft_find_peer(raft, node);
    if (raft->role != RAFT_LEADER || peer == NULL || peer->state != RAFT_PEER_SNAPSHOT) {
        raft_reason(raft, "no snapshot was waited for");
        return RAFT_OK;
    }
    uint64_t last = raft_window_last(&raft->window);
    index = index < last ? index : last;
    /* If it failed: again after the peer's next answer. */
    raft_begin_probe(raft, peer, index > peer->match ? index : peer->match, index == 0);
    raft_send_append(raft, peer, true);
    return RAFT_OK;
}

/* The members as of the restored index, unless the window still has a later entry. */
static void take_members(struct raft *raft, const struct raft_event *event)
{
    if (event->snapshot.members == NULL) {
        return;
    }
    struct raft_configuration made = raft_configuration_new(
        event->snapshot.members, event->snapshot.member_count, event->snapshot.index);
    struct raft_configuration *target = raft->base_kept ? &raft->base : &raft->active;
    raft_configuration_free(target);
    *target = made;
    if (!raft->base_kept) {
        raft_emit(raft, RAFT_ACTION_MEMBERS)->index = raft->active.index;
    }
}

/* Empties the window: what it holds may differ from what was committed up to `index`. */
static void begin_behind(struct raft *raft, uint64_t index, uint64_t term)
{
    if (raft_window_last(&raft->window) > raft->commit) {
        raft_truncate_log(raft, raft->commit + 1);
    }
    raft->durable = raft->commit; /* what was restored holds it, whatever the journal has */
    raft_release_log(raft, raft->commit);
    assert(!raft->base_kept && raft->window.count == 0);
    raft_window_reset(&raft->window, index, term);
}

enum raft_result raft_restored(struct raft *raft, const struct raft_event *event)
{
    uint64_t index = event->snapshot.index;
    uint64_t term = event->snapshot.term;
    const struct raft_member *members = event->snapshot.members;
    if (raft->role == RAFT_LEADER || term == 0 || index == 0 ||
        (members != NULL && !raft_members_valid(members, event->snapshot.member_count))) {
        raft_reason(raft, "nothing that this node can restore");
        return RAFT_INVALID;
    }
    if (index <= raft->commit) {
        raft_reason(raft, "older than what is committed here");
        return RAFT_OK;
    }
    if (term > raft->term || raft->role != RAFT_FOLLOWER) {
        raft_become_follower(raft, term > raft->term ? term : raft->term, RAFT_NO_NODE);
    }
    uint64_t known;
    if (!raft_window_term(&raft->window, index, &known) || known != term) {
        begin_behind(raft, index, term);
    }
    raft->commit = index;
    raft->durable = index > raft->durable ? index : raft->durable;
    raft->matched = index > raft->matched ? index : raft->matched;
    raft_release_log(raft, index);
    take_members(raft, event);
    raft_wake(raft);
    raft_acknowledge(raft, true);
    return RAFT_OK;
}
