/* The machine's own state and the steps that its files share: rebalance.c moves groups, the request
 * files answer, outcomes.c does what is due when a batch was committed or failed. */
#ifndef OTTLA_BROKER_COORDINATOR_MACHINE_H
#define OTTLA_BROKER_COORDINATOR_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "broker/coordinator/batches.h"
#include "broker/coordinator/consumer_group.h"
#include "broker/coordinator/coordinator.h"
#include "broker/coordinator/offset_store.h"
#include "broker/coordinator/timers.h"

struct coordinator {
    struct coordinator_config config;
    struct coordinator_host host;
    struct offset_store store;        /* the durable layer */
    struct consumer_group *groups;    /* the live layer, hash by id; empty when not active */
    struct coordinator_timers timers;
    struct coordinator_timer retention;
    struct list batches;              /* emitted, in order, fate unknown */
    uint64_t batch_id;                /* of the batch emitted last */
    int64_t now_ms;                   /* of the event in work; never goes back */
    uint64_t rebalances;
    uint64_t expired_offsets;
    bool active;
    bool in_host;                     /* the host is being called: no event may come in */
};

/* One request in work. */
struct request_context {
    struct coordinator *coordinator;
    const struct coordinator_context *context;
    enum api_key api;
};

/* live.c: the live groups */

/* The live group, or null. */
struct consumer_group *coordinator_group(const struct coordinator *coordinator, struct view id);

/* A new Empty live group. */
struct consumer_group *coordinator_group_make(struct coordinator *coordinator, struct view id);

/* Drops a live group whose answers were given: timers stop, memory goes. */
void coordinator_group_drop(struct coordinator *coordinator, struct consumer_group *group);

/* Drops an Empty group that nothing speaks for: no record, no pending member, no open batch. */
void coordinator_group_drop_if_void(struct coordinator *coordinator, struct consumer_group *group);

/* Makes the live group from the durable layer when there is none; null when it is not stored. */
struct consumer_group *coordinator_group_revive(struct coordinator *coordinator, struct view id);

/* Makes the live group of a stored one, with running session timers, and asks its members to
 * rejoin when there are more than allowed. */
void coordinator_group_load(struct coordinator *coordinator, const struct stored_group *stored);

/* emit.c: records out, answers out */

/* Whether a batch about this group alone is on its way. */
bool coordinator_has_open_batch(const struct coordinator *coordinator, struct view group);

/* Hands the batch to the host; it is owned by the machine from now on. Returns it. */
struct batch *coordinator_emit(struct coordinator *coordinator, struct batch *batch);

/* Gives an answer to the host. */
void coordinator_answer(struct coordinator *coordinator, void *token, enum api_key api,
                        const void *response);

struct sync_group_request;

/* A batch with one GroupMetadata record of the group as it is, emitted. `assignments` of a leader's
 * SyncGroup replace the members' own, or null. */
struct batch *coordinator_emit_group(struct coordinator *coordinator, struct consumer_group *group,
                                     enum batch_kind kind,
                                     const struct sync_group_request *assignments);

/* A batch with the first, empty record of a new group, emitted. */
struct batch *coordinator_emit_new_group(struct coordinator *coordinator,
                                         const struct consumer_group *group);

/* Lets the answer of this request wait for the batch. */
void coordinator_answer_with(const struct request_context *request, struct batch *batch,
                             void *response);

/* What a client is told when an append failed: for group records, and for offsets. */
enum kafka_error coordinator_append_error(enum kafka_error error);
enum kafka_error coordinator_commit_error(enum kafka_error error);

/* rebalance.c: steps of a group; where a record had to be written they return its batch, else
 * null. */

/* Starts a rebalance when the state allows it, else completes the join phase if all are there. */
struct batch *coordinator_rebalance(struct coordinator *coordinator, struct consumer_group *group,
                                    const char *reason);

/* Starts a rebalance; the state must allow it. */
struct batch *coordinator_prepare(struct coordinator *coordinator, struct consumer_group *group,
                                  const char *reason);

/* Completes the join phase if all members joined and the initial delay does not run. */
struct batch *coordinator_maybe_complete_join(struct coordinator *coordinator,
                                              struct consumer_group *group);

/* What follows a member's removal: a rebalance, or the end of a join phase. */
struct batch *coordinator_after_removal(struct coordinator *coordinator,
                                        struct consumer_group *group, const char *reason);

/* Restarts the member's session timer. */
void coordinator_touch_member(struct coordinator *coordinator, struct consumer_member *member);

/* The first JoinGroup answer of a new member may take this long; its owner cannot heartbeat. */
void coordinator_touch_new_member(struct coordinator *coordinator, struct consumer_member *member);

/* Answers whatever the member waits for with UNKNOWN_MEMBER_ID, stops its timer, removes it. */
void coordinator_remove_member(struct coordinator *coordinator, struct consumer_member *member);

/* Stops the timer of a pending member and forgets it. */
void coordinator_remove_pending(struct coordinator *coordinator, struct pending_member *pending);

/* Stops the sync timer: no member's SyncGroup is awaited any more. */
void coordinator_stop_sync(struct coordinator *coordinator, struct consumer_group *group);

/* Notes that the member has synced. */
void coordinator_member_synced(struct coordinator *coordinator, struct consumer_member *member);

/* Answers all waiting SyncGroups: with the members' assignments, or with an error, which also
 * empties the assignments. */
void coordinator_give_assignments(struct coordinator *coordinator, struct consumer_group *group,
                                  enum kafka_error error);

/* The timers' ends. */
void coordinator_session_expired(struct coordinator *coordinator, struct consumer_member *member);
void coordinator_pending_expired(struct coordinator *coordinator, struct pending_member *pending);
void coordinator_initial_delay_over(struct coordinator *coordinator, struct consumer_group *group);
void coordinator_rebalance_timed_out(struct coordinator *coordinator, struct consumer_group *group);
void coordinator_sync_timed_out(struct coordinator *coordinator, struct consumer_group *group);

/* parked.c: requests that wait in members */

/* Lets the member's JoinGroup or SyncGroup wait; an older one of the same member is answered with
 * REBALANCE_IN_PROGRESS, since nobody but a retry would have sent another. */
void coordinator_park_join(struct coordinator *coordinator, struct consumer_member *member,
                           const struct coordinator_context *context);
void coordinator_park_sync(struct coordinator *coordinator, struct consumer_member *member,
                           const struct coordinator_context *context);

/* Answers the member's waiting JoinGroup; nothing when none waits. */
void coordinator_fail_join(struct coordinator *coordinator, struct consumer_member *member,
                           struct view member_id, enum kafka_error error);
void coordinator_finish_join(struct coordinator *coordinator, struct consumer_member *member);

/* Like finish_join for a static member that came back to a stable group: who leads it is told to go
 * on with the assignment there is (KIP-814), older clients are told of the leader before. */
void coordinator_finish_static_join(struct coordinator *coordinator, struct consumer_member *member,
                                    struct view old_leader);

/* Answers the member's waiting SyncGroup; nothing when none waits. */
void coordinator_finish_sync(struct coordinator *coordinator, struct consumer_member *member,
                             enum kafka_error error);

/* Answers a JoinGroup or SyncGroup that does not wait. */
void coordinator_answer_join_error(struct coordinator *coordinator, const struct parked_answer *to,
                                   struct view member_id, enum kafka_error error);
void coordinator_answer_join(struct coordinator *coordinator, const struct parked_answer *to,
                             const struct consumer_member *member);
void coordinator_answer_sync_error(struct coordinator *coordinator, const struct parked_answer *to,
                                   enum kafka_error error);
void coordinator_answer_sync(struct coordinator *coordinator, const struct parked_answer *to,
                             const struct consumer_member *member);

/* The request as something to answer. */
struct parked_answer coordinator_parked(const struct coordinator_context *context);

/* outcomes.c */
void coordinator_batch_committed(struct coordinator *coordinator, struct batch *batch);
void coordinator_batch_failed(struct coordinator *coordinator, struct batch *batch,
                              enum kafka_error error);

/* The machine resigns: the answer that waits for the batch is given with NOT_COORDINATOR. */
void coordinator_refuse_batch(struct coordinator *coordinator, struct batch *batch);

/* retention.c */
void coordinator_expire(struct coordinator *coordinator);

/* Writes tombstones for the offsets of a topic that is gone. */
void coordinator_drop_topic(struct coordinator *coordinator, struct view name, struct uuid id);

/* Adds tombstones for everything the group has, offsets on their way included. */
void coordinator_put_group_tombstones(const struct coordinator *coordinator, struct batch *batch,
                                      struct view group);

/* The request handlers. */
void coordinator_handle_join(const struct request_context *request, const void *message);
void coordinator_handle_sync(const struct request_context *request, const void *message);
void coordinator_handle_heartbeat(const struct request_context *request, const void *message);
void coordinator_handle_leave(const struct request_context *request, const void *message);
void coordinator_handle_commit(const struct request_context *request, const void *message);
void coordinator_handle_txn_commit(const struct request_context *request, const void *message);
void coordinator_handle_fetch(const struct request_context *request, const void *message);
void coordinator_handle_delete_offsets(const struct request_context *request, const void *message);
void coordinator_handle_list(const struct request_context *request, const void *message);
void coordinator_handle_describe(const struct request_context *request, const void *message);
void coordinator_handle_delete_groups(const struct request_context *request, const void *message);

#endif
