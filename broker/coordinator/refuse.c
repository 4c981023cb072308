/* Answers that refuse a whole request with one error, in the place that each API has for it.
 * Happy path: the error in the top-level field, or in each element where there is none. */
#include <assert.h>

#include "broker/coordinator/answers.h"
#include "broker/coordinator/coordinator.h"
#include "messages/delete_groups.h"
#include "messages/describe_groups.h"
#include "messages/heartbeat.h"
#include "messages/join_group.h"
#include "messages/leave_group.h"
#include "messages/list_groups.h"
#include "messages/offset_commit.h"
#include "messages/offset_delete.h"
#include "messages/offset_fetch.h"
#include "messages/sync_group.h"
#include "messages/txn_offset_commit.h"

enum {
    JOIN_PROTOCOL_NULLABLE_VERSION = 7,
    FETCH_TOP_ERROR_VERSION = 2,
    FETCH_GROUPS_VERSION = 8
};

static void refuse_join(int16_t version, const struct join_group_request *request, int16_t error,
                        struct join_group_response *response)
{
    *response = join_group_response_default;
    response->error_code = error;
    response->member_id = request->member_id;
    response->protocol_name =
        version < JOIN_PROTOCOL_NULLABLE_VERSION ? VIEW_EMPTY : VIEW_NULL;
}

static void refuse_commit(const struct offset_commit_request *request, int16_t error,
                          struct arena *arena, struct offset_commit_response *response)
{
    *response = offset_commit_response_default;
    response->topics = coordinator_answer_list(
        arena, (size_t)request->topics_count,
        &offset_commit_response_offset_commit_response_topic_default, sizeof(*response->topics),
        &response->topics_count);
    for (int32_t i = 0; i < response->topics_count; i++) {
        response->topics[i].name = request->topics[i].name;
        response->topics[i].topic_id = request->topics[i].topic_id;
        response->topics[i].partitions = coordinator_answer_list(
            arena, (size_t)request->topics[i].partitions_count,
            &offset_commit_response_offset_commit_response_partition_default,
            sizeof(*response->topics[i].partitions), &response->topics[i].partitions_count);
        for (int32_t k = 0; k < response->topics[i].partitions_count; k++) {
            response->topics[i].partitions[k].partition_index =
                request->topics[i].partitions[k].partition_index;
            response->topics[i].partitions[k].error_code = error;
        }
    }
}

static void refuse_txn_commit(const struct txn_offset_commit_request *request, int16_t error,
                              struct arena *arena, struct txn_offset_commit_response *response)
{
    *response = txn_offset_commit_response_default;
    response->topics = coordinator_answer_list(
        arena, (size_t)request->topics_count,
        &txn_offset_commit_response_txn_offset_commit_response_topic_default,
        sizeof(*response->topics), &response->topics_count);
    for (int32_t i = 0; i < response->topics_count; i++) {
        response->topics[i].name = request->topics[i].name;
        response->topics[i].topic_id = request->topics[i].topic_id;
        response->topics[i].partitions = coordinator_answer_list(
            arena, (size_t)request->topics[i].partitions_count,
            &txn_offset_commit_response_txn_offset_commit_response_partition_default,
            sizeof(*response->topics[i].partitions), &response->topics[i].partitions_count);
        for (int32_t k = 0; k < response->topics[i].partitions_count; k++) {
            response->topics[i].partitions[k].partition_index =
                request->topics[i].partitions[k].partition_index;
            response->topics[i].partitions[k].error_code = error;
        }
    }
}

/* Version 1 has no top-level error: each partition says it. */
static void refuse_fetch_partitions(const struct offset_fetch_request *request, int16_t error,
                                    struct arena *arena, struct offset_fetch_response *response)
{
    size_t count = request->topics_count < 0 ? 0 : (size_t)request->topics_count;
    response->topics = coordinator_answer_list(
        arena, count, &offset_fetch_response_offset_fetch_response_topic_default,
        sizeof(*response->topics), &response->topics_count);
    for (int32_t i = 0; i < response->topics_count; i++) {
        response->topics[i].name = request->topics[i].name;
        response->topics[i].partitions = coordinator_answer_list(
            arena, (size_t)request->topics[i].partition_indexes_count,
            &offset_fetch_response_offset_fetch_response_partition_default,
            sizeof(*response->topics[i].partitions), &response->topics[i].partitions_count);
        for (int32_t k = 0; k < response->topics[i].partitions_count; k++) {
            response->topics[i].partitions[k].partition_index =
                request->topics[i].partition_indexes[k];
            response->topics[i].partitions[k].committed_offset = -1;
            response->topics[i].partitions[k].metadata = VIEW_EMPTY;
            response->topics[i].partitions[k].error_code = error;
        }
    }
}

static void refuse_fetch(int16_t version, const struct offset_fetch_request *request,
                         int16_t error, struct arena *arena, struct offset_fetch_response *response)
{
    *response = offset_fetch_response_default;
    if (version < FETCH_TOP_ERROR_VERSION) {
        refuse_fetch_partitions(request, error, arena, response);
        return;
    }
    if (version < FETCH_GROUPS_VERSION) {
        response->error_code = error;
        return;
    }
    response->groups = coordinator_answer_list(
        arena, (size_t)request->groups_count,
        &offset_fetch_response_offset_fetch_response_group_default, sizeof(*response->groups),
        &response->groups_count);
    for (int32_t i = 0; i < response->groups_count; i++) {
        response->groups[i].group_id = request->groups[i].group_id;
        response->groups[i].error_code = error;
    }
}

static void refuse_describe(const struct describe_groups_request *request, int16_t error,
                            struct arena *arena, struct describe_groups_response *response)
{
    *response = describe_groups_response_default;
    response->groups = coordinator_answer_list(
        arena, (size_t)request->groups_count, &describe_groups_response_described_group_default,
        sizeof(*response->groups), &response->groups_count);
    for (int32_t i = 0; i < response->groups_count; i++) {
        response->groups[i].group_id = request->groups[i];
        response->groups[i].error_code = error;
    }
}

static void refuse_delete_groups(const struct delete_groups_request *request, int16_t error,
                                 struct arena *arena, struct delete_groups_response *response)
{
    *response = delete_groups_response_default;
    response->results = coordinator_answer_list(
        arena, (size_t)request->groups_names_count,
        &delete_groups_response_deletable_group_result_default, sizeof(*response->results),
        &response->results_count);
    for (int32_t i = 0; i < response->results_count; i++) {
        response->results[i].group_id = request->groups_names[i];
        response->results[i].error_code = error;
    }
}

/* APIs whose response has one error for everything. */
static void refuse_plain(enum api_key api, int16_t error, void *response)
{
    switch (api) {
    case API_SYNC_GROUP:
        *(struct sync_group_response *)response = sync_group_response_default;
        ((struct sync_group_response *)response)->error_code = error;
        break;
    case API_HEARTBEAT:
        *(struct heartbeat_response *)response = heartbeat_response_default;
        ((struct heartbeat_response *)response)->error_code = error;
        break;
    case API_LEAVE_GROUP:
        *(struct leave_group_response *)response = leave_group_response_default;
        ((struct leave_group_response *)response)->error_code = error;
        break;
    case API_OFFSET_DELETE:
        *(struct offset_delete_response *)response = offset_delete_response_default;
        ((struct offset_delete_response *)response)->error_code = error;
        break;
    default:
        assert(api == API_LIST_GROUPS);
        *(struct list_groups_response *)response = list_groups_response_default;
        ((struct list_groups_response *)response)->error_code = error;
        break;
    }
}

void coordinator_refuse(enum api_key api, int16_t version, const void *request,
                        enum kafka_error error, struct arena *arena, void *response)
{
    assert(coordinator_serves(api) && error != KAFKA_NONE);
    int16_t code = (int16_t)error;
    switch (api) {
    case API_JOIN_GROUP:
        refuse_join(version, request, code, response);
        break;
    case API_OFFSET_COMMIT:
        refuse_commit(request, code, arena, response);
        break;
    case API_TXN_OFFSET_COMMIT:
        refuse_txn_commit(request, code, arena, response);
        break;
    case API_OFFSET_FETCH:
        refuse_fetch(version, request, code, arena, response);
        break;
    case API_DESCRIBE_GROUPS:
        refuse_describe(request, code, arena, response);
        break;
    case API_DELETE_GROUPS:
        refuse_delete_groups(request, code, arena, response);
        break;
    default:
        refuse_plain(api, code, response);
        break;
    }
}
