/* DeleteRecords: raises a partition's first offset (KIP-107). It is an entry of the group, so that
 * it survives a restart and holds on every replica. */
#include <assert.h>

#include "broker/api/fan_out.h"
#include "broker/api/handlers.h"
#include "broker/controller/topic_image.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "io/clock.h"
#include "messages/delete_records.h"
#include "messages/errors.h"

struct delete_part {
    struct part part;
    struct proposal proposal;
    struct shard *shard;
    int64_t offset;
    struct delete_records_response_delete_records_partition_result *out;
};

struct delete_state {
    struct delete_part *parts;
    int32_t count;
    struct delete_records_response response;
};

static void proposal_done(struct proposal *proposal, enum status status)
{
    struct delete_part *part = container_of(proposal, struct delete_part, proposal);
    struct partition *partition = replicas_partition(part->shard->replicas, part->part.group_id,
                                                     part->part.partition);
    if (status != STATUS_OK || partition == NULL || partition->log == NULL) {
        part->part.error = status == STATUS_CLOSED    ? KAFKA_NOT_LEADER_OR_FOLLOWER
                           : status == STATUS_TIMEOUT ? KAFKA_REQUEST_TIMED_OUT
                                                      : KAFKA_KAFKA_STORAGE_ERROR;
    } else {
        part->out->low_watermark = partition_log_start(partition->log);
    }
    part_done(part->shard, &part->part);
}

static void delete_run(struct shard *shard, struct part *base)
{
    struct delete_part *part = container_of(base, struct delete_part, part);
    struct partition *partition = part_partition(shard, base);
    part->shard = shard;
    part->proposal.done = proposal_done;
    if (partition != NULL) {
        base->error = partition_delete_records(partition, part->offset, &part->proposal);
    }
    if (base->error != KAFKA_NONE) {
        part_done(shard, base);
    }
}

static void delete_done(struct request *request)
{
    struct delete_state *state = request->state;
    for (int32_t i = 0; i < state->count; i++) {
        struct delete_part *part = &state->parts[i];
        part->out->error_code = part->part.error;
        if (part->part.error != KAFKA_NONE) {
            part->out->low_watermark = -1;
        }
    }
    request_answer(request, request->home, &state->response);
}

static int16_t check_topic(const struct topic_image *topic, int32_t partition)
{
    if (topic == NULL || partition < 0 || partition >= topic->partition_count) {
        return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
    if (topic->is_internal) {
        return KAFKA_INVALID_TOPIC_EXCEPTION;
    }
    /* A compacted topic alone keeps what its keys say (Kafka's rule). */
    return topic_image_settings(topic)->deletes ? KAFKA_NONE : KAFKA_POLICY_VIOLATION;
}

void delete_records_handle(struct request *request)
{
    const struct delete_records_request *message = request->message;
    struct delete_state *state = request_take(request, 1, sizeof *state);
    uint64_t wait_ms = message->timeout_ms > 0 ? (uint64_t)message->timeout_ms : 0;
    uint64_t deadline_ms = clock_monotonic_ms() + wait_ms;
    size_t topic_count = message->topics_count > 0 ? (size_t)message->topics_count : 0;
    assert(request->message != NULL);
    for (size_t t = 0; t < topic_count; t++) {
        state->count += message->topics[t].partitions_count;
    }
    state->parts = request_take(request, (size_t)state->count, sizeof *state->parts);
    state->response = delete_records_response_default;
    state->response.topics = request_take(request, topic_count, sizeof *state->response.topics);
    state->response.topics_count = (int32_t)topic_count;
    request->state = state;
    struct fan_out *fan = fan_out_begin(request, delete_run, delete_done);
    struct delete_part *part = state->parts;
    for (size_t t = 0; t < topic_count; t++) {
        const struct delete_records_request_delete_records_topic *asked = &message->topics[t];
        struct delete_records_response_delete_records_topic_result *out =
            &state->response.topics[t];
        struct topic_image *topic = replicas_topic(request->home->replicas, asked->name);
        out->name = asked->name;
        out->partitions_count = asked->partitions_count;
        out->partitions =
            request_take(request, (size_t)asked->partitions_count, sizeof *out->partitions);
        for (int32_t p = 0; p < asked->partitions_count; p++, part++) {
            int32_t partition = asked->partitions[p].partition_index;
            part->out = &out->partitions[p];
            part->out->partition_index = partition;
            part->proposal.deadline_ms = deadline_ms;
            part->offset = asked->partitions[p].offset;
            part->part.error = check_topic(topic, partition);
            if (part->part.error == KAFKA_NONE) {
                fan_out_add(fan, &part->part, topic, partition);
            }
        }
    }
    fan_out_go(fan);
}
