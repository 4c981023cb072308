/* A member of a consumer group (the classic protocol): it joins, gets its partitions, reads where
 * they were left, commits rising offsets and tells that it lives; it leaves, sleeps and comes back.
 *
 * Whoever owns a partition in a generation owns it alone. What the group committed never goes back:
 * a member whose commit is not answered joins anew, so that a late copy of it is of an old
 * generation, which is refused. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "messages/errors.h"
#include "messages/heartbeat.h"
#include "messages/join_group.h"
#include "messages/leave_group.h"
#include "messages/offset_commit.h"
#include "messages/offset_fetch.h"
#include "messages/sync_group.h"
#include "protocol/crc32c.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/world.h"

enum {
    JOIN_VERSION = 5, SYNC_VERSION = 3, HEARTBEAT_VERSION = 3, LEAVE_VERSION = 3,
    COMMIT_VERSION = 7, FETCH_VERSION = 7, SESSION_MS = 6000, REBALANCE_MS = 2500, PACE_MS = 400,
    SLEEP_MS = 9000, ASSIGNMENT = 5, GENERATIONS_KEPT = 64, MEMBERS_MOST = 8
};

#define GROUP_NAME VIEW_LITERAL("members")

/* Who owned what in a generation: a checksum of the member's id, or 0. */
struct generation {
    int32_t number;
    uint32_t owners[MODEL_PARTITIONS];
};

static struct generation generations[GENERATIONS_KEPT];
static int32_t newest;           /* generation that a member had its part of */
static int64_t acked[MODEL_PARTITIONS];
static int64_t tried[MODEL_PARTITIONS];

void members_start(void)
{
    memset(generations, 0, sizeof generations);
    newest = 0;
    for (int i = 0; i < MODEL_PARTITIONS; i++) {
        acked[i] = -1;
        tried[i] = -1;
    }
}

/* It has to join; as another member, when its id is not known any more. */
static void get_out(struct client *client, bool forget)
{
    client->member.is_in = false;
    client->done = false;
    if (forget) {
        client->member.id[0] = '\0';
    }
}

/* Whether the answer is good; else what to do next is clear. */
static bool is_good(struct client *client, const int16_t *error, const char *what)
{
    if (error != NULL && *error == KAFKA_NONE) {
        return true;
    }
    if (error == NULL || client_may_retry(*error)) {
        client->knows = false;
    } else if (*error == KAFKA_UNKNOWN_MEMBER_ID) {
        get_out(client, true);
    } else {
        world_require(*error == KAFKA_ILLEGAL_GENERATION || *error == KAFKA_REBALANCE_IN_PROGRESS,
                      "%s of member %d: error %d", what, client->number, *error);
        get_out(client, false);
    }
    client_later(client, 100);
    return false;
}

/* ---- Joining ------------------------------------------------------------------------------- */

/* Nobody else may own these partitions in this generation. */
static void note_owned(const struct client *client, unsigned owned)
{
    const struct member *member = &client->member;
    uint32_t self = crc32c(view_text(member->id)) | 1;
    struct generation *slot = &generations[member->generation % GENERATIONS_KEPT];
    if (slot->number < member->generation) {
        *slot = (struct generation){.number = member->generation};
    }
    for (int i = 0; slot->number == member->generation && i < MODEL_PARTITIONS; i++) {
        if ((owned >> i & 1) != 0) {
            world_require(slot->owners[i] == 0 || slot->owners[i] == self,
                          "partition %d has two owners in generation %d", i, member->generation);
            slot->owners[i] = self;
        }
    }
    newest = member->generation > newest ? member->generation : newest;
}

static void synced(void *owner, const void *message)
{
    struct client *client = owner;
    struct member *member = &client->member;
    const struct sync_group_response *response = message;
    if (!is_good(client, response == NULL ? NULL : &response->error_code, "SyncGroup")) {
        return;
    }
    struct view part = response->assignment;
    world_require(part.length == ASSIGNMENT, "an assignment of %zu bytes", part.length);
    world_require((int32_t)load_be32(part.data) == member->generation,
                  "an assignment of generation %d in generation %d", (int)load_be32(part.data),
                  member->generation);
    member->owned = part.data[4];
    note_owned(client, member->owned);
    world_say("member %d has partitions %x in generation %d", client->number, member->owned,
              member->generation);
    member->is_in = true;
    member->must_read = true;
    client_later(client, 10);
}

/* Its leader gives each partition to one member. */
static void sync(struct client *client, const struct join_group_response *joined)
{
    struct member *member = &client->member;
    struct sync_group_request_sync_group_request_assignment parts[MEMBERS_MOST];
    uint8_t bytes[MEMBERS_MOST][ASSIGNMENT];
    int count = joined->members_count;
    world_require(count >= 0 && count <= MEMBERS_MOST, "a group of %d members", count);
    for (int i = 0; i < count; i++) {
        unsigned mask = 0;
        for (int p = 0; p < MODEL_PARTITIONS; p++) {
            mask |= (p + member->generation) % count == i ? 1u << p : 0;
        }
        store_be32(bytes[i], (uint32_t)member->generation);
        bytes[i][4] = (uint8_t)mask;
        parts[i].member_id = joined->members[i].member_id;
        parts[i].assignment = (struct view){bytes[i], ASSIGNMENT};
    }
    struct sync_group_request request = sync_group_request_default;
    request.group_id = GROUP_NAME;
    request.generation_id = member->generation;
    request.member_id = view_text(member->id);
    request.group_instance_id = VIEW_NULL;
    request.assignments = parts;
    request.assignments_count = count;
    caller_ask(&client->caller, client->node, API_SYNC_GROUP, SYNC_VERSION, &request, synced);
}

static void joined(void *owner, const void *message)
{
    struct client *client = owner;
    struct member *member = &client->member;
    const struct join_group_response *response = message;
    bool has_id = response != NULL && (response->error_code == KAFKA_NONE ||
                                       response->error_code == KAFKA_MEMBER_ID_REQUIRED);
    if (has_id) {
        snprintf(member->id, sizeof member->id, "%.*s", VIEW_PRINT(response->member_id));
    }
    if (has_id && response->error_code == KAFKA_MEMBER_ID_REQUIRED) {
        client_later(client, 1);
    } else if (is_good(client, response == NULL ? NULL : &response->error_code, "JoinGroup")) {
        world_require(response->generation_id >= member->newest,
                      "generation %d was there, and now comes %d", member->newest,
                      response->generation_id);
        member->generation = response->generation_id;
        sync(client, response);
    }
}

/* What it says of itself differs each time, so that each join makes another generation. */
static void join(struct client *client)
{
    struct member *member = &client->member;
    uint8_t count[sizeof(uint64_t)];
    store_be64(count, ++member->joins);
    struct join_group_request_join_group_request_protocol protocol = {
        .name = VIEW_LITERAL("parts"), .metadata = {count, sizeof count}};
    struct join_group_request request = join_group_request_default;
    request.group_id = GROUP_NAME;
    request.session_timeout_ms = SESSION_MS;
    request.rebalance_timeout_ms = REBALANCE_MS;
    request.member_id = view_text(member->id);
    request.group_instance_id = VIEW_NULL;
    request.protocol_type = VIEW_LITERAL("consumer");
    request.protocols = &protocol;
    request.protocols_count = 1;
    member->newest = newest;
    caller_ask(&client->caller, client->node, API_JOIN_GROUP, JOIN_VERSION, &request, joined);
}

/* ---- Being a member ------------------------------------------------------------------------ */

static void beaten(void *owner, const void *message)
{
    struct client *client = owner;
    const struct heartbeat_response *response = message;
    if (client->member.is_late) {
        world_require(response == NULL || response->error_code != KAFKA_NONE,
                      "a heartbeat of generation %d is taken", client->member.generation - 1);
        client_later(client, PACE_MS);
    } else if (is_good(client, response == NULL ? NULL : &response->error_code, "Heartbeat")) {
        world_require(client->member.generation >= client->member.newest,
                      "a heartbeat of generation %d is taken in generation %d",
                      client->member.generation, client->member.newest);
        client_later(client, PACE_MS);
    }
}

/* Or as if the latest rebalance had not been. */
static void beat(struct client *client, bool is_late)
{
    struct heartbeat_request request = heartbeat_request_default;
    request.group_id = GROUP_NAME;
    request.generation_id = client->member.generation - is_late;
    request.member_id = view_text(client->member.id);
    request.group_instance_id = VIEW_NULL;
    client->member.newest = newest;
    client->member.is_late = is_late;
    caller_ask(&client->caller, client->node, API_HEARTBEAT, HEARTBEAT_VERSION, &request, beaten);
}

static void left(void *owner, const void *message)
{
    struct client *client = owner;
    (void)message;
    get_out(client, true);
    client_later(client, PACE_MS);
}

static void leave(struct client *client)
{
    struct leave_group_request_member_identity self = leave_group_request_member_identity_default;
    self.member_id = view_text(client->member.id);
    self.group_instance_id = VIEW_NULL;
    struct leave_group_request request = leave_group_request_default;
    request.group_id = GROUP_NAME;
    request.members = &self;
    request.members_count = 1;
    world_say("member %d leaves", client->number);
    caller_ask(&client->caller, client->node, API_LEAVE_GROUP, LEAVE_VERSION, &request, left);
}

static void committed(void *owner, const void *message)
{
    struct client *client = owner;
    struct member *member = &client->member;
    const struct offset_commit_response *response = message;
    int16_t error = response == NULL ? KAFKA_REQUEST_TIMED_OUT
                                     : response->topics[0].partitions[0].error_code;
    int32_t generation = member->generation - member->is_late;
    world_require(error != KAFKA_NONE || generation >= member->newest,
                  "a commit of generation %d is taken in generation %d", generation,
                  member->newest);
    if (member->is_late) {
        client_later(client, PACE_MS);
        return;
    }
    if (is_good(client, &error, "OffsetCommit")) {
        int64_t *most = &acked[member->partition];
        int64_t offset = member->positions[member->partition];
        *most = offset > *most ? offset : *most;
        client_later(client, PACE_MS);
    } else {
        get_out(client, false); /* it may still come in: but not in another generation */
    }
}

/* One of its own partitions, further on; or, as an old generation's, where it was long ago. */
static void commit(struct client *client, bool is_late)
{
    struct member *member = &client->member;
    int p = (int)world_random(MODEL_PARTITIONS);
    while ((member->owned >> p & 1) == 0) {
        p = (p + 1) % MODEL_PARTITIONS;
    }
    struct offset_commit_request_offset_commit_request_partition part =
        offset_commit_request_offset_commit_request_partition_default;
    part.partition_index = p;
    part.committed_offset = is_late ? 0 : ++member->positions[p];
    part.committed_metadata = VIEW_EMPTY;
    struct offset_commit_request_offset_commit_request_topic topic =
        offset_commit_request_offset_commit_request_topic_default;
    topic.name = VIEW_LITERAL(WORK_TOPIC);
    topic.partitions = &part;
    topic.partitions_count = 1;
    struct offset_commit_request request = offset_commit_request_default;
    request.group_id = GROUP_NAME;
    request.generation_id_or_member_epoch = member->generation - is_late;
    request.member_id = view_text(member->id);
    request.group_instance_id = VIEW_NULL;
    request.topics = &topic;
    request.topics_count = 1;
    member->partition = p;
    member->is_late = is_late;
    member->newest = newest;
    if (!is_late && member->positions[p] > tried[p]) {
        tried[p] = member->positions[p];
    }
    caller_ask(&client->caller, client->node, API_OFFSET_COMMIT, COMMIT_VERSION, &request,
               committed);
}

static void fetched(void *owner, const void *message)
{
    struct client *client = owner;
    struct member *member = &client->member;
    const struct offset_fetch_response *response = message;
    const int16_t *error = response == NULL ? NULL : &response->error_code;
    if (error != NULL && *error == KAFKA_NONE) {
        error = &response->topics[0].partitions[0].error_code;
    }
    if (!is_good(client, error, "OffsetFetch")) {
        return;
    }
    for (int i = 0; i < MODEL_PARTITIONS; i++) {
        int64_t offset = response->topics[0].partitions[i].committed_offset;
        world_require(response->topics[0].partitions[i].partition_index == i &&
                      offset >= member->floors[i] && offset <= tried[i],
                      "members, partition %d: committed %" PRId64 ", sent %" PRId64
                      ", read back %" PRId64, i, member->floors[i], tried[i], offset);
        member->positions[i] = offset;
    }
    member->must_read = false;
    if (member->generation < newest) {
        get_out(client, false); /* the others went on without it */
    } else {
        client->done = clients_are_stopping();
    }
    client_later(client, PACE_MS);
}

/* All partitions, its own and the others'. */
static void fetch(struct client *client)
{
    int32_t partitions[MODEL_PARTITIONS];
    for (int i = 0; i < MODEL_PARTITIONS; i++) {
        partitions[i] = i;
        client->member.floors[i] = acked[i];
    }
    struct offset_fetch_request_offset_fetch_request_topic topic = {
        .name = VIEW_LITERAL(WORK_TOPIC), .partition_indexes = partitions,
        .partition_indexes_count = MODEL_PARTITIONS};
    struct offset_fetch_request request = offset_fetch_request_default;
    request.group_id = GROUP_NAME;
    request.topics = &topic;
    request.topics_count = 1;
    caller_ask(&client->caller, client->node, API_OFFSET_FETCH, FETCH_VERSION, &request, fetched);
}

/* It does nothing, for so long that the others may go on without it; then it commits as if nothing
 * had been. */
static void sleep_long(struct client *client)
{
    world_say("member %d sleeps", client->number);
    client_later(client, SLEEP_MS);
}

static void be_a_member(struct client *client)
{
    const struct member *member = &client->member;
    switch (world_random(40)) {
    case 0:
        leave(client);
        break;
    case 1:
        sleep_long(client);
        break;
    case 2:
        get_out(client, false);
        client_later(client, 1);
        break;
    case 3: case 4: case 5:
        if (member->owned != 0 && member->generation > 1 && world_chance(2)) {
            commit(client, true);
            break;
        }
        beat(client, member->generation > 1);
        break;
    default:
        if (member->owned != 0 && world_chance(2)) {
            commit(client, false);
            break;
        }
        beat(client, false);
        break;
    }
}

void member_next(struct client *client)
{
    assert(client->kind == CLIENT_MEMBER);
    if (!client_may_begin(client)) {
        return;
    }
    if (!client->knows) {
        client_find_coordinator(client, GROUP_NAME);
    } else if (!client->member.is_in) {
        join(client);
    } else if (client->member.must_read || (clients_are_stopping() && !client->done)) {
        fetch(client);
    } else if (clients_are_stopping()) {
        beat(client, false);
    } else {
        be_a_member(client);
    }
}
