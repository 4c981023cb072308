/* What the other nodes and time bring to a shard's groups: Raft messages, lost nodes, ticks.
 *
 * A message for a group that is not here waits a while: the group may be about to be opened. One
 * that breaks the rules is dropped by Raft, and said so in the log about once a second. */
#include <assert.h>
#include <inttypes.h>

#include "base/log.h"
#include "broker/group/elections.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_loss.h"
#include "broker/group/group_members.h"
#include "broker/group/group_move.h"
#include "broker/group/group_role.h"
#include "broker/group/in_sync.h"
#include "broker/group/proposals.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "io/clock.h"

enum { LOG_EVERY_MS = 1000, STALLED_MS = 1500, GONE_EVERY_MS = 1000 };

void replicas_raft_message(struct replicas *replicas, uint64_t group_id,
                           const struct raft_message *message)
{
    struct group *group = replicas_group(replicas, group_id);
    if (group == NULL) {
        early_add(&replicas->early, group_id, message, clock_monotonic_ms());
        return;
    }
    assert(group->raft != NULL && !group->closed);
    if (!group_loss_lets_pass(group, message)) {
        return;
    }
    struct raft_message answer;
    if (group_move_is_unknown(group, message)) {
        answer = *message;
        answer.withdrawn = true;
        message = &answer;
    }
    group_step(group, &(struct raft_event){.kind = RAFT_EVENT_MESSAGE, .message = message});
}

bool replicas_may_log(struct replicas *replicas, enum replicas_log what)
{
    uint64_t now_ms = clock_monotonic_ms();
    assert(what < REPLICAS_LOGS);
    if (now_ms < replicas->next_log_ms[what]) {
        return false;
    }
    replicas->next_log_ms[what] = now_ms + LOG_EVERY_MS;
    return true;
}

void replicas_log_invalid(struct replicas *replicas, const struct group *group,
                          const struct raft_message *message, const char *reason)
{
    if (!replicas_may_log(replicas, REPLICAS_LOG_INVALID)) {
        return;
    }
    log_warn("group", "group %" PRIu64 ": a message of kind %d from node %d in term %" PRIu64
             " was dropped: %s", group->id, message->kind, message->from, message->term,
             reason != NULL ? reason : "it breaks the rules");
}

void replicas_peer_lost(struct replicas *replicas, int32_t node)
{
    for (struct group *group = replicas->groups; group != NULL; group = group->by_id.next) {
        if (group_has_member(group, node)) {
            group_step(group, &(struct raft_event){.kind = RAFT_EVENT_PEER_LOST,
                                                   .hold = elections_hold(group),
                                                   .node = node});
            in_sync_lost(group, node);
        }
    }
}

void replicas_peer_back(struct replicas *replicas, int32_t node)
{
    struct raft_event event = {.kind = RAFT_EVENT_PEER_BACK, .node = node};
    for (struct group *group = replicas->groups; group != NULL; group = group->by_id.next) {
        if (group_has_member(group, node)) {
            group_step(group, &event);
        }
    }
}

void replicas_each_led(struct replicas *replicas,
                       void (*each)(void *context, uint64_t group_id, int32_t epoch,
                                    uint64_t lag),
                       void *context)
{
    for (struct group *group = replicas->groups; group != NULL; group = group->by_id.next) {
        if (group->leads) {
            each(context, group->id, (int32_t)raft_term(group->raft), in_sync_lag(group));
        }
    }
}

/* A leader whose disk stands still holds up everybody although the others could go on. */
static void check_disk(struct group *group, uint64_t now_ms)
{
    uint64_t oldest_ms = group_journal_oldest_ms(group);
    if (!group->leads || oldest_ms >= now_ms || now_ms - oldest_ms < STALLED_MS) {
        return;
    }
    struct raft_event transfer = {.kind = RAFT_EVENT_TRANSFER, .node = RAFT_NO_NODE};
    if (replicas_may_log(group->shard->replicas, REPLICAS_LOG_STALL)) {
        log_warn("group", "a write takes longer than %d ms; other replicas shall lead group %"
                 PRIu64 " and whatever else waits", STALLED_MS, group->id);
    }
    group_step(group, &transfer);
}

void replicas_hand_over(struct replicas *replicas)
{
    struct raft_event transfer = {.kind = RAFT_EVENT_TRANSFER, .node = RAFT_NO_NODE};
    for (struct group *group = replicas->groups; group != NULL; group = group->by_id.next) {
        if (raft_role(group->raft) == RAFT_LEADER && group_is_replicated(group)) {
            group_step(group, &transfer);
        }
    }
}

static bool has_heir(const struct group *group)
{
    size_t count;
    const struct broker *broker = group->shard->broker;
    const struct raft_member *members = raft_members(group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        if (members[i].id != broker->node_id && (members[i].flags & RAFT_VOTER) != 0 &&
            peers_is_alive(broker, members[i].id)) {
            return true;
        }
    }
    return false;
}

bool replicas_may_hand_over(const struct replicas *replicas)
{
    const struct group *group = replicas->groups;
    while (group != NULL && (raft_role(group->raft) != RAFT_LEADER || !has_heir(group))) {
        group = group->by_id.next;
    }
    return group != NULL;
}

void replicas_keep_time(struct replicas *replicas)
{
    shard_keep_time(replicas->shard,
                    !list_is_empty(&replicas->ticking) || !list_is_empty(&replicas->moving));
}

static void tick_group(struct group *group, uint64_t now_ms)
{
    if (group->starting && now_ms >= group->start_deadline_ms) {
        if (replicas_may_log(group->shard->replicas, REPLICAS_LOG_START)) {
            log_warn("group", "group %" PRIu64 " and perhaps others have no leader yet: too few of "
                     "their replicas answer", group->id);
        }
        group_started(group);
    }
    proposals_expire(group, now_ms);
    check_disk(group, now_ms);
    group_step(group, &(struct raft_event){.kind = RAFT_EVENT_TICK, .hold = elections_hold(group)});
    in_sync_tick(group, now_ms);
}

/* Of the groups that do not rest, those that this node leads need not wait for nodes that are dead
 * for a while. */
static void tell_gone(struct replicas *replicas, uint64_t now_ms)
{
    int32_t nodes[LIVENESS_NODES];
    if (now_ms < replicas->next_gone_ms) {
        return;
    }
    replicas->next_gone_ms = now_ms + GONE_EVERY_MS;
    int count = liveness_gone(&replicas->shard->broker->liveness, now_ms, nodes);
    for (struct list_link *at = list_first(&replicas->ticking); at != NULL && count > 0;
         at = list_next(&replicas->ticking, at)) {
        struct group *group = container_of(at, struct group, ticking);
        for (int i = 0; i < count && group->leads; i++) {
            if (group_has_member(group, nodes[i])) {
                struct raft_event gone = {.kind = RAFT_EVENT_PEER_GONE, .node = nodes[i]};
                group_step(group, &gone);
            }
        }
    }
}

void replicas_raft_tick(struct replicas *replicas, uint64_t now_ms)
{
    struct list due;
    struct list_link *link;
    tell_gone(replicas, now_ms);
    early_tick(&replicas->early, now_ms);
    list_init(&due);
    while ((link = list_pop_front(&replicas->ticking)) != NULL) {
        list_push_back(&due, link);
    }
    /* A tick may put its group, or another one, to rest: then it is off the list. */
    assert(list_is_empty(&replicas->ticking));
    while ((link = list_pop_front(&due)) != NULL) {
        list_push_back(&replicas->ticking, link);
        tick_group(container_of(link, struct group, ticking), now_ms);
    }
    group_moves_tick(replicas);
    replicas_keep_time(replicas);
}
