/* How a group moves: prepare a rebalance, collect the joins, begin the generation, collect the
 * syncs. Happy path: prepare -> all members joined -> answers -> the leader's SyncGroup. Whoever
 * does not join, sync or heartbeat in time is removed, which starts the next rebalance. Each
 * rebalance raises the generation once. */
#include <assert.h>

#include "base/log.h"
#include "broker/coordinator/machine.h"

enum {
    NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000, /* as in the reference */
    POSTPONE_MINIMUM_MS = 100 /* so that a rebalance timeout of 0 does not spin */
};

static void complete_or_wait(struct coordinator *coordinator, struct consumer_group *group,
                             struct batch **batch);

static void note(const struct consumer_group *group, const char *what, const char *reason)
{
    log_debug("coordinator", "group %.*s generation %d: %s: %s", VIEW_PRINT(group->id),
              group->generation, what, reason);
}

void coordinator_touch_member(struct coordinator *coordinator, struct consumer_member *member)
{
    coordinator_timer_start(&coordinator->timers, &member->session, TIMER_MEMBER_SESSION,
                            coordinator->now_ms + member->session_timeout_ms);
}

void coordinator_touch_new_member(struct coordinator *coordinator, struct consumer_member *member)
{
    coordinator_timer_start(&coordinator->timers, &member->session, TIMER_MEMBER_SESSION,
                            coordinator->now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS);
}

void coordinator_remove_member(struct coordinator *coordinator, struct consumer_member *member)
{
    coordinator_fail_join(coordinator, member, VIEW_EMPTY, KAFKA_UNKNOWN_MEMBER_ID);
    coordinator_finish_sync(coordinator, member, KAFKA_UNKNOWN_MEMBER_ID);
    coordinator_timer_stop(&coordinator->timers, &member->session);
    consumer_group_remove(member->group, member);
}

void coordinator_remove_pending(struct coordinator *coordinator, struct pending_member *pending)
{
    coordinator_timer_stop(&coordinator->timers, &pending->session);
    consumer_group_remove_pending(pending->group, pending);
}

void coordinator_stop_sync(struct coordinator *coordinator, struct consumer_group *group)
{
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        consumer_group_set_sync_pending(group, member, false);
    }
    assert(group->sync_pending_count == 0);
    coordinator_timer_stop(&coordinator->timers, &group->sync);
}

void coordinator_member_synced(struct coordinator *coordinator, struct consumer_member *member)
{
    consumer_group_set_sync_pending(member->group, member, false);
    if (member->group->sync_pending_count == 0) {
        coordinator_timer_stop(&coordinator->timers, &member->group->sync);
    }
}

void coordinator_give_assignments(struct coordinator *coordinator, struct consumer_group *group,
                                  enum kafka_error error)
{
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        if (member->sync.waiting) {
            coordinator_finish_sync(coordinator, member, error);
            coordinator_touch_member(coordinator, member);
        }
    }
}

/* Members that wait for the assignment of the generation that ends now have to join again. */
static void cancel_syncs(struct coordinator *coordinator, struct consumer_group *group)
{
    consumer_group_clear_assignments(group);
    coordinator_give_assignments(coordinator, group, KAFKA_REBALANCE_IN_PROGRESS);
}

static void start_initial_delay(struct coordinator *coordinator, struct consumer_group *group)
{
    assert(!coordinator_timer_runs(&group->join));
    int64_t delay_ms = coordinator->config.initial_rebalance_delay_ms;
    int64_t left_ms = consumer_group_rebalance_timeout_ms(group) - delay_ms;
    group->initial_delay_ms = delay_ms;
    group->initial_remaining_ms = left_ms > 0 ? left_ms : 0;
    group->new_member_added = false;
    coordinator_timer_start(&coordinator->timers, &group->join, TIMER_INITIAL_DELAY,
                            coordinator->now_ms + delay_ms);
}

struct batch *coordinator_prepare(struct coordinator *coordinator, struct consumer_group *group,
                                  const char *reason)
{
    assert(group->state != GROUP_PREPARING_REBALANCE);
    note(group, "rebalance", reason);
    if (group->state == GROUP_COMPLETING_REBALANCE) {
        cancel_syncs(coordinator, group);
    }
    coordinator_stop_sync(coordinator, group);
    bool is_initial = group->state == GROUP_EMPTY;
    assert(group->sync_pending_count == 0);
    consumer_group_transition(group, GROUP_PREPARING_REBALANCE, coordinator->now_ms);
    struct batch *batch = NULL;
    if (is_initial) {
        start_initial_delay(coordinator, group);
    } else {
        complete_or_wait(coordinator, group, &batch);
    }
    return batch;
}

struct batch *coordinator_rebalance(struct coordinator *coordinator, struct consumer_group *group,
                                    const char *reason)
{
    if (group->state != GROUP_PREPARING_REBALANCE) {
        return coordinator_prepare(coordinator, group, reason);
    }
    return coordinator_maybe_complete_join(coordinator, group);
}

/* Dynamic members that did not rejoin are out; static ones stay until their session ends. */
static void remove_absent(struct coordinator *coordinator, struct consumer_group *group)
{
    struct consumer_member *next;
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = next) {
        next = consumer_group_next(group, member);
        if (!member->join.waiting && member->instance_id.data == NULL) {
            coordinator_remove_member(coordinator, member);
        }
    }
}

static void answer_joins(struct coordinator *coordinator, struct consumer_group *group)
{
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        coordinator_finish_join(coordinator, member);
        coordinator_touch_member(coordinator, member);
        member->is_new = false;
        consumer_group_set_sync_pending(group, member, true);
    }
    assert(group->joining_count == 0);
    coordinator_timer_start(&coordinator->timers, &group->sync, TIMER_SYNC,
                            coordinator->now_ms + consumer_group_rebalance_timeout_ms(group));
}

/* Ends the join phase: the next generation begins with those that joined. */
static struct batch *complete_join(struct coordinator *coordinator, struct consumer_group *group)
{
    assert(group->state == GROUP_PREPARING_REBALANCE);
    coordinator_timer_stop(&coordinator->timers, &group->join);
    remove_absent(coordinator, group);
    if (!consumer_group_elect_leader(group) && group->member_count > 0) {
        /* Only static members are left and none joined: wait for them or for their sessions. */
        int64_t wait_ms = consumer_group_rebalance_timeout_ms(group);
        wait_ms = wait_ms < POSTPONE_MINIMUM_MS ? POSTPONE_MINIMUM_MS : wait_ms;
        coordinator_timer_start(&coordinator->timers, &group->join, TIMER_REBALANCE,
                                coordinator->now_ms + wait_ms);
        return NULL;
    }
    assert(group->member_count == 0 || group->leader->join.waiting);
    consumer_group_next_generation(group, coordinator->now_ms);
    coordinator->rebalances++;
    note(group, "joined", consumer_group_state_text(group->state));
    if (group->state == GROUP_EMPTY) {
        return coordinator_emit_group(coordinator, group, BATCH_EMPTY_GROUP, NULL);
    }
    answer_joins(coordinator, group);
    return NULL;
}

static void complete_or_wait(struct coordinator *coordinator, struct consumer_group *group,
                             struct batch **batch)
{
    if (consumer_group_all_joined(group)) {
        *batch = complete_join(coordinator, group);
        return;
    }
    coordinator_timer_start(&coordinator->timers, &group->join, TIMER_REBALANCE,
                            coordinator->now_ms + consumer_group_rebalance_timeout_ms(group));
}

struct batch *coordinator_maybe_complete_join(struct coordinator *coordinator,
                                              struct consumer_group *group)
{
    if (group->state != GROUP_PREPARING_REBALANCE || group->previous == GROUP_EMPTY ||
        !consumer_group_all_joined(group)) {
        return NULL;
    }
    return complete_join(coordinator, group);
}

struct batch *coordinator_after_removal(struct coordinator *coordinator,
                                        struct consumer_group *group, const char *reason)
{
    switch (group->state) {
    case GROUP_STABLE:
    case GROUP_COMPLETING_REBALANCE:
        return coordinator_prepare(coordinator, group, reason);
    case GROUP_PREPARING_REBALANCE:
        return coordinator_maybe_complete_join(coordinator, group);
    default:
        return NULL;
    }
}

/* Members whose answer is on its way need not heartbeat; they get a new session with it. A new one
 * may have gone away unnoticed, so its JoinGroup is not waited for without end. */
static bool is_excused(const struct consumer_member *member)
{
    return !member->is_new && (member->join.waiting || member->sync.waiting);
}

void coordinator_session_expired(struct coordinator *coordinator, struct consumer_member *member)
{
    struct consumer_group *group = member->group;
    if (is_excused(member)) {
        return;
    }
    coordinator_remove_member(coordinator, member);
    (void)coordinator_after_removal(coordinator, group, "a member's session expired");
}

void coordinator_pending_expired(struct coordinator *coordinator, struct pending_member *pending)
{
    struct consumer_group *group = pending->group;
    assert(consumer_group_pending(group, pending->id) == pending);
    coordinator_remove_pending(coordinator, pending);
    (void)coordinator_maybe_complete_join(coordinator, group);
    coordinator_group_drop_if_void(coordinator, group);
}

void coordinator_initial_delay_over(struct coordinator *coordinator, struct consumer_group *group)
{
    assert(group->state == GROUP_PREPARING_REBALANCE && group->previous == GROUP_EMPTY);
    if (!group->new_member_added || group->initial_remaining_ms == 0) {
        (void)complete_join(coordinator, group);
        return;
    }
    int64_t delay_ms = coordinator->config.initial_rebalance_delay_ms;
    int64_t remaining_ms = group->initial_remaining_ms;
    int64_t left_ms = remaining_ms - group->initial_delay_ms;
    group->new_member_added = false;
    group->initial_delay_ms = delay_ms < remaining_ms ? delay_ms : remaining_ms;
    group->initial_remaining_ms = left_ms > 0 ? left_ms : 0;
    coordinator_timer_start(&coordinator->timers, &group->join, TIMER_INITIAL_DELAY,
                            coordinator->now_ms + group->initial_delay_ms);
}

void coordinator_rebalance_timed_out(struct coordinator *coordinator, struct consumer_group *group)
{
    assert(group->state == GROUP_PREPARING_REBALANCE);
    (void)complete_join(coordinator, group);
}

void coordinator_sync_timed_out(struct coordinator *coordinator, struct consumer_group *group)
{
    assert(group->state == GROUP_COMPLETING_REBALANCE || group->state == GROUP_STABLE);
    assert(group->sync_pending_count > 0);
    struct consumer_member *next;
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = next) {
        next = consumer_group_next(group, member);
        if (member->sync_pending) {
            coordinator_remove_member(coordinator, member);
        }
    }
    (void)coordinator_prepare(coordinator, group, "members did not sync in time");
}
