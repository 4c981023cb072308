/* Elections: timers, pre-vote, votes.
 *
 * Happy path: the timer runs out, a pre-vote asks whether a majority would agree (§9.6), then the
 * term rises, the own vote is saved, and only when it is durable the requests leave and it counts:
 * else a node that crashed could ask twice in one term with different logs. Likewise a granted
 * vote is answered when SAVED says that it is durable. A node that heard a leader lately ignores
 * requests (§4.2.3), unless the leader itself ordered the election (§3.10).
 */
#include "base/planted.h"
#include "raft/state.h"

bool raft_in_lease(const struct raft *raft)
{
    return raft->role == RAFT_LEADER ||
           (raft->leader != RAFT_NO_NODE && raft->elapsed < raft->limits->election_ticks);
}

/* splitmix64: the state is the seed plus a fixed step per draw. */
static uint64_t draw(struct raft *raft)
{
    raft->random += 0x9e3779b97f4a7c15u;
    uint64_t mixed = raft->random;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

void raft_reset_timer(struct raft *raft)
{
    uint32_t shortest = raft->limits->election_ticks;
    raft->elapsed = 0;
    raft->timeout = shortest + (uint32_t)(draw(raft) % shortest);
}

void raft_become_follower(struct raft *raft, uint64_t term, int32_t leader)
{
    assert(term >= raft->term);
    assert(leader != raft->id);
    bool was_leader = raft->role == RAFT_LEADER;
    if (term > raft->term) {
        raft->term = term;
        raft->voted_for = planted(PLANT_VOTE_KEPT) ? raft->voted_for : RAFT_NO_NODE;
        if (!planted(PLANT_TERM_NOT_SAVED)) {
            raft_emit_save(raft);
        }
    }
    raft->role = RAFT_FOLLOWER;
    raft->leader = leader;
    /* What is committed is in every later leader's log (§3.6.1); of the rest nothing is known. */
    raft->matched = planted(PLANT_MATCH_KEPT) ? raft->matched : raft->commit;
    raft->acked = 0;
    raft->transfer_to = RAFT_NO_NODE;
    raft->by_order = false;
    if (was_leader) {
        raft_fail_reads(raft);
    }
    raft_free_peers(raft);
    raft_wake(raft);
    raft_reset_timer(raft);
    raft_emit_role(raft);
}

static bool said_yes(const struct raft *raft, const struct raft_peer *peer, uint64_t unused)
{
    (void)unused;
    if (peer == NULL) {
        return raft->role == RAFT_PRE_CANDIDATE || raft->vote_sent;
    }
    return peer->ballot == RAFT_BALLOT_YES;
}

static bool said_no(const struct raft *raft, const struct raft_peer *peer, uint64_t unused)
{
    (void)raft;
    (void)unused;
    return peer != NULL && peer->ballot == RAFT_BALLOT_NO;
}

static void request_votes(struct raft *raft, enum raft_message_kind kind, uint64_t term)
{
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        if ((raft->peers[i].flags & (RAFT_VOTER | RAFT_OLD_VOTER)) == 0) {
            continue;
        }
        struct raft_message *message = raft_emit_message(raft, kind, raft->peers[i].id);
        message->term = term;
        message->index = raft_window_last(&raft->window);
        message->log_term = raft_window_last_term(&raft->window);
        message->transfer = raft->by_order;
    }
}

/* Goes on when the ballots decide: to the real election, to leading, or back. */
static void count_ballots(struct raft *raft)
{
    assert(raft->role == RAFT_PRE_CANDIDATE || raft->role == RAFT_CANDIDATE);
    if (raft_has_quorum(raft, said_yes, 0)) {
        if (raft->role == RAFT_PRE_CANDIDATE) {
            raft_campaign(raft, false);
        } else {
            raft_begin_leading(raft);
        }
    } else if (raft_has_quorum(raft, said_no, 0)) {
        raft_reason(raft, "a majority refused");
        raft_become_follower(raft, raft->term, RAFT_NO_NODE);
    }
}

void raft_campaign(struct raft *raft, bool ask_first)
{
    assert(raft->started && raft_may_lead(raft));
    assert(raft->role != RAFT_LEADER);
    raft->leader = RAFT_NO_NODE;
    raft->vote_sent = false;
    raft->by_order = false;
    raft->role = ask_first ? RAFT_PRE_CANDIDATE : RAFT_CANDIDATE;
    raft_wake(raft);
    raft_free_peers(raft);
    raft_rebuild_peers(raft, raft_window_last(&raft->window) + 1);
    raft_reset_timer(raft);
    if (ask_first) {
        raft_emit_role(raft);
        request_votes(raft, RAFT_PRE_VOTE, raft->term + 1);
        count_ballots(raft);
        return;
    }
    raft->term++;
    raft->voted_for = raft->id;
    raft_emit_save(raft);
    raft_emit_role(raft);
}

void raft_campaign_by_order(struct raft *raft)
{
    raft_campaign(raft, false);
    raft->by_order = true;
}

void raft_put_off_election(struct raft *raft)
{
    assert(raft->started && raft_may_lead(raft) && raft->role != RAFT_LEADER);
    raft_reason(raft, "the election has to wait");
    if (raft->role != RAFT_FOLLOWER || raft->leader != RAFT_NO_NODE) {
        raft_become_follower(raft, raft->term, RAFT_NO_NODE);
    }
    raft->elapsed = raft->elapsed > raft->timeout ? raft->elapsed : raft->timeout;
}

/* The own vote is durable: it counts now, and the others may hear of it. */
static void own_vote_saved(struct raft *raft)
{
    assert(raft->role == RAFT_CANDIDATE && raft->voted_for == raft->id);
    raft->vote_sent = true;
    request_votes(raft, RAFT_VOTE, raft->term);
    count_ballots(raft);
}

static void grant(struct raft *raft, int32_t candidate)
{
    struct raft_message *reply = raft_emit_message(raft, RAFT_VOTE_REPLY, candidate);
    reply->accepted = true;
}

void raft_handle_saved(struct raft *raft, uint64_t term, int32_t voted_for)
{
    assert(term <= raft->term);
    if (term < raft->saved_term) {
        return;
    }
    bool new_vote = term > raft->saved_term || voted_for != raft->saved_vote;
    raft->saved_term = term;
    raft->saved_vote = voted_for;
    if (term < raft->term) {
        return;
    }
    assert(voted_for == RAFT_NO_NODE || voted_for == raft->voted_for);
    if (raft->role == RAFT_CANDIDATE && voted_for == raft->id) {
        if (!raft->vote_sent) {
            own_vote_saved(raft);
        }
    } else if (new_vote && voted_for != RAFT_NO_NODE && voted_for != raft->id &&
               !raft->withdrawn) {
        grant(raft, voted_for);
    }
    raft_acknowledge(raft, true);
}

static void refuse(struct raft *raft, const struct raft_message *request, const char *reason)
{
    enum raft_message_kind kind =
        request->kind == RAFT_PRE_VOTE ? RAFT_PRE_VOTE_REPLY : RAFT_VOTE_REPLY;
    raft_reason(raft, reason);
    raft_emit_message(raft, kind, request->from);
}

/* Why this request cannot be granted, or null. The term is not below this node's. */
static const char *objection(const struct raft *raft, const struct raft_message *request)
{
    uint64_t last_term = raft_window_last_term(&raft->window);
    uint64_t last = raft_window_last(&raft->window);
    if (raft->withdrawn) {
        return "this node's storage is out of order";
    }
    bool free_to_vote = raft->voted_for == RAFT_NO_NODE && raft->leader == RAFT_NO_NODE;
    bool next_term = request->kind == RAFT_PRE_VOTE && request->term > raft->term;
    free_to_vote = free_to_vote || planted(PLANT_VOTE_TWICE);
    if (!free_to_vote && !next_term && raft->voted_for != request->from) {
        return "the vote of this term is given";
    }
    if (request->log_term < last_term ||
        (request->log_term == last_term && request->index < last)) {
        if (planted(PLANT_VOTE_FOR_ANY_LOG)) {
            return NULL;
        }
        return "the candidate's log is behind";
    }
    return NULL;
}

static void vote(struct raft *raft, int32_t candidate)
{
    if (raft->voted_for == candidate) {
        if (raft->saved_term == raft->term && raft->saved_vote == candidate) {
            grant(raft, candidate);
        }
        return;
    }
    assert(raft->voted_for == RAFT_NO_NODE || planted(PLANT_VOTE_TWICE));
    raft->voted_for = candidate;
    raft_emit_save(raft);
    if (planted(PLANT_VOTE_BEFORE_SAVED)) {
        grant(raft, candidate);
    }
    if (raft->role != RAFT_FOLLOWER) {
        raft_become_follower(raft, raft->term, RAFT_NO_NODE);
    }
    raft_reset_timer(raft);
}

/* Someone asks although a leader lives: it may have missed that, so the leader shows itself. */
static void defend_lease(struct raft *raft, const struct raft_message *request)
{
    raft_reason(raft, "a leader was heard lately");
    raft_wake(raft);
    if (raft->role == RAFT_LEADER && raft_find_peer(raft, request->from) != NULL) {
        raft_send_heartbeats(raft);
    }
}

void raft_handle_vote_request(struct raft *raft, const struct raft_message *message)
{
    bool ask_first = message->kind == RAFT_PRE_VOTE;
    /* The leader itself asks only when it does not lead any more. */
    if (message->term > raft->term && raft_in_lease(raft) && !message->transfer &&
        message->from != raft->leader) {
        defend_lease(raft, message);
        return;
    }
    if (message->term < raft->term) {
        refuse(raft, message, "the term is old");
        return;
    }
    raft_wake(raft);
    if (message->term > raft->term && !ask_first) {
        raft_become_follower(raft, message->term, RAFT_NO_NODE);
    }
    const char *why_not = objection(raft, message);
    if (why_not != NULL) {
        refuse(raft, message, why_not);
    } else if (ask_first) {
        struct raft_message *reply =
            raft_emit_message(raft, RAFT_PRE_VOTE_REPLY, message->from);
        reply->accepted = true;
        reply->term = message->term;
    } else {
        vote(raft, message->from);
    }
}

void raft_handle_vote_reply(struct raft *raft, const struct raft_message *message)
{
    bool pre = message->kind == RAFT_PRE_VOTE_REPLY;
    uint64_t asked = pre && message->accepted ? raft->term + 1 : raft->term;
    if (raft->role != (pre ? RAFT_PRE_CANDIDATE : RAFT_CANDIDATE) || message->term != asked ||
        (!pre && !raft->vote_sent)) {
        return;
    }
    struct raft_peer *peer = raft_find_peer(raft, message->from);
    if (peer == NULL) {
        return;
    }
    if (peer->ballot == RAFT_BALLOT_OPEN) {
        peer->ballot = message->accepted ? RAFT_BALLOT_YES : RAFT_BALLOT_NO;
    }
    count_ballots(raft);
}
