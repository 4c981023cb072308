/* The handlers named in the table of broker/api/api.c; each lives in the file of its name. Each
 * takes over a decoded request on its connection's shard and ends in request_answer. */
#ifndef OTTLA_BROKER_API_HANDLERS_H
#define OTTLA_BROKER_API_HANDLERS_H

struct request;

#define HANDLERS(X)                                                                            \
    X(produce) X(fetch) X(list_offsets) X(metadata) X(offset_commit) X(offset_fetch)           \
    X(find_coordinator) X(join_group) X(heartbeat) X(leave_group) X(sync_group)                \
    X(describe_groups) X(list_groups) X(api_versions) X(create_topics) X(delete_topics)        \
    X(delete_records) X(init_producer_id) X(offset_for_leader_epoch) X(describe_configs)       \
    X(create_partitions) X(delete_groups) X(offset_delete) X(describe_cluster)

/* Takes over the request of its API. */
#define DECLARE_HANDLER(name) void name##_handle(struct request *request);
HANDLERS(DECLARE_HANDLER)
#undef DECLARE_HANDLER

#endif
