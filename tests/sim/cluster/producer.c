/* An idempotent producer with acks=all and up to five batches under way on one connection, as stock
 * ones have them. When one of them fails it waits for the answers to the others, finds the leader
 * and sends again in order what is not acknowledged: all at once, or one at a time when careful. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "messages/errors.h"
#include "messages/init_producer_id.h"
#include "messages/produce.h"
#include "protocol/records.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

enum { PRODUCE_VERSION = 9, INIT_VERSION = 4, BATCH_MOST = 3, TIMEOUT_MS = 1500, PACE_MS = 300 };

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

/* What is acknowledged without a gap is done. */
static void drop_acked(struct client *client)
{
    while (client->batch_count > 0 && client->batches[0].offset >= 0) {
        const struct produced *first = &client->batches[0];
        world_require(first->offset > client->last_offset, "producer %d: the batch of sequence %d "
                      "is at offset %" PRId64 ", the one before at %" PRId64, client->number,
                      first->sequence, first->offset, client->last_offset);
        client->last_offset = first->offset + first->records - 1;
        client->batch_count--;
        memmove(&client->batches[0], &client->batches[1],
                (size_t)client->batch_count * sizeof *first);
    }
}

static bool any_is_sent(const struct client *client)
{
    for (int i = 0; i < client->batch_count; i++) {
        if (client->batches[i].is_sent) {
            return true;
        }
    }
    return false;
}

static void look_again(struct client *client, uint64_t most_ms)
{
    if (!client->waking) {
        client_later(client, most_ms);
    }
}

static void batch_acked(struct client *client, struct produced *batch, int64_t base_offset)
{
    for (int i = 0; i < batch->records; i++) {
        model_acked(client->partition, base_offset + i, batch->first_serial + (uint64_t)i);
    }
    batch->offset = base_offset;
    drop_acked(client);
    client->resends = client->resends && client->batch_count > 0;
    look_again(client, client->resends ? 1 : PACE_MS);
}

/* The answers of a connection come in order, so that it is the first one that waits. */
static void batch_answered(void *owner, const void *message)
{
    struct client *client = owner;
    const struct produce_response *response = message;
    struct produced *batch = &client->batches[0];
    while (!batch->is_sent) {
        batch++;
        assert(batch < client->batches + client->batch_count);
    }
    batch->is_sent = false;
    world_require(response == NULL || (response->responses_count == 1 &&
                  response->responses[0].partition_responses_count == 1), "one answer to a batch");
    const struct produce_response_partition_produce_response *part =
        response == NULL ? NULL : &response->responses[0].partition_responses[0];
    if (part != NULL && part->error_code == KAFKA_NONE) {
        batch_acked(client, batch, part->base_offset);
        return;
    }
    /* Nor is one out of order that comes behind a batch that was refused for now: librdkafka would
     * begin another epoch, and what it has under way elsewhere be there twice. */
    world_require(part == NULL || client_may_retry(part->error_code),
                  "producer %d, partition %d, sequence %d: error %d", client->number,
                  client->partition, batch->sequence, part == NULL ? 0 : part->error_code);
    client->knows = false;
    client->resends = true;
    look_again(client, part == NULL ? 50 : 100);
}

static void fill(const struct client *client, const struct produced *batch,
                 struct buffer *bytes)
{
    struct batch_builder builder;
    batch_builder_start(&builder);
    builder.header.producer_id = client->producer_id;
    builder.header.producer_epoch = 0;
    builder.header.base_sequence = batch->sequence;
    for (int i = 0; i < batch->records; i++) {
        uint64_t serial = batch->first_serial + (uint64_t)i;
        struct view value = {(const uint8_t *)&serial, sizeof serial};
        batch_builder_add(&builder, client_time_ms(), VIEW_NULL, value, NULL, 0);
    }
    batch_builder_finish(&builder, 0, bytes);
}

static void send_batch(struct client *client, struct produced *batch)
{
    struct buffer bytes = {0};
    batch->is_sent = true;
    fill(client, batch, &bytes);
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

static void make_batch(struct client *client)
{
    struct produced *batch = &client->batches[client->batch_count++];
    *batch = (struct produced){.sequence = client->sequence, .offset = -1};
    batch->records = 1 + (int)world_random(BATCH_MOST);
    batch->first_serial = client_new_serial();
    for (int i = 1; i < batch->records; i++) {
        client_new_serial();
    }
    client->sequence += batch->records;
}

/* Everything that is not acknowledged, in order. */
static void send_again(struct client *client)
{
    assert(!any_is_sent(client) && client->batch_count > 0);
    int most = client->careful ? 1 : client->batch_count;
    for (int i = 0; i < client->batch_count && most > 0; i++) {
        if (client->batches[i].offset < 0) {
            send_batch(client, &client->batches[i]);
            most--;
        }
    }
}

/* Some at once, or one now and then. */
static void send_new(struct client *client)
{
    int count = world_chance(2) ? 1 + (int)world_random(BATCHES_MOST) : 1;
    while (count-- > 0 && client->batch_count < BATCHES_MOST) {
        make_batch(client);
        send_batch(client, &client->batches[client->batch_count - 1]);
    }
    look_again(client, PACE_MS);
}

void producer_next(struct client *client)
{
    assert(client->kind == CLIENT_PRODUCER);
    if (client->resends && any_is_sent(client)) {
        return; /* their answers come first */
    }
    if (client->batch_count == 0 && clients_are_stopping()) {
        client->done = true;
    } else if (client->producer_id < 0) {
        ask_id(client);
    } else if (!client->knows) {
        client_find_leader(client);
    } else if (client->resends) {
        client->resends = client->careful;
        send_again(client);
    } else if (!clients_are_stopping()) {
        send_new(client);
    }
}
