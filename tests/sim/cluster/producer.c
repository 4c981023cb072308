/* An idempotent producer with acks=all and one batch under way: sent again until it is answered. */
#include <assert.h>
#include <string.h>

#include "base/buffer.h"
#include "messages/errors.h"
#include "messages/init_producer_id.h"
#include "messages/produce.h"
#include "protocol/records.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

enum { PRODUCE_VERSION = 9, INIT_VERSION = 4, BATCH_MOST = 3, TIMEOUT_MS = 1500, PACE_MS = 200 };

static void id_came(void *owner, const void *message)
{
    struct client *client = owner;
    const struct init_producer_id_response *response = message;
    if (response != NULL && response->error_code == KAFKA_NONE) {
        client->producer_id = response->producer_id;
    } else {
        world_require(response == NULL || client_may_retry(response->error_code),
                      "InitProducerId: error %d", response == NULL ? 0 : response->error_code);
    }
    client_later(client, client->producer_id >= 0 ? 1 : 200);
}

static void ask_id(struct client *client)
{
    struct init_producer_id_request request = init_producer_id_request_default;
    request.transactional_id = VIEW_NULL;
    caller_ask(&client->caller, client_any_node(), API_INIT_PRODUCER_ID, INIT_VERSION, &request,
               id_came);
}

static void batch_acked(struct client *client, int64_t base_offset)
{
    for (int i = 0; i < client->batch; i++) {
        model_acked(client->partition, base_offset + i, client->first_serial + (uint64_t)i);
    }
    client->sequence += client->batch;
    client->batch = 0;
    client_later(client, PACE_MS);
}

static void batch_answered(void *owner, const void *message)
{
    struct client *client = owner;
    const struct produce_response *response = message;
    if (response == NULL) {
        client->knows = false;
        client_later(client, 50);
        return;
    }
    world_require(response->responses_count == 1 &&
                  response->responses[0].partition_responses_count == 1, "one answer to a batch");
    const struct produce_response_partition_produce_response *part =
        &response->responses[0].partition_responses[0];
    if (part->error_code == KAFKA_NONE) {
        batch_acked(client, part->base_offset);
        return;
    }
    world_require(client_may_retry(part->error_code), "producer %d, partition %d: error %d",
                  client->number, client->partition, part->error_code);
    client->knows = false;
    client_later(client, 100);
}

static void fill(const struct client *client, struct buffer *bytes)
{
    struct batch_builder builder;
    batch_builder_start(&builder);
    builder.header.producer_id = client->producer_id;
    builder.header.producer_epoch = 0;
    builder.header.base_sequence = client->sequence;
    for (int i = 0; i < client->batch; i++) {
        uint64_t serial = client->first_serial + (uint64_t)i;
        struct view value = {(const uint8_t *)&serial, sizeof serial};
        batch_builder_add(&builder, client_time_ms(), VIEW_NULL, value, NULL, 0);
    }
    batch_builder_finish(&builder, 0, bytes);
}

static void send_batch(struct client *client)
{
    struct buffer bytes = {0};
    fill(client, &bytes);
    struct produce_request_partition_produce_data part =
        produce_request_partition_produce_data_default;
    part.index = client->partition;
    part.records.bytes = buffer_view(&bytes);
    struct produce_request_topic_produce_data topic = produce_request_topic_produce_data_default;
    topic.name = VIEW_LITERAL(WORK_TOPIC);
    topic.partition_data = &part;
    topic.partition_data_count = 1;
    struct produce_request request = produce_request_default;
    request.transactional_id = VIEW_NULL;
    request.acks = -1;
    request.timeout_ms = TIMEOUT_MS;
    request.topic_data = &topic;
    request.topic_data_count = 1;
    caller_ask(&client->caller, client->node, API_PRODUCE, PRODUCE_VERSION, &request,
               batch_answered);
    buffer_free(&bytes);
}

void producer_next(struct client *client)
{
    assert(client->kind == CLIENT_PRODUCER);
    if (client->batch == 0 && clients_are_stopping()) {
        client->done = true;
    } else if (client->producer_id < 0) {
        ask_id(client);
    } else if (!client->knows) {
        client_find_leader(client);
    } else {
        if (client->batch == 0) {
            client->batch = 1 + (int)world_random(BATCH_MOST);
            client->first_serial = client_new_serial();
            for (int i = 1; i < client->batch; i++) {
                client_new_serial();
            }
        }
        send_batch(client);
    }
}
