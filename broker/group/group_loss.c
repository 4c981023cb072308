/* Happy path: nothing is lost and nothing here does anything. Else the group is marked at its
 * opening, the first contact sets the goal, and applying reaches it. Nobody comes to be a leader
 * when a majority has lost its part; the log says what is waited for. */
#include "broker/group/group_loss.h"

#include <assert.h>
#include <inttypes.h>

#include "base/log.h"
#include "broker/group/group_journal.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"

static uint32_t count_voters(const struct group *group)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->member_count; i++) {
        count += (group->members[i].flags & RAFT_VOTER) != 0;
    }
    assert(count <= group->member_count);
    return count;
}

/* A directory stays incomplete across crashes until all of its groups have caught up; a journal
 * alone that was removed shows by holding nothing. */
static bool has_lost(const struct broker *broker)
{
    return log_dir_is_incomplete(broker->log_dir) || broker->boot.groups == NULL;
}

void group_loss_begin(struct group *group, const struct group_start *start)
{
    struct broker *broker = group->shard->broker;
    uint32_t voters = count_voters(group);
    assert(!group->catching_up);
    group->catching_up = start->existed && voters > 1 && voters % 2 == 1 && has_lost(broker);
    group->catch_up_to = UINT64_MAX;
    if (!group->catching_up) {
        return;
    }
    atomic_fetch_add(&broker->groups_catching_up, 1);
    if (group->topic != NULL && replicas_may_log(group->shard->replicas, REPLICAS_LOG_LOSS)) {
        log_warn("group", "nothing is left here of group %" PRIu64 " and perhaps others; this node "
                 "votes in each again when it has caught up", group->id);
    }
}

void group_loss_contact(struct group *group, const struct raft_message *message)
{
    bool wants = group->catching_up || group->topic == NULL;
    if (wants && message->kind == RAFT_APPEND && group->catch_up_to == UINT64_MAX &&
        message->term >= raft_term(group->raft)) {
        group->catch_up_to = message->index + message->entry_count;
    }
}

static void leave(struct group *group)
{
    int before = atomic_fetch_sub(&group->shard->broker->groups_catching_up, 1);
    assert(group->catching_up && before > 0);
    (void)before;
    group->catching_up = false;
}

bool group_loss_is_over(struct group *group)
{
    if (!group->catching_up || group->applied_index < group->catch_up_to) {
        return false;
    }
    leave(group);
    log_debug("group", "group %" PRIu64 " has caught up", group->id);
    return true;
}

void group_loss_none(struct group *group)
{
    leave(group);
    group_step(group, &(struct raft_event){.kind = RAFT_EVENT_REJOIN});
}

void group_loss_end(struct group *group)
{
    if (group->catching_up) {
        leave(group);
    }
}
