/* Requests that concern one group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit,
 * OffsetDelete. The request travels to the group's shard, stays there while the coordinator thinks,
 * and is answered from there. */
#include "broker/api/group_call.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "broker/api/handlers.h"
#include "broker/config/topic_name.h"
#include "broker/controller/topic_image.h"
#include "broker/group/offsets_group.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/heartbeat.h"
#include "messages/join_group.h"
#include "messages/leave_group.h"
#include "messages/offset_commit.h"
#include "messages/offset_delete.h"
#include "messages/sync_group.h"
#include "protocol/api_table.h"

struct group_request {
    struct coordinator_call call;
    struct coordinator_context context;
    struct request *request;
    struct shard *shard;        /* of the group's partition */
    uint64_t partition_group;
    int32_t partition;
};

/* "/127.0.0.1", as Kafka keeps it. */
static struct view client_host(struct request *request)
{
    const char *address = request->connection->address;
    const char *colon = strrchr(address, ':');
    int length = colon == NULL ? (int)strlen(address) : (int)(colon - address);
    return arena_format(&request->arena, "/%.*s", length, address);
}

struct coordinator_context group_call_context(struct request *request)
{
    bool named = request->client_id.data != NULL;
    return (struct coordinator_context){
        .now_ms = clock_wall_ms(),
        .version = request->api_version,
        .client_id = named ? request->client_id : VIEW_EMPTY,
        .client_host = client_host(request),
    };
}

struct topic_image *group_call_topic(const struct request *request)
{
    return replicas_topic(request->home->replicas, VIEW_LITERAL(TOPIC_CONSUMER_OFFSETS));
}

static void answered(struct coordinator_call *call, enum api_key api, const void *response)
{
    struct group_request *group = container_of(call, struct group_request, call);
    assert((int16_t)api == group->request->api_key);
    (void)api;
    request_answer(group->request, group->shard, response);
}

static void arrived(struct shard *shard, struct mail *mail)
{
    struct request *request = request_of_mail(mail);
    struct group_request *group = request->state;
    assert(shard == group->shard);
    assert(group->request == request);
    group->context.now_ms = clock_wall_ms();
    offsets_group_call(shard, group->partition_group, group->partition, &group->context,
                       (enum api_key)request->api_key, request->message, &group->call);
}

static void refuse(struct request *request, enum kafka_error error)
{
    void *response = request_take(request, 1, request->api->response->body->size_bytes);
    coordinator_refuse((enum api_key)request->api_key, request->api_version, request->message,
                       error, &request->arena, response);
    request_answer(request, request->home, response);
}

void group_call(struct request *request, struct view group_id)
{
    struct topic_image *topic = group_call_topic(request);
    if (topic == NULL) {
        refuse(request, KAFKA_NOT_COORDINATOR);
        return;
    }
    struct broker *broker = request->home->broker;
    struct group_request *group = request_take(request, 1, sizeof *group);
    assert(request->state == NULL);
    group->request = request;
    group->context = group_call_context(request);
    group->call = (struct coordinator_call){.arena = &request->arena, .answered = answered};
    group->partition = offsets_partition_for(group_id, topic->partition_count);
    group->partition_group = topic_image_group(topic, group->partition)->id;
    group->shard = broker_shard_of(broker, group->partition_group);
    request->state = group;
    if (group->shard == request->home) {
        arrived(request->home, &request->mail);
    } else {
        request_send(request, group->shard, arrived);
    }
}

void join_group_handle(struct request *request)
{
    group_call(request, ((const struct join_group_request *)request->message)->group_id);
}

void sync_group_handle(struct request *request)
{
    group_call(request, ((const struct sync_group_request *)request->message)->group_id);
}

void heartbeat_handle(struct request *request)
{
    group_call(request, ((const struct heartbeat_request *)request->message)->group_id);
}

void leave_group_handle(struct request *request)
{
    group_call(request, ((const struct leave_group_request *)request->message)->group_id);
}

void offset_commit_handle(struct request *request)
{
    group_call(request, ((const struct offset_commit_request *)request->message)->group_id);
}

void offset_delete_handle(struct request *request)
{
    group_call(request, ((const struct offset_delete_request *)request->message)->group_id);
}
