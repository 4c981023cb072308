/* Produce: batches come in, are checked at the connection, get offsets at their group, and are
 * answered when they are committed (acks=all), durable on the leader (acks=1) or not at all
 * (acks=0). A group that cannot commit in time is answered with REQUEST_TIMED_OUT.
 *
 * The batch stays where the socket put it: the four bytes before it in the frame, its length field,
 * are read by then and become the payload's prefix, so nothing is copied on the way to the journal.
 */
#include <assert.h>
#include <inttypes.h>

#include "broker/api/batch_rules.h"
#include "broker/api/fan_out.h"
#include "broker/api/handlers.h"
#include "broker/api/node_endpoint.h"
#include "broker/api/produce_forward.h"
#include "broker/api/request.h"
#include "broker/controller/topic_image.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/errors.h"
#include "messages/produce.h"
#include "protocol/records.h"

enum { ACKS_NONE = 0, ACKS_LEADER = 1, ACKS_ALL = -1 };
enum { FIRST_ZSTD_VERSION = 7, FIRST_LEADER_VERSION = 10 };

struct produce_part {
    struct part part;
    struct append append;
    struct topic_image *topic;
    struct batch_header header;
    struct produce_forward *forward; /* to who leads now; null: no need */
    struct block *repacked;      /* the batch in the topic's own compression; null: as it came */
    int64_t log_start_offset;
    const char *message;
};

struct produce_state {
    struct fan_out *fan;
    struct produce_part *parts; /* in the order of the request */
    int32_t part_count;
    int32_t timeout_ms;
    int32_t forwards_open;
    bool forwarded;
    struct told_nodes leaders;  /* of partitions that are not led here (KIP-951) */
};

static int16_t check_time(struct produce_part *part)
{
    const struct topic_settings *settings = topic_image_settings(part->topic);
    if (settings->uses_append_time || part->header.max_timestamp < 0) {
        return KAFKA_NONE;
    }
    int64_t now_ms = clock_wall_ms();
    int64_t after_ms = part->header.max_timestamp - now_ms;
    int64_t before_ms = now_ms - part->header.base_timestamp;
    if (after_ms > settings->timestamp_after_max_ms ||
        before_ms > settings->timestamp_before_max_ms) {
        part->message = "The timestamp of a record is outside of the range that "
                        "message.timestamp.before.max.ms and message.timestamp.after.max.ms allow";
        return KAFKA_INVALID_TIMESTAMP;
    }
    return KAFKA_NONE;
}

static int16_t check_header(const struct request *request, struct produce_part *part)
{
    const struct batch_header *header = &part->header;
    if (batch_has(header, BATCH_TRANSACTIONAL)) {
        part->message = "Transactions are not offered by this broker";
        return KAFKA_INVALID_TXN_STATE;
    }
    if (batch_compression(header) == COMPRESSION_ZSTD &&
        request->api_version < FIRST_ZSTD_VERSION) {
        return KAFKA_UNSUPPORTED_COMPRESSION_TYPE;
    }
    int error = batch_produced_error(header);
    return error != KAFKA_NONE ? (int16_t)error : check_time(part);
}

static int16_t check_batch(const struct request *request, struct produce_part *part,
                           struct view batch)
{
    if (batch.length == 0) {
        part->message = "A produce request needs one record batch for each partition";
        return KAFKA_INVALID_RECORD;
    }
    if (batch.length > (size_t)topic_image_settings(part->topic)->max_message_bytes) {
        return KAFKA_MESSAGE_TOO_LARGE;
    }
    switch (batch_validate(batch, &part->header)) {
    case STATUS_OK:
        return check_header(request, part);
    case STATUS_UNSUPPORTED:
        part->message = "Only record batches of magic 2 are taken";
        return KAFKA_INVALID_RECORD;
    case STATUS_INVALID:
        part->message = "A produce request takes exactly one record batch for each partition";
        return KAFKA_INVALID_RECORD;
    default:
        return KAFKA_CORRUPT_MESSAGE;
    }
}

static struct topic_image *find_topic(const struct request *request,
                                      const struct produce_request_topic_produce_data *data)
{
    const struct replicas *replicas = request->home->replicas;
    return request->api_version >= 13 ? replicas_topic_by_id(replicas, data->topic_id)
                                      : replicas_topic(replicas, data->name);
}

static void append_done(struct append *append)
{
    struct produce_part *part = container_of(append, struct produce_part, append);
    assert(append->error != KAFKA_NONE || append->base_offset >= 0);
    struct shard *shard = append->partition->group->shard;
    part->part.error = append->error;
    if (append->error == KAFKA_NONE) {
        part->log_start_offset = partition_log_start(append->partition->log);
    }
    part_done(shard, &part->part);
}

static void produce_run(struct shard *shard, struct part *base)
{
    struct produce_part *part = container_of(base, struct produce_part, part);
    struct partition *partition = part_partition(shard, base);
    if (partition == NULL) {
        part_done(shard, base);
        return;
    }
    if (topic_image_settings(part->topic)->uses_append_time) {
        uint8_t *bytes = part->append.payload.block->bytes +
                         (part->append.payload.data - part->append.payload.block->bytes);
        batch_set_append_time(bytes + GROUP_PAYLOAD_PREFIX, &part->header, clock_wall_ms());
    }
    assert(part->append.payload.length > GROUP_PAYLOAD_PREFIX + BATCH_HEADER_BYTES);
    partition_append(partition, &part->append);
}

static void fill_part(struct request *request, const struct produce_part *part,
                      struct produce_response_partition_produce_response *out)
{
    out->index = part->part.partition;
    out->error_code = part->part.error;
    if (part->part.error == KAFKA_NONE) {
        bool stamped = topic_image_settings(part->topic)->uses_append_time;
        out->base_offset = part->append.base_offset;
        out->log_append_time_ms = !stamped                          ? -1
                                  : part->append.append_time_ms >= 0 ? part->append.append_time_ms
                                                                     : part->header.max_timestamp;
        out->log_start_offset = part->log_start_offset;
        return;
    }
    out->base_offset = -1;
    out->error_message = view_text(part->message);
    if (part->part.error == KAFKA_NOT_LEADER_OR_FOLLOWER && request->connection != NULL &&
        request->api_version >= FIRST_LEADER_VERSION) {
        struct produce_state *state = request->state;
        struct told_leader leader = told_leader_of(request, part->part.group_id);
        out->current_leader.leader_id = leader.id;
        out->current_leader.leader_epoch = leader.epoch;
        told_nodes_add(&state->leaders, request, leader.id);
    }
}

static void add_leaders(struct request *request, struct produce_response *response)
{
    const struct produce_state *state = request->state;
    size_t count = (size_t)state->leaders.count;
    response->node_endpoints = request_take(request, count, sizeof *response->node_endpoints);
    response->node_endpoints_count = state->leaders.count;
    for (size_t i = 0; i < count; i++) {
        const struct node_endpoint *node = &state->leaders.items[i];
        response->node_endpoints[i] = (struct produce_response_node_endpoint){
            .node_id = node->node_id, .host = node->host, .port = node->port, .rack = node->rack};
    }
}

/* ---- To who leads now, while this node stops ---- */

static void produce_done(struct request *request);

static void forwarded(struct produce_forward *forward)
{
    struct request *request = forward->context;
    struct produce_state *state = request->state;
    assert(state->forwards_open > 0);
    if (--state->forwards_open > 0) {
        return;
    }
    request->cancel = NULL;
    for (int32_t i = 0; i < state->part_count; i++) {
        struct produce_part *part = &state->parts[i];
        if (part->forward != NULL) {
            part->part.error = part->forward->error;
            part->append.base_offset = part->forward->base_offset;
            part->append.append_time_ms = part->forward->append_time_ms;
            part->log_start_offset = part->forward->log_start_offset;
        }
    }
    produce_done(request);
}

static void client_gone(struct request *request)
{
    struct produce_state *state = request->state;
    for (int32_t i = 0; i < state->part_count; i++) {
        if (state->parts[i].forward != NULL) {
            produce_forward_cancel(state->parts[i].forward);
        }
    }
    request_finish_silently(request, request->home, true);
}

/* A batch is out of order here when the one before was passed on. */
static bool is_elsewhere(const struct produce_part *part)
{
    return part->append.payload.length > 0 &&
           (part->part.error == KAFKA_NOT_LEADER_OR_FOLLOWER ||
            part->part.error == KAFKA_NOT_ENOUGH_REPLICAS ||
            part->part.error == KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER);
}

/* Passes on what the new leaders have to take; false when there is nothing. */
static bool forward_parts(struct request *request)
{
    const struct produce_request *message = request->message;
    struct produce_state *state = request->state;
    if (state->forwarded || request->connection == NULL || request->connection->closed ||
        !produce_forward_is_due(request->home->broker)) {
        return false;
    }
    state->forwarded = true;
    for (int32_t i = 0; i < state->part_count; i++) {
        struct produce_part *part = &state->parts[i];
        if (is_elsewhere(part)) {
            struct view payload = slice_view(part->append.payload);
            part->forward = request_take(request, 1, sizeof *part->forward);
            *part->forward = (struct produce_forward){
                .group_id = part->part.group_id,
                .topic_name = part->topic->name,
                .topic_id = part->topic->id,
                .partition = part->part.partition,
                .acks = message->acks == ACKS_NONE ? ACKS_LEADER : message->acks,
                .timeout_ms = state->timeout_ms,
                .batch = view_slice(payload, GROUP_PAYLOAD_PREFIX,
                                    payload.length - GROUP_PAYLOAD_PREFIX),
                .context = request,
                .done = forwarded,
            };
            state->forwards_open++;
        }
    }
    request->cancel = state->forwards_open > 0 ? client_gone : NULL;
    for (int32_t i = 0; i < state->part_count && request->cancel != NULL; i++) {
        if (state->parts[i].forward != NULL) {
            produce_forward_begin(request->home, state->parts[i].forward);
        }
    }
    return request->cancel != NULL;
}

static void produce_done(struct request *request)
{
    const struct produce_request *message = request->message;
    struct produce_state *state = request->state;
    if (forward_parts(request)) {
        return;
    }
    if (message->acks == ACKS_NONE) {
        bool failed = false;
        for (int32_t i = 0; i < state->part_count; i++) {
            failed |= state->parts[i].part.error != KAFKA_NONE;
        }
        request_finish_silently(request, request->home, failed);
        return;
    }
    struct produce_response response = produce_response_default;
    response.responses = request_take(request, (size_t)message->topic_data_count,
                                      sizeof *response.responses);
    response.responses_count = message->topic_data_count;
    const struct produce_part *part = state->parts;
    for (int32_t t = 0; t < message->topic_data_count; t++) {
        const struct produce_request_topic_produce_data *data = &message->topic_data[t];
        struct produce_response_topic_produce_response *topic = &response.responses[t];
        *topic = produce_response_topic_produce_response_default;
        topic->name = data->name;
        topic->topic_id = data->topic_id;
        topic->partition_responses =
            request_elements(request, (size_t)data->partition_data_count,
                             &produce_response_partition_produce_response_default,
                             sizeof *topic->partition_responses);
        topic->partition_responses_count = data->partition_data_count;
        for (int32_t p = 0; p < data->partition_data_count; p++) {
            fill_part(request, part++, &topic->partition_responses[p]);
        }
    }
    add_leaders(request, &response);
    request_answer(request, request->home, &response);
}

static void set_payload(struct request *request, struct produce_part *part, struct view batch)
{
    if (part->repacked != NULL) {
        part->append.payload = slice_of(part->repacked, 0, part->repacked->capacity);
        struct view stored = view_slice(slice_view(part->append.payload), GROUP_PAYLOAD_PREFIX,
                                        part->append.payload.length - GROUP_PAYLOAD_PREFIX);
        enum status status = batch_read_header(stored, &part->header);
        assert(status == STATUS_OK);
        (void)status;
        return;
    }
    size_t position = (size_t)(batch.data - request->frame->bytes);
    assert(position >= GROUP_PAYLOAD_PREFIX);
    part->append.payload = slice_of(request->frame, position - GROUP_PAYLOAD_PREFIX,
                                    batch.length + GROUP_PAYLOAD_PREFIX);
}

/* Checks one partition's batch; sends it on its way when it is good. */
static void begin_part(struct request *request, struct produce_part *part,
                       const struct produce_request_topic_produce_data *topic_data,
                       const struct produce_request_partition_produce_data *data)
{
    const struct produce_request *message = request->message;
    struct produce_state *state = request->state;
    part->part.partition = data->index;
    part->topic = find_topic(request, topic_data);
    if (part->topic == NULL) {
        part->part.error = request->api_version >= 13 ? KAFKA_UNKNOWN_TOPIC_ID
                                                      : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    topic_image_ref(part->topic);
    if (data->index < 0 || data->index >= part->topic->partition_count) {
        part->part.error = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    if (message->acks < ACKS_ALL || message->acks > ACKS_LEADER) {
        part->part.error = KAFKA_INVALID_REQUIRED_ACKS;
        return;
    }
    if (part->topic->is_internal) {
        part->part.error = KAFKA_INVALID_TOPIC_EXCEPTION;
        return;
    }
    struct view batch = data->records.bytes;
    part->part.error = check_batch(request, part, batch);
    if (part->part.error == KAFKA_NONE) {
        part->part.error =
            batch_rules_apply(topic_image_settings(part->topic), batch, &part->header,
                              GROUP_PAYLOAD_PREFIX, &part->repacked, &part->message);
    }
    if (part->part.error != KAFKA_NONE) {
        return;
    }
    set_payload(request, part, batch);
    part->append.is_client = true;
    part->append.least_in_sync =
        message->acks == ACKS_ALL ? topic_image_settings(part->topic)->min_insync_replicas : 0;
    part->append.proposal.when_durable = message->acks != ACKS_ALL;
    part->append.proposal.deadline_ms = clock_monotonic_ms() + (uint64_t)state->timeout_ms;
    part->append.done = append_done;
    fan_out_add(state->fan, &part->part, part->topic, data->index);
}

static void produce_release(struct request *request)
{
    struct produce_state *state = request->state;
    for (int32_t i = 0; i < state->part_count; i++) {
        topic_image_unref(state->parts[i].topic);
        block_unref(state->parts[i].repacked);
    }
}

void produce_handle(struct request *request)
{
    const struct produce_request *message = request->message;
    struct produce_state *state = request_take(request, 1, sizeof *state);
    assert(request->message != NULL);
    request->state = state;
    request->release = produce_release;
    state->timeout_ms = message->timeout_ms < 0 ? 0 : message->timeout_ms;
    for (int32_t t = 0; t < message->topic_data_count; t++) {
        state->part_count += message->topic_data[t].partition_data_count;
    }
    state->parts = request_take(request, (size_t)state->part_count, sizeof *state->parts);
    state->fan = fan_out_begin(request, produce_run, produce_done);
    struct produce_part *part = state->parts;
    for (int32_t t = 0; t < message->topic_data_count; t++) {
        const struct produce_request_topic_produce_data *data = &message->topic_data[t];
        for (int32_t p = 0; p < data->partition_data_count; p++) {
            begin_part(request, part++, data, &data->partition_data[p]);
        }
    }
    if (state->part_count == 1 && state->parts[0].part.error == KAFKA_NONE &&
        request->connection != NULL) {
        connection_works_for(request->connection, part_shard(&state->parts[0].part));
    }
    fan_out_go(state->fan);
}
