/* One live group of the classic protocol and its members: the data, the votes and the rules that
 * need no timer, record or answer. The machine (rebalance.c and the request files) moves it. */
#ifndef OTTLA_BROKER_COORDINATOR_CONSUMER_GROUP_H
#define OTTLA_BROKER_COORDINATOR_CONSUMER_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/view.h"
#include "broker/coordinator/timers.h"
#include "messages/coordinator_group.h"
#include "messages/errors.h"
#include "messages/join_group.h"

enum consumer_group_state {
    GROUP_EMPTY,                /* no members; offsets may be there */
    GROUP_PREPARING_REBALANCE,  /* members are asked to join */
    GROUP_COMPLETING_REBALANCE, /* all joined; the leader's assignment is awaited */
    GROUP_STABLE,               /* assignments are stored and given out */
    GROUP_STATE_COUNT
};

/* A request that waits for its answer. */
struct parked_answer {
    bool waiting;
    int16_t version;
    void *token;
    struct arena *arena;
};

struct member_protocol {
    struct view name;     /* owned */
    struct view metadata; /* owned */
};

struct consumer_member {
    struct list_link link;             /* in consumer_group.members, by time of arrival */
    UT_hash_handle hh;                 /* by id */
    UT_hash_handle hh_instance;        /* by instance id, static members only */
    struct consumer_group *group;
    struct view id;                    /* owned */
    struct view instance_id;           /* owned; null: a dynamic member */
    struct view client_id;             /* owned */
    struct view client_host;           /* owned */
    struct view assignment;            /* owned, never null */
    struct member_protocol *protocols; /* in the member's order of preference */
    size_t protocol_count;
    int32_t session_timeout_ms;
    int32_t rebalance_timeout_ms;
    struct parked_answer join;
    struct parked_answer sync;
    struct coordinator_timer session;
    bool is_new;       /* has not got its first JoinGroup answer */
    bool sync_pending; /* has not sent the SyncGroup of this generation */
};

/* An id that was handed out (KIP-394) and not yet used. */
struct pending_member {
    UT_hash_handle hh;
    struct consumer_group *group;
    struct view id; /* owned */
    struct coordinator_timer session;
};

struct protocol_support;
struct subscribed_topic;

struct consumer_group {
    UT_hash_handle hh;
    struct view id;                     /* owned */
    enum consumer_group_state state;
    enum consumer_group_state previous; /* before `state` */
    int64_t state_timestamp_ms;         /* when `state` began; -1: unknown (old records) */
    int32_t generation;
    struct view protocol_type;          /* owned; null: none yet */
    struct view protocol_name;          /* owned; null: none chosen */
    struct consumer_member *leader;     /* null: none */
    struct list members;
    struct consumer_member *by_id;
    struct consumer_member *by_instance;
    struct pending_member *pending;     /* hash by id */
    struct protocol_support *support;   /* hash: protocol name -> members that list it */
    size_t member_count;
    size_t joining_count;               /* members whose JoinGroup waits */
    size_t sync_pending_count;          /* members with sync_pending */
    struct subscribed_topic *subscribed; /* hash by name; see subscribed_known */
    bool subscribed_known;              /* false: the subscriptions cannot be read */
    bool new_member_added;              /* during the initial delay */
    bool unsaved;                       /* the last record about it failed */
    int64_t initial_delay_ms;           /* of the running initial delay */
    int64_t initial_remaining_ms;
    struct coordinator_timer join;      /* TIMER_INITIAL_DELAY or TIMER_REBALANCE */
    struct coordinator_timer sync;
};

/* A new Empty group, generation 0. */
struct consumer_group *consumer_group_new(struct view id, int64_t now_ms);

/* The group that a GroupMetadata value describes: Stable with members, Empty without. */
struct consumer_group *consumer_group_load(struct view id,
                                           const struct group_metadata_value *value);

/* Releases the group with its members. No timer may run, no answer may wait. */
void consumer_group_free(struct consumer_group *group);

/* Kafka's name of the state ("PreparingRebalance"). */
const char *consumer_group_state_text(enum consumer_group_state state);

/* Moves to another state at this time; Kafka's rules must allow it. */
void consumer_group_transition(struct consumer_group *group, enum consumer_group_state to,
                               int64_t now_ms);

/* The member, or null. */
struct consumer_member *consumer_group_member(const struct consumer_group *group, struct view id);
struct consumer_member *consumer_group_static_member(const struct consumer_group *group,
                                                     struct view instance_id);
struct pending_member *consumer_group_pending(const struct consumer_group *group, struct view id);

/* KAFKA_NONE when the id names a member and, where an instance id is given, that instance is held
 * by this id; else UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID. */
enum kafka_error consumer_group_check_member(const struct consumer_group *group, struct view id,
                                             struct view instance_id);

/* What a new member is made of; copied. */
struct member_details {
    struct view id;
    struct view instance_id;
    struct view client_id;
    struct view client_host;
    struct view protocol_type;
    int32_t session_timeout_ms;
    int32_t rebalance_timeout_ms;
    const struct join_group_request_join_group_request_protocol *protocols;
    size_t protocol_count;
};

/* Adds a member; the first one gives the group its protocol type and is its leader. */
struct consumer_member *consumer_group_add(struct consumer_group *group,
                                           const struct member_details *details);

/* Unlinks and releases a member whose timer is stopped and whose answers were given. A removed
 * leader is followed by the member that is longest in the group. */
void consumer_group_remove(struct consumer_group *group, struct consumer_member *member);

/* Notes an id that was handed out. */
struct pending_member *consumer_group_add_pending(struct consumer_group *group, struct view id);

/* Releases a pending member whose timer is stopped. */
void consumer_group_remove_pending(struct consumer_group *group, struct pending_member *pending);

/* Replaces what the member supports and its timeouts. */
void consumer_group_update(struct consumer_group *group, struct consumer_member *member,
                           const struct member_details *details);

/* Gives the member another id (a static member that came back). */
void consumer_group_rename(struct consumer_group *group, struct consumer_member *member,
                           struct view id);

/* Whether a member of this type with these protocols can join: into an Empty group with anything,
 * else with the group's type and at least one protocol that all members list. */
bool consumer_group_supports(const struct consumer_group *group, struct view protocol_type,
                             const struct join_group_request_join_group_request_protocol *protocols,
                             size_t count);

/* Whether the member lists exactly these protocols with this metadata, in this order. */
bool consumer_member_matches(const struct consumer_member *member,
                             const struct join_group_request_join_group_request_protocol *protocols,
                             size_t count);

/* The metadata that the member gave for a protocol; empty when it does not list it. */
struct view consumer_member_metadata(const struct consumer_member *member, struct view protocol);

/* The protocol with the most votes; each member votes for the first of its protocols that all
 * support. The group has members. A view into the group. */
struct view consumer_group_select_protocol(const struct consumer_group *group);

/* Starts the next generation: CompletingRebalance with a chosen protocol, or Empty without
 * members. */
void consumer_group_next_generation(struct consumer_group *group, int64_t now_ms);

/* Makes sure that the leader is one of those that joined. False when nobody joined. */
bool consumer_group_elect_leader(struct consumer_group *group);

/* The longest rebalance timeout of the members, at least 0. */
int64_t consumer_group_rebalance_timeout_ms(const struct consumer_group *group);

/* Whether every member's JoinGroup waits and no handed-out id is still unused. */
bool consumer_group_all_joined(const struct consumer_group *group);

/* Whether a member is subscribed to the topic. True also for protocol type "consumer" whose
 * subscriptions cannot be read. */
bool consumer_group_is_subscribed(const struct consumer_group *group, struct view topic);

/* Whether the protocol type is "consumer". */
bool consumer_group_is_consumer(const struct consumer_group *group);

/* Sets or clears member->sync_pending and keeps the count. */
void consumer_group_set_sync_pending(struct consumer_group *group, struct consumer_member *member,
                                     bool pending);

/* A copy of what the member supports, owned by the caller; and the release of such a list. */
void consumer_member_copy_protocols(const struct consumer_member *member,
                                    struct member_protocol **protocols, size_t *count);
void consumer_protocols_free(struct member_protocol *protocols, size_t count);

/* Gives the member a copy of such a list back. */
void consumer_group_restore_protocols(struct consumer_group *group, struct consumer_member *member,
                                      const struct member_protocol *protocols, size_t count);

/* Empties every member's assignment. */
void consumer_group_clear_assignments(struct consumer_group *group);

/* The members in order of arrival: the first, and the one after; null at the end. */
struct consumer_member *consumer_group_first(const struct consumer_group *group);
struct consumer_member *consumer_group_next(const struct consumer_group *group,
                                            const struct consumer_member *member);

#endif
