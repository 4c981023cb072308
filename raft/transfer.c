/* Handing leadership to a chosen voter (§3.10).
 *
 * The leader stops taking proposals, brings the target up to its last entry and tells it to start
 * an election at once; voters answer that one although a leader lives. If the target has not taken
 * over within an election timeout, the leader goes on and says so.
 */
#include "raft/state.h"

static void order_election(struct raft *raft, const struct raft_peer *peer)
{
    raft_emit_message(raft, RAFT_TIMEOUT_NOW, peer->id);
}

/* The active voter that has most, or null. */
static struct raft_peer *nearest(const struct raft *raft)
{
    struct raft_peer *best = NULL;
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        struct raft_peer *peer = &raft->peers[i];
        if ((peer->flags & RAFT_VOTER) != 0 && peer->active &&
            (best == NULL || peer->match > best->match)) {
            best = peer;
        }
    }
    return best;
}

enum raft_result raft_transfer(struct raft *raft, int32_t node)
{
    if (raft->role != RAFT_LEADER) {
        return RAFT_NOT_LEADER;
    }
    if (node == raft->id) {
        return RAFT_OK;
    }
    struct raft_peer *peer = node == RAFT_NO_NODE ? nearest(raft) : raft_find_peer(raft, node);
    if (peer == NULL || (peer->flags & RAFT_VOTER) == 0) {
        raft_reason(raft, "no such voter");
        return RAFT_INVALID;
    }
    if (raft->transfer_to != RAFT_NO_NODE) {
        return raft->transfer_to == peer->id ? RAFT_OK : RAFT_BUSY;
    }
    raft->transfer_to = peer->id;
    raft->transfer_elapsed = 0;
    raft_wake(raft);
    raft_send_append(raft, peer, false);
    raft_transfer_progress(raft, peer);
    return RAFT_OK;
}

void raft_transfer_progress(struct raft *raft, const struct raft_peer *peer)
{
    if (raft->transfer_to == peer->id && peer->match == raft_window_last(&raft->window)) {
        order_election(raft, peer);
    }
}

void raft_transfer_tick(struct raft *raft)
{
    if (raft->transfer_to == RAFT_NO_NODE ||
        ++raft->transfer_elapsed < raft->limits->election_ticks) {
        return;
    }
    raft_reason(raft, "the transfer took too long");
    raft_emit(raft, RAFT_ACTION_TRANSFER_FAILED)->node = raft->transfer_to;
    raft->transfer_to = RAFT_NO_NODE;
}

void raft_resign(struct raft *raft)
{
    assert(raft->role == RAFT_LEADER);
    struct raft_peer *peer = nearest(raft);
    if (peer != NULL) {
        order_election(raft, peer);
    }
    raft_become_follower(raft, raft->term, RAFT_NO_NODE);
}

void raft_handle_timeout_now(struct raft *raft, const struct raft_message *message)
{
    if (raft->leader != message->from || raft->role != RAFT_FOLLOWER || !raft_may_lead(raft)) {
        raft_reason(raft, "not in a position to take over");
        return;
    }
    raft_campaign_by_order(raft);
}
