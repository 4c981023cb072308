/* ListOffsets: the first, the next, or the first offset at or after a time (KIP-79), each partition
 * on its group's shard. */
#include <assert.h>

#include "broker/api/confirmed_part.h"
#include "broker/api/fan_out.h"
#include "broker/api/handlers.h"
#include "broker/controller/topic_image.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "messages/errors.h"
#include "messages/list_offsets.h"

/* Timestamps that mean something else (ListOffsetsRequest). */
enum special_time {
    TIME_LATEST = -1,
    TIME_EARLIEST = -2,
    TIME_MAX = -3,
    TIME_EARLIEST_LOCAL = -4,
    TIME_LATEST_TIERED = -5,
    TIME_EARLIEST_PENDING_UPLOAD = -6,
};

enum { FIRST_EPOCH_VERSION = 4 };

struct list_part {
    struct confirmed_part confirmed;
    const struct list_offsets_request_list_offsets_partition *asked;
    struct list_offsets_response_list_offsets_partition_response *out;
};

struct list_state {
    struct list_part *parts;
    int32_t count;
    struct list_offsets_response response;
};

static void set_time(struct list_part *part, enum status status,
                     const struct log_time_offset *found)
{
    if (status != STATUS_OK) {
        part->confirmed.part.error = KAFKA_KAFKA_STORAGE_ERROR;
        return;
    }
    part->out->offset = found->offset;
    part->out->timestamp = found->offset < 0 ? -1 : found->timestamp_ms;
    part->out->leader_epoch = found->offset < 0 ? -1 : found->leader_epoch;
}

static void look_up(struct confirmed_part *confirmed, struct partition *partition)
{
    struct list_part *part = container_of(confirmed, struct list_part, confirmed);
    struct partition_log *log = partition->log;
    struct log_time_offset found;
    switch (part->asked->timestamp) {
    case TIME_EARLIEST:
    case TIME_EARLIEST_LOCAL:
        part->out->offset = partition_log_start(log);
        part->out->leader_epoch = partition_log_epoch_at(log, part->out->offset);
        break;
    case TIME_LATEST:
        part->out->offset = partition_log_end(log);
        part->out->leader_epoch = partition_log_latest_epoch(log);
        break;
    case TIME_MAX:
        set_time(part, partition_log_find_max_time(log, &found), &found);
        break;
    case TIME_LATEST_TIERED:
    case TIME_EARLIEST_PENDING_UPLOAD:
        break; /* there is no second tier: -1 */
    default:
        set_time(part, partition_log_find_time(log, part->asked->timestamp, &found), &found);
        break;
    }
}

static void list_done(struct request *request)
{
    struct list_state *state = request->state;
    for (int32_t i = 0; i < state->count; i++) {
        struct list_part *part = &state->parts[i];
        part->out->error_code = part->confirmed.part.error;
        if (request->api_version < FIRST_EPOCH_VERSION) {
            part->out->leader_epoch = -1;
        }
    }
    request_answer(request, request->home, &state->response);
}

static int32_t count_parts(const struct list_offsets_request *message)
{
    int32_t count = 0;
    for (int32_t t = 0; t < message->topics_count; t++) {
        count += message->topics[t].partitions_count;
    }
    return count;
}

/* Whether the request's version has this special timestamp; else it is an unknown version of the
 * question (UNSUPPORTED_VERSION, as the stock broker answers). */
static int16_t check_asked(const struct request *request, int64_t timestamp)
{
    static const int16_t first_version[] = {
        [-TIME_LATEST] = 1,         [-TIME_EARLIEST] = 1,      [-TIME_MAX] = 7,
        [-TIME_EARLIEST_LOCAL] = 8, [-TIME_LATEST_TIERED] = 9, [-TIME_EARLIEST_PENDING_UPLOAD] = 11,
    };
    if (timestamp >= 0) {
        return KAFKA_NONE;
    }
    bool known = timestamp >= TIME_EARLIEST_PENDING_UPLOAD &&
                 request->api_version >= first_version[-timestamp];
    return known ? KAFKA_NONE : KAFKA_UNSUPPORTED_VERSION;
}

static void begin_part(struct request *request, struct fan_out *fan, struct list_part *part,
                       struct topic_image *topic)
{
    int32_t partition = part->asked->partition_index;
    part->out->partition_index = partition;
    part->confirmed.leader_epoch = part->asked->current_leader_epoch;
    part->confirmed.look_up = look_up;
    part->confirmed.part.error = check_asked(request, part->asked->timestamp);
    if (part->confirmed.part.error == KAFKA_NONE) {
        confirmed_part_add(fan, &part->confirmed, topic, partition);
    }
}

void list_offsets_handle(struct request *request)
{
    const struct list_offsets_request *message = request->message;
    struct list_state *state = request_take(request, 1, sizeof *state);
    size_t topic_count = message->topics_count > 0 ? (size_t)message->topics_count : 0;
    assert(request->message != NULL);
    state->count = count_parts(message);
    state->parts = request_take(request, (size_t)state->count, sizeof *state->parts);
    state->response = list_offsets_response_default;
    state->response.topics = request_take(request, topic_count, sizeof *state->response.topics);
    state->response.topics_count = (int32_t)topic_count;
    request->state = state;
    struct fan_out *fan = fan_out_begin(request, confirmed_part_run, list_done);
    struct list_part *part = state->parts;
    for (int32_t t = 0; t < message->topics_count; t++) {
        const struct list_offsets_request_list_offsets_topic *asked = &message->topics[t];
        struct list_offsets_response_list_offsets_topic_response *out = &state->response.topics[t];
        struct topic_image *topic = replicas_topic(request->home->replicas, asked->name);
        out->name = asked->name;
        out->partitions_count = asked->partitions_count;
        out->partitions = request_elements(
            request, (size_t)asked->partitions_count,
            &list_offsets_response_list_offsets_partition_response_default,
            sizeof *out->partitions);
        for (int32_t p = 0; p < asked->partitions_count; p++, part++) {
            part->asked = &asked->partitions[p];
            part->out = &out->partitions[p];
            begin_part(request, fan, part, topic);
        }
    }
    fan_out_go(fan);
}
