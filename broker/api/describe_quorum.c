/* DescribeQuorum (KIP-595, KIP-836): how far the members of the metadata group are, as the node
 * that leads it knows them. Offsets are Raft's indexes, the next one after the last: what tools
 * want is the distance between members. There is no other partition that this can be asked of. */
#include <assert.h>

#include "broker/api/forward.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/config/listeners.h"
#include "broker/config/topic_name.h"
#include "broker/controller/image.h"
#include "broker/group/group.h"
#include "broker/group/replicas.h"
#include "broker/peer/liveness.h"
#include "broker/server/broker.h"
#include "broker/server/cluster.h"
#include "broker/server/metadata_log.h"
#include "io/clock.h"
#include "messages/describe_quorum.h"
#include "messages/errors.h"

#define ANSWER describe_quorum_response_partition_data
#define STATE describe_quorum_response_replica_state

/* On the wall, what was so long ago; -1 for 0, never. */
static int64_t on_wall(uint64_t monotonic_ms)
{
    uint64_t now_ms = clock_monotonic_ms();
    if (monotonic_ms == 0) {
        return -1;
    }
    return clock_wall_ms() - (int64_t)(now_ms > monotonic_ms ? now_ms - monotonic_ms : 0);
}

/* When anything last came from the node. */
static int64_t heard(const struct broker *broker, int32_t node)
{
    const struct liveness_node *found = liveness_find(&broker->liveness, node);
    return found == NULL ? -1 : on_wall(atomic_load(&found->heard_ms));
}

static struct STATE state_of(const struct group *group, struct raft_member member)
{
    int64_t now_ms = clock_wall_ms();
    struct STATE state = {.replica_id = member.id,
                          .log_end_offset = (int64_t)raft_last_index(group->raft) + 1,
                          .last_fetch_timestamp = now_ms,
                          .last_caught_up_timestamp = now_ms};
    struct raft_peer_info info;
    if (member.id == raft_id(group->raft)) {
        return state;
    }
    bool is_known = raft_peer_info(group->raft, member.id, &info);
    uint64_t match = is_known ? info.match_index : 0;
    bool is_active = is_known && info.recently_active;
    bool is_caught_up = is_active && match >= raft_commit_index(group->raft);
    state.log_end_offset = (int64_t)match + 1;
    const struct broker *broker = group->shard->broker;
    int64_t heard_ms = heard(broker, member.id);
    int64_t had_ms = is_caught_up ? now_ms : on_wall(metadata_log_had_ms(broker, member.id));
    state.last_fetch_timestamp = heard_ms;
    state.last_caught_up_timestamp = had_ms < heard_ms ? had_ms : heard_ms;
    return state;
}

static struct uuid directory_of(const struct group *group, int32_t node)
{
    int count;
    const struct quorum_voter *voters = cluster_voters(group->shard, &count);
    for (int i = 0; i < count; i++) {
        if (voters[i].node_id == node) {
            return voters[i].directory_id;
        }
    }
    return (struct uuid){0};
}

static void describe(struct request *request, const struct group *group, struct ANSWER *answer)
{
    size_t count;
    const struct raft_member *members = raft_members(group->raft, &count);
    assert(count > 0);
    answer->leader_id = raft_id(group->raft);
    answer->leader_epoch = (int32_t)raft_term(group->raft);
    answer->high_watermark = (int64_t)raft_commit_index(group->raft) + 1;
    answer->current_voters = request_take(request, count, sizeof *answer->current_voters);
    answer->observers = request_take(request, count, sizeof *answer->observers);
    for (size_t i = 0; i < count; i++) {
        struct STATE state = state_of(group, members[i]);
        state.replica_directory_id = directory_of(group, members[i].id);
        if (members[i].flags & RAFT_LEARNER) {
            answer->observers[answer->observers_count++] = state;
        } else {
            answer->current_voters[answer->current_voters_count++] = state;
        }
    }
}

static void answer_partitions(struct request *request, const struct group *group,
                              const struct describe_quorum_request_topic_data *asked,
                              struct describe_quorum_response_topic_data *topic)
{
    size_t count = asked->partitions_count < 0 ? 0 : (size_t)asked->partitions_count;
    topic->topic_name = asked->topic_name;
    topic->partitions =
        request_elements(request, count, &describe_quorum_response_partition_data_default,
                         sizeof *topic->partitions);
    topic->partitions_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct ANSWER *answer = &topic->partitions[i];
        answer->partition_index = asked->partitions[i].partition_index;
        answer->error_message = VIEW_NULL;
        answer->leader_id = -1;
        bool is_metadata =
            view_is(asked->topic_name, TOPIC_CLUSTER_METADATA) && answer->partition_index == 0;
        if (!is_metadata) {
            answer->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        } else if (group == NULL || group_error(group) != KAFKA_NONE) {
            answer->error_code = KAFKA_NOT_LEADER_OR_FOLLOWER;
        } else {
            describe(request, group, answer);
        }
    }
}

static void add_nodes(struct request *request, const struct shard *shard,
                      struct describe_quorum_response *response)
{
    int voter_count;
    const struct quorum_voter *voters = cluster_voters(shard, &voter_count);
    size_t count = (size_t)voter_count;
    response->nodes = request_elements(request, count, &describe_quorum_response_node_default,
                                       sizeof *response->nodes);
    response->nodes_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct describe_quorum_response_node *node = &response->nodes[i];
        node->node_id = voters[i].node_id;
        node->listeners = request_take(request, 1, sizeof *node->listeners);
        node->listeners_count = 1;
        node->listeners[0] = (struct describe_quorum_response_listener){
            .name = VIEW_LITERAL("CONTROLLER"),
            .host = voters[i].host,
            .port = voters[i].port};
    }
}

static void home_again(struct shard *shard, struct mail *mail)
{
    (void)shard;
    struct request *request = request_of_mail(mail);
    if (!forward_after_all(request)) {
        describe_quorum_refuse(request, KAFKA_NOT_CONTROLLER);
    }
}

/* On the metadata group's shard. */
static void run(struct shard *shard, struct mail *mail)
{
    struct request *request = request_of_mail(mail);
    const struct describe_quorum_request *message = request->message;
    const struct group *group = replicas_group(shard->replicas, METADATA_GROUP_ID);
    if (shard->broker->in_cluster && (group == NULL || group_error(group) != KAFKA_NONE)) {
        request_send(request, request->home, home_again);
        return;
    }
    struct describe_quorum_response response = describe_quorum_response_default;
    size_t count = message->topics_count < 0 ? 0 : (size_t)message->topics_count;
    response.error_message = VIEW_NULL;
    response.topics = request_elements(request, count,
                                       &describe_quorum_response_topic_data_default,
                                       sizeof *response.topics);
    response.topics_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        answer_partitions(request, group, &message->topics[i], &response.topics[i]);
    }
    if (request->api_version >= 2) {
        add_nodes(request, shard, &response);
    }
    request_answer(request, shard, &response);
}

void describe_quorum_refuse(struct request *request, int16_t error)
{
    struct describe_quorum_response response = describe_quorum_response_default;
    response.error_code = error;
    response.error_message = VIEW_NULL;
    request_answer(request, request->home, &response);
}

void describe_quorum_handle(struct request *request)
{
    request_send(request, &request->home->broker->shards[0], run);
}
