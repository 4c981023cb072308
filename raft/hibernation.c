/* Rest: a group in which nothing happens and everybody has everything stops ticking.
 *
 * After hibernate_ticks idle ticks the leader's heartbeats call to rest. A follower that has all
 * entries, durable and committed, stops its timer and says so; when all have, the leader stops too.
 * Anything else than such a heartbeat wakes a node. While a group rests, the caller vouches for the
 * leader's life: it feeds PEER_LOST for a broker whose link breaks to every group that knows it.
 *
 * A learner that may not vote yet is waited for too: that it may is said with its answers.
 *
 * A member that is dead for long would keep its group awake. After PEER_GONE the leader rests when
 * all others do, as long as they are a majority with it: who took the leadership meanwhile would
 * have needed one of them, and has woken it. PEER_BACK, or a word of the member, ends that.
 *
 * A follower that loses its leader does not wait for a whole timeout: the first of the other voters
 * asks for votes at once, and again a tick later, as the others may learn of the loss a moment
 * after it; the next ones wait a few ticks, so that two rarely ask at once. If the leader lives
 * after all, whoever still hears it refuses the pre-vote, and its next message is followed.
 */
#include "raft/state.h"

void raft_wake(struct raft *raft)
{
    raft->idle = 0;
    raft->rest_round = 0;
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        raft->peers[i].asleep = false;
    }
    if (!raft->asleep) {
        return;
    }
    raft->asleep = false;
    raft->elapsed = 0;
    if (raft->role == RAFT_LEADER) {
        /* Silence meant rest, not absence: the quorum check begins anew. */
        for (uint32_t i = 0; i < raft->peer_count; i++) {
            raft->peers[i].active = true;
        }
        raft_send_heartbeats(raft);
    }
}

static bool is_here(const struct raft *raft, const struct raft_peer *peer, uint64_t unused)
{
    (void)raft;
    (void)unused;
    return peer == NULL || !peer->gone;
}

/* Whether nothing is to be done for anybody but those who are gone, and the others can decide. */
static bool is_complete(const struct raft *raft)
{
    uint64_t last = raft_window_last(&raft->window);
    if (raft->commit < last || raft->durable < last || raft->read_count > 0 ||
        raft->transfer_to != RAFT_NO_NODE || raft->active.index > raft->commit) {
        return false;
    }
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        const struct raft_peer *peer = &raft->peers[i];
        bool is_to_vote = peer->withdrawn && (peer->flags & RAFT_VOTER) == 0;
        if (!peer->gone &&
            (peer->state != RAFT_PEER_REPLICATE || peer->match < last || is_to_vote)) {
            return false;
        }
    }
    return raft_has_quorum(raft, is_here, 0);
}

void raft_rest_tick(struct raft *raft)
{
    assert(raft->role == RAFT_LEADER && !raft->asleep);
    if (raft->limits->hibernate_ticks == 0 || ++raft->idle < raft->limits->hibernate_ticks) {
        return;
    }
    if (!is_complete(raft)) {
        raft_wake(raft);
    } else if (raft->rest_round == 0) {
        raft->rest_round = raft->round + 1;
    }
}

void raft_call_to_rest(const struct raft *raft, struct raft_message *heartbeat)
{
    if (raft->rest_round == 0) {
        return;
    }
    heartbeat->sleep = true;
    heartbeat->index = raft_window_last(&raft->window);
    heartbeat->log_term = raft_window_last_term(&raft->window);
}

bool raft_rest_if_complete(struct raft *raft, const struct raft_message *heartbeat)
{
    uint64_t last = raft_window_last(&raft->window);
    if (!heartbeat->sleep || heartbeat->index != last ||
        heartbeat->log_term != raft_window_last_term(&raft->window) || raft->commit < last ||
        raft->matched < last || raft->durable < last || raft->saved_term < raft->term) {
        return false;
    }
    raft->asleep = true;
    return true;
}

void raft_rest_answered(struct raft *raft, struct raft_peer *peer,
                        const struct raft_message *reply)
{
    if (raft->rest_round == 0 || !reply->sleep || reply->round < raft->rest_round ||
        reply->index != raft_window_last(&raft->window)) {
        return;
    }
    peer->asleep = true;
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        if (!raft->peers[i].asleep && !raft->peers[i].gone) {
            return;
        }
    }
    raft->asleep = is_complete(raft); /* some may have gone since the call */
}

/* How many voters come before this node in the order of the members, the lost one left out. */
static uint32_t rank_without(const struct raft *raft, int32_t lost)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < raft->active.count && raft->active.members[i].id != raft->id; i++) {
        const struct raft_member *member = &raft->active.members[i];
        rank += member->id != lost && (member->flags & RAFT_VOTER) != 0 ? 1 : 0;
    }
    return rank;
}

static void leader_lost(struct raft *raft, bool hold)
{
    int32_t lost = raft->leader;
    if (raft->role != RAFT_FOLLOWER || lost == RAFT_NO_NODE) {
        return; /* a leader that is told of itself */
    }
    raft_reason(raft, "the leader is lost");
    raft_become_follower(raft, raft->term, RAFT_NO_NODE);
    uint32_t rank = rank_without(raft, lost);
    if (rank == 0 && raft_may_lead(raft) && !hold) {
        raft_campaign(raft, true);
    }
    if (raft->role != RAFT_CANDIDATE) {
        raft->timeout = 1 + rank < raft->timeout ? 1 + rank : raft->timeout;
    }
    if (rank == 0 && raft_may_lead(raft) && hold) {
        raft_put_off_election(raft);
    }
}

void raft_peer_lost(struct raft *raft, int32_t node, bool hold)
{
    struct raft_peer *peer = raft_find_peer(raft, node);
    if (raft->role == RAFT_LEADER && peer != NULL) {
        if (peer->state == RAFT_PEER_REPLICATE) {
            raft_begin_probe(raft, peer, peer->match, true); /* until its next answer */
        }
        raft_wake(raft);
    } else if (raft->leader == node) {
        leader_lost(raft, hold);
    }
}

void raft_peer_gone(struct raft *raft, int32_t node)
{
    struct raft_peer *peer = raft_find_peer(raft, node);
    if (raft->role == RAFT_LEADER && peer != NULL) {
        peer->gone = true;
    }
}

void raft_peer_back(struct raft *raft, int32_t node)
{
    struct raft_peer *peer = raft_find_peer(raft, node);
    if (raft->role == RAFT_LEADER && peer != NULL && peer->gone) {
        peer->gone = false;
        raft_wake(raft);
    }
}
