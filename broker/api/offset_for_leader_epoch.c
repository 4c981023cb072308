/* OffsetForLeaderEpoch: where an epoch ends, for consumers that look for truncation (KIP-320). */
#include <assert.h>

#include "broker/api/confirmed_part.h"
#include "broker/api/fan_out.h"
#include "broker/api/handlers.h"
#include "broker/controller/topic_image.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "messages/offset_for_leader_epoch.h"

struct epoch_part {
    struct confirmed_part confirmed;
    const struct offset_for_leader_epoch_request_offset_for_leader_partition *asked;
    struct offset_for_leader_epoch_response_epoch_end_offset *out;
};

struct epoch_state {
    struct epoch_part *parts;
    int32_t count;
    struct offset_for_leader_epoch_response response;
};

/* A client truncates by this answer. */
static void look_up(struct confirmed_part *confirmed, struct partition *partition)
{
    struct epoch_part *part = container_of(confirmed, struct epoch_part, confirmed);
    struct log_epoch_end end = partition_log_epoch_end(partition->log, part->asked->leader_epoch);
    bool is_current = part->asked->leader_epoch == partition_epoch(partition);
    part->out->leader_epoch = is_current ? part->asked->leader_epoch : end.epoch;
    part->out->end_offset = is_current ? partition_log_end(partition->log) : end.end_offset;
}

static void epoch_done(struct request *request)
{
    struct epoch_state *state = request->state;
    for (int32_t i = 0; i < state->count; i++) {
        state->parts[i].out->error_code = state->parts[i].confirmed.part.error;
    }
    request_answer(request, request->home, &state->response);
}

static void begin_part(struct fan_out *fan, struct epoch_part *part, struct topic_image *topic)
{
    assert(part->out != NULL);
    part->out->partition = part->asked->partition;
    part->confirmed.leader_epoch = part->asked->current_leader_epoch;
    part->confirmed.look_up = look_up;
    confirmed_part_add(fan, &part->confirmed, topic, part->asked->partition);
}

void offset_for_leader_epoch_handle(struct request *request)
{
    const struct offset_for_leader_epoch_request *message = request->message;
    struct epoch_state *state = request_take(request, 1, sizeof *state);
    size_t topic_count = message->topics_count > 0 ? (size_t)message->topics_count : 0;
    assert(request->message != NULL);
    for (size_t t = 0; t < topic_count; t++) {
        state->count += message->topics[t].partitions_count;
    }
    state->parts = request_take(request, (size_t)state->count, sizeof *state->parts);
    state->response = offset_for_leader_epoch_response_default;
    state->response.topics = request_take(request, topic_count, sizeof *state->response.topics);
    state->response.topics_count = (int32_t)topic_count;
    request->state = state;
    struct fan_out *fan = fan_out_begin(request, confirmed_part_run, epoch_done);
    struct epoch_part *part = state->parts;
    for (size_t t = 0; t < topic_count; t++) {
        const struct offset_for_leader_epoch_request_offset_for_leader_topic *asked =
            &message->topics[t];
        struct offset_for_leader_epoch_response_offset_for_leader_topic_result *out =
            &state->response.topics[t];
        struct topic_image *topic = replicas_topic(request->home->replicas, asked->topic);
        out->topic = asked->topic;
        out->partitions_count = asked->partitions_count;
        out->partitions =
            request_elements(request, (size_t)asked->partitions_count,
                             &offset_for_leader_epoch_response_epoch_end_offset_default,
                             sizeof *out->partitions);
        for (int32_t p = 0; p < asked->partitions_count; p++, part++) {
            part->asked = &asked->partitions[p];
            part->out = &out->partitions[p];
            begin_part(fan, part, topic);
        }
    }
    fan_out_go(fan);
}
