/* A count and a list. Who waits may have voted for another or found a leader meanwhile; that shows
 * when its turn comes. Nothing can fail. */
#include "broker/group/elections.h"

#include <assert.h>

#include "base/planted.h"
#include "broker/group/group_journal.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"

static struct elections *elections_of(const struct group *group)
{
    return &group->shard->replicas->elections;
}

/* Whether a majority of the voters is there. */
static bool may_win(const struct group *group)
{
    size_t count;
    int voters = 0;
    int there = 0;
    const struct raft_member *members = raft_members(group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        if ((members[i].flags & RAFT_VOTER) != 0) {
            voters++;
            there += peers_is_alive(group->shard->broker, members[i].id) ? 1 : 0;
        }
    }
    return there > voters / 2;
}

static void begin(struct shard_task *task)
{
    struct elections *elections = container_of(task, struct elections, begin);
    struct list_link *link;
    while (elections->running < elections->most &&
           (link = list_pop_front(&elections->waiting)) != NULL) {
        struct group *group = container_of(link, struct group, election);
        if (raft_awaits_election(group->raft)) {
            group_step(group, &(struct raft_event){.kind = RAFT_EVENT_CAMPAIGN});
        }
    }
}

void elections_init(struct elections *elections, int most)
{
    assert(most > 0);
    *elections = (struct elections){.begin.run = begin, .most = most};
    list_init(&elections->waiting);
}

void elections_end(struct elections *elections)
{
    assert(list_is_empty(&elections->waiting));
    if (list_contains(&elections->begin.link)) {
        list_remove(&elections->begin.link);
    }
}

bool elections_hold(const struct group *group)
{
    const struct elections *elections = elections_of(group);
    bool is_full = elections->running >= elections->most || !list_is_empty(&elections->waiting);
    return is_full && group->topic != NULL && raft_role(group->raft) != RAFT_LEADER &&
           may_win(group);
}

static void look(struct elections *elections, struct shard *shard)
{
    if (elections->running < elections->most && !list_is_empty(&elections->waiting)) {
        shard_defer(shard, &elections->begin);
    }
}

static void end(struct group *group)
{
    struct elections *elections = elections_of(group);
    group->is_electing = false;
    if (group->counts_election && !planted(PLANT_ELECTION_NOT_ENDED)) {
        assert(elections->running > 0);
        elections->running--;
    }
}

void elections_stepped(struct group *group)
{
    struct elections *elections = elections_of(group);
    enum raft_role role = raft_role(group->raft);
    bool is_electing = role == RAFT_PRE_CANDIDATE || role == RAFT_CANDIDATE;
    if (group->closed) {
        return;
    }
    if (is_electing && !group->is_electing) {
        group->is_electing = true;
        group->counts_election = may_win(group);
        elections->running += group->counts_election ? 1 : 0;
    } else if (!is_electing && group->is_electing) {
        end(group);
        look(elections, group->shard);
    }
    if (role == RAFT_FOLLOWER && raft_awaits_election(group->raft) &&
        !list_contains(&group->election)) {
        list_push_back(&elections->waiting, &group->election);
        look(elections, group->shard);
    }
}

void elections_leave(struct group *group)
{
    if (list_contains(&group->election)) {
        list_remove(&group->election);
    }
    if (group->is_electing) {
        end(group);
        look(elections_of(group), group->shard);
    }
}
