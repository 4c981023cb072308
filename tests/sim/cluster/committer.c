/* Commits rising offsets for a group of its own, and reads them back: what was acknowledged is not
 * lost, and nothing comes back that was not sent. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "messages/errors.h"
#include "messages/find_coordinator.h"
#include "messages/offset_commit.h"
#include "messages/offset_fetch.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

enum { FIND_VERSION = 3, COMMIT_VERSION = 8, FETCH_VERSION = 7, PACE_MS = 300, NAME = 32 };

static struct view group_name(int number, char text[NAME])
{
    snprintf(text, NAME, "group-%d", number);
    return view_text(text);
}

static void found(void *owner, const void *message)
{
    struct client *client = owner;
    const struct find_coordinator_response *response = message;
    client->knows = response != NULL && response->error_code == KAFKA_NONE &&
                    response->node_id >= 1 && response->node_id <= cluster.count;
    if (client->knows) {
        client->node = response->node_id;
    } else {
        world_require(response == NULL || response->error_code == KAFKA_NONE ||
                      client_may_retry(response->error_code), "FindCoordinator: error %d",
                      response == NULL ? 0 : response->error_code);
    }
    client_later(client, client->knows ? 1 : 200);
}

void client_find_coordinator(struct client *client, struct view group)
{
    struct find_coordinator_request request = find_coordinator_request_default;
    request.key = group;
    caller_ask(&client->caller, client_any_node(), API_FIND_COORDINATOR, FIND_VERSION, &request,
               found);
}

static void find(struct client *client)
{
    char name[NAME];
    client_find_coordinator(client, group_name(client->number, name));
}

/* Whether the answer is good; else the coordinator is looked for again. */
static bool is_good(struct client *client, int16_t error, const char *what)
{
    if (error == KAFKA_NONE) {
        return true;
    }
    world_require(client_may_retry(error), "%s of group %d: error %d", what, client->number,
                  error);
    client->knows = false;
    client_later(client, 150);
    return false;
}

bool committer_may_have(const struct client *committer, int64_t floor, int64_t offset)
{
    for (unsigned i = 0; i < DOUBTFUL_MOST && i < committer->doubtful_count; i++) {
        if (committer->doubtful[i] == offset) {
            return true;
        }
    }
    return offset >= floor && offset <= committer->sent;
}

static void committed(void *owner, const void *message)
{
    struct client *client = owner;
    const struct offset_commit_response *response = message;
    client->checks = world_chance(3);
    bool is_sure = response != NULL && response->topics[0].partitions[0].error_code == KAFKA_NONE;
    if (!is_sure) {
        client->doubtful[client->doubtful_count++ % DOUBTFUL_MOST] = client->sent;
    }
    if (response == NULL) {
        client->knows = false;
        client_later(client, 50);
    } else if (is_good(client, response->topics[0].partitions[0].error_code, "commit")) {
        client->committed = client->sent;
        client_later(client, PACE_MS);
    }
}

static void commit(struct client *client)
{
    char name[NAME];
    struct offset_commit_request_offset_commit_request_partition part =
        offset_commit_request_offset_commit_request_partition_default;
    part.partition_index = 0;
    part.committed_offset = ++client->sent;
    part.committed_metadata = VIEW_EMPTY;
    struct offset_commit_request_offset_commit_request_topic topic =
        offset_commit_request_offset_commit_request_topic_default;
    topic.name = VIEW_LITERAL(WORK_TOPIC);
    topic.partitions = &part;
    topic.partitions_count = 1;
    struct offset_commit_request request = offset_commit_request_default;
    request.group_id = group_name(client->number, name);
    request.generation_id_or_member_epoch = -1;
    request.member_id = VIEW_EMPTY;
    request.group_instance_id = VIEW_NULL;
    request.topics = &topic;
    request.topics_count = 1;
    caller_ask(&client->caller, client->node, API_OFFSET_COMMIT, COMMIT_VERSION, &request,
               committed);
}

static void fetched(void *owner, const void *message)
{
    struct client *client = owner;
    const struct offset_fetch_response *response = message;
    if (response == NULL) {
        client->knows = false;
        client_later(client, 50);
        return;
    }
    if (!is_good(client, response->error_code, "OffsetFetch") ||
        !is_good(client, response->topics[0].partitions[0].error_code, "OffsetFetch")) {
        return;
    }
    int64_t offset = response->topics[0].partitions[0].committed_offset;
    world_require(committer_may_have(client, client->committed, offset),
                  "group %d: committed %" PRId64 ", sent %" PRId64 ", read back %" PRId64,
                  client->number, client->committed, client->sent, offset);
    client->committed = offset;
    client->checks = false;
    client->done = clients_are_stopping();
    client_later(client, PACE_MS);
}

void committer_ask_offset(struct client *client, int number, int node, answered *done)
{
    char name[NAME];
    int32_t partition = 0;
    struct offset_fetch_request_offset_fetch_request_topic topic = {
        .name = VIEW_LITERAL(WORK_TOPIC), .partition_indexes = &partition,
        .partition_indexes_count = 1};
    struct offset_fetch_request request = offset_fetch_request_default;
    request.group_id = group_name(number, name);
    request.topics = &topic;
    request.topics_count = 1;
    caller_ask(&client->caller, node, API_OFFSET_FETCH, FETCH_VERSION, &request, done);
}

void committer_next(struct client *client)
{
    assert(client->kind == CLIENT_COMMITTER);
    if (client->done || !client_may_begin(client)) {
        return;
    }
    if (!client->knows) {
        find(client);
    } else if (client->checks || clients_are_stopping()) {
        committer_ask_offset(client, client->number, client->node, fetched);
    } else {
        commit(client);
    }
}
