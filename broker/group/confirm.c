/* Rounds: reads in the sense of Raft (§6.4), one at a time in a group, each for everything that was
 * asked before it began. What is asked meanwhile waits for the next one, as the answers of this one
 * may be older than the question. A round fails when leadership is lost. */
#include "broker/group/confirm.h"

#include <assert.h>

#include "broker/group/group_journal.h"
#include "broker/group/group_members.h"
#include "raft/raft.h"

static void end(struct confirm *confirm, bool leads)
{
    list_remove(&confirm->link);
    confirm->done(confirm, leads);
}

/* The oldest one of a round that is not answered. */
static struct confirm *first_waiting(const struct group *group, uint64_t round)
{
    for (struct list_link *at = list_first(&group->confirms); at != NULL;
         at = list_next(&group->confirms, at)) {
        struct confirm *confirm = container_of(at, struct confirm, link);
        if (confirm->round == round && !confirm->is_answered) {
            return confirm;
        }
    }
    return NULL;
}

static bool is_under_way(const struct group *group)
{
    return group->confirm_round > group->confirm_ended;
}

static void begin_round(struct group *group)
{
    const struct raft_event event = {.kind = RAFT_EVENT_READ,
                                     .read = {.context = ++group->confirm_round}};
    if (group_step(group, &event) != RAFT_OK) {
        confirms_failed(group, event.read.context); /* it may have ended in the step */
    }
}

/* Unless one is under way, and if somebody waits for it. */
static void begin_next(struct group *group)
{
    if (!is_under_way(group) && first_waiting(group, group->confirm_round + 1) != NULL) {
        begin_round(group);
    }
}

void group_confirm(struct group *group, struct confirm *confirm)
{
    assert(confirm->done != NULL);
    if (!group->leads || group->closed || !group_is_replicated(group)) {
        confirm->done(confirm, group->leads && !group->closed);
        return;
    }
    confirm->round = group->confirm_round + 1;
    confirm->is_answered = false;
    list_push_back(&group->confirms, &confirm->link);
    begin_next(group);
}

void confirms_ready(struct group *group, uint64_t round, uint64_t index)
{
    struct confirm *confirm;
    if (round <= group->confirm_ended) {
        return; /* leadership was lost meanwhile */
    }
    while ((confirm = first_waiting(group, round)) != NULL) {
        confirm->is_answered = true;
        confirm->index = index;
    }
    group->confirm_ended = round;
    begin_next(group);
    confirms_applied(group);
}

void confirms_failed(struct group *group, uint64_t round)
{
    struct confirm *confirm;
    if (round <= group->confirm_ended) {
        return;
    }
    group->confirm_ended = round;
    while ((confirm = first_waiting(group, round)) != NULL) {
        end(confirm, false); /* may ask again, which begins the next round */
    }
    begin_next(group);
}

/* The first one that is ready and whose index is applied. */
static struct confirm *next_ready(const struct group *group)
{
    for (struct list_link *at = list_first(&group->confirms); at != NULL;
         at = list_next(&group->confirms, at)) {
        struct confirm *confirm = container_of(at, struct confirm, link);
        if (confirm->is_answered && confirm->index <= group->applied_index) {
            return confirm;
        }
    }
    return NULL;
}

void confirms_applied(struct group *group)
{
    struct confirm *confirm;
    while ((confirm = next_ready(group)) != NULL) {
        end(confirm, group->leads);
    }
}

void confirms_end(struct group *group)
{
    struct list_link *at;
    group->confirm_ended = group->confirm_round;
    while ((at = list_first(&group->confirms)) != NULL) {
        end(container_of(at, struct confirm, link), false);
    }
}
