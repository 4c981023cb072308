/* The leader's side of the log: proposals, appends to peers, their answers, the commit index.
 *
 * Happy path: a proposal is appended to the window; APPEND asks the journal and the messages leave
 * in the same step, so that the disks work side by side (§10.2.1). Each peer's pipeline is bounded
 * by entries and bytes. The leader counts itself by what is durable, like anybody else.
 *
 * A lost message shows at the next append (refused with a hint that skips whole terms) or at the
 * next heartbeat's answer, which says how far the logs are equal; both lead back to one probe at a
 * time until an answer fits.
 */
#include "base/planted.h"
#include "raft/state.h"

/* ---- Sending ---- */

/* The last index of a message that begins at peer->next: bounded by entries and bytes. */
static uint64_t message_end(const struct raft *raft, uint64_t first)
{
    const struct raft_limits *limits = raft->limits;
    uint64_t last = raft_window_last(&raft->window);
    uint64_t bytes = 0;
    uint64_t end = first - 1;
    while (end < last && end + 1 - first < limits->message_entries) {
        bytes += raft_entry_bytes(raft_window_at(&raft->window, end + 1));
        if (bytes > limits->message_bytes && end >= first) {
            break;
        }
        end++;
    }
    return end;
}

static bool pipeline_full(const struct raft *raft, const struct raft_peer *peer)
{
    assert(peer->next > peer->match);
    return peer->next - 1 - peer->match >= raft->limits->inflight_entries ||
           raft_window_bytes(&raft->window, peer->match, peer->next - 1) >=
               raft->limits->inflight_bytes;
}

static void emit_append(struct raft *raft, struct raft_peer *peer, uint64_t end)
{
    uint64_t before = peer->next - 1;
    struct raft_message *message = raft_emit_message(raft, RAFT_APPEND, peer->id);
    message->index = before;
    bool known = raft_window_term(&raft->window, before, &message->log_term);
    assert(known);
    message->commit = raft->commit;
    peer->told_commit = raft->commit;
    peer->round_sent = raft->round;
    if (end > before) {
        raft_emit_entries(raft, before + 1, end);
    }
}

static void need_snapshot(struct raft *raft, struct raft_peer *peer)
{
    peer->state = RAFT_PEER_SNAPSHOT;
    raft_reason(raft, "the peer lacks entries that were released");
    struct raft_action *action = raft_emit(raft, RAFT_ACTION_SNAPSHOT_NEEDED);
    action->snapshot.node = peer->id;
    action->snapshot.index = peer->match;
}

void raft_send_append(struct raft *raft, struct raft_peer *peer, bool even_if_empty)
{
    assert(raft->role == RAFT_LEADER);
    for (;;) {
        if (peer->state == RAFT_PEER_SNAPSHOT ||
            (peer->state == RAFT_PEER_PROBE && peer->probing)) {
            return;
        }
        assert(peer->next <= raft_window_last(&raft->window) + 1);
        if (peer->next <= raft->window.start_index) {
            need_snapshot(raft, peer);
            return;
        }
        uint64_t end = message_end(raft, peer->next);
        bool is_empty = end < peer->next;
        if (is_empty ? !even_if_empty
                     : peer->state == RAFT_PEER_REPLICATE && pipeline_full(raft, peer)) {
            return;
        }
        emit_append(raft, peer, end);
        even_if_empty = false;
        if (peer->state == RAFT_PEER_PROBE) {
            peer->probing = true;
            peer->probe = peer->next - 1;
        }
        peer->next = end + 1;
    }
}

void raft_begin_probe(struct raft *raft, struct raft_peer *peer, uint64_t index, bool wait)
{
    assert(index >= peer->match);
    peer->state = RAFT_PEER_PROBE;
    peer->probing = wait;
    peer->probe = index;
    peer->next = index + 1;
    peer->round_sent = raft->round;
}

void raft_send_to_all(struct raft *raft)
{
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        raft_send_append(raft, &raft->peers[i], false);
    }
}

void raft_send_heartbeats(struct raft *raft)
{
    assert(raft->role == RAFT_LEADER);
    raft->heartbeat_elapsed = 0;
    raft->round++;
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        struct raft_peer *peer = &raft->peers[i];
        struct raft_message *message = raft_emit_message(raft, RAFT_HEARTBEAT, peer->id);
        /* Not above what it has: it might hold other entries there. */
        message->commit = raft->commit < peer->match ? raft->commit : peer->match;
        message->round = raft->round;
        raft_call_to_rest(raft, message);
        peer->told_commit =
            message->commit > peer->told_commit ? message->commit : peer->told_commit;
    }
}

void raft_tell_commit(struct raft *raft)
{
    if (!raft->limits->eager_commit || raft->role != RAFT_LEADER) {
        return;
    }
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        struct raft_peer *peer = &raft->peers[i];
        if (peer->state == RAFT_PEER_REPLICATE && peer->told_commit < raft->commit &&
            peer->match == raft_window_last(&raft->window)) {
            raft_send_append(raft, peer, true);
        }
    }
}

/* ---- The own log ---- */

void raft_append_own(struct raft *raft, enum raft_entry_kind kind, struct slice payload)
{
    assert(raft->role == RAFT_LEADER);
    struct raft_entry entry = {.index = raft_window_last(&raft->window) + 1,
                               .term = raft->term,
                               .kind = (uint8_t)kind,
                               .payload = payload};
    raft_window_append(&raft->window, &entry);
    if (kind == RAFT_ENTRY_CONFIGURATION) {
        raft_adopt_configuration(raft, &entry);
    }
}

void raft_publish(struct raft *raft, uint64_t first)
{
    assert(first <= raft_window_last(&raft->window));
    struct raft_action *action = raft_emit(raft, RAFT_ACTION_APPEND);
    action->append.first = first;
    action->append.last = raft_window_last(&raft->window);
    action->append.term = raft->term;
    raft_wake(raft);
    raft_send_to_all(raft);
}

enum raft_result raft_propose(struct raft *raft, const struct slice *payloads, size_t count)
{
    if (raft->role != RAFT_LEADER) {
        return RAFT_NOT_LEADER;
    }
    if (raft->transfer_to != RAFT_NO_NODE) {
        return RAFT_BUSY;
    }
    if (count == 0) {
        raft_reason(raft, "an empty proposal");
        return RAFT_INVALID;
    }
    uint64_t last = raft_window_last(&raft->window);
    uint64_t bytes = raft_window_bytes(&raft->window, raft->commit, last);
    for (size_t i = 0; i < count; i++) {
        bytes += payloads[i].length + sizeof(struct raft_entry);
    }
    if (bytes > raft->limits->uncommitted_bytes && raft->commit < last) {
        return RAFT_FULL;
    }
    for (size_t i = 0; i < count; i++) {
        raft_append_own(raft, RAFT_ENTRY_DATA, payloads[i]);
    }
    raft_publish(raft, last + 1);
    return RAFT_OK;
}

void raft_begin_leading(struct raft *raft)
{
    assert(raft->role == RAFT_CANDIDATE && raft->vote_sent && raft_may_lead(raft));
    raft->role = RAFT_LEADER;
    raft->leader = raft->id;
    raft->elapsed = 0;
    raft->heartbeat_elapsed = 0;
    raft->by_order = false;
    raft->round = 0;
    assert(raft->read_count == 0 && raft->transfer_to == RAFT_NO_NODE);
    raft_free_peers(raft);
    raft_rebuild_peers(raft, raft_window_last(&raft->window) + 1);
    raft_wake(raft);
    raft_emit_role(raft);
    uint64_t last = raft_window_last(&raft->window);
    if (last > raft->commit && !planted(PLANT_NO_ENTRY_AT_ELECTION)) {
        /* Entries of older terms commit only under one of this term (§3.6.2). When there are none,
         * leader completeness says that all that is committed is known, and no entry is spent. */
        raft_append_own(raft, RAFT_ENTRY_NOOP, (struct slice){0});
    }
    raft->floor = raft_window_last(&raft->window);
    if (raft->floor > last) {
        raft_publish(raft, last + 1);
    }
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        raft_send_append(raft, &raft->peers[i], true);
    }
    raft_continue_change(raft);
}

/* ---- Answers ---- */

static void match_up_to(struct raft *raft, struct raft_peer *peer, uint64_t index)
{
    assert(index <= raft_window_last(&raft->window));
    if (index > peer->match) {
        peer->match = index;
    }
    if (peer->next <= peer->match) {
        peer->next = peer->match + 1;
    }
}

static void accepted(struct raft *raft, struct raft_peer *peer, uint64_t index)
{
    match_up_to(raft, peer, index);
    if (peer->state == RAFT_PEER_PROBE && index >= peer->probe) {
        peer->state = RAFT_PEER_REPLICATE; /* what went along with the probe is under way */
    } else if (peer->state == RAFT_PEER_SNAPSHOT && peer->match >= raft->window.start_index) {
        peer->state = RAFT_PEER_REPLICATE;
        peer->next = peer->match + 1;
    }
}

/* Goes back to the nearest index where both logs may be equal, whole terms at a time. */
static void refused(struct raft *raft, struct raft_peer *peer, const struct raft_message *message)
{
    bool probes = peer->state == RAFT_PEER_PROBE;
    if (message->index == 0 || peer->state == RAFT_PEER_SNAPSHOT ||
        (probes && message->index != peer->probe) ||
        (!probes && message->index <= peer->match)) {
        raft_reason(raft, "an answer to an older append");
        return;
    }
    uint64_t hint = message->hint_index;
    if (hint > raft_window_last(&raft->window)) {
        hint = raft_window_last(&raft->window);
    }
    if (hint >= raft->window.start_index) {
        hint = raft_window_find_term(&raft->window, hint, message->log_term);
    }
    if (hint >= message->index) {
        hint = message->index - 1;
    }
    if (message->index <= peer->match) {
        /* It had this once: its storage is damaged, or the answer is old and the match is found
         * again. What is committed stays so. */
        raft_reason(raft, "the peer lost entries");
        peer->match = hint;
    }
    raft_begin_probe(raft, peer, hint > peer->match ? hint : peer->match, false);
}

static void after_answer(struct raft *raft, struct raft_peer *peer)
{
    raft_send_append(raft, peer, peer->state == RAFT_PEER_PROBE);
    raft_transfer_progress(raft, peer);
    raft_advance_commit(raft); /* may end this leadership, and with it the peers */
    raft_tell_commit(raft);
    raft_serve_reads(raft);
}

void raft_handle_append_reply(struct raft *raft, const struct raft_message *message)
{
    struct raft_peer *peer = raft_find_peer(raft, message->from);
    if (raft->role != RAFT_LEADER || peer == NULL) {
        return;
    }
    peer->active = true;
    peer->gone = false;
    peer->withdrawn = message->withdrawn;
    if (!message->accepted) {
        refused(raft, peer, message);
    } else if (message->index <= raft_window_last(&raft->window)) {
        accepted(raft, peer, message->index);
    }
    after_answer(raft, peer);
}

/* A probe without answer is sent again; a pipeline with a hole goes back to probing (as it does
 * when the peer began anew and does not know that its log is equal). */
static void find_loss(struct raft *raft, struct raft_peer *peer,
                      const struct raft_message *message)
{
    if (peer->state == RAFT_PEER_PROBE) {
        uint64_t index = peer->probe > peer->match ? peer->probe : peer->match;
        raft_begin_probe(raft, peer, index, false);
    } else if (peer->state == RAFT_PEER_REPLICATE && message->index + 1 < peer->next) {
        raft_reason(raft, "an append was lost");
        raft_begin_probe(raft, peer, peer->match, false);
    }
}

void raft_handle_heartbeat_reply(struct raft *raft, const struct raft_message *message)
{
    struct raft_peer *peer = raft_find_peer(raft, message->from);
    uint64_t last = raft_window_last(&raft->window);
    if (raft->role != RAFT_LEADER || peer == NULL || message->index > last ||
        message->hint_index > message->index || message->round > raft->round) {
        return;
    }
    peer->active = true;
    peer->gone = false;
    peer->withdrawn = message->withdrawn;
    if (message->round > peer->round_acked) {
        peer->round_acked = message->round;
    }
    match_up_to(raft, peer, message->hint_index);
    if (peer->state == RAFT_PEER_SNAPSHOT && peer->match >= raft->window.start_index) {
        raft_begin_probe(raft, peer, peer->match, false);
    } else if (message->round > peer->round_sent) {
        /* This heartbeat left after the latest append, so that its answer tells what arrived. */
        find_loss(raft, peer, message);
    }
    raft_rest_answered(raft, peer, message);
    after_answer(raft, peer);
}

/* ---- Commit ---- */

void raft_advance_commit(struct raft *raft)
{
    if (raft->role != RAFT_LEADER) {
        return;
    }
    uint64_t index = raft_quorum_match(raft);
    uint64_t term = 0;
    if (index > raft->commit && raft_window_term(&raft->window, index, &term) &&
        (term == raft->term || planted(PLANT_OLD_TERM_COUNTED))) {
        raft_commit_to(raft, index);
    }
}

void raft_commit_to(struct raft *raft, uint64_t index)
{
    assert(index > raft->commit && index <= raft_window_last(&raft->window));
    struct raft_action *action = raft_emit(raft, RAFT_ACTION_COMMIT);
    action->commit.first = raft->commit + 1;
    action->commit.last = index;
    raft->commit = index;
    if (raft->role == RAFT_LEADER) {
        raft_continue_change(raft);
    }
}
