/* Members of the metadata group and links to those that are no voters. A change of members that
 * Raft refuses (another one is under way) is asked for again at the next tick, so that members
 * follow the voters whoever leads. */
#include "broker/server/metadata_members.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/planted.h"
#include "broker/config/listeners.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_move.h"
#include "broker/peer/peers.h"
#include "broker/server/cluster.h"
#include "messages/errors.h"
#include "messages/ottla_records.h"

struct voters {
    const struct quorum_voter *items;
    int count;
};

static bool is_voter(struct voters voters, int32_t node)
{
    for (int i = 0; i < voters.count; i++) {
        if (voters.items[i].node_id == node) {
            return true;
        }
    }
    return false;
}

static struct raft_member *members_of(struct voters voters, size_t *count)
{
    struct raft_member *members = memory_new_zero((size_t)voters.count, sizeof *members);
    for (int i = 0; i < voters.count; i++) {
        members[i] =
            (struct raft_member){.id = voters.items[i].node_id, .flags = RAFT_VOTER};
    }
    *count = (size_t)voters.count;
    assert(*count > 0);
    return members;
}

struct raft_member *metadata_members_at_start(const struct broker *broker, size_t *count)
{
    *count = 0;
    return broker->in_cluster ? members_of((struct voters){broker->first_voters,
                                                           broker->first_voter_count}, count)
                              : NULL;
}

struct raft_member *metadata_members_latest(const struct broker *broker, size_t *count)
{
    *count = 0;
    return broker->changes_voters
               ? members_of((struct voters){broker->voters, broker->voter_count}, count)
               : NULL;
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

/* Those of the image, or of the configuration where the image has none. */
static struct voters voters_of(const struct metadata_log *log)
{
    struct voters voters;
    voters.items = image_voters(log->image, &voters.count);
    if (voters.count == 0) {
        voters = (struct voters){log->broker->voters, log->broker->voter_count};
    }
    return voters;
}

/* A node that is to vote learns first, until it keeps up. */
static uint8_t flags_for_voter(const struct metadata_log *log, int32_t node)
{
    size_t count;
    const struct raft_member *now = raft_members(log->group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        if (now[i].id == node && (now[i].flags & RAFT_VOTER) != 0) {
            return RAFT_VOTER;
        }
    }
    assert(log->group != NULL);
    bool waits = log->broker->changes_voters && !group_is_near(log->group, node) &&
                 !planted(PLANT_VOTER_AT_ONCE);
    return waits ? RAFT_LEARNER : RAFT_VOTER;
}

static void record_run(struct metadata_command *command, struct image *image,
                       struct record_list *records)
{
    const struct broker *broker = command->wait.from->broker;
    int known;
    image_voters(image, &known);
    for (int i = 0; i < broker->first_voter_count && known == 0; i++) {
        const struct quorum_voter *voter = &broker->first_voters[i];
        bool is_self = voter->node_id == broker->node_id;
        struct voter_record record = {.voter_id = voter->node_id,
                                      .host = voter->host,
                                      .port = voter->port};
        record.directory_id =
            is_self ? log_dir_identity(broker->log_dir)->directory_id : record.directory_id;
        record_list_add(records, &voter_record_type, 0, &record);
    }
}

static void record_done(struct metadata_command *command, int16_t error)
{
    struct metadata_log *log = command->wait.from->broker->metadata;
    (void)error; /* looked at again with the next tick */
    log->is_recording_voters = false;
}

/* The first leader of a cluster that changes its voters records the first of them: itself. */
static void record_voters(struct metadata_log *log)
{
    int known;
    image_voters(log->image, &known);
    if (known == 0 && log->broker->changes_voters && log->announced &&
        !log->is_recording_voters) {
        log->is_recording_voters = true;
        log->record_voters =
            (struct metadata_command){.run = record_run, .done = record_done};
        metadata_submit(&log->broker->shards[0], &log->record_voters);
    }
}

void metadata_members_update(struct metadata_log *log)
{
    const struct broker *broker = log->broker;
    bool leads = log->group != NULL && log->ready && group_error(log->group) == KAFKA_NONE;
    if (!leads || !broker->in_cluster) {
        return;
    }
    record_voters(log);
    size_t now_count;
    const struct raft_member *now = raft_members(log->group->raft, &now_count);
    const struct voters voters = voters_of(log);
    size_t most = (size_t)(voters.count + image_broker_count(log->image));
    struct raft_member *wanted = memory_new_zero(most, sizeof *wanted);
    size_t count = 0;
    bool is_same = true;
    for (int i = 0; i < voters.count; i++) {
        int32_t id = voters.items[i].node_id;
        wanted[count++] = (struct raft_member){id, flags_for_voter(log, id)};
    }
    for (int i = 0; i < image_broker_count(log->image); i++) {
        int32_t id = image_broker(log->image, i)->broker_id;
        if (!is_voter(voters, id)) {
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

int32_t metadata_members_needed(const struct broker *broker, int32_t node)
{
    const struct metadata_log *log = broker->metadata;
    const struct voters voters = voters_of(log);
    int32_t away = -1;
    int left = 0;
    int near = 0;
    assert(log->group != NULL);
    for (int i = 0; i < voters.count; i++) {
        int32_t id = voters.items[i].node_id;
        if (id == node) {
            continue;
        }
        left++;
        if (group_is_near(log->group, id)) {
            near++;
        } else {
            away = id;
        }
    }
    return near > left / 2 ? -1 : away;
}

static struct voters voters_in(const struct broker *broker, const struct cluster_image *image)
{
    return image->voter_count > 0 ? (struct voters){image->voters, image->voter_count}
                                  : (struct voters){broker->voters, broker->voter_count};
}

static void link_voters(struct shard *shard, struct voters before, struct voters now,
                        const struct cluster_image *picture)
{
    for (int i = 0; i < before.count; i++) {
        int32_t id = before.items[i].node_id;
        if (!is_voter(now, id) && cluster_image_find(picture, id) == NULL) {
            peers_drop(shard, id);
        }
    }
    assert(now.count > 0);
    for (int i = 0; i < now.count; i++) {
        struct peer_address address = {.node = now.items[i].node_id,
                                       .host = now.items[i].host,
                                       .port = now.items[i].port};
        peers_put(shard, &address);
    }
}

void metadata_members_link(struct shard *shard, const struct cluster_image *before,
                           const struct cluster_image *now)
{
    const struct broker *broker = shard->broker;
    const struct listener *listener = listeners_inter_broker(&broker->listeners);
    if (!broker->in_cluster) {
        return;
    }
    struct voters voters = voters_in(broker, now);
    if (now->voter_count > 0) {
        link_voters(shard, voters_in(broker, before), voters, now);
    }
    if (shard->number == 0) {
        cluster_keep_voters(shard, before, now);
    }
    for (int32_t i = 0; i < before->broker_count; i++) {
        int32_t id = before->brokers[i].id;
        if (!is_voter(voters, id) && cluster_image_find(now, id) == NULL) {
            peers_drop(shard, id);
        }
    }
    for (int32_t i = 0; i < now->broker_count; i++) {
        const struct cluster_broker *other = &now->brokers[i];
        if (is_voter(voters, other->id) || other->endpoint_count == 0) {
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
