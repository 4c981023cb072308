/* Two lists in order of index: one waits for the commit, the other for the own disk. Who is told
 * may propose again: one leaves the list before being told. */
#include "broker/group/proposals.h"

#include <assert.h>

#include "base/planted.h"
#include "broker/group/group_members.h"
#include "raft/raft.h"

void proposals_init(struct group *group)
{
    list_init(&group->proposals);
    list_init(&group->durable_waits);
    group->deadline_ms = UINT64_MAX;
}

void proposals_add(struct group *group, struct proposal *proposal, uint64_t index)
{
    assert(index > group->applied_index && proposal->done != NULL);
    bool replicated = group_is_replicated(group);
    if (planted(PLANT_ACK_BEFORE_COMMIT)) {
        proposal->when_durable = true;
    }
    proposal->index = index;
    proposal->term = raft_term(group->raft);
    list_push_back(replicated && proposal->when_durable ? &group->durable_waits
                                                        : &group->proposals,
                   &proposal->link);
    if (replicated && proposal->deadline_ms != 0 && proposal->deadline_ms < group->deadline_ms) {
        group->deadline_ms = proposal->deadline_ms;
    }
}

static void complete(struct list *proposals, uint64_t index)
{
    struct list_link *link;
    while ((link = list_first(proposals)) != NULL) {
        struct proposal *proposal = container_of(link, struct proposal, link);
        if (proposal->index > index) {
            break;
        }
        list_remove(link);
        proposal->done(proposal, STATUS_OK);
    }
}

void proposals_complete(struct group *group)
{
    if (!list_is_empty(&group->durable_waits)) {
        uint64_t durable = raft_durable_index(group->raft);
        complete(&group->durable_waits,
                 durable > group->applied_index ? durable : group->applied_index);
    }
    complete(&group->proposals, group->applied_index);
}

static void take_expired(struct group *group, struct list *from, uint64_t now_ms,
                         struct list *expired)
{
    struct list_link *link = list_first(from);
    while (link != NULL) {
        struct list_link *next = list_next(from, link);
        const struct proposal *proposal = container_of(link, struct proposal, link);
        if (proposal->deadline_ms == 0) {
            link = next;
            continue;
        }
        if (proposal->deadline_ms <= now_ms) {
            list_remove(link);
            list_push_back(expired, link);
        } else if (proposal->deadline_ms < group->deadline_ms) {
            group->deadline_ms = proposal->deadline_ms;
        }
        link = next;
    }
}

static void end_all(struct list *proposals, enum status status)
{
    struct list_link *link;
    while ((link = list_pop_front(proposals)) != NULL) {
        struct proposal *proposal = container_of(link, struct proposal, link);
        proposal->done(proposal, status);
    }
}

void proposals_expire(struct group *group, uint64_t now_ms)
{
    struct list expired;
    if (now_ms < group->deadline_ms) {
        return;
    }
    list_init(&expired);
    group->deadline_ms = UINT64_MAX;
    take_expired(group, &group->proposals, now_ms, &expired);
    take_expired(group, &group->durable_waits, now_ms, &expired);
    end_all(&expired, STATUS_TIMEOUT);
}

void proposals_fail(struct group *group, enum status status)
{
    assert(status != STATUS_OK);
    group->deadline_ms = UINT64_MAX;
    end_all(&group->durable_waits, status);
    end_all(&group->proposals, status);
}
