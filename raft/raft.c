/* A group's life, and where each event goes.
 *
 * raft_create() and recovery.c rebuild the state from checkpoint and journal; START lets the group
 * take part, and a sole voter elects itself in that step. Every message passes the rule of terms
 * here (§3.3): a higher one makes a follower, a lower one is answered with ours or dropped. Events
 * that arrive before START are refused as RAFT_INVALID.
 */
#include "raft/raft.h"

#include <stdlib.h>

#include "base/memory.h"
#include "raft/state.h"

const struct raft_limits raft_limits_default = {
    .election_ticks = 10,
    .heartbeat_ticks = 2,
    .hibernate_ticks = 50,
    .message_entries = 1024,
    .message_bytes = 1 << 20,
    .inflight_entries = 8192,
    .inflight_bytes = 8 << 20,
    .uncommitted_bytes = 64 << 20,
    .reads = 1024,
    .eager_commit = false,
};

static void check_limits(const struct raft_limits *limits)
{
    assert(limits->heartbeat_ticks > 0 && limits->election_ticks > limits->heartbeat_ticks);
    assert(limits->message_entries > 0 && limits->inflight_entries > 0);
    assert(limits->inflight_bytes > 0);
}

struct raft *raft_create(const struct raft_config *config)
{
    assert(config->id >= 0);
    assert(config->member_count == 0 || raft_members_valid(config->members, config->member_count));
    assert(config->members_index <= config->start_index);
    struct raft *raft = memory_new_zero(1, sizeof *raft);
    raft->limits = config->limits != NULL ? config->limits : &raft_limits_default;
    check_limits(raft->limits);
    raft_window_init(&raft->window, config->start_index, config->start_term);
    raft->active =
        raft_configuration_new(config->members, config->member_count, config->members_index);
    raft->id = config->id;
    raft->term = config->term;
    raft->voted_for = config->term == 0 ? RAFT_NO_NODE : config->voted_for;
    if (config->start_term > config->term) {
        raft->term = config->start_term;
        raft->voted_for = RAFT_NO_NODE;
    }
    raft->commit = config->start_index;
    raft->durable = config->start_index;
    raft->matched = config->start_index;
    raft->random = config->seed;
    raft->leader = RAFT_NO_NODE;
    raft->transfer_to = RAFT_NO_NODE;
    raft->withdrawn = config->withdrawn;
    raft->told_leader = RAFT_NO_NODE;
    return raft;
}

void raft_free(struct raft *raft)
{
    if (raft == NULL) {
        return;
    }
    raft_window_free(&raft->window);
    raft_configuration_free(&raft->active);
    raft_configuration_free(&raft->base);
    raft_free_peers(raft);
    free(raft->reads);
    free(raft);
}

/* ---- Start ---- */

static void start(struct raft *raft)
{
    assert(raft->term >= raft_window_last_term(&raft->window));
    raft->started = true;
    raft->saved_term = raft->term;
    raft->saved_vote = raft->voted_for;
    raft->truncated_term = 0;
    raft_reset_timer(raft);
    if (raft->stale_tail) {
        /* So that the next replay can tell what is appended from now on. */
        raft_emit(raft, RAFT_ACTION_TRUNCATE)->index = raft->window.start_index + 1;
    }
    raft_emit_role(raft);
    if (raft_is_sole_voter(raft) && raft_may_lead(raft)) {
        raft_reason(raft, "the only voter");
        raft_campaign(raft, false);
    }
}

/* ---- Messages ---- */

/* The sender leads this term; false when that cannot be. */
static bool follow(struct raft *raft, int32_t leader)
{
    if (raft->role == RAFT_LEADER ||
        (raft->leader != RAFT_NO_NODE && raft->leader != leader)) {
        raft_reason(raft, "a second leader in one term");
        return false;
    }
    if (raft->role != RAFT_FOLLOWER || raft->leader == RAFT_NO_NODE) {
        raft_become_follower(raft, raft->term, leader);
    }
    raft->elapsed = 0;
    return true;
}

/* A leader of an older term hears of ours, so that it steps down. Index 0 says that this refuses no
 * append: the receiver may lead our term by the time it arrives. */
static void answer_old_term(struct raft *raft, const struct raft_message *message)
{
    raft_reason(raft, "an old term");
    if (message->kind == RAFT_APPEND || message->kind == RAFT_HEARTBEAT) {
        raft_emit_message(raft, RAFT_APPEND_REPLY, message->from);
    }
}

static enum raft_result dispatch(struct raft *raft, const struct raft_message *message)
{
    switch ((enum raft_message_kind)message->kind) {
    case RAFT_APPEND:
        return follow(raft, message->from) ? raft_handle_append(raft, message) : RAFT_INVALID;
    case RAFT_HEARTBEAT:
        if (!follow(raft, message->from)) {
            return RAFT_INVALID;
        }
        raft_handle_heartbeat(raft, message);
        return RAFT_OK;
    case RAFT_APPEND_REPLY:
        raft_handle_append_reply(raft, message);
        return RAFT_OK;
    case RAFT_HEARTBEAT_REPLY:
        raft_handle_heartbeat_reply(raft, message);
        return RAFT_OK;
    case RAFT_TIMEOUT_NOW:
        raft_handle_timeout_now(raft, message);
        return RAFT_OK;
    case RAFT_PRE_VOTE_REPLY:
    case RAFT_VOTE_REPLY:
        raft_handle_vote_reply(raft, message);
        return RAFT_OK;
    case RAFT_PRE_VOTE:
    case RAFT_VOTE:
        break;
    }
    assert(false); /* requests for votes are handled before */
    return RAFT_INVALID;
}

static enum raft_result handle_message(struct raft *raft, const struct raft_message *message)
{
    if (message->to != raft->id || message->from == raft->id || message->from < 0 ||
        (message->term == 0 && message->kind != RAFT_PRE_VOTE_REPLY) ||
        message->kind < RAFT_PRE_VOTE || message->kind > RAFT_TIMEOUT_NOW) {
        raft_reason(raft, "not a message for this node");
        return RAFT_INVALID;
    }
    if (message->kind == RAFT_PRE_VOTE || message->kind == RAFT_VOTE) {
        raft_handle_vote_request(raft, message);
        return RAFT_OK;
    }
    if (message->kind == RAFT_PRE_VOTE_REPLY && message->accepted) {
        raft_handle_vote_reply(raft, message); /* its term is one that nobody has yet (§9.6) */
        return RAFT_OK;
    }
    if (message->term > raft->term) {
        bool leads = message->kind == RAFT_APPEND || message->kind == RAFT_HEARTBEAT;
        raft_become_follower(raft, message->term, leads ? message->from : RAFT_NO_NODE);
    } else if (message->term < raft->term) {
        answer_old_term(raft, message);
        return RAFT_OK;
    }
    return dispatch(raft, message);
}

/* ---- Time ---- */

static bool was_active(const struct raft *raft, const struct raft_peer *peer, uint64_t unused)
{
    (void)raft;
    (void)unused;
    return peer == NULL || peer->active;
}

/* A leader that a majority has not answered for an election timeout is none any more (§6.2). */
static void check_quorum(struct raft *raft)
{
    if (++raft->elapsed < raft->limits->election_ticks) {
        return;
    }
    raft->elapsed = 0;
    if (!raft_has_quorum(raft, was_active, 0)) {
        raft_reason(raft, "no majority answered");
        raft_become_follower(raft, raft->term, RAFT_NO_NODE);
        return;
    }
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        raft->peers[i].was_active = raft->peers[i].active;
        raft->peers[i].active = false;
    }
}

static void tick_leader(struct raft *raft)
{
    raft_rest_tick(raft);
    raft_transfer_tick(raft);
    check_quorum(raft);
    if (raft->role == RAFT_LEADER && ++raft->heartbeat_elapsed >= raft->limits->heartbeat_ticks) {
        raft_send_heartbeats(raft);
    }
}

static void tick(struct raft *raft, bool hold)
{
    if (!raft_needs_ticks(raft)) {
        return;
    }
    if (raft->role == RAFT_LEADER) {
        tick_leader(raft);
        return;
    }
    raft->elapsed += raft->elapsed < UINT32_MAX ? 1 : 0;
    bool saves_vote = raft->role == RAFT_CANDIDATE && !raft->vote_sent;
    if (raft->elapsed >= raft->timeout && raft_may_lead(raft) && !saves_vote) {
        raft_reason(raft, "the election timer ran out");
        if (hold) {
            raft_put_off_election(raft);
        } else {
            raft_campaign(raft, true);
        }
    }
}

/* ---- Events ---- */

static enum raft_result campaign_now(struct raft *raft, bool hold)
{
    if (!raft_may_lead(raft)) {
        raft_reason(raft, "this node may not lead");
        return RAFT_INVALID;
    }
    if (hold && raft->role == RAFT_FOLLOWER) {
        raft_wake(raft);
        raft_put_off_election(raft);
    } else if (!hold && raft->role != RAFT_LEADER && raft->role != RAFT_CANDIDATE) {
        raft_campaign(raft, !raft_is_sole_voter(raft));
    }
    return RAFT_OK;
}

static void withdraw(struct raft *raft)
{
    raft->withdrawn = true;
    raft_reason(raft, "storage is out of order");
    if (raft->role == RAFT_LEADER) {
        raft_resign(raft);
    } else if (raft->role != RAFT_FOLLOWER) {
        raft_become_follower(raft, raft->term, RAFT_NO_NODE);
    }
}

/* What it voted in this term may be among what it lost, and the leader that it followed may be one
 * that it has forgotten to have voted for: the term's vote counts as given, to nobody else. */
static void rejoin(struct raft *raft)
{
    raft->withdrawn = false;
    if (raft->term > 0 && raft->voted_for == RAFT_NO_NODE) {
        raft->voted_for = raft->id;
        raft_emit_save(raft);
    }
    if (raft_is_sole_voter(raft) && raft->role == RAFT_FOLLOWER) {
        raft_campaign(raft, false);
    } else {
        raft_acknowledge(raft, true); /* a leader may wait for this one */
    }
}

static enum raft_result handle(struct raft *raft, const struct raft_event *event)
{
    switch ((enum raft_event_kind)event->kind) {
    case RAFT_EVENT_START:
        raft_reason(raft, "started before");
        return RAFT_INVALID;
    case RAFT_EVENT_TICK:
        tick(raft, event->hold);
        return RAFT_OK;
    case RAFT_EVENT_MESSAGE:
        return handle_message(raft, event->message);
    case RAFT_EVENT_PROPOSE:
        return raft_propose(raft, event->propose.payloads, event->propose.count);
    case RAFT_EVENT_PERSISTED:
        raft_handle_persisted(raft, event->persisted.term, event->persisted.index);
        return RAFT_OK;
    case RAFT_EVENT_SAVED:
        raft_handle_saved(raft, event->saved.term, event->saved.voted_for);
        return RAFT_OK;
    case RAFT_EVENT_CHANGE_MEMBERS:
        return raft_change_members(raft, event->change.members, event->change.count);
    case RAFT_EVENT_TRANSFER:
        return raft_transfer(raft, event->node);
    case RAFT_EVENT_READ:
        return raft_read(raft, event->read.context);
    case RAFT_EVENT_CAMPAIGN:
        return campaign_now(raft, event->hold);
    case RAFT_EVENT_SNAPSHOT_DONE:
        return raft_snapshot_done(raft, event->snapshot.node, event->snapshot.index);
    case RAFT_EVENT_RESTORED:
        return raft_restored(raft, event);
    case RAFT_EVENT_PEER_LOST:
        raft_peer_lost(raft, event->node, event->hold);
        return RAFT_OK;
    case RAFT_EVENT_PEER_GONE:
        raft_peer_gone(raft, event->node);
        return RAFT_OK;
    case RAFT_EVENT_PEER_BACK:
        raft_peer_back(raft, event->node);
        return RAFT_OK;
    case RAFT_EVENT_WITHDRAW:
        withdraw(raft);
        return RAFT_OK;
    case RAFT_EVENT_REJOIN:
        rejoin(raft);
        return RAFT_OK;
    }
    assert(false); /* the caller made up an event */
    return RAFT_INVALID;
}

static void check_invariants(const struct raft *raft)
{
    uint64_t last = raft_window_last(&raft->window);
    assert(raft->window.start_index <= raft->commit && raft->commit <= last);
    assert(raft->window.start_index <= raft->durable && raft->durable <= last);
    assert(raft->term >= raft_window_last_term(&raft->window));
    assert(raft->saved_term <= raft->term);
    assert((raft->role == RAFT_LEADER) == (raft->leader == raft->id));
    assert(raft->role != RAFT_FOLLOWER || (raft->peers == NULL && raft->read_count == 0));
    assert(raft->base_kept == (raft->active.index > raft->window.start_index));
}

enum raft_result raft_step(struct raft *raft, const struct raft_event *event,
                           struct raft_actions *actions)
{
    assert(raft->out == NULL);
    raft->out = actions;
    actions->step_from = actions->count;
    actions->reason = NULL;
    enum raft_result result = RAFT_OK;
    if (raft->started) {
        result = handle(raft, event);
    } else if (event->kind == RAFT_EVENT_START) {
        start(raft);
    } else {
        raft_reason(raft, "not started");
        result = RAFT_INVALID;
    }
    if (raft_needs_ticks(raft) != raft->told_ticks) {
        raft->told_ticks = !raft->told_ticks;
        raft_emit(raft, raft->told_ticks ? RAFT_ACTION_WAKE : RAFT_ACTION_SLEEP);
    }
    raft->out = NULL;
    check_invariants(raft);
    return result;
}

uint64_t raft_release(struct raft *raft, uint64_t index)
{
    assert(raft->out == NULL);
    uint64_t to = raft->commit < raft->durable ? raft->commit : raft->durable;
    to = index < to ? index : to;
    if (to > raft->window.start_index) {
        raft_release_log(raft, to);
    }
    return raft->window.start_index;
}
