/* The table of served APIs, in order of keys. */
#include "broker/api/service.h"

#include <assert.h>

#include "broker/api/handlers.h"
#include "messages/api_keys.h"
#include "protocol/api_table.h"

static const struct service services[] = {
    {API_PRODUCE, produce_handle},
    {API_FETCH, fetch_handle},
    {API_LIST_OFFSETS, list_offsets_handle},
    {API_METADATA, metadata_handle},
    {API_OFFSET_COMMIT, offset_commit_handle},
    {API_OFFSET_FETCH, offset_fetch_handle},
    {API_FIND_COORDINATOR, find_coordinator_handle},
    {API_JOIN_GROUP, join_group_handle},
    {API_HEARTBEAT, heartbeat_handle},
    {API_LEAVE_GROUP, leave_group_handle},
    {API_SYNC_GROUP, sync_group_handle},
    {API_DESCRIBE_GROUPS, describe_groups_handle},
    {API_LIST_GROUPS, list_groups_handle},
    {API_API_VERSIONS, api_versions_handle},
    {API_CREATE_TOPICS, create_topics_handle, create_topics_refuse},
    {API_DELETE_TOPICS, delete_topics_handle, delete_topics_refuse},
    {API_DELETE_RECORDS, delete_records_handle},
    {API_INIT_PRODUCER_ID, init_producer_id_handle},
    {API_OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch_handle},
    {API_DESCRIBE_CONFIGS, describe_configs_handle},
    {API_ALTER_CONFIGS, alter_configs_handle, alter_configs_refuse, alter_configs_check},
    {API_ALTER_REPLICA_LOG_DIRS, alter_replica_log_dirs_handle},
    {API_DESCRIBE_LOG_DIRS, describe_log_dirs_handle},
    {API_CREATE_PARTITIONS, create_partitions_handle, create_partitions_refuse},
    {API_DELETE_GROUPS, delete_groups_handle},
    {API_ELECT_LEADERS, elect_leaders_handle},
    {API_INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs_handle,
     incremental_alter_configs_refuse, incremental_alter_configs_check},
    {API_ALTER_PARTITION_REASSIGNMENTS, alter_partition_reassignments_handle,
     alter_partition_reassignments_refuse},
    {API_LIST_PARTITION_REASSIGNMENTS, list_partition_reassignments_handle,
     list_partition_reassignments_refuse, .reads = true},
    {API_OFFSET_DELETE, offset_delete_handle},
    {API_DESCRIBE_QUORUM, describe_quorum_handle, describe_quorum_refuse, .reads = true},
    {API_UPDATE_FEATURES, update_features_handle},
    {API_DESCRIBE_CLUSTER, describe_cluster_handle},
    {API_UNREGISTER_BROKER, unregister_broker_handle, unregister_broker_refuse},
    {API_LIST_CONFIG_RESOURCES, list_config_resources_handle},
    {API_ADD_RAFT_VOTER, add_raft_voter_handle, add_raft_voter_refuse},
    {API_REMOVE_RAFT_VOTER, remove_raft_voter_handle, remove_raft_voter_refuse},
    {API_UPDATE_RAFT_VOTER, update_raft_voter_handle},
    {API_PEER_HELLO, peer_hello_handle},
    {API_PEER_RAFT, peer_raft_handle},
    {API_PEER_LEADERS, peer_leaders_handle},
    {API_PEER_CONFIRM, peer_confirm_handle},
    {API_PEER_INSTALL, peer_install_handle},
    {API_PEER_READ, peer_read_handle},
    {API_PEER_FORWARD, peer_forward_handle},
    {API_PEER_TRANSFER, peer_transfer_handle},
};

/* Asked by nodes alone, through PeerForward or of themselves. */
static const struct service inside[] = {
    {API_PRODUCE, produce_handle},
    {API_BROKER_REGISTRATION, broker_registration_handle},
    {API_BROKER_HEARTBEAT, broker_heartbeat_handle},
    {API_ALLOCATE_PRODUCER_IDS, allocate_producer_ids_handle},
    {API_UPDATE_RAFT_VOTER, update_raft_voter_handle},
    {API_PEER_AUTO_CREATE, peer_auto_create_handle},
    {API_PEER_MOVED, peer_moved_handle},
    {API_PEER_TRANSFER, peer_transfer_handle},
};

enum { SERVICE_COUNT = sizeof services / sizeof services[0] };

const struct service *service_find(int16_t key)
{
    size_t low = 0;
    size_t high = SERVICE_COUNT;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (services[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < SERVICE_COUNT && services[low].key == key ? &services[low] : NULL;
}

bool service_for_controllers(int16_t key)
{
    switch (key) {
    case API_API_VERSIONS:
    case API_DESCRIBE_CONFIGS:
    case API_ALTER_CONFIGS:
    case API_ELECT_LEADERS:
    case API_INCREMENTAL_ALTER_CONFIGS:
    case API_ALTER_PARTITION_REASSIGNMENTS:
    case API_LIST_PARTITION_REASSIGNMENTS:
    case API_DESCRIBE_QUORUM:
    case API_DESCRIBE_CLUSTER:
    case API_UPDATE_FEATURES:
    case API_UNREGISTER_BROKER:
    case API_ADD_RAFT_VOTER:
    case API_REMOVE_RAFT_VOTER:
    case API_UPDATE_RAFT_VOTER:
        return true;
    default:
        return api_is_private(key);
    }
}

bool service_for_brokers(int16_t key)
{
    const struct api *api = api_find(key);
    return api_is_private(key) || (api != NULL && (api->flags & API_ON_BROKER) != 0);
}

int16_t service_last_version(const struct api *api)
{
    bool is_listed = api->last_advertised_version >= 0;
    assert(api->last_version >= api->last_advertised_version);
    return is_listed ? api->last_advertised_version : api->last_version;
}

const struct service *service_find_inside(int16_t key)
{
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        if (inside[i].key == key) {
            return &inside[i];
        }
    }
    const struct service *service = service_find(key);
    return service != NULL && service->refuse != NULL ? service : NULL;
}

const struct service *service_table(size_t *count)
{
    assert(count != NULL);
    *count = SERVICE_COUNT;
    return services;
}
