/* The inside of a group, shared by the core's files and by nobody else.
 *
 * One file per concept works on it: raft.c (life and dispatch), election.c, replication.c (the
 * leader's side of the log), follower.c (the other side), membership.c, transfer.c, read.c,
 * hibernation.c and snapshot.c. Each step sets `out`; what they decide goes there.
 */
#ifndef OTTLA_RAFT_STATE_H
#define OTTLA_RAFT_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "raft/members.h"
#include "raft/raft.h"
#include "raft/window.h"

enum raft_ballot { RAFT_BALLOT_OPEN = 0, RAFT_BALLOT_YES, RAFT_BALLOT_NO };

/* What a leader or candidate knows of another member; no other role keeps these. */
struct raft_peer {
    int32_t id;
    uint8_t flags; /* enum raft_member_flag */
    uint8_t state; /* enum raft_peer_state */
    uint8_t ballot; /* enum raft_ballot */
    bool active;  /* was heard since the last check of the quorum */
    bool was_active; /* or between that one and the one before */
    bool probing; /* a probe is under way: send no second one */
    bool asleep;  /* answered the current call to rest */
    bool gone;    /* dead for a while: the group may rest without it */
    bool withdrawn; /* did not say that it may vote */
    uint64_t match;
    uint64_t next;        /* the first entry that was not sent */
    uint64_t probe;       /* PROBE: the index that the latest probe asks about */
    uint64_t round_sent;  /* the heartbeat round at the latest APPEND */
    uint64_t round_acked; /* the latest heartbeat round it answered */
    uint64_t told_commit; /* the largest commit index it was sent */
};

/* A read that waits for its round of heartbeats. */
struct raft_read {
    uint64_t context;
    uint64_t index;
    uint64_t round;
};

struct raft {
    const struct raft_limits *limits;
    struct raft_actions *out; /* set during a step */
    struct raft_window window;
    struct raft_configuration active; /* the latest in the log */
    struct raft_configuration base;   /* as of the window's start, when base_kept */

    int32_t id;
    int32_t voted_for;
    uint64_t term;
    uint64_t saved_term; /* what SAVED said last */
    int32_t saved_vote;
    int32_t leader;

    uint64_t commit;
    uint64_t durable;        /* this node's log is on disk up to here */
    uint64_t matched;        /* follower: equal to the leader's log up to here */
    uint64_t acked;          /* follower: told the leader so up to here */
    uint64_t truncated_term; /* PERSISTED notices from before this term are void */
    uint64_t floor;          /* leader: its last index when it was elected, with the no-op */

    uint64_t random;
    uint64_t round;      /* leader: heartbeat rounds so far */
    uint64_t rest_round; /* leader: first round of the current call to rest; 0 = none */
    uint32_t elapsed;    /* ticks since the leader was heard; leader: since the quorum check */
    uint32_t timeout;
    uint32_t heartbeat_elapsed;
    uint32_t idle; /* leader: ticks since something happened */

    struct raft_peer *peers; /* all members but this node; only with a role above follower */
    struct raft_read *reads;
    uint32_t peer_count;
    uint32_t read_count;
    uint32_t read_capacity;
    int32_t transfer_to;
    uint32_t transfer_elapsed;

    uint8_t role; /* enum raft_role */
    bool stale_tail; /* recovery: what follows start_index in the journal belongs to another log */
    bool base_kept; /* false: active is older than the window and stands for both */
    bool started;
    bool withdrawn;
    bool asleep;
    bool by_order; /* candidate: told to by the leader (§3.10) */
    bool vote_sent; /* candidate: own vote is durable and the requests are out */

    uint8_t told_role; /* the latest ROLE action */
    bool told_ticks;
    int32_t told_leader;
    uint64_t told_term;
};

_Static_assert(sizeof(struct raft) < 420, "an idle group stays small");

/* ---- actions.c ---- */

/* Adds an action to the step under way. Borrowed until the next emission. */
struct raft_action *raft_emit(struct raft *raft, enum raft_action_kind kind);
/* A SEND to be filled in; from, to and term are set. Borrowed until the next emission. */
struct raft_message *raft_emit_message(struct raft *raft, enum raft_message_kind kind, int32_t to);
/* Makes the window's entries first..last the entries of the latest SEND. */
void raft_emit_entries(struct raft *raft, uint64_t first, uint64_t last);
/* SAVE for the current term and vote; one per step, the latest values win. */
void raft_emit_save(struct raft *raft);
/* ROLE if role, term or leader differ from what was told last. */
void raft_emit_role(struct raft *raft);
static inline void raft_reason(struct raft *raft, const char *reason)
{
    raft->out->reason = reason;
}

/* ---- election.c ---- */

/* Follows in this term, which is not below the current one; RAFT_NO_NODE: nobody known yet. */
void raft_become_follower(struct raft *raft, uint64_t term, int32_t leader);
/* Begins an election: asking first (pre-vote), or at once. */
void raft_campaign(struct raft *raft, bool ask_first);
void raft_campaign_by_order(struct raft *raft);
/* The election that is due is held back: neither leads nor asks, the timer stays where it ran
 * out. */
void raft_put_off_election(struct raft *raft);
void raft_reset_timer(struct raft *raft);
void raft_handle_vote_request(struct raft *raft, const struct raft_message *message);
void raft_handle_vote_reply(struct raft *raft, const struct raft_message *message);
void raft_handle_saved(struct raft *raft, uint64_t term, int32_t voted_for);
/* Whether a leader was heard within the shortest timeout (§4.2.3). */
bool raft_in_lease(const struct raft *raft);

/* ---- quorum.c ---- */

/* How one voter counts; `peer` is null for this node itself. */
typedef bool raft_voter_test(const struct raft *raft, const struct raft_peer *peer,
                             uint64_t argument);
/* Whether the voters that pass the test are a majority, in both sets during a change (§4.3). */
bool raft_has_quorum(const struct raft *raft, raft_voter_test *test, uint64_t argument);
/* The largest index that a quorum has durably. */
uint64_t raft_quorum_match(const struct raft *raft);
/* Whether this node alone is the quorum. */
bool raft_is_sole_voter(const struct raft *raft);
struct raft_peer *raft_find_peer(const struct raft *raft, int32_t id);
/* Makes `peers` agree with the members in force; keeps what is known of those that stay, the others
 * begin at `next`. */
void raft_rebuild_peers(struct raft *raft, uint64_t next);
void raft_free_peers(struct raft *raft);

/* ---- replication.c (leader) ---- */

/* The election is won: peers are probed; a no-op is appended when there is something to commit. */
void raft_begin_leading(struct raft *raft);
enum raft_result raft_propose(struct raft *raft, const struct slice *payloads, size_t count);
/* Appends one entry as the leader; the payload's reference stays with the caller. */
void raft_append_own(struct raft *raft, enum raft_entry_kind kind, struct slice payload);
void raft_send_append(struct raft *raft, struct raft_peer *peer, bool even_if_empty);
void raft_send_to_all(struct raft *raft);
/* From now on one message at a time, the first one asking about `index`; `wait` = not before the
 * answer to a heartbeat that is yet to be sent. */
void raft_begin_probe(struct raft *raft, struct raft_peer *peer, uint64_t index, bool wait);
void raft_send_heartbeats(struct raft *raft);
/* APPEND action for what was just appended from `first` on, and its way to the peers. */
void raft_publish(struct raft *raft, uint64_t first);
/* With eager_commit: tells peers that have all entries how far they are committed. */
void raft_tell_commit(struct raft *raft);
void raft_handle_append_reply(struct raft *raft, const struct raft_message *message);
void raft_handle_heartbeat_reply(struct raft *raft, const struct raft_message *message);
void raft_advance_commit(struct raft *raft);
/* Raises the commit index (any role) and does what follows from it. */
void raft_commit_to(struct raft *raft, uint64_t index);

/* ---- follower.c ---- */

enum raft_result raft_handle_append(struct raft *raft, const struct raft_message *message);
/* A heartbeat of the current leader: commit moves, the answer says how far this log is equal. */
void raft_handle_heartbeat(struct raft *raft, const struct raft_message *message);
void raft_handle_persisted(struct raft *raft, uint64_t term, uint64_t index);
/* Tells the leader what is durable and equal, if that is more than it was told. */
void raft_acknowledge(struct raft *raft, bool even_if_same);
/* Durable and equal to the leader's log up to here. */
uint64_t raft_acknowledgeable(const struct raft *raft);

/* ---- membership.c ---- */

enum raft_result raft_change_members(struct raft *raft, const struct raft_member *members,
                                     size_t count);
/* Whether this node may lead: a voter, and storage in order. */
bool raft_may_lead(const struct raft *raft);
/* The entry was appended: its members are in force at once (§4.1). */
void raft_adopt_configuration(struct raft *raft, const struct raft_entry *entry);
/* Cuts the window; the configuration goes back with it. */
void raft_truncate_log(struct raft *raft, uint64_t from);
/* Releases the window; the base configuration goes along. */
void raft_release_log(struct raft *raft, uint64_t to);
/* Leader: leaves a joint configuration that is committed, steps down if it is out. */
void raft_continue_change(struct raft *raft);

/* ---- transfer.c ---- */

enum raft_result raft_transfer(struct raft *raft, int32_t node);
/* Gives up a transfer that takes longer than an election timeout (§3.10). */
void raft_transfer_tick(struct raft *raft);
/* The peer may have all entries now. */
void raft_transfer_progress(struct raft *raft, const struct raft_peer *peer);
/* Hands over to whoever is nearest and stops leading, without waiting. */
void raft_resign(struct raft *raft);
void raft_handle_timeout_now(struct raft *raft, const struct raft_message *message);

/* ---- read.c ---- */

enum raft_result raft_read(struct raft *raft, uint64_t context);
/* Reads whose round a majority has answered are ready (§6.4). */
void raft_serve_reads(struct raft *raft);
void raft_fail_reads(struct raft *raft);

/* ---- hibernation.c ---- */

/* Something happened: the group does not rest. */
void raft_wake(struct raft *raft);
void raft_rest_tick(struct raft *raft);
/* Fills in a heartbeat's call to rest, if there is one. */
void raft_call_to_rest(const struct raft *raft, struct raft_message *heartbeat);
/* Follower: goes to rest if it has all that the leader has; whether it did. */
bool raft_rest_if_complete(struct raft *raft, const struct raft_message *heartbeat);
void raft_rest_answered(struct raft *raft, struct raft_peer *peer,
                        const struct raft_message *reply);
void raft_peer_lost(struct raft *raft, int32_t node, bool hold);
void raft_peer_gone(struct raft *raft, int32_t node);
void raft_peer_back(struct raft *raft, int32_t node);

/* ---- snapshot.c ---- */

enum raft_result raft_snapshot_done(struct raft *raft, int32_t node, uint64_t index);
enum raft_result raft_restored(struct raft *raft, const struct raft_event *event);

#endif
