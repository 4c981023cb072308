/* Moves the partitions of the work topic while everything goes on: to other replicas, back again
 * before they are there, and to others still; lets preferred replicas lead, and adds partitions,
 * which nobody writes to. In the end nothing moves any more, and what was asked for last is so. */
#include <assert.h>
#include <inttypes.h>

#include "messages/alter_partition_reassignments.h"
#include "messages/create_partitions.h"
#include "messages/elect_leaders.h"
#include "messages/errors.h"
#include "messages/list_partition_reassignments.h"
#include "messages/metadata.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

enum {
    ALTER_VERSION = 1, LIST_VERSION = 0, ELECT_VERSION = 2, GROW_VERSION = 3,
    TIMEOUT_MS = 2000, PACE_MS = 1500, AGAIN_MS = 600, PARTITIONS_MOST = 7,
    DOUBT_MS = 15000             /* so long may a try that nobody answered still take effect */
};

static void end_turn(struct client *client, const int16_t *error, const char *what)
{
    world_require(error == NULL || *error == KAFKA_NONE || client_may_retry(*error),
                  "%s of partition %d: error %d", what, client->partition,
                  error == NULL ? 0 : *error);
    client_later(client, client->mover.repeats ? AGAIN_MS : PACE_MS);
}

/* ---- Moves --------------------------------------------------------------------------------- */

static void note_asked(struct client *client)
{
    struct mover *mover = &client->mover;
    struct wanted *wanted = &mover->wanted[client->partition];
    uint64_t sure_ns = wanted->doubt_ns + (uint64_t)DOUBT_MS * MS_NS;
    wanted->is_known = !mover->cancels && (wanted->doubt_ns == 0 || world.now_ns > sure_ns);
    for (int i = 0; i < REPLICAS_MOST; i++) {
        wanted->replicas[i] = mover->asked[i];
    }
}

static void altered(void *owner, const void *message)
{
    struct client *client = owner;
    const struct alter_partition_reassignments_response *response = message;
    int16_t error = response == NULL ? KAFKA_REQUEST_TIMED_OUT : response->error_code;
    if (error == KAFKA_NONE) {
        error = response->responses[0].partitions[0].error_code;
    }
    if (error == KAFKA_NONE) {
        note_asked(client);
        client->mover.repeats = world_chance(3);
    } else if (client_may_retry(error)) {
        client->mover.wanted[client->partition].doubt_ns = world.now_ns;
        client->mover.wanted[client->partition].is_known = false;
    } else {
        /* Nothing to give up; or a broker that is not registered yet. */
        int16_t expected = client->mover.cancels ? KAFKA_NO_REASSIGNMENT_IN_PROGRESS
                                                 : KAFKA_INVALID_REPLICA_ASSIGNMENT;
        world_require(error == expected, "a move of partition %d: error %d", client->partition,
                      error);
        error = KAFKA_NONE;
    }
    end_turn(client, &error, "a move");
}

/* Some of the nodes, in any order. */
static void choose(int32_t replicas[REPLICAS_MOST])
{
    int32_t all[NODES_MAX];
    for (int i = 0; i < cluster.count; i++) {
        all[i] = i + 1;
    }
    for (int i = 0; i < REPLICAS_MOST; i++) {
        int other = i + (int)world_random((uint64_t)(cluster.count - i));
        replicas[i] = all[other];
        all[other] = all[i];
    }
}

static void alter(struct client *client, bool cancels)
{
    struct mover *mover = &client->mover;
    choose(mover->asked);
    mover->cancels = cancels;
    struct alter_partition_reassignments_request_reassignable_partition part =
        alter_partition_reassignments_request_reassignable_partition_default;
    part.partition_index = client->partition;
    part.replicas = cancels ? NULL : mover->asked;
    part.replicas_count = cancels ? -1 : REPLICAS_MOST;
    struct alter_partition_reassignments_request_reassignable_topic topic =
        alter_partition_reassignments_request_reassignable_topic_default;
    topic.name = VIEW_LITERAL(WORK_TOPIC);
    topic.partitions = &part;
    topic.partitions_count = 1;
    struct alter_partition_reassignments_request request =
        alter_partition_reassignments_request_default;
    request.timeout_ms = TIMEOUT_MS;
    request.topics = &topic;
    request.topics_count = 1;
    if (cancels) {
        world_say("the move of partition %d is given up", client->partition);
    } else {
        world_say("partition %d shall be on %d, %d, %d", client->partition, mover->asked[0],
                  mover->asked[1], mover->asked[2]);
    }
    caller_ask(&client->caller, client_any_node(), API_ALTER_PARTITION_REASSIGNMENTS,
               ALTER_VERSION, &request, altered);
}

/* ---- Leaders and partitions ---------------------------------------------------------------- */

static void elected(void *owner, const void *message)
{
    struct client *client = owner;
    const struct elect_leaders_response *response = message;
    int16_t error = response == NULL ? KAFKA_NONE : response->error_code;
    if (response != NULL && error == KAFKA_NONE) {
        error = response->replica_election_results[0].partition_result[0].error_code;
    }
    bool refused = error == KAFKA_ELECTION_NOT_NEEDED ||
                   error == KAFKA_PREFERRED_LEADER_NOT_AVAILABLE;
    error = refused ? KAFKA_NONE : error;
    end_turn(client, &error, "ElectLeaders");
}

static void elect(struct client *client)
{
    int32_t partition = client->partition;
    struct elect_leaders_request_topic_partitions topic =
        elect_leaders_request_topic_partitions_default;
    topic.topic = VIEW_LITERAL(WORK_TOPIC);
    topic.partitions = &partition;
    topic.partitions_count = 1;
    struct elect_leaders_request request = elect_leaders_request_default;
    request.topic_partitions = &topic;
    request.topic_partitions_count = 1;
    request.timeout_ms = TIMEOUT_MS;
    caller_ask(&client->caller, client_any_node(), API_ELECT_LEADERS, ELECT_VERSION, &request,
               elected);
}

static void grown(void *owner, const void *message)
{
    struct client *client = owner;
    const struct create_partitions_response *response = message;
    int16_t error = response == NULL ? KAFKA_NONE : response->results[0].error_code;
    /* There are as many: an earlier try was done. Or more would move. */
    bool refused = error == KAFKA_INVALID_PARTITIONS || error == KAFKA_REASSIGNMENT_IN_PROGRESS;
    error = refused ? KAFKA_NONE : error;
    end_turn(client, &error, "CreatePartitions");
}

static void grow(struct client *client)
{
    struct create_partitions_request_create_partitions_topic topic =
        create_partitions_request_create_partitions_topic_default;
    topic.name = VIEW_LITERAL(WORK_TOPIC);
    topic.count = ++client->mover.partition_count;
    topic.assignments_count = -1;
    struct create_partitions_request request = create_partitions_request_default;
    request.topics = &topic;
    request.topics_count = 1;
    request.timeout_ms = TIMEOUT_MS;
    world_say("%d partitions are asked for", topic.count);
    caller_ask(&client->caller, client_any_node(), API_CREATE_PARTITIONS, GROW_VERSION, &request,
               grown);
}

/* ---- The end ------------------------------------------------------------------------------- */

/* Whether the partition is where it shall be; the node that is asked may not know it at once. */
static bool is_there(const struct client *client,
                     const struct metadata_response_metadata_response_partition *part)
{
    int32_t partition = part->partition_index;
    if (partition >= MODEL_PARTITIONS || !client->mover.wanted[partition].is_known) {
        return true;
    }
    const int32_t *wanted = client->mover.wanted[partition].replicas;
    bool is_same = part->replica_nodes_count == REPLICAS_MOST;
    for (int i = 0; is_same && i < REPLICAS_MOST; i++) {
        is_same = part->replica_nodes[i] == wanted[i];
    }
    if (!is_same) {
        world_say("partition %d was moved to %d, %d, %d and is not there", partition, wanted[0],
                  wanted[1], wanted[2]);
    }
    return is_same;
}

static void told(void *owner, const void *message)
{
    struct client *client = owner;
    const struct metadata_response *response = message;
    if (response != NULL && response->topics_count == 1 &&
        response->topics[0].error_code == KAFKA_NONE) {
        bool all_there = true;
        for (int32_t i = 0; i < response->topics[0].partitions_count; i++) {
            all_there = is_there(client, &response->topics[0].partitions[i]) && all_there;
        }
        client->done = all_there;
    }
    client_later(client, 300);
}

static void listed(void *owner, const void *message)
{
    struct client *client = owner;
    const struct list_partition_reassignments_response *response = message;
    bool is_over = response != NULL && response->error_code == KAFKA_NONE &&
                   response->topics_count == 0;
    if (is_over) {
        client_ask_places(client, client->caller.node, told);
    } else {
        client_later(client, 300);
    }
}

static void list(struct client *client)
{
    struct list_partition_reassignments_request request =
        list_partition_reassignments_request_default;
    request.timeout_ms = TIMEOUT_MS;
    request.topics_count = -1;
    caller_ask(&client->caller, client_any_node(), API_LIST_PARTITION_REASSIGNMENTS, LIST_VERSION,
               &request, listed);
}

void mover_next(struct client *client)
{
    assert(client->kind == CLIENT_MOVER);
    if (client->done || !client_may_begin(client)) {
        return;
    }
    if (clients_are_stopping()) {
        list(client);
        return;
    }
    if (client->mover.repeats) {
        client->mover.repeats = false;
        alter(client, false);
        return;
    }
    client->partition = (int)world_random(MODEL_PARTITIONS);
    switch (world_random(8)) {
    case 0:
        alter(client, true);
        break;
    case 1: case 2:
        elect(client);
        break;
    case 3:
        if (client->mover.partition_count < PARTITIONS_MOST) {
            grow(client);
            break;
        }
        alter(client, false);
        break;
    default:
        alter(client, false);
        break;
    }
}
