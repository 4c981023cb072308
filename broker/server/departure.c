/* Two calls of the leader, one after the other. Whatever they answer, the stop goes on; when the
 * time is over, controller_calls_end ends the one under way. Lives on shard 0. */
#include "broker/server/departure.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/api/controller_call.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "broker/server/cluster.h"
#include "broker/server/registration.h"
#include "messages/api_keys.h"
#include "messages/broker_heartbeat.h"
#include "messages/errors.h"

enum { HEARTBEAT_VERSION = 0 };

struct departure {
    struct broker *broker;
    struct controller_call call;
    struct buffer body;
    bool is_asking;
    bool is_fenced;              /* or was asked to be */
    bool is_over;
    struct mail wakes[SHARDS_MAX];
};

/* A mail is enough: a shard that gets one ticks soon. */
static void wake(struct shard *shard, struct mail *mail)
{
    (void)shard;
    (void)mail;
}

static void end(struct departure *departure)
{
    struct broker *broker = departure->broker;
    assert(!departure->is_over);
    departure->is_over = true;
    if (atomic_fetch_sub(&broker->handing_over, 1) != 1) {
        return;
    }
    for (int i = 0; i < broker->shard_count; i++) {
        departure->wakes[i].run = wake;
        shard_post(&broker->shards[i], &departure->wakes[i]);
    }
}

static void answered(struct controller_call *call, int16_t error, struct view body)
{
    struct departure *departure = container_of(call, struct departure, call);
    (void)body;
    assert(departure->is_asking);
    departure->is_asking = false;
    if (departure->is_fenced || error == KAFKA_NOT_CONTROLLER) {
        end(departure);
    }
    departure_tick(departure->broker);
}

static void tell(struct departure *departure, bool fence)
{
    struct broker_heartbeat_request request = broker_heartbeat_request_default;
    assert(!departure->is_asking && !departure->is_over);
    request.broker_id = departure->broker->node_id;
    request.broker_epoch = registration_epoch(departure->broker->registration);
    request.want_shut_down = true;
    request.want_fence = fence;
    departure->body.length = 0;
    enum status status = message_encode_to(&broker_heartbeat_request_type, HEARTBEAT_VERSION,
                                           &request, &departure->body);
    assert(status == STATUS_OK);
    (void)status;
    departure->is_asking = true;
    departure->is_fenced = fence;
    departure->call = (struct controller_call){.api_key = API_BROKER_HEARTBEAT,
                                               .api_version = HEARTBEAT_VERSION,
                                               .repeatable = true,
                                               .body = buffer_view(&departure->body),
                                               .done = answered};
    controller_call(&departure->broker->shards[0], &departure->call);
}

/* Without a majority nobody could take note. */
static bool can_be_heard(const struct broker *broker)
{
    int count;
    int there = 0;
    const struct quorum_voter *voters = cluster_voters(&broker->shards[0], &count);
    for (int i = 0; i < count; i++) {
        there += peers_is_alive(broker, voters[i].node_id) ? 1 : 0;
    }
    return there > count / 2;
}

void departure_begin(struct broker *broker)
{
    assert(broker->departure == NULL);
    struct departure *departure = memory_new_zero(1, sizeof *departure);
    departure->broker = broker;
    broker->departure = departure;
    bool is_registered =
        broker->registration != NULL && registration_epoch(broker->registration) >= 0;
    if (is_registered && can_be_heard(broker)) {
        tell(departure, false);
    } else {
        end(departure);
    }
}

void departure_tick(struct broker *broker)
{
    struct departure *departure = broker->departure;
    if (departure == NULL || departure->is_over || departure->is_asking) {
        return;
    }
    if (!can_be_heard(broker)) {
        end(departure);
    } else if (atomic_load(&broker->handing_over) == 1) {
        tell(departure, true);
    }
}

void departure_free(struct departure *departure)
{
    if (departure != NULL) {
        buffer_free(&departure->body);
        free(departure);
    }
}
