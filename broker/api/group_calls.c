/* Requests that concern several groups: OffsetFetch, DescribeGroups, DeleteGroups, ListGroups. Each
 * group is a part of its own with its own small request and memory, asked on the shard of its
 * coordinator; the parts' answers are put together at home. */
#include <assert.h>

#include "broker/api/authorized.h"
#include "broker/api/fan_out.h"
#include "broker/api/group_call.h"
#include "broker/api/handlers.h"
#include "broker/controller/topic_image.h"
#include "broker/group/offsets_group.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/delete_groups.h"
#include "messages/describe_groups.h"
#include "messages/list_groups.h"
#include "messages/offset_fetch.h"
#include "protocol/api_table.h"

enum { PART_ARENA_BYTES = 64 * 1024 * 1024 };

struct calls_part {
    struct part part;
    struct coordinator_call call;
    struct arena arena;             /* the shard's while it is there */
    struct coordinator_context context;
    struct shard *shard;
    const void *message;            /* this part's own request */
    void *response;                 /* a copy of the response struct */
};

struct calls {
    struct fan_out *fan;
    struct calls_part *parts;
    int32_t count;
    /* Puts the parts' responses together and answers. */
    void (*merge)(struct request *request, struct calls *calls);
};

static void part_answered(struct coordinator_call *call, enum api_key api, const void *response)
{
    struct calls_part *part = container_of(call, struct calls_part, call);
    size_t size = api_find((int32_t)api)->response->body->size_bytes;
    assert(part->response == NULL);
    part->response = arena_take(&part->arena, 1, size);
    assert(part->response != NULL);
    memcpy(part->response, response, size);
    part_done(part->shard, &part->part);
}

static void calls_run(struct shard *shard, struct part *base)
{
    struct calls_part *part = container_of(base, struct calls_part, part);
    part->shard = shard;
    part->context.now_ms = clock_wall_ms();
    offsets_group_call(shard, base->group_id, base->partition, &part->context,
                       (enum api_key)part_request(base)->api_key, part->message, &part->call);
}

static void calls_done(struct request *request)
{
    struct calls *calls = request->state;
    for (int32_t i = 0; i < calls->count; i++) {
        assert(calls->parts[i].response != NULL);
    }
    calls->merge(request, calls);
}

static void calls_release(struct request *request)
{
    struct calls *calls = request->state;
    for (int32_t i = 0; i < calls->count; i++) {
        arena_free(&calls->parts[i].arena);
    }
}

static struct calls *calls_begin(struct request *request, int32_t count,
                                 void (*merge)(struct request *request, struct calls *calls))
{
    struct calls *calls = request_take(request, 1, sizeof *calls);
    size_t parts = count > 0 ? (size_t)count : 0;
    calls->parts = request_take(request, parts, sizeof *calls->parts);
    calls->count = (int32_t)parts;
    calls->merge = merge;
    calls->fan = fan_out_begin(request, calls_run, calls_done);
    request->state = calls;
    request->release = calls_release;
    struct coordinator_context context = group_call_context(request);
    for (int32_t i = 0; i < calls->count; i++) {
        struct calls_part *part = &calls->parts[i];
        arena_init(&part->arena, PART_ARENA_BYTES);
        part->context = context;
        part->call = (struct coordinator_call){.arena = &part->arena, .answered = part_answered};
    }
    return calls;
}

/* Adds the part for a partition of __consumer_offsets; without that topic it is refused here. */
static void calls_add(struct request *request, struct calls_part *part, int32_t partition)
{
    struct calls *calls = request->state;
    struct topic_image *topic = group_call_topic(request);
    if (topic != NULL) {
        fan_out_add(calls->fan, &part->part, topic, partition);
        return;
    }
    part->response = arena_take(&part->arena, 1, request->api->response->body->size_bytes);
    coordinator_refuse((enum api_key)request->api_key, request->api_version, part->message,
                       KAFKA_NOT_COORDINATOR, &part->arena, part->response);
}

static int32_t partition_of(const struct request *request, struct view group_id)
{
    struct topic_image *topic = group_call_topic(request);
    return topic == NULL ? 0
                         : offsets_partition_for(group_id, topic->partition_count);
}

static void merge_fetched(struct request *request, struct calls *calls)
{
    if (request->api_version < 8) {
        request_answer(request, request->home, calls->parts[0].response);
        return;
    }
    struct offset_fetch_response response = offset_fetch_response_default;
    response.groups = request_take(request, (size_t)calls->count, sizeof *response.groups);
    for (int32_t i = 0; i < calls->count; i++) {
        const struct offset_fetch_response *one = calls->parts[i].response;
        assert(one->groups_count == 1);
        response.groups[response.groups_count++] = one->groups[0];
    }
    request_answer(request, request->home, &response);
}

void offset_fetch_handle(struct request *request)
{
    const struct offset_fetch_request *message = request->message;
    bool many = request->api_version >= 8;
    struct calls *calls = calls_begin(request, many ? message->groups_count : 1, merge_fetched);
    assert(request->message != NULL);
    for (int32_t i = 0; i < calls->count; i++) {
        struct offset_fetch_request *one = request_take(request, 1, sizeof *one);
        *one = *message;
        if (many) {
            one->groups = &message->groups[i];
            one->groups_count = 1;
        }
        calls->parts[i].message = one;
        calls_add(request, &calls->parts[i],
                  partition_of(request, many ? one->groups[0].group_id : one->group_id));
    }
    fan_out_go(calls->fan);
}

static void merge_described(struct request *request, struct calls *calls)
{
    const struct describe_groups_request *message = request->message;
    struct describe_groups_response response = describe_groups_response_default;
    response.groups = request_take(request, (size_t)calls->count, sizeof *response.groups);
    for (int32_t i = 0; i < calls->count; i++) {
        const struct describe_groups_response *one = calls->parts[i].response;
        assert(one->groups_count == 1);
        struct describe_groups_response_described_group *group = &response.groups[i];
        *group = one->groups[0];
        if (message->include_authorized_operations && group->error_code == KAFKA_NONE) {
            group->authorized_operations = AUTHORIZED_GROUP;
        }
        response.groups_count++;
    }
    request_answer(request, request->home, &response);
}

void describe_groups_handle(struct request *request)
{
    const struct describe_groups_request *message = request->message;
    struct calls *calls = calls_begin(request, message->groups_count, merge_described);
    assert(request->message != NULL);
    for (int32_t i = 0; i < calls->count; i++) {
        struct describe_groups_request *one = request_take(request, 1, sizeof *one);
        *one = *message;
        one->groups = &message->groups[i];
        one->groups_count = 1;
        calls->parts[i].message = one;
        calls_add(request, &calls->parts[i], partition_of(request, message->groups[i]));
    }
    fan_out_go(calls->fan);
}

static void merge_deleted(struct request *request, struct calls *calls)
{
    struct delete_groups_response response = delete_groups_response_default;
    response.results = request_take(request, (size_t)calls->count, sizeof *response.results);
    for (int32_t i = 0; i < calls->count; i++) {
        const struct delete_groups_response *one = calls->parts[i].response;
        assert(one->results_count == 1);
        response.results[response.results_count++] = one->results[0];
    }
    request_answer(request, request->home, &response);
}

void delete_groups_handle(struct request *request)
{
    const struct delete_groups_request *message = request->message;
    struct calls *calls = calls_begin(request, message->groups_names_count, merge_deleted);
    assert(request->message != NULL);
    for (int32_t i = 0; i < calls->count; i++) {
        struct delete_groups_request *one = request_take(request, 1, sizeof *one);
        *one = *message;
        one->groups_names = &message->groups_names[i];
        one->groups_names_count = 1;
        calls->parts[i].message = one;
        calls_add(request, &calls->parts[i], partition_of(request, message->groups_names[i]));
    }
    fan_out_go(calls->fan);
}

/* Partitions that are not led here have nothing to list; one that still loads makes the whole
 * answer say so. */
static void merge_listed(struct request *request, struct calls *calls)
{
    struct list_groups_response response = list_groups_response_default;
    size_t total = 0;
    for (int32_t i = 0; i < calls->count; i++) {
        const struct list_groups_response *one = calls->parts[i].response;
        total += one->groups_count > 0 ? (size_t)one->groups_count : 0;
        if (one->error_code != KAFKA_NONE && one->error_code != KAFKA_NOT_COORDINATOR) {
            response.error_code = one->error_code;
        }
    }
    response.groups = request_take(request, total, sizeof *response.groups);
    for (int32_t i = 0; i < calls->count && response.error_code == KAFKA_NONE; i++) {
        const struct list_groups_response *one = calls->parts[i].response;
        for (int32_t k = 0; k < one->groups_count; k++) {
            response.groups[response.groups_count++] = one->groups[k];
        }
    }
    request_answer(request, request->home, &response);
}

void list_groups_handle(struct request *request)
{
    struct topic_image *topic = group_call_topic(request);
    int32_t count = topic == NULL ? 0 : topic->partition_count;
    struct calls *calls = calls_begin(request, count, merge_listed);
    assert(request->message != NULL);
    for (int32_t i = 0; i < count; i++) {
        calls->parts[i].message = request->message;
        calls_add(request, &calls->parts[i], i);
    }
    fan_out_go(calls->fan);
}
