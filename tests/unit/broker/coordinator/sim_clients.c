/* Clients of the simulation. Each behaves as a stock client would, except that it also crashes,
 * repeats itself and is slow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/delete_groups.h"
#include "messages/describe_groups.h"
#include "messages/heartbeat.h"
#include "messages/join_group.h"
#include "messages/leave_group.h"
#include "messages/offset_commit.h"
#include "messages/offset_delete.h"
#include "messages/offset_fetch.h"
#include "messages/sync_group.h"
#include "tests/unit/broker/coordinator/sim.h"

/* What a request was about; in its arena. */
struct sent {
    struct sim_client *client; /* null: an administrator */
    int group;
    int partition;
    int64_t offset;
    char id[SIM_ID_BYTES];
    int32_t generation;
};

static struct view group_name(struct sim *sim, int group)
{
    return view_text(sim->groups[group].name);
}

static struct harness_request *request_new(struct sim *sim, struct sim_client *client, int group,
                                           enum api_key api, int16_t version)
{
    char name[32];
    snprintf(name, sizeof(name), "r%llu", (unsigned long long)++sim->sent);
    struct harness_request *request = harness_request_new(&sim->harness, name, api, version);
    struct sent *sent = arena_take(&request->arena, 1, sizeof(*sent));
    sent->client = client;
    sent->group = group;
    if (client != NULL) {
        snprintf(sent->id, sizeof(sent->id), "%s", client->id);
        sent->generation = client->generation;
    }
    request->user = sent;
    return request;
}

static void send(struct sim *sim, struct harness_request *request, const void *message)
{
    harness_send(&sim->harness, request, "c", message);
}

/* A copy of the text that lives as long as the request. */
static struct view keep(struct harness_request *request, const char *text)
{
    return arena_copy(&request->arena, view_text(text));
}

static struct view keep_instance(struct harness_request *request, const struct sim_client *client)
{
    return client->instance[0] == '\0' ? VIEW_NULL : keep(request, client->instance);
}

static void join(struct sim *sim, struct sim_client *client)
{
    static const char *const names[3][2] = {
        {"range", "sticky"}, {"sticky", "range"}, {"range", "x"}};
    int16_t version = client->instance[0] != '\0' ? 9 : (int16_t)(sim_below(sim, 2) == 0 ? 9 : 2);
    struct harness_request *request =
        request_new(sim, client, client->group, API_JOIN_GROUP, version);
    struct join_group_request_join_group_request_protocol protocols[2];
    char metadata[16];
    snprintf(metadata, sizeof(metadata), "m%d", (int)sim_below(sim, 3));
    for (int i = 0; i < 2; i++) {
        protocols[i].name = view_text(names[client->protocols][i]);
        protocols[i].metadata = keep(request, metadata);
    }
    struct join_group_request message = join_group_request_default;
    message.group_id = group_name(sim, client->group);
    message.member_id = keep(request, client->id);
    message.group_instance_id = keep_instance(request, client);
    message.protocol_type = view_text("consumer");
    message.session_timeout_ms = 6000 + (int32_t)sim_below(sim, 6000);
    message.rebalance_timeout_ms = 2000 + (int32_t)sim_below(sim, 10000);
    message.protocols = protocols;
    message.protocols_count = 1 + (int32_t)sim_below(sim, 2);
    client->state = CLIENT_JOINING;
    client->expected = request;
    send(sim, request, &message);
}

static void sync_group(struct sim *sim, struct sim_client *client)
{
    struct harness_request *request = request_new(sim, client, client->group, API_SYNC_GROUP, 5);
    struct sync_group_request message = sync_group_request_default;
    message.group_id = group_name(sim, client->group);
    message.member_id = keep(request, client->id);
    message.group_instance_id = keep_instance(request, client);
    message.generation_id = client->generation;
    message.protocol_type = view_text("consumer");
    struct sim_generation *generation =
        &sim->groups[client->group].generations[client->generation];
    message.protocol_name = keep(request, generation->protocol);
    if (client->leads) {
        int count = client->member_count;
        message.assignments =
            arena_take(&request->arena, (size_t)count + 1, sizeof(*message.assignments));
        message.assignments_count = count;
        for (int i = 0; i < count; i++) {
            message.assignments[i].member_id = keep(request, client->members[i]);
            message.assignments[i].assignment = arena_format(
                &request->arena, "%d:%s", client->generation, client->members[i]);
        }
    }
    client->state = CLIENT_SYNCING;
    client->expected = request;
    send(sim, request, &message);
}

static void heartbeat(struct sim *sim, struct sim_client *client)
{
    struct harness_request *request = request_new(sim, client, client->group, API_HEARTBEAT, 4);
    struct heartbeat_request message = heartbeat_request_default;
    message.group_id = group_name(sim, client->group);
    message.member_id = keep(request, client->id);
    message.group_instance_id = keep_instance(request, client);
    message.generation_id = client->generation;
    client->expected = request;
    send(sim, request, &message);
}

static void leave(struct sim *sim, struct sim_client *client)
{
    struct harness_request *request = request_new(sim, client, client->group, API_LEAVE_GROUP, 5);
    struct leave_group_request_member_identity member = leave_group_request_member_identity_default;
    member.member_id = keep(request, client->id);
    member.group_instance_id = keep_instance(request, client);
    struct leave_group_request message = leave_group_request_default;
    message.group_id = group_name(sim, client->group);
    message.members = &member;
    message.members_count = 1;
    client->state = CLIENT_OUT;
    client->id[0] = '\0';
    client->expected = NULL;
    send(sim, request, &message);
}

static void commit(struct sim *sim, struct sim_client *client, int group)
{
    struct harness_request *request = request_new(sim, client, group, API_OFFSET_COMMIT, 9);
    struct sent *sent = request->user;
    sent->partition = (int)sim_below(sim, SIM_PARTITIONS);
    sent->offset = ++sim->groups[group].next[sent->partition];
    struct offset_commit_request_offset_commit_request_partition partition =
        offset_commit_request_offset_commit_request_partition_default;
    partition.partition_index = sent->partition;
    partition.committed_offset = sent->offset;
    struct offset_commit_request_offset_commit_request_topic topic = {
        .name = view_text("t"), .partitions = &partition, .partitions_count = 1};
    struct offset_commit_request message = offset_commit_request_default;
    message.group_id = group_name(sim, group);
    message.generation_id_or_member_epoch = client == NULL ? -1 : client->generation;
    message.member_id = client == NULL ? VIEW_EMPTY : keep(request, client->id);
    message.group_instance_id = client == NULL ? VIEW_NULL : keep_instance(request, client);
    message.topics = &topic;
    message.topics_count = 1;
    send(sim, request, &message);
}

static void fetch(struct sim *sim, int group)
{
    struct harness_request *request = request_new(sim, NULL, group, API_OFFSET_FETCH, 7);
    struct offset_fetch_request message = offset_fetch_request_default;
    message.group_id = group_name(sim, group);
    message.topics_count = -1;
    send(sim, request, &message);
}

static void forget_acks(struct sim_group *group)
{
    for (int i = 0; i < SIM_PARTITIONS; i++) {
        group->acked[i] = -1;
    }
}

static void delete_offsets(struct sim *sim, int group)
{
    struct harness_request *request = request_new(sim, NULL, group, API_OFFSET_DELETE, 0);
    struct offset_delete_request_offset_delete_request_partition partition = {
        .partition_index = (int32_t)sim_below(sim, SIM_PARTITIONS)};
    struct offset_delete_request_offset_delete_request_topic topic = {
        .name = view_text("t"), .partitions = &partition, .partitions_count = 1};
    struct offset_delete_request message = {
        .group_id = group_name(sim, group), .topics = &topic, .topics_count = 1};
    sim->groups[group].deletions++;
    send(sim, request, &message);
}

static void delete_group(struct sim *sim, int group)
{
    struct harness_request *request = request_new(sim, NULL, group, API_DELETE_GROUPS, 2);
    struct view name = group_name(sim, group);
    struct delete_groups_request message = {.groups_names = &name, .groups_names_count = 1};
    sim->groups[group].deletions++;
    send(sim, request, &message);
}

static void describe(struct sim *sim, int group)
{
    struct harness_request *request = request_new(sim, NULL, group, API_DESCRIBE_GROUPS, 6);
    struct view name = group_name(sim, group);
    struct describe_groups_request message = {.groups = &name, .groups_count = 1};
    send(sim, request, &message);
}

/* The client is gone without a word; a static one will come back as the same instance. */
static void crash(struct sim_client *client)
{
    client->state = CLIENT_OUT;
    client->id[0] = '\0';
    client->expected = NULL;
}

static void stable_step(struct sim *sim, struct sim_client *client)
{
    uint64_t dice = sim_below(sim, 100);
    if (dice < 50) {
        heartbeat(sim, client);
    } else if (dice < 80) {
        commit(sim, client, client->group);
    } else if (dice < 85) {
        join(sim, client);
    } else if (dice < 89) {
        leave(sim, client);
    } else if (dice < 92) {
        sync_group(sim, client);
    } else if (dice < 95) {
        crash(client);
    }
}

void sim_client_step(struct sim *sim)
{
    struct sim_client *client = &sim->clients[sim_below(sim, SIM_CLIENTS)];
    uint64_t dice = sim_below(sim, 100);
    switch (client->state) {
    case CLIENT_OUT:
        if (dice < 30) {
            join(sim, client);
        }
        break;
    case CLIENT_JOINED:
        if (dice < 80) {
            sync_group(sim, client);
        } else if (dice < 85) {
            heartbeat(sim, client);
            client->state = CLIENT_JOINED;
        } else if (dice < 88) {
            crash(client);
        }
        break;
    case CLIENT_JOINING:
    case CLIENT_SYNCING:
        if (dice < 2) {
            crash(client);
        } else if (dice < 4) {
            join(sim, client); /* a retry; the first answer does not count any more */
        }
        break;
    case CLIENT_STABLE:
        stable_step(sim, client);
        break;
    }
}

void sim_admin_step(struct sim *sim)
{
    int group = (int)sim_below(sim, SIM_GROUPS);
    uint64_t dice = sim_below(sim, 100);
    if (dice < 50) {
        fetch(sim, group);
    } else if (dice < 70) {
        describe(sim, group);
    } else if (dice < 90) {
        commit(sim, NULL, group);
    } else if (dice < 96) {
        delete_offsets(sim, group);
    } else {
        delete_group(sim, group);
    }
}

static bool lists(char list[][SIM_ID_BYTES], int count, const char *id)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i], id) == 0) {
            return true;
        }
    }
    return false;
}

static void copy_text(char *to, size_t size, struct view text)
{
    snprintf(to, size, "%.*s", (int)text.length, (const char *)text.data);
}

/* All that is said of a generation has to fit together: one leader, one protocol, and only members
 * of the leader's list are answered. Static members may change their id inside a generation. */
static void check_generation(struct sim *sim, struct sim_group *group,
                             const struct join_group_response *response)
{
    char leader[SIM_ID_BYTES];
    char protocol[16];
    char id[SIM_ID_BYTES];
    copy_text(leader, sizeof(leader), response->leader);
    copy_text(protocol, sizeof(protocol), response->protocol_name);
    copy_text(id, sizeof(id), response->member_id);
    if (response->generation_id <= 0 || response->generation_id >= SIM_GENERATIONS_MAX) {
        sim_fail(sim, "a generation out of range", id);
    }
    if (response->generation_id < group->newest) {
        sim_fail(sim, "a generation that goes backwards", id);
    }
    group->newest = response->generation_id;
    struct sim_generation *generation = &group->generations[response->generation_id];
    if (generation->seen && strcmp(generation->protocol, protocol) != 0) {
        sim_fail(sim, "two protocols in one generation", protocol);
    }
    if (generation->seen && !group->has_static && strcmp(generation->leader, leader) != 0) {
        sim_fail(sim, "two leaders in one generation", leader);
    }
    snprintf(generation->leader, sizeof(generation->leader), "%s", leader);
    snprintf(generation->protocol, sizeof(generation->protocol), "%s", protocol);
    generation->seen = true;
    if (response->members_count > 0) {
        if (strcmp(leader, id) != 0) {
            sim_fail(sim, "the member list went to somebody else than the leader", id);
        }
        generation->member_count = 0;
        for (int32_t i = 0; i < response->members_count && i < SIM_MEMBERS_MAX; i++) {
            copy_text(generation->members[generation->member_count++], SIM_ID_BYTES,
                      response->members[i].member_id);
        }
        generation->leader_known = true;
    }
    if (!lists(generation->answered, generation->answered_count, id) &&
        generation->answered_count < SIM_MEMBERS_MAX) {
        snprintf(generation->answered[generation->answered_count++], SIM_ID_BYTES, "%s", id);
    }
    bool is_exact = generation->leader_known && !group->has_static;
    for (int i = 0; is_exact && i < generation->answered_count; i++) {
        if (!lists(generation->members, generation->member_count, generation->answered[i])) {
            sim_fail(sim, "a member that the leader does not know", generation->answered[i]);
        }
    }
}

static void join_answered(struct sim *sim, struct harness_request *request, const struct sent *sent,
                          const struct join_group_response *response)
{
    struct sim_client *client = sent->client;
    struct sim_group *group = &sim->groups[sent->group];
    if (response->error_code == KAFKA_NONE) {
        check_generation(sim, group, response);
        sim->counts[0]++;
    }
    if (client->expected != request) {
        return;
    }
    client->expected = NULL;
    client->state = CLIENT_OUT;
    switch (response->error_code) {
    case KAFKA_NONE:
        client->state = CLIENT_JOINED;
        client->generation = response->generation_id;
        copy_text(client->id, sizeof(client->id), response->member_id);
        client->leads = response->members_count > 0;
        client->member_count = 0;
        for (int32_t i = 0; i < response->members_count && i < SIM_MEMBERS_MAX; i++) {
            copy_text(client->members[client->member_count++], SIM_ID_BYTES,
                      response->members[i].member_id);
        }
        break;
    case KAFKA_MEMBER_ID_REQUIRED:
        copy_text(client->id, sizeof(client->id), response->member_id);
        break;
    case KAFKA_REBALANCE_IN_PROGRESS:
    case KAFKA_NOT_COORDINATOR:
        break;
    default:
        client->id[0] = '\0';
        break;
    }
}

static void sync_answered(struct sim *sim, struct harness_request *request, const struct sent *sent,
                          const struct sync_group_response *response)
{
    struct sim_client *client = sent->client;
    if (response->error_code == KAFKA_NONE) {
        sim->counts[1]++;
        char wanted[SIM_ID_BYTES + 16];
        snprintf(wanted, sizeof(wanted), "%d:%s", sent->generation, sent->id);
        bool is_static = client->instance[0] != '\0';
        if (response->assignment.length > 0 && !is_static &&
            !view_is(response->assignment, wanted)) {
            sim_fail(sim, "an assignment of somebody else, or of another generation", wanted);
        }
    }
    if (client->expected != request) {
        return;
    }
    client->expected = NULL;
    client->state = response->error_code == KAFKA_NONE ? CLIENT_STABLE : CLIENT_OUT;
    if (response->error_code == KAFKA_UNKNOWN_MEMBER_ID ||
        response->error_code == KAFKA_FENCED_INSTANCE_ID ||
        response->error_code == KAFKA_ILLEGAL_GENERATION) {
        client->id[0] = '\0';
    }
}

static void heartbeat_answered(struct sim *sim, struct harness_request *request,
                               const struct sent *sent, const struct heartbeat_response *response)
{
    struct sim_client *client = sent->client;
    if (client->expected != request) {
        return;
    }
    client->expected = NULL;
    if (response->error_code == KAFKA_REBALANCE_IN_PROGRESS) {
        client->state = CLIENT_OUT; /* it joins again with its id */
    } else if (response->error_code != KAFKA_NONE) {
        crash(client);
    }
    sim->counts[2]++;
}

static void commit_answered(struct sim *sim, const struct sent *sent,
                            const struct offset_commit_response *response)
{
    if (response->topics_count != 1 || response->topics[0].partitions_count != 1) {
        sim_fail(sim, "a commit answered for other partitions", "");
    }
    struct sim_group *group = &sim->groups[sent->group];
    int64_t *acked = &group->acked[sent->partition];
    if (response->topics[0].partitions[0].error_code == KAFKA_NONE) {
        sim->counts[3]++;
        *acked = *acked < sent->offset ? sent->offset : *acked;
    }
}

static void fetch_answered(struct sim *sim, const struct sent *sent,
                           const struct offset_fetch_response *response)
{
    const struct sim_group *group = &sim->groups[sent->group];
    int64_t found[SIM_PARTITIONS] = {-1, -1, -1};
    for (int32_t i = 0; response->topics_count > 0 && i < response->topics[0].partitions_count;
         i++) {
        found[response->topics[0].partitions[i].partition_index] =
            response->topics[0].partitions[i].committed_offset;
    }
    for (int i = 0; group->deletions == 0 && i < SIM_PARTITIONS; i++) {
        char detail[96];
        snprintf(detail, sizeof(detail), "%s %d: %lld after %lld", group->name, i,
                 (long long)found[i], (long long)group->acked[i]);
        if (found[i] < group->acked[i]) {
            sim_fail(sim, "a committed offset went backwards", detail);
        }
    }
    sim->counts[4]++;
}

static void deletion_answered(struct sim *sim, const struct sent *sent)
{
    struct sim_group *group = &sim->groups[sent->group];
    group->deletions--;
    forget_acks(group);
}

static void group_deleted(struct sim *sim, const struct sent *sent,
                          const struct delete_groups_response *response)
{
    deletion_answered(sim, sent);
    if (response->results[0].error_code == KAFKA_NONE) {
        sim->counts[5]++;
    }
}

void sim_on_answer(struct harness *harness, struct harness_request *request, const void *response)
{
    struct sim *sim = harness->user;
    const struct sent *sent = request->user;
    sim->answered++;
    switch (request->api) {
    case API_JOIN_GROUP:
        join_answered(sim, request, sent, response);
        break;
    case API_SYNC_GROUP:
        sync_answered(sim, request, sent, response);
        break;
    case API_HEARTBEAT:
        heartbeat_answered(sim, request, sent, response);
        break;
    case API_OFFSET_COMMIT:
        commit_answered(sim, sent, response);
        break;
    case API_OFFSET_FETCH:
        fetch_answered(sim, sent, response);
        break;
    case API_OFFSET_DELETE:
        deletion_answered(sim, sent);
        break;
    case API_DELETE_GROUPS:
        group_deleted(sim, sent, response);
        break;
    default:
        break;
    }
}

void sim_forget_generations(struct sim *sim, int group)
{
    sim->groups[group].newest = 0;
    memset(sim->groups[group].generations, 0,
           SIM_GENERATIONS_MAX * sizeof(*sim->groups[group].generations));
}
