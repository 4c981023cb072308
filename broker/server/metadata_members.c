/* Members of the metadata group and links to those that are no voters. A change of members that
 * Raft refuses (another one is under way) is asked for again at the next tick. */
#include "broker/server/metadata_members.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/config/listeners.h"
#include "broker/group/group_journal.h"
#include "broker/peer/peers.h"
#include "messages/errors.h"

static bool is_voter(const struct broker *broker, int32_t node)
{
    for (int i = 0; i < broker->voter_count; i++) {
        if (broker->voters[i].node_id == node) {
            return true;
        }
    }
    return false;
}

struct raft_member *metadata_members_at_start(const struct broker *broker, size_t *count)
{
    *count = 0;
    if (!broker->in_cluster) {
        return NULL;
    }
    struct raft_member *members = memory_new_zero((size_t)broker->voter_count, sizeof *members);
    for (int i = 0; i < broker->voter_count; i++) {
        members[(*count)++] =
            (struct raft_member){.id = broker->voters[i].node_id, .flags = RAFT_VOTER};
    }
    assert(*count > 0);
    return members;
}

static bool is_member(const struct raft_member *members, size_t count, struct raft_member wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].id == wanted.id && members[i].flags == wanted.flags) {
            return true;
        }
    }
    return false;
}

void metadata_members_update(struct metadata_log *log)
{
    const struct broker *broker = log->broker;
    bool leads = log->group != NULL && log->ready && group_error(log->group) == KAFKA_NONE;
    if (!leads || !broker->in_cluster) {
        return;
    }
    size_t now_count;
    const struct raft_member *now = raft_members(log->group->raft, &now_count);
    size_t most = (size_t)(broker->voter_count + image_broker_count(log->image));
    struct raft_member *wanted = memory_new_zero(most, sizeof *wanted);
    size_t count = 0;
    bool is_same = true;
    for (int i = 0; i < broker->voter_count; i++) {
        wanted[count++] = (struct raft_member){broker->voters[i].node_id, RAFT_VOTER};
    }
    for (int i = 0; i < image_broker_count(log->image); i++) {
        int32_t id = image_broker(log->image, i)->broker_id;
        if (!is_voter(broker, id)) {
            wanted[count++] = (struct raft_member){id, RAFT_LEARNER};
        }
    }
    for (size_t i = 0; i < count; i++) {
        is_same &= is_member(now, now_count, wanted[i]);
    }
    if (!is_same || count != now_count) {
        group_step(log->group,
                   &(struct raft_event){.kind = RAFT_EVENT_CHANGE_MEMBERS,
                                        .change = {.members = wanted, .count = count}});
    }
    free(wanted);
}

void metadata_members_link(struct shard *shard, const struct cluster_image *before,
                           const struct cluster_image *now)
{
    const struct broker *broker = shard->broker;
    const struct listener *listener = listeners_inter_broker(&broker->listeners);
    if (!broker->in_cluster) {
        return;
    }
    for (int32_t i = 0; i < before->broker_count; i++) {
        int32_t id = before->brokers[i].id;
        if (!is_voter(broker, id) && cluster_image_find(now, id) == NULL) {
            peers_drop(shard, id);
        }
    }
    for (int32_t i = 0; i < now->broker_count; i++) {
        const struct cluster_broker *other = &now->brokers[i];
        if (is_voter(broker, other->id) || other->endpoint_count == 0) {
            continue;
        }
        const struct cluster_endpoint *endpoint =
            listener == NULL ? NULL : cluster_broker_endpoint(other, listener->name);
        endpoint = endpoint == NULL ? &other->endpoints[0] : endpoint;
        struct peer_address address = {
            .node = other->id, .host = endpoint->host, .port = endpoint->port};
        peers_put(shard, &address);
    }
}
