/* Consensus for one group as a pure state machine: an event goes in, actions come out.
 *
 * The core knows no clock, disk, socket or thread. The caller feeds events (a tick, a message, a
 * proposal, "durable up to here") with raft_step() and carries out the actions in their order.
 * Durability is explicit: the core asks for SAVE, TRUNCATE and APPEND, hears of them through SAVED
 * and PERSISTED, and holds back by itself every answer that would promise more than is durable. So
 * each SEND may go out at once. Happy path: PROPOSE gives an index; APPEND (journal) and SEND
 * (peers) leave together; PERSISTED and the peers' answers come back in any order; the majority
 * that completes first gives COMMIT.
 *
 * "§" cites the Raft dissertation (Ongaro, 2014). Membership changes use joint consensus (§4.3):
 * a reassignment replaces whole replica sets in one step, and no intermediate set can lose the
 * quorum that a sequence of single steps would need. Changes of learners alone take one entry.
 *
 * docs/raft.md is the caller's page: events, actions, rules.
 */
#ifndef OTTLA_RAFT_RAFT_H
#define OTTLA_RAFT_RAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"
#include "base/status.h"
#include "base/view.h"

struct raft;

/* No node: no leader known, no vote given. Node ids are zero or above. */
#define RAFT_NO_NODE (-1)
/* Members of one group, learners included. */
#define RAFT_MEMBERS_MAX 1024

/* ---- Entries ------------------------------------------------------------------------------- */

enum raft_entry_kind {
    RAFT_ENTRY_DATA = 0,          /* the caller's bytes */
    RAFT_ENTRY_NOOP = 1,          /* no bytes; lets a new leader commit what it found (§3.6.2) */
    RAFT_ENTRY_CONFIGURATION = 2, /* members; see raft_members_decode() */
};

/* One entry of the log. The window holds a reference on payload.block (which may be null when the
 * payload is empty). Entries that come out of the core are borrowed: valid until the next
 * raft_step(), raft_release() or raft_free() of the group; who keeps one longer calls block_ref. */
struct raft_entry {
    uint64_t index; /* 1 is the first entry ever; 0 is "before the log" */
    uint64_t term;
    uint8_t kind; /* enum raft_entry_kind */
    struct slice payload;
};

/* ---- Members ------------------------------------------------------------------------------- */

enum raft_member_flag {
    RAFT_VOTER = 1,     /* counts in the (new) majority */
    RAFT_OLD_VOTER = 2, /* counts in the old majority; only while a change is under way (§4.3) */
    RAFT_LEARNER = 4,   /* gets entries, does not vote, never leads (§4.2.1) */
};

struct raft_member {
    int32_t id;
    uint8_t flags; /* enum raft_member_flag */
};

/* The payload of a configuration entry for these members: a new block whose reference the caller
 * owns. Layout: u8 version 1, u16 count, then per member i32 id, u8 flags; big-endian. */
struct slice raft_members_encode(const struct raft_member *members, size_t count);

/* Reads such a payload into at most `capacity` members. STATUS_INVALID when it is malformed,
 * STATUS_LIMIT when there are more members than room. */
MUST_USE enum status raft_members_decode(struct view payload, struct raft_member *members,
                                         size_t capacity, size_t *count);

/* ---- Messages ------------------------------------------------------------------------------ */

enum raft_message_kind {
    RAFT_PRE_VOTE = 1,    /* term = the one that would be asked for; index, log_term = last entry */
    RAFT_PRE_VOTE_REPLY,  /* accepted; term = the asked term if accepted, else the answerer's */
    RAFT_VOTE,            /* index, log_term = last entry; transfer: sent by order of the leader */
    RAFT_VOTE_REPLY,      /* accepted */
    RAFT_APPEND,          /* index, log_term = entry before the first; commit; entries or none */
    RAFT_APPEND_REPLY,    /* accepted: index = durable and equal up to here. Not accepted: index =
                           * the refused one, hint_index, log_term = nearest entry that may match;
                           * index 0 only tells the term */
    RAFT_HEARTBEAT,       /* commit, round; sleep: index, log_term = the last entry, go to rest */
    RAFT_HEARTBEAT_REPLY, /* index = equal up to here, hint_index = and durable up to here, round,
                           * sleep = at rest */
    RAFT_TIMEOUT_NOW,     /* leader transfer: start an election at once (§3.10) */
};

/* A message between two members of one group. The caller adds the group, encodes it, and may put
 * many into one frame: heartbeats and their replies carry no entries, so that those of all groups
 * between two brokers merge into one request per tick. `entries` is borrowed (see raft_entry). */
struct raft_message {
    uint8_t kind; /* enum raft_message_kind */
    bool accepted;
    bool transfer;
    bool sleep;
    bool withdrawn; /* APPEND_REPLY, HEARTBEAT_REPLY: the sender may not vote */
    int32_t from;
    int32_t to;
    int32_t note;   /* the caller's: Raft neither sets nor reads it */
    uint64_t term;
    uint64_t index;
    uint64_t log_term;
    uint64_t commit;
    uint64_t hint_index;
    uint64_t round;
    const struct raft_entry *entries;
    size_t entry_count;
};

/* ---- Events -------------------------------------------------------------------------------- */

enum raft_event_kind {
    RAFT_EVENT_START = 1,      /* the journal was replayed; from now on the group takes part */
    RAFT_EVENT_TICK,           /* one tick of time passed */
    RAFT_EVENT_MESSAGE,        /* message: received; `to` must be this node */
    RAFT_EVENT_PROPOSE,        /* propose: append these payloads */
    RAFT_EVENT_PERSISTED,      /* persisted: the journal has made an APPEND durable */
    RAFT_EVENT_SAVED,          /* saved: the journal has made a SAVE durable */
    RAFT_EVENT_CHANGE_MEMBERS, /* change: make these the members */
    RAFT_EVENT_TRANSFER,       /* node: hand leadership to it; RAFT_NO_NODE = whoever is nearest */
    RAFT_EVENT_READ,           /* read: is this still the leader, and what is committed? (§6.4) */
    RAFT_EVENT_CAMPAIGN,       /* start an election (with pre-vote) without waiting for the timer */
    RAFT_EVENT_SNAPSHOT_DONE,  /* snapshot: the peer has (index, term); index 0 = it failed */
    RAFT_EVENT_RESTORED,       /* snapshot: this node's state is durable up to (index, term) */
    RAFT_EVENT_PEER_LOST,      /* node: the link to it broke or went silent; if it leads, a new
                                * leader is looked for within a few ticks */
    RAFT_EVENT_PEER_GONE,      /* node: it was lost long ago; a leader may rest without it until
                                * PEER_BACK, which the caller then owes */
    RAFT_EVENT_PEER_BACK,      /* node: it can be reached again after PEER_LOST */
    RAFT_EVENT_WITHDRAW,       /* storage offline or damaged: resign, neither campaign nor vote */
    RAFT_EVENT_REJOIN,         /* undo WITHDRAW */
};

struct raft_event {
    uint8_t kind; /* enum raft_event_kind */
    bool hold;    /* TICK, PEER_LOST, CAMPAIGN: begin no election, however due; see
                   * raft_awaits_election() */
    union {
        const struct raft_message *message; /* MESSAGE; borrowed during the step */
        struct {
            /* PROPOSE; the window takes a reference of its own on each payload's block. All or
             * none are taken; they get consecutive indexes, see RAFT_ACTION_APPEND. */
            const struct slice *payloads;
            size_t count;
        } propose;
        struct {
            /* PERSISTED: the `term` and `last` of the RAFT_ACTION_APPEND that is durable now. */
            uint64_t term;
            uint64_t index;
        } persisted;
        struct {
            /* SAVED: the values of the RAFT_ACTION_SAVE that is durable now. */
            uint64_t term;
            int32_t voted_for;
        } saved;
        struct {
            /* CHANGE_MEMBERS: all members that shall be, each RAFT_VOTER or RAFT_LEARNER. */
            const struct raft_member *members;
            size_t count;
        } change;
        struct {
            uint64_t context; /* READ: comes back in READ_READY or READ_FAILED */
        } read;
        struct {
            /* SNAPSHOT_DONE (on the leader, node = who has it), RESTORED (on the follower). */
            int32_t node;
            uint64_t index;
            uint64_t term;
            /* RESTORED: the members as of that index; null = unchanged. */
            const struct raft_member *members;
            size_t member_count;
        } snapshot;
        int32_t node; /* TRANSFER, PEER_LOST, PEER_GONE, PEER_BACK */
    };
};

/* What became of an event that asks for something. Nothing changed unless RAFT_OK. */
enum raft_result {
    RAFT_OK = 0,
    RAFT_NOT_LEADER, /* PROPOSE, CHANGE_MEMBERS, TRANSFER, READ: ask raft_leader() */
    RAFT_BUSY,       /* a transfer or an earlier change of members is under way; try again */
    RAFT_FULL,       /* too much is uncommitted, or too many reads wait */
    RAFT_INVALID,    /* malformed, addressed to someone else, or not possible at all; see reason */
};

/* ---- Actions ------------------------------------------------------------------------------- */

enum raft_role {
    RAFT_FOLLOWER = 0, /* also learners and nodes outside the group */
    RAFT_PRE_CANDIDATE,
    RAFT_CANDIDATE,
    RAFT_LEADER,
};

enum raft_action_kind {
    RAFT_ACTION_SEND = 1, /* message */
    RAFT_ACTION_SAVE,     /* save: make (term, voted_for) durable, then feed SAVED */
    RAFT_ACTION_TRUNCATE, /* index: entries at and above are void; proposals there are lost */
    RAFT_ACTION_APPEND,   /* append: make entries first..last durable (raft_entry_at), then feed
                           * PERSISTED(term, last). For a proposal: its indexes and their term */
    RAFT_ACTION_COMMIT,   /* commit: entries first..last are committed; apply them in order */
    RAFT_ACTION_ROLE,     /* role: role, term or leader changed */
    RAFT_ACTION_MEMBERS,  /* index: the entry whose members are in force now (raft_members) */
    RAFT_ACTION_SNAPSHOT_NEEDED, /* snapshot: `node` lacks entries that the window does not have;
                                  * it has what is up to `index`. Bring it up, feed SNAPSHOT_DONE */
    RAFT_ACTION_READ_READY,      /* read: leadership confirmed; serve when applied up to index */
    RAFT_ACTION_READ_FAILED,     /* read: leadership was lost first */
    RAFT_ACTION_TRANSFER_FAILED, /* node: it did not take over in time; proposals work again */
    RAFT_ACTION_SLEEP,           /* the group needs no more ticks: see raft_needs_ticks() */
    RAFT_ACTION_WAKE,            /* the group needs ticks again */
};

struct raft_action {
    uint8_t kind; /* enum raft_action_kind */
    union {
        struct raft_message message;
        struct {
            uint64_t term;
            int32_t voted_for;
        } save;
        struct {
            uint64_t first;
            uint64_t last;
            uint64_t term; /* of the log's writer, for PERSISTED; not of the entries */
        } append;
        struct {
            uint64_t first;
            uint64_t last;
        } commit;
        struct {
            enum raft_role role;
            uint64_t term;
            int32_t leader;
        } role;
        struct {
            int32_t node;
            uint64_t index;
        } snapshot;
        struct {
            uint64_t context;
            uint64_t index;
        } read;
        uint64_t index;
        int32_t node;
    };
};

/* A list of actions that the caller owns and uses again and again (one per thread is enough).
 * raft_step() adds at the end; the caller carries them out in order and clears the list. */
struct raft_actions {
    struct raft_action *list;
    size_t count;
    size_t capacity;
    struct raft_entry *entries; /* what the SEND actions point into */
    size_t entry_count;
    size_t entry_capacity;
    size_t step_from;   /* the first action of the current or latest step */
    const char *reason; /* why the latest step did what it did; a literal, may be null */
};

/* An empty list without memory. */
void raft_actions_init(struct raft_actions *actions);
/* Forgets the actions, keeps the memory. */
void raft_actions_clear(struct raft_actions *actions);
void raft_actions_free(struct raft_actions *actions);

/* ---- Life ---------------------------------------------------------------------------------- */

/* Bounds and times, shared by many groups; must outlive them and stay unchanged. An entry counts
 * as its payload and sizeof(struct raft_entry) bytes. */
struct raft_limits {
    uint32_t election_ticks;    /* a timeout is drawn from [election_ticks, 2 * election_ticks) */
    uint32_t heartbeat_ticks;   /* well below election_ticks */
    uint32_t hibernate_ticks;   /* idle ticks before a leader puts its group to rest; 0 = never */
    uint32_t message_entries;   /* most entries in one APPEND */
    uint32_t message_bytes;     /* most bytes in one APPEND, except for its first entry */
    uint32_t inflight_entries;  /* most entries sent to a peer and not yet answered */
    uint32_t inflight_bytes;    /* most bytes likewise, except for one message */
    uint32_t uncommitted_bytes; /* PROPOSE gives RAFT_FULL above; one proposal always fits */
    uint32_t reads;             /* READ gives RAFT_FULL above */
    bool eager_commit;          /* tell idle peers at once what is committed, not with the next
                                 * heartbeat: one message more per commit, for the metadata log */
};

/* Sensible values for ticks of about 100 ms. */
extern const struct raft_limits raft_limits_default;

/* What a group starts from. Everything is copied, except `limits`. */
struct raft_config {
    int32_t id;                       /* this node */
    uint64_t seed;                    /* of the election timeouts: differs per node and group */
    const struct raft_limits *limits; /* null = raft_limits_default */
    uint64_t term;                    /* hard state, zero for a new group */
    int32_t voted_for;                /* hard state, RAFT_NO_NODE for a new group */
    uint64_t start_index;             /* applied and durable outside the journal up to here */
    uint64_t start_term;              /* the term of that entry; 0 for index 0 */
    const struct raft_member *members; /* as of start_index (from the checkpoint or the creation) */
    size_t member_count;
    uint64_t members_index; /* of the entry that made them; 0 = given at creation */
    bool withdrawn;         /* as after WITHDRAW */
};

/* A new group at rest: it takes the raft_restore_*() calls, then START. */
struct raft *raft_create(const struct raft_config *config);

/* Releases everything, including the references on entries. Null is allowed. */
void raft_free(struct raft *raft);

/* Replays an entry found in the journal, in journal order; takes its own reference on the payload.
 * Entries up to start_index are skipped; one at or below the last index replaces it and what
 * follows. STATUS_CORRUPT when it leaves a gap, goes back in terms or is not a valid entry. */
MUST_USE enum status raft_restore_entry(struct raft *raft, const struct raft_entry *entry);

/* Replays a truncation found in the journal: entries at and above `index` are void. */
void raft_restore_truncate(struct raft *raft, uint64_t index);

/* Replays a vote found in the journal; later ones win, lower terms are ignored. */
void raft_restore_vote(struct raft *raft, uint64_t term, int32_t voted_for);

/* Handles one event and adds the actions that follow from it. */
enum raft_result raft_step(struct raft *raft, const struct raft_event *event,
                           struct raft_actions *actions);

/* Drops entries up to `index` from the window, at most up to what is committed and durable here;
 * they are in the state machine. Peers that still need them get SNAPSHOT_NEEDED. Returns the index
 * up to which the window is released now. */
uint64_t raft_release(struct raft *raft, uint64_t index);

/* ---- Looking in ---------------------------------------------------------------------------- */

/* This node, its role, and the current term. */
int32_t raft_id(const struct raft *raft);
/* Leader, follower or one who asks to lead; a learner is a follower. */
enum raft_role raft_role(const struct raft *raft);
/* Grows for ever; 0 before the first election. */
uint64_t raft_term(const struct raft *raft);
/* The node believed to lead the current term, or RAFT_NO_NODE. */
int32_t raft_leader(const struct raft *raft);
int32_t raft_voted_for(const struct raft *raft);
/* Whether term and vote are durable as they are now. */
bool raft_is_saved(const struct raft *raft);
uint64_t raft_commit_index(const struct raft *raft);
uint64_t raft_last_index(const struct raft *raft);
uint64_t raft_last_term(const struct raft *raft);
/* Entries up to here were released (or came with a snapshot); the window begins behind. */
uint64_t raft_start_index(const struct raft *raft);
uint64_t raft_start_term(const struct raft *raft);
/* Entries up to here are durable on this node. */
uint64_t raft_durable_index(const struct raft *raft);
/* An entry of the window; start_index < index <= last_index. */
const struct raft_entry *raft_entry_at(const struct raft *raft, uint64_t index);
/* The bytes of the window's entries behind `after`, as the limits count them. */
uint64_t raft_bytes_behind(const struct raft *raft, uint64_t after);
/* The bytes of their payloads alone. */
uint64_t raft_payload_bytes_behind(const struct raft *raft, uint64_t after);
/* The members in force (the latest configuration, committed or not); borrowed until the next
 * step. */
const struct raft_member *raft_members(const struct raft *raft, size_t *count);
/* The index of the entry that made them. */
uint64_t raft_members_index(const struct raft *raft);
/* Whether TICK events would do anything: false at rest and for a group with a single voter. */
bool raft_needs_ticks(const struct raft *raft);
/* Whether an election is due that an event with `hold` put off. It waits for CAMPAIGN, or for a
 * TICK without `hold`; meanwhile the node votes and follows like any other. */
bool raft_awaits_election(const struct raft *raft);
/* Memory that the group holds, without payloads. */
size_t raft_memory_bytes(const struct raft *raft);

enum raft_peer_state {
    RAFT_PEER_PROBE = 0, /* looking for the last equal entry, one message at a time */
    RAFT_PEER_REPLICATE, /* pipelined */
    RAFT_PEER_SNAPSHOT,  /* below the window; waits for SNAPSHOT_DONE */
};

struct raft_peer_info {
    int32_t id;
    uint8_t flags; /* enum raft_member_flag */
    enum raft_peer_state state;
    bool recently_active; /* heard within the last one or two election timeouts */
    bool withdrawn;       /* by its latest answer, or it has given none */
    uint64_t match_index; /* durable and equal up to here */
    uint64_t next_index;
};

/* On the leader: how far a peer is; false when it is not the leader or knows no such peer. */
bool raft_peer_info(const struct raft *raft, int32_t node, struct raft_peer_info *info);

/* ---- Narration ----------------------------------------------------------------------------- */

/* One line (no newline) saying what an action, an event or a group's state is, as the test scripts
 * and traces show it; writes at most `size` bytes with the final zero and returns the length. */
size_t raft_action_text(const struct raft_action *action, char *text, size_t size);
size_t raft_event_text(const struct raft_event *event, char *text, size_t size);
size_t raft_state_text(const struct raft *raft, char *text, size_t size);

#endif
