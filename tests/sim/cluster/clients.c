/* What all kinds of clients have in common: pace, retries, metadata. */
#include "tests/sim/cluster/clients.h"

#include <assert.h>
#include <string.h>

#include "messages/errors.h"
#include "messages/metadata.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/voters.h"
#include "tests/sim/cluster/world.h"

enum { CLIENTS_MOST = PLACES_MAX - CLIENT_PLACE, METADATA_VERSION = 12 };

static struct client clients[CLIENTS_MOST];
static int count;
static bool stopping;
static bool topic_is_made;
static bool busy;                /* clients hardly wait between two requests */
static uint64_t last_serial;

int client_any_node(void)
{
    return 1 + (int)world_random((uint64_t)cluster.count);
}

uint64_t client_new_serial(void)
{
    return ++last_serial;
}

int64_t client_time_ms(void)
{
    return 1700000000000 + (int64_t)(world.now_ns / MS_NS);
}

bool clients_are_stopping(void)
{
    return stopping;
}

bool client_may_retry(int16_t error)
{
    return kafka_error_is_retriable(error);
}

static void go_on(void *context, uint64_t tag)
{
    struct client *client = context;
    (void)tag;
    client->waking = false;
    switch (client->kind) {
    case CLIENT_PRODUCER:
        producer_next(client);
        break;
    case CLIENT_CONSUMER:
        consumer_next(client);
        break;
    case CLIENT_COMMITTER:
        committer_next(client);
        break;
    case CLIENT_ADMIN:
        admin_next(client);
        break;
    case CLIENT_MEMBER:
        member_next(client);
        break;
    case CLIENT_MOVER:
        mover_next(client);
        break;
    case CLIENT_VOTERS:
        voters_next(client);
        break;
    case CLIENT_WITNESS:
        witness_next(client);
        break;
    }
}

void client_later(struct client *client, uint64_t most_ms)
{
    assert(!client->waking);
    client->waking = true;
    uint64_t most_ns = most_ms * MS_NS / (busy ? 6 : 1);
    world_after(1000 + world_random(most_ns + 1), go_on, client, 0);
}

void clients_topic_is_made(void)
{
    topic_is_made = true;
}

bool client_may_begin(struct client *client)
{
    if (!topic_is_made) {
        client_later(client, 100);
    }
    return topic_is_made;
}

static int32_t leader_in(const struct metadata_response *response, int partition,
                         int32_t *epoch)
{
    for (int32_t t = 0; response != NULL && t < response->topics_count; t++) {
        const struct metadata_response_metadata_response_topic *topic = &response->topics[t];
        for (int32_t i = 0; i < topic->partitions_count; i++) {
            if (topic->partitions[i].partition_index == partition &&
                topic->partitions[i].error_code == KAFKA_NONE) {
                *epoch = topic->partitions[i].leader_epoch;
                return topic->partitions[i].leader_id;
            }
        }
    }
    return -1;
}

static void metadata_came(void *owner, const void *response)
{
    struct client *client = owner;
    int32_t leader = leader_in(response, client->partition, &client->leader_epoch);
    client->knows = leader >= 1 && leader <= cluster.count;
    client->node = client->knows ? leader : client->node;
    client_later(client, client->knows ? 0 : 100);
}

void client_ask_places(struct client *client, int node, answered *done)
{
    struct metadata_request_metadata_request_topic topic =
        metadata_request_metadata_request_topic_default;
    topic.name = VIEW_LITERAL(WORK_TOPIC);
    struct metadata_request request = metadata_request_default;
    request.topics = &topic;
    request.topics_count = 1;
    request.allow_auto_topic_creation = false;
    caller_ask(&client->caller, node, API_METADATA, METADATA_VERSION, &request, done);
}

void client_find_leader(struct client *client)
{
    client_ask_places(client, client_any_node(), metadata_came);
}

static void add(enum client_kind kind, int number)
{
    assert(count < CLIENTS_MOST);
    struct client *client = &clients[count];
    *client = (struct client){.kind = kind, .number = number, .node = 1, .producer_id = -1,
                              .committed = -1, .sent = -1, .topic = -1, .last_offset = -1,
                              .careful = world_chance(2),
                              .mover = {.partition_count = MODEL_PARTITIONS}};
    client->partition = number % MODEL_PARTITIONS;
    caller_start(&client->caller, CLIENT_PLACE + count, client);
    count++;
    client_later(client, 100);
}

void clients_start(const struct crowd *crowd)
{
    int counts[] = {[CLIENT_PRODUCER] = crowd->producers, [CLIENT_CONSUMER] = MODEL_PARTITIONS,
                    [CLIENT_COMMITTER] = crowd->committers, [CLIENT_ADMIN] = crowd->admins,
                    [CLIENT_MEMBER] = crowd->members, [CLIENT_MOVER] = crowd->movers,
                    [CLIENT_VOTERS] = crowd->voters,
                    [CLIENT_WITNESS] = 1};
    count = 0;
    stopping = false;
    topic_is_made = false;
    busy = world_chance(8);
    last_serial = 0;
    model_start();
    members_start();
    voters_start();
    for (int kind = 0; kind <= CLIENT_WITNESS; kind++) {
        for (int i = 0; i < counts[kind]; i++) {
            add((enum client_kind)kind, i);
        }
    }
    for (int i = 0; i < count; i++) {
        if (clients[i].kind == CLIENT_ADMIN) {
            clients[i].replicas = crowd->replicas;
        }
    }
}

bool clients_producers_are_done(void)
{
    for (int i = 0; i < count; i++) {
        if (clients[i].kind == CLIENT_PRODUCER && !clients[i].done) {
            return false;
        }
    }
    return true;
}

const struct client *clients_any(enum client_kind kind)
{
    const struct client *client;
    do {
        client = &clients[world_random((uint64_t)count)];
    } while (client->kind != kind);
    return client;
}

void clients_stop(void)
{
    stopping = true;
}

bool clients_are_done(void)
{
    for (int i = 0; i < count; i++) {
        if (!clients[i].done) {
            world_say("client %d of kind %d is not done", clients[i].number, clients[i].kind);
            return false;
        }
    }
    return true;
}

void clients_end(void)
{
    model_end();
    count = 0;
}
