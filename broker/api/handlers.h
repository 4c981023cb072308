/* The handlers named in the table of broker/api/api.c; each lives in the file of its name. Each
 * takes over a decoded request on its connection's shard and ends in request_answer. */
#ifndef OTTLA_BROKER_API_HANDLERS_H
#define OTTLA_BROKER_API_HANDLERS_H

#include <stdbool.h>
#include <stdint.h>

struct request;

/* Each takes over a request of its API. */
void produce_handle(struct request *request);
void fetch_handle(struct request *request);
void list_offsets_handle(struct request *request);
void metadata_handle(struct request *request);
void offset_commit_handle(struct request *request);
void offset_fetch_handle(struct request *request);
void find_coordinator_handle(struct request *request);
void join_group_handle(struct request *request);
void heartbeat_handle(struct request *request);
void leave_group_handle(struct request *request);
void sync_group_handle(struct request *request);
void describe_groups_handle(struct request *request);
void list_groups_handle(struct request *request);
void api_versions_handle(struct request *request);
void create_topics_handle(struct request *request);
void delete_topics_handle(struct request *request);
void delete_records_handle(struct request *request);
void init_producer_id_handle(struct request *request);
void offset_for_leader_epoch_handle(struct request *request);
void describe_configs_handle(struct request *request);
void create_partitions_handle(struct request *request);
void alter_configs_handle(struct request *request);
void incremental_alter_configs_handle(struct request *request);
void delete_groups_handle(struct request *request);
void offset_delete_handle(struct request *request);
void alter_replica_log_dirs_handle(struct request *request);
void describe_log_dirs_handle(struct request *request);
void list_config_resources_handle(struct request *request);
void elect_leaders_handle(struct request *request);
void alter_partition_reassignments_handle(struct request *request);
void list_partition_reassignments_handle(struct request *request);
void describe_cluster_handle(struct request *request);
void describe_quorum_handle(struct request *request);
void update_features_handle(struct request *request);
void unregister_broker_handle(struct request *request);
void add_raft_voter_handle(struct request *request);
void remove_raft_voter_handle(struct request *request);
void update_raft_voter_handle(struct request *request);
void peer_hello_handle(struct request *request);
void peer_raft_handle(struct request *request);
void peer_leaders_handle(struct request *request);
void peer_confirm_handle(struct request *request);
void peer_install_handle(struct request *request);
void peer_read_handle(struct request *request);
void peer_forward_handle(struct request *request);
void peer_transfer_handle(struct request *request);

/* Likewise, but never from a client: see service_find_inside. */
void allocate_producer_ids_handle(struct request *request);
void broker_heartbeat_handle(struct request *request);
void broker_registration_handle(struct request *request);
void peer_auto_create_handle(struct request *request);
void peer_moved_handle(struct request *request);

/* Each answers a request of its API with an error for all that is asked. */
bool alter_configs_check(struct request *request);
void alter_configs_refuse(struct request *request, int16_t error);
bool incremental_alter_configs_check(struct request *request);
void incremental_alter_configs_refuse(struct request *request, int16_t error);
void alter_partition_reassignments_refuse(struct request *request, int16_t error);
void list_partition_reassignments_refuse(struct request *request, int16_t error);
void create_topics_refuse(struct request *request, int16_t error);
void delete_topics_refuse(struct request *request, int16_t error);
void create_partitions_refuse(struct request *request, int16_t error);
void describe_quorum_refuse(struct request *request, int16_t error);
void add_raft_voter_refuse(struct request *request, int16_t error);
void remove_raft_voter_refuse(struct request *request, int16_t error);
void unregister_broker_refuse(struct request *request, int16_t error);

#endif
