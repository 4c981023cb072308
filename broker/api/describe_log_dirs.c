/* DescribeLogDirs (KIP-113, KIP-827): the one data directory with what each partition takes there.
 * Partitions that this node does not hold are left out, as in Kafka. Sizes come from the shards of
 * the groups. Nothing lags: what is not committed is in no log. */
#include <assert.h>

#include "broker/api/fan_out.h"
#include "broker/api/handlers.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_image.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "messages/describe_log_dirs.h"
#include "messages/errors.h"
#include "storage/log_dir.h"

#define RESULT describe_log_dirs_response_describe_log_dirs_result
#define TOPIC describe_log_dirs_response_describe_log_dirs_topic
#define PARTITION describe_log_dirs_response_describe_log_dirs_partition

struct size_part {
    struct part part;
    int64_t bytes;
};

/* The partitions of one topic, in order of the parts. */
struct size_topic {
    struct view name;             /* in the request's memory: the topic may go meanwhile */
    struct size_part *parts;
    int32_t count;
};

struct log_dirs_state {
    struct request *request;
    struct fan_out *fan;
    struct size_topic *topics;
    size_t count;
    size_t capacity;
};

static void measure(struct shard *shard, struct part *base)
{
    struct size_part *part = container_of(base, struct size_part, part);
    struct partition *partition = part_partition(shard, base);
    if (partition != NULL && partition->log != NULL) {
        part->bytes = (int64_t)partition_log_size_bytes(partition->log);
    } else {
        base->error = KAFKA_NOT_LEADER_OR_FOLLOWER;
    }
    part_done(shard, base);
}

static void fill_topic(struct request *request, const struct size_topic *from, struct TOPIC *out)
{
    assert(from->count > 0);
    out->name = from->name;
    out->partitions = request_take(request, (size_t)from->count, sizeof *out->partitions);
    for (int32_t i = 0; i < from->count; i++) {
        const struct size_part *part = &from->parts[i];
        if (part->part.error == KAFKA_NONE) {
            out->partitions[out->partitions_count++] = (struct PARTITION){
                .partition_index = part->part.partition, .partition_size = part->bytes};
        }
    }
}

static void measured(struct request *request)
{
    const struct log_dirs_state *state = request->state;
    struct log_dir *log_dir = request->home->broker->log_dir;
    struct describe_log_dirs_response response = describe_log_dirs_response_default;
    struct RESULT result = describe_log_dirs_response_describe_log_dirs_result_default;
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    result.log_dir = view_text(log_dir_path(log_dir));
    result.is_cordoned = cluster_image_find(request->home->replicas->cluster,
                                            request->home->broker->node_id)->is_cordoned;
    if (atomic_load(&request->home->broker->storage_failure) != 0) {
        result.error_code = KAFKA_KAFKA_STORAGE_ERROR;
    } else if (log_dir_space(log_dir, &free_bytes, &total_bytes) == STATUS_OK) {
        result.usable_bytes = (int64_t)free_bytes;
        result.total_bytes = (int64_t)total_bytes;
    }
    result.topics = request_take(request, state->count + 1, sizeof *result.topics);
    for (size_t i = 0; i < state->count; i++) {
        struct TOPIC *out = &result.topics[result.topics_count];
        fill_topic(request, &state->topics[i], out);
        result.topics_count += out->partitions_count > 0 ? 1 : 0;
    }
    response.results = &result;
    response.results_count = 1;
    request_answer(request, request->home, &response);
}

static struct size_topic *next_topic(struct log_dirs_state *state, const struct topic_image *topic,
                                     size_t partitions)
{
    struct request *request = state->request;
    if (state->count == state->capacity) {
        size_t capacity = state->capacity == 0 ? 16 : state->capacity * 2;
        struct size_topic *topics = request_take(request, capacity, sizeof *topics);
        for (size_t i = 0; i < state->count; i++) {
            topics[i] = state->topics[i];
        }
        state->topics = topics;
        state->capacity = capacity;
    }
    struct size_topic *out = &state->topics[state->count++];
    out->name = arena_copy(&request->arena, topic->name);
    out->parts = request_take(request, partitions + 1, sizeof *out->parts);
    return out;
}

static void add_partition(struct log_dirs_state *state, struct size_topic *out,
                          const struct topic_image *topic, int32_t partition)
{
    int32_t here = state->request->home->broker->node_id;
    if (topic_image_has(topic, partition) &&
        partition_group_has(topic_image_group(topic, partition), here)) {
        fan_out_add(state->fan, &out->parts[out->count++].part, topic, partition);
    }
}

static void add_whole(void *context, struct topic_image *topic)
{
    struct log_dirs_state *state = context;
    struct size_topic *out = next_topic(state, topic, (size_t)topic->partition_count);
    for (int32_t i = 0; i < topic->partition_count; i++) {
        add_partition(state, out, topic, i);
    }
    state->count -= out->count == 0 ? 1 : 0;
}

void describe_log_dirs_handle(struct request *request)
{
    const struct describe_log_dirs_request *message = request->message;
    struct log_dirs_state *state = request_take(request, 1, sizeof *state);
    assert(message != NULL);
    request->state = state;
    state->request = request;
    state->fan = fan_out_begin(request, measure, measured);
    if (message->topics_count < 0) {
        replicas_each_topic(request->home->replicas, add_whole, state);
    }
    for (int32_t t = 0; t < message->topics_count; t++) {
        const struct describe_log_dirs_request_describable_log_dir_topic *asked =
            &message->topics[t];
        struct topic_image *topic = replicas_topic(request->home->replicas, asked->topic);
        if (topic == NULL) {
            continue;
        }
        struct size_topic *out = next_topic(state, topic, (size_t)asked->partitions_count);
        for (int32_t p = 0; p < asked->partitions_count; p++) {
            add_partition(state, out, topic, asked->partitions[p]);
        }
        state->count -= out->count == 0 ? 1 : 0;
    }
    fan_out_go(state->fan);
}
