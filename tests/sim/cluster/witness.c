/* Asks nodes at random, whether they should know or not, and holds their answers against what is
 * known: committed offsets that were acknowledged to others, epochs that nobody led in. It also
 * deletes records that were read. Refusals are as good as answers. */
#include <assert.h>
#include <inttypes.h>

#include "messages/delete_records.h"
#include "messages/errors.h"
#include "messages/fetch.h"
#include "messages/offset_fetch.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/world.h"

enum { FETCH_VERSION = 12, DELETE_VERSION = 2, PACE_MS = 300, KEPT = 100, NO_EPOCH = 1 << 20 };

static void again(struct client *client)
{
    client->done = clients_are_stopping();
    client_later(client, PACE_MS);
}

static void offset_came(void *owner, const void *message)
{
    struct client *client = owner;
    const struct offset_fetch_response *response = message;
    if (response != NULL && response->error_code == KAFKA_NONE &&
        response->topics[0].partitions[0].error_code == KAFKA_NONE) {
        int64_t offset = response->topics[0].partitions[0].committed_offset;
        world_require(committer_may_have(client->asked, client->committed, offset),
                      "group %d: committed %" PRId64 ", sent %" PRId64 ", node %d says %" PRId64,
                      client->asked->number, client->committed, client->asked->sent,
                      client->caller.node, offset);
    }
    again(client);
}

static void ask_offset(struct client *client)
{
    client->asked = clients_any(CLIENT_COMMITTER);
    client->committed = client->asked->committed;
    committer_ask_offset(client, client->asked->number, client_any_node(), offset_came);
}

static void epoch_came(void *owner, const void *message)
{
    struct client *client = owner;
    const struct fetch_response *response = message;
    world_require(response == NULL || response->responses_count == 0 ||
                      response->responses[0].partitions[0].error_code != KAFKA_NONE,
                  "node %d answers in an epoch that it does not know", client->caller.node);
    again(client);
}

static void ask_in_no_epoch(struct client *client)
{
    struct fetch_request_fetch_partition part = fetch_request_fetch_partition_default;
    part.partition = (int32_t)world_random(MODEL_PARTITIONS);
    part.current_leader_epoch = NO_EPOCH;
    part.partition_max_bytes = 1;
    struct fetch_request_fetch_topic topic = fetch_request_fetch_topic_default;
    topic.topic = VIEW_LITERAL(WORK_TOPIC);
    topic.partitions = &part;
    topic.partitions_count = 1;
    struct fetch_request request = fetch_request_default;
    request.cluster_id = VIEW_NULL;
    request.max_bytes = 1;
    request.session_epoch = -1;
    request.topics = &topic;
    request.topics_count = 1;
    caller_ask(&client->caller, client_any_node(), API_FETCH, FETCH_VERSION, &request, epoch_came);
}

static void deleted(void *owner, const void *message)
{
    struct client *client = owner;
    const struct delete_records_response *response = message;
    int16_t error =
        response == NULL ? KAFKA_NONE : response->topics[0].partitions[0].error_code;
    world_require(error == KAFKA_NONE || client_may_retry(error), "DeleteRecords: error %d", error);
    again(client);
}

/* What the partition's consumer has read long ago. */
static void delete_records(struct client *client)
{
    const struct client *consumer = clients_any(CLIENT_CONSUMER);
    struct delete_records_request_delete_records_partition part =
        delete_records_request_delete_records_partition_default;
    part.partition_index = consumer->partition;
    part.offset = consumer->position / 2;
    struct delete_records_request_delete_records_topic topic =
        delete_records_request_delete_records_topic_default;
    topic.name = VIEW_LITERAL(WORK_TOPIC);
    topic.partitions = &part;
    topic.partitions_count = 1;
    struct delete_records_request request = delete_records_request_default;
    request.topics = &topic;
    request.topics_count = 1;
    request.timeout_ms = CALL_TIMEOUT_MS;
    if (part.offset < KEPT) {
        ask_offset(client);
        return;
    }
    caller_ask(&client->caller, client_any_node(), API_DELETE_RECORDS, DELETE_VERSION, &request,
               deleted);
}

void witness_next(struct client *client)
{
    assert(client->kind == CLIENT_WITNESS);
    if (client->done) {
        return;
    }
    switch (world_random(8)) {
    case 0:
        ask_in_no_epoch(client);
        break;
    case 1:
        delete_records(client);
        break;
    default:
        ask_offset(client);
        break;
    }
}
