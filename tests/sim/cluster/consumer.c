/* A consumer of one partition, from its beginning on; every record goes into the model. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "messages/errors.h"
#include "messages/fetch.h"
#include "protocol/records.h"
#include "tests/sim/cluster/check.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/world.h"

enum { FETCH_VERSION = 12, WAIT_MS = 500, MAX_BYTES = 16384, UNPACK_MOST = 1 << 20, PACE_MS = 100 };

static void read_batch(struct client *client, struct view batch,
                       const struct batch_header *header)
{
    struct buffer scratch = {0};
    struct view records;
    enum status status = batch_unpack(batch, header, UNPACK_MOST, &scratch, &records);
    world_require(status == STATUS_OK, "a batch cannot be unpacked");
    struct record_iterator iterator = record_iterator_start(header, records);
    struct record record;
    while (record_next(&iterator, &record) == STATUS_OK) {
        uint64_t serial;
        world_require(record.value.length == sizeof serial, "a record of %zu bytes",
                      record.value.length);
        memcpy(&serial, record.value.data, sizeof serial);
        model_read(client->partition, record.offset, serial);
        if (record.offset >= client->position) {
            world_require(record.offset == client->position, "partition %d: offset %" PRId64
                          " follows %" PRId64, client->partition, record.offset,
                          client->position - 1);
            client->position = record.offset + 1;
        }
    }
    buffer_free(&scratch);
}

/* The last batch may be cut off. */
static void read_records(struct client *client, struct view bytes)
{
    struct view batch;
    struct batch_header header;
    while (bytes.length > 0 && batch_next(&bytes, &batch, &header) == STATUS_OK) {
        struct batch_header checked;
        enum status status = batch_validate(batch, &checked);
        world_require(status == STATUS_OK, "partition %d: a broken batch at offset %" PRId64,
                      client->partition, header.base_offset);
        read_batch(client, batch, &header);
    }
}

static void came(void *owner, const void *message)
{
    struct client *client = owner;
    const struct fetch_response *response = message;
    if (response == NULL || response->responses_count == 0) {
        client->knows = false;
        client_later(client, 50);
        return;
    }
    const struct fetch_response_partition_data *part = &response->responses[0].partitions[0];
    if (part->error_code == KAFKA_OFFSET_OUT_OF_RANGE && client->caller.node != client->node) {
        client_later(client, 50); /* a follower that has not got so far: the leader is asked */
        return;
    }
    if (part->error_code != KAFKA_NONE) {
        world_require(client_may_retry(part->error_code), "consumer of partition %d at offset %"
                      PRId64 ": error %d of node %d", client->partition, client->position,
                      part->error_code, client->caller.node);
        client->knows = false;
        client_later(client, 100);
        return;
    }
    world_require(part->high_watermark <= check_committed_end(client->partition),
                  "partition %d: node %d says that %" PRId64 " is committed", client->partition,
                  client->caller.node, part->high_watermark);
    read_records(client, part->records.bytes);
    if (clients_producers_are_done() && client->position == part->high_watermark &&
        client->position >= model_end_offset(client->partition)) {
        client->done = true;
    }
    client_later(client, PACE_MS);
}

void consumer_next(struct client *client)
{
    assert(client->kind == CLIENT_CONSUMER);
    if (!client->knows) {
        client_find_leader(client);
        return;
    }
    struct fetch_request_fetch_partition part = fetch_request_fetch_partition_default;
    part.partition = client->partition;
    part.fetch_offset = client->position;
    part.current_leader_epoch = client->leader_epoch;
    part.partition_max_bytes = MAX_BYTES;
    struct fetch_request_fetch_topic topic = fetch_request_fetch_topic_default;
    topic.topic = VIEW_LITERAL(WORK_TOPIC);
    topic.partitions = &part;
    topic.partitions_count = 1;
    struct fetch_request request = fetch_request_default;
    request.cluster_id = VIEW_NULL;
    request.max_wait_ms = WAIT_MS;
    request.min_bytes = 1;
    request.max_bytes = MAX_BYTES;
    request.session_epoch = -1;
    request.topics = &topic;
    request.topics_count = 1;
    int node = world_chance(5) ? client_any_node() : client->node; /* followers serve, too */
    caller_ask(&client->caller, node, API_FETCH, FETCH_VERSION, &request, came);
}
