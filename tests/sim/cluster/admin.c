/* Makes the work topic, then makes and deletes others. What was acknowledged is so on every node,
 * sooner or later; what was not may be either way. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "messages/create_topics.h"
#include "messages/delete_topics.h"
#include "messages/errors.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/world.h"

enum { CREATE_VERSION = 5, DELETE_VERSION = 5, TIMEOUT_MS = 2000, TOPICS = 6, PACE_MS = 900,
       NAME = 32 };

static struct view topic_name(const struct client *client, char text[NAME])
{
    if (client->topic < 0) {
        return VIEW_LITERAL(WORK_TOPIC);
    }
    snprintf(text, NAME, "topic-%d-%d", client->number, client->topic);
    return view_text(text);
}

static void ask(struct client *client, enum api_key api, int16_t version, const void *request,
                answered *done)
{
    char name[NAME];
    int node = client_any_node();
    struct view topic = topic_name(client, name);
    world_say("node %d is asked to %s %.*s", node, client->deletes ? "delete" : "make",
              VIEW_PRINT(topic));
    caller_ask(&client->caller, node, api, version, request, done);
}

static void begin_next(struct client *client)
{
    client->topic = (int)world_random(TOPICS);
    client->deletes = (client->existing & (uint64_t)1 << client->topic) != 0;
    client->done = clients_are_stopping();
    client_later(client, PACE_MS);
}

static void ended(struct client *client, bool exists)
{
    char name[NAME];
    struct view topic = topic_name(client, name);
    world_say("%.*s is %s", VIEW_PRINT(topic), exists ? "made" : "deleted");
    if (client->topic < 0) {
        clients_topic_is_made();
    }
    uint64_t bit = client->topic < 0 ? 0 : (uint64_t)1 << client->topic;
    client->existing = exists ? client->existing | bit : client->existing & ~bit;
    begin_next(client);
}

static bool is_unsure(const struct client *client)
{
    return client->topic < 0 || (client->unsure & (uint64_t)1 << client->topic) != 0;
}

static void again(struct client *client)
{
    client->unsure |= client->topic < 0 ? 0 : (uint64_t)1 << client->topic;
    client_later(client, 300);
}

static void created(void *owner, const void *message)
{
    struct client *client = owner;
    const struct create_topics_response *response = message;
    int16_t error = response == NULL ? KAFKA_REQUEST_TIMED_OUT : response->topics[0].error_code;
    bool was_there = error == KAFKA_TOPIC_ALREADY_EXISTS && is_unsure(client);
    if (error == KAFKA_NONE || was_there) {
        ended(client, true);
        return;
    }
    /* Too few brokers are registered yet. */
    bool early = error == KAFKA_INVALID_REPLICATION_FACTOR;
    world_require(early || client_may_retry(error), "CreateTopics of %d-%d: error %d",
                  client->number, client->topic, error);
    again(client);
}

static void create(struct client *client)
{
    char name[NAME];
    struct create_topics_request_creatable_topic topic =
        create_topics_request_creatable_topic_default;
    topic.name = topic_name(client, name);
    topic.num_partitions = client->topic < 0 ? MODEL_PARTITIONS : 2;
    topic.replication_factor = (int16_t)client->replicas;
    struct create_topics_request request = create_topics_request_default;
    request.topics = &topic;
    request.topics_count = 1;
    request.timeout_ms = TIMEOUT_MS;
    ask(client, API_CREATE_TOPICS, CREATE_VERSION, &request, created);
}

static void deleted(void *owner, const void *message)
{
    struct client *client = owner;
    const struct delete_topics_response *response = message;
    int16_t error = response == NULL ? KAFKA_REQUEST_TIMED_OUT : response->responses[0].error_code;
    bool was_gone = error == KAFKA_UNKNOWN_TOPIC_OR_PARTITION && is_unsure(client);
    if (error == KAFKA_NONE || was_gone) {
        ended(client, false);
        return;
    }
    world_require(error != KAFKA_UNKNOWN_TOPIC_OR_PARTITION && client_may_retry(error),
                  "DeleteTopics of %d-%d: error %d", client->number, client->topic, error);
    again(client);
}

static void delete(struct client *client)
{
    char name[NAME];
    struct view names = topic_name(client, name);
    struct delete_topics_request request = delete_topics_request_default;
    request.topic_names = &names;
    request.topic_names_count = 1;
    request.timeout_ms = TIMEOUT_MS;
    ask(client, API_DELETE_TOPICS, DELETE_VERSION, &request, deleted);
}

void admin_next(struct client *client)
{
    assert(client->kind == CLIENT_ADMIN);
    if (client->done) {
        return;
    }
    if (client->deletes) {
        delete(client);
    } else {
        create(client);
    }
}
