/* Reads in the sense of Raft (§6.4), each known by a number. They fail when leadership is lost, or
 * cannot be confirmed before too many wait. */
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

static struct confirm *find(const struct group *group, uint64_t context)
{
    for (struct list_link *at = list_first(&group->confirms); at != NULL;
         at = list_next(&group->confirms, at)) {
        struct confirm *confirm = container_of(at, struct confirm, link);
        if (confirm->context == context) {
            return confirm;
        }
    }
    return NULL;
}

void group_confirm(struct group *group, struct confirm *confirm)
{
    assert(confirm->done != NULL);
    if (!group->leads || group->closed || !group_is_replicated(group)) {
        confirm->done(confirm, group->leads && !group->closed);
        return;
    }
    uint64_t context = ++group->last_confirm;
    confirm->context = context;
    confirm->is_answered = false;
    list_push_back(&group->confirms, &confirm->link);
    const struct raft_event event = {.kind = RAFT_EVENT_READ, .read = {.context = context}};
    if (group_step(group, &event) != RAFT_OK) {
        confirms_failed(group, context); /* it may have ended in the step, and be gone */
    }
}

void confirms_ready(struct group *group, uint64_t context, uint64_t index)
{
    struct confirm *confirm = find(group, context);
    assert(confirm == NULL || !confirm->is_answered);
    if (confirm != NULL) {
        confirm->is_answered = true;
        confirm->index = index;
        confirms_applied(group);
    }
}

void confirms_failed(struct group *group, uint64_t context)
{
    struct confirm *confirm = find(group, context);
    if (confirm != NULL) {
        end(confirm, false);
    }
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
    while ((at = list_first(&group->confirms)) != NULL) {
        end(container_of(at, struct confirm, link), false);
    }
}
