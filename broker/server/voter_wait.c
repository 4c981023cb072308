/* One look at all who wait each tick. Nothing here can fail; what does not come to be ends with the
 * deadline. Lives on shard 0. */
#include "broker/server/voter_wait.h"

#include <assert.h>

#include "broker/group/group_move.h"
#include "broker/server/metadata_state.h"
#include "messages/errors.h"

static bool is_over(const struct metadata_log *log, const struct voter_wait *wait)
{
    if (log->group == NULL || group_is_changing(log->group)) {
        return false;
    }
    bool votes = (group_member_flags(log->group, wait->node) & RAFT_VOTER) != 0;
    return votes == wait->votes;
}

static void arrived(struct shard *shard, struct mail *mail)
{
    struct metadata_wait *wait = container_of(mail, struct metadata_wait, mail);
    struct metadata_log *log = shard->broker->metadata;
    assert(shard->number == 0);
    if (log->closed) {
        metadata_wait_end(wait, KAFKA_REQUEST_TIMED_OUT);
    } else {
        list_push_back(&log->voter_waits, &wait->link);
    }
}

void voter_wait_start(struct shard *from, struct voter_wait *wait)
{
    assert(wait->wait.done != NULL && wait->node >= 0);
    wait->wait.from = from;
    wait->wait.mail.run = arrived;
    shard_post(&from->broker->shards[0], &wait->wait.mail);
}

static bool is_recorded(const struct quorum_voter *voters, int count, int32_t node)
{
    for (int i = 0; i < count; i++) {
        if (voters[i].node_id == node) {
            return true;
        }
    }
    return false;
}

int32_t voter_pending(const struct broker *broker)
{
    const struct metadata_log *log = broker->metadata;
    int count;
    size_t member_count;
    const struct quorum_voter *voters = image_voters(log->image, &count);
    if (count == 0 || log->group == NULL) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if ((group_member_flags(log->group, voters[i].node_id) & RAFT_VOTER) == 0) {
            return voters[i].node_id;
        }
    }
    const struct raft_member *members = raft_members(log->group->raft, &member_count);
    assert(member_count > 0);
    for (size_t i = 0; i < member_count; i++) {
        bool votes = (members[i].flags & (RAFT_VOTER | RAFT_OLD_VOTER)) != 0;
        if (votes && !is_recorded(voters, count, members[i].id)) {
            return members[i].id;
        }
    }
    return -1;
}

void voter_waits_tick(struct metadata_log *log, uint64_t now_ms)
{
    struct list_link *link = list_first(&log->voter_waits);
    while (link != NULL) {
        struct list_link *next = list_next(&log->voter_waits, link);
        struct metadata_wait *wait = container_of(link, struct metadata_wait, link);
        bool over = is_over(log, container_of(wait, struct voter_wait, wait));
        if (over || wait->deadline_ms <= now_ms) {
            list_remove(link);
            metadata_wait_end(wait, over ? KAFKA_NONE : KAFKA_REQUEST_TIMED_OUT);
        }
        link = next;
    }
}

void voter_waits_fail(struct metadata_log *log, int16_t error)
{
    struct list_link *link;
    assert(error != KAFKA_NONE);
    while ((link = list_pop_front(&log->voter_waits)) != NULL) {
        metadata_wait_end(container_of(link, struct metadata_wait, link), error);
    }
}
