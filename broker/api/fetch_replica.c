/* Kafka's RackAwareReplicaSelector over Raft's view of the replicas. Owns nothing; whatever is in
 * doubt is read from the leader. */
#include "broker/api/fetch_replica.h"

#include <assert.h>

#include "broker/api/request.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "messages/errors.h"

#define RACK_AWARE_SELECTOR "org.apache.kafka.common.replica.RackAwareReplicaSelector"

enum { FIRST_RACK_VERSION = 11, FIRST_REPLICA_STATE_VERSION = 15 };

void fetch_replica_begin(struct fetch *fetch)
{
    const struct fetch_request *message = fetch->request->message;
    const struct config *config = fetch->request->home->broker->config;
    int16_t version = fetch->request->api_version;
    int32_t replica_id = version < FIRST_REPLICA_STATE_VERSION ? message->replica_id
                                                               : message->replica_state.replica_id;
    fetch->any_replica = version >= FIRST_RACK_VERSION && replica_id < 0;
    fetch->nearer = fetch->any_replica && message->rack_id.length > 0 &&
                    view_is(config_text(config, CONFIG_REPLICA_SELECTOR_CLASS),
                            RACK_AWARE_SELECTOR);
}

int16_t fetch_replica_error(const struct fetch *fetch, const struct partition *partition)
{
    return fetch->any_replica ? partition_follower_error(partition) : partition_error(partition);
}

/* Each replica removes old segments by itself, so a follower's log may begin somewhat later than
 * the leader's. Who reads within the first segment stays here, or would be sent to and fro. */
static bool is_surely_there(const struct fetch_part *part, const struct partition *partition)
{
    struct partition_log *log = partition->log;
    if (partition_log_segment_count(log) <= 1) {
        return true;
    }
    uint64_t size = partition_log_size_bytes(log);
    uint64_t left = partition_log_bytes_from(log, part->asked.fetch_offset);
    return left + (uint64_t)partition->group->log_settings.segment_bytes <= size;
}

/* Whether the replica stands in that rack, is there and has all that consumers may see here. */
static bool can_serve(const struct group *group, int32_t replica, struct view rack,
                      struct raft_peer_info *info)
{
    const struct cluster_broker *broker =
        cluster_image_find(group->shard->replicas->cluster, replica);
    return broker != NULL && !broker->is_fenced && view_equal(broker->rack, rack) &&
           peers_is_alive(group->shard->broker, replica) &&
           raft_peer_info(group->raft, replica, info) &&
           info->match_index >= group->applied_index;
}

int32_t fetch_replica_nearer(const struct fetch_part *part, const struct partition *partition)
{
    const struct fetch *fetch = part->fetch;
    const struct group *group = partition->group;
    if (!fetch->nearer || !group->leads) {
        return -1;
    }
    const struct fetch_request *message = fetch->request->message;
    const struct broker *broker = group->shard->broker;
    int64_t offset = part->asked.fetch_offset;
    bool is_inside = offset >= partition_log_start(partition->log) &&
                     offset <= partition_log_end(partition->log);
    if (!is_inside || view_equal(view_text(broker->rack), message->rack_id)) {
        return -1;
    }
    const struct partition_group *placed = topic_image_group(group->topic, partition->number);
    int32_t best = -1;
    uint64_t best_match = 0;
    for (int32_t i = 0; i < placed->replica_count; i++) {
        struct raft_peer_info info;
        if (placed->replicas[i] != broker->node_id &&
            can_serve(group, placed->replicas[i], message->rack_id, &info) &&
            (best < 0 || info.match_index > best_match)) {
            best = placed->replicas[i];
            best_match = info.match_index;
        }
    }
    return best >= 0 && is_surely_there(part, partition) ? best : -1;
}

int16_t fetch_replica_out_of_range(const struct fetch_part *part,
                                   const struct partition *partition)
{
    bool is_ahead = part->asked.fetch_offset > partition_log_end(partition->log);
    assert(partition->log != NULL);
    return is_ahead && partition_lags(partition) ? KAFKA_NONE : KAFKA_OFFSET_OUT_OF_RANGE;
}
