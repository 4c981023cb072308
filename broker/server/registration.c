/* One call, sent again until it is answered. The leader's offset in the answer covers whatever was
 * committed at first contact; when it is in force here, this node tells the truth to clients. Where
 * its own configuration says otherwise than the metadata whether it takes new replicas, another
 * call tells that first, as Kafka's heartbeat does (KIP-1066). What can go wrong is that nobody
 * leads, which the log says once in a while. Lives on shard 0. */
#include "broker/server/registration.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/api/controller_call.h"
#include "broker/controller/cluster_image.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/broker_heartbeat.h"
#include "messages/broker_registration.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "storage/log_dir.h"

enum { REGISTRATION_VERSION = 1, HEARTBEAT_VERSION = 2 };

struct registration {
    struct broker *broker;
    struct mail start;
    struct controller_call call;
    struct metadata_wait wait;
    struct buffer body;
    int64_t epoch;
};

/* Asks the leader what the body says; both calls may be done twice. */
static void send_body(struct registration *registration, int16_t api_key, int16_t version,
                      void (*done)(struct controller_call *call, int16_t error, struct view body))
{
    assert(registration->body.length > 0);
    registration->call = (struct controller_call){.api_key = api_key,
                                                  .api_version = version,
                                                  .repeatable = true,
                                                  .body = buffer_view(&registration->body),
                                                  .done = done};
    controller_call(&registration->broker->shards[0], &registration->call);
}

static void ask(struct registration *registration);
static void tell_cordon(struct registration *registration);

/* Whether the metadata has it as this node's configuration has it. */
static bool is_known(const struct broker *broker)
{
    const struct cluster_broker *known =
        cluster_image_find(broker->shards[0].replicas->cluster, broker->node_id);
    assert(known != NULL);
    return known->is_cordoned_itself == broker->self.is_cordoned_itself;
}

static void in_force(struct metadata_wait *wait, int16_t error)
{
    struct registration *registration = container_of(wait, struct registration, wait);
    if (error != KAFKA_NONE) {
        return;
    }
    if (is_known(registration->broker)) {
        broker_ready(registration->broker);
    } else {
        tell_cordon(registration);
    }
}

/* Until the answer's metadata is in force here. */
static void await(struct registration *registration, struct controller_call *call)
{
    registration->wait =
        (struct metadata_wait){.offset = call->metadata_offset, .done = in_force};
    metadata_await(call->shard, &registration->wait);
}

static int16_t read_heartbeat(struct view body)
{
    struct broker_heartbeat_response response = broker_heartbeat_response_default;
    struct arena arena;
    arena_init(&arena, SIZE_MAX / 2);
    enum status status = message_decode(&broker_heartbeat_response_type, HEARTBEAT_VERSION, &body,
                                        &arena, &response);
    arena_free(&arena);
    return status == STATUS_OK ? response.error_code : KAFKA_UNKNOWN_SERVER_ERROR;
}

static void told_cordon(struct controller_call *call, int16_t error, struct view body)
{
    struct registration *registration = container_of(call, struct registration, call);
    if (error == KAFKA_NOT_CONTROLLER) {
        return; /* the broker stops */
    }
    if (error != KAFKA_NONE) {
        tell_cordon(registration);
        return;
    }
    error = read_heartbeat(body);
    if (error == KAFKA_NONE) {
        await(registration, call);
        return;
    }
    log_warn("cluster", "cordoned.log.dirs has no effect (error %d): this registration of broker "
             "%d was struck off, or another process has made a later one", error,
             registration->broker->node_id);
    broker_ready(registration->broker);
}

static void tell_cordon(struct registration *registration)
{
    const struct broker *broker = registration->broker;
    struct broker_heartbeat_request request = broker_heartbeat_request_default;
    assert(registration->epoch >= 0);
    struct uuid directory = log_dir_identity(broker->log_dir)->directory_id;
    request.broker_id = broker->node_id;
    request.broker_epoch = registration->epoch;
    request.cordoned_log_dirs = &directory;
    request.cordoned_log_dirs_count = broker->self.is_cordoned_itself ? 1 : 0;
    registration->body.length = 0;
    enum status status = message_encode_to(&broker_heartbeat_request_type, HEARTBEAT_VERSION,
                                           &request, &registration->body);
    assert(status == STATUS_OK);
    (void)status;
    send_body(registration, API_BROKER_HEARTBEAT, HEARTBEAT_VERSION, told_cordon);
}

static int16_t read_answer(struct view body, int64_t *epoch)
{
    struct broker_registration_response response = broker_registration_response_default;
    struct arena arena;
    arena_init(&arena, SIZE_MAX / 2);
    enum status status = message_decode(&broker_registration_response_type, REGISTRATION_VERSION,
                                        &body, &arena, &response);
    arena_free(&arena);
    *epoch = response.broker_epoch;
    return status == STATUS_OK ? response.error_code : KAFKA_UNKNOWN_SERVER_ERROR;
}

static void answered(struct controller_call *call, int16_t error, struct view body)
{
    struct registration *registration = container_of(call, struct registration, call);
    int64_t epoch = -1;
    if (error == KAFKA_NONE) {
        error = read_answer(body, &epoch);
    }
    if (error == KAFKA_NOT_CONTROLLER) {
        return; /* the broker stops */
    }
    if (error != KAFKA_NONE) {
        log_warn("cluster", "this broker is not registered yet (error %d): is there a majority of "
                 "controller.quorum.voters? Trying again", error);
        ask(registration);
        return;
    }
    log_info("cluster", "registered as broker %d, epoch %lld", registration->broker->node_id,
             (long long)epoch);
    registration->epoch = epoch;
    await(registration, call);
}

static void ask(struct registration *registration)
{
    send_body(registration, API_BROKER_REGISTRATION, REGISTRATION_VERSION, answered);
}

static void encode(struct registration *registration)
{
    const struct broker *broker = registration->broker;
    const struct cluster_broker *self = &broker->self;
    struct broker_registration_request request = broker_registration_request_default;
    struct broker_registration_request_listener *listeners =
        memory_new_zero((size_t)self->endpoint_count + 1, sizeof *listeners);
    for (int32_t i = 0; i < self->endpoint_count; i++) {
        listeners[i] = (struct broker_registration_request_listener){
            .name = self->endpoints[i].name,
            .host = self->endpoints[i].host,
            .port = self->endpoints[i].port,
            .security_protocol = self->endpoints[i].security_protocol};
    }
    request.broker_id = self->id;
    request.cluster_id = view_text(broker->cluster_id);
    request.incarnation_id = self->incarnation;
    request.listeners = listeners;
    request.listeners_count = self->endpoint_count;
    request.rack = self->rack;
    enum status status = message_encode_to(&broker_registration_request_type,
                                           REGISTRATION_VERSION, &request, &registration->body);
    assert(status == STATUS_OK);
    (void)status;
    free(listeners);
}

static void begin(struct shard *shard, struct mail *mail)
{
    assert(shard->number == 0);
    (void)shard;
    ask(container_of(mail, struct registration, start));
}

void registration_start(struct broker *broker)
{
    struct registration *registration = memory_new_zero(1, sizeof *registration);
    registration->broker = broker;
    registration->epoch = -1;
    broker->registration = registration;
    encode(registration);
    registration->start.run = begin;
    shard_post(&broker->shards[0], &registration->start);
}

int64_t registration_epoch(const struct registration *registration)
{
    assert(registration != NULL);
    return registration->epoch;
}

void registration_free(struct registration *registration)
{
    if (registration != NULL) {
        buffer_free(&registration->body);
        free(registration);
    }
}
