/* One builder for each API. Happy path: defaults, then what the line says. */
#include "tests/unit/broker/coordinator/script_requests.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "messages/delete_groups.h"
#include "messages/describe_groups.h"
#include "messages/heartbeat.h"
#include "messages/join_group.h"
#include "messages/leave_group.h"
#include "messages/list_groups.h"
#include "messages/offset_commit.h"
#include "messages/offset_delete.h"
#include "messages/offset_fetch.h"
#include "messages/sync_group.h"
#include "messages/txn_offset_commit.h"

/* A line in work. */
struct building {
    struct harness *harness;
    const struct script_words *words;
    struct harness_request *request;
    struct arena *arena;
};

static struct view text_or_empty(const struct building *b, const char *key)
{
    struct view text = script_words_text(b->words, key, b->arena);
    return text.data == NULL ? VIEW_EMPTY : text;
}

static struct view text_or_null(const struct building *b, const char *key)
{
    return script_words_text(b->words, key, b->arena);
}

static int32_t number(const struct building *b, const char *key, int64_t otherwise)
{
    return (int32_t)script_words_number(b->words, key, otherwise);
}

static void send(const struct building *b, const void *message)
{
    const char *client = script_words_get(b->words, "client");
    harness_send(b->harness, b->request, client == NULL ? "a" : client, message);
}

/* The parts of a comma list under a key; the count. */
static size_t list(const struct building *b, const char *key, char ***parts)
{
    const char *text = script_words_get(b->words, key);
    return script_split(b->arena, text == NULL ? "" : text, ',', parts);
}

static void join(const struct building *b)
{
    struct join_group_request message = join_group_request_default;
    message.group_id = text_or_empty(b, "group");
    message.member_id = text_or_empty(b, "id");
    message.group_instance_id = text_or_null(b, "instance");
    message.session_timeout_ms = number(b, "session", 10000);
    message.rebalance_timeout_ms = number(b, "rebalance", 60000);
    const char *type = script_words_get(b->words, "type");
    message.protocol_type = view_text(type == NULL ? "consumer" : type);
    const char *protocols = script_words_get(b->words, "protocols");
    char **parts;
    size_t count =
        script_split(b->arena, protocols == NULL ? "range:m" : protocols, ',', &parts);
    message.protocols = arena_take(b->arena, count + 1, sizeof(*message.protocols));
    message.protocols_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        char *colon = strchr(parts[i], ':');
        message.protocols[i].metadata = view_text(colon == NULL ? "" : colon + 1);
        message.protocols[i].name =
            (struct view){(uint8_t *)parts[i],
                          colon == NULL ? strlen(parts[i]) : (size_t)(colon - parts[i])};
    }
    send(b, &message);
}

static void sync_group(const struct building *b)
{
    struct sync_group_request message = sync_group_request_default;
    message.group_id = text_or_empty(b, "group");
    message.member_id = text_or_empty(b, "id");
    message.group_instance_id = text_or_null(b, "instance");
    message.generation_id = number(b, "gen", 1);
    message.protocol_type = text_or_null(b, "type");
    message.protocol_name = text_or_null(b, "name");
    char **parts;
    size_t count = list(b, "assign", &parts);
    message.assignments = arena_take(b->arena, count + 1, sizeof(*message.assignments));
    message.assignments_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        char *colon = strchr(parts[i], ':');
        assert(colon != NULL);
        *colon = '\0';
        message.assignments[i].member_id = script_expand(b->arena, parts[i]);
        message.assignments[i].assignment = view_text(colon + 1);
    }
    send(b, &message);
}

static void heartbeat(const struct building *b)
{
    struct heartbeat_request message = heartbeat_request_default;
    message.group_id = text_or_empty(b, "group");
    message.member_id = text_or_empty(b, "id");
    message.group_instance_id = text_or_null(b, "instance");
    message.generation_id = number(b, "gen", 1);
    send(b, &message);
}

static void leave(const struct building *b)
{
    struct leave_group_request message = leave_group_request_default;
    message.group_id = text_or_empty(b, "group");
    message.member_id = text_or_empty(b, "id");
    char **parts;
    size_t count = list(b, "members", &parts);
    message.members = arena_take(b->arena, count + 1, sizeof(*message.members));
    message.members_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        char *slash = strchr(parts[i], '/');
        if (slash != NULL) {
            *slash = '\0';
            message.members[i].group_instance_id = view_text(slash + 1);
        }
        message.members[i].member_id = script_expand(b->arena, parts[i]);
    }
    send(b, &message);
}

/* One topic for each `topic:partition:offset[:metadata[:epoch]]`. */
static struct offset_commit_request_offset_commit_request_topic *
commit_topics(const struct building *b, int32_t *topic_count)
{
    char **parts;
    size_t count = list(b, "offsets", &parts);
    struct offset_commit_request_offset_commit_request_topic *topics =
        arena_take(b->arena, count + 1, sizeof(*topics));
    for (size_t i = 0; i < count; i++) {
        char **fields;
        size_t fields_count = script_split(b->arena, parts[i], ':', &fields);
        assert(fields_count >= 3);
        topics[i].name = view_text(fields[0]);
        memset(topics[i].topic_id.bytes, fields[0][strlen(fields[0]) - 1] - '0', UUID_BYTES);
        topics[i].partitions = arena_take(b->arena, 1, sizeof(*topics[i].partitions));
        topics[i].partitions_count = 1;
        *topics[i].partitions = offset_commit_request_offset_commit_request_partition_default;
        topics[i].partitions->partition_index = atoi(fields[1]);
        topics[i].partitions->committed_offset = atoll(fields[2]);
        topics[i].partitions->committed_metadata =
            fields_count > 3 ? view_text(fields[3]) : VIEW_NULL;
        topics[i].partitions->committed_leader_epoch = fields_count > 4 ? atoi(fields[4]) : -1;
    }
    *topic_count = (int32_t)count;
    return topics;
}

static void commit(const struct building *b)
{
    struct offset_commit_request message = offset_commit_request_default;
    message.group_id = text_or_empty(b, "group");
    message.member_id = text_or_empty(b, "id");
    message.group_instance_id = text_or_null(b, "instance");
    message.generation_id_or_member_epoch = number(b, "gen", -1);
    message.retention_time_ms = script_words_number(b->words, "retention", -1);
    message.topics = commit_topics(b, &message.topics_count);
    send(b, &message);
}

static void txn_commit(const struct building *b)
{
    struct txn_offset_commit_request message = txn_offset_commit_request_default;
    message.group_id = text_or_empty(b, "group");
    message.member_id = text_or_empty(b, "id");
    message.group_instance_id = text_or_null(b, "instance");
    message.generation_id_or_member_epoch = number(b, "gen", -1);
    message.producer_id = number(b, "pid", 1);
    message.producer_epoch = 0;
    message.topics = (void *)commit_topics(b, &message.topics_count);
    send(b, &message);
}

/* `topic:0+1` as topic and partitions. */
static int32_t *partitions_of(const struct building *b, char *part, int32_t *count)
{
    char *colon = strchr(part, ':');
    assert(colon != NULL);
    *colon = '\0';
    char **numbers;
    *count = (int32_t)script_split(b->arena, colon + 1, '+', &numbers);
    int32_t *partitions = arena_take(b->arena, (size_t)*count + 1, sizeof(*partitions));
    for (int32_t i = 0; i < *count; i++) {
        partitions[i] = atoi(numbers[i]);
    }
    return partitions;
}

static void fetch_old(const struct building *b, struct offset_fetch_request *message, char **parts,
                      size_t count)
{
    message->group_id = text_or_empty(b, "group");
    message->topics = arena_take(b->arena, count + 1, sizeof(*message->topics));
    message->topics_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        message->topics[i].partition_indexes =
            partitions_of(b, parts[i], &message->topics[i].partition_indexes_count);
        message->topics[i].name = view_text(parts[i]);
    }
    message->topics_count = script_words_get(b->words, "topics") == NULL ? -1 : (int32_t)count;
}

static void fetch(const struct building *b)
{
    struct offset_fetch_request message = offset_fetch_request_default;
    message.require_stable = number(b, "stable", 0) != 0;
    char **parts;
    size_t count = list(b, "topics", &parts);
    if (b->request->version < 8) {
        fetch_old(b, &message, parts, count);
        send(b, &message);
        return;
    }
    message.groups = arena_take(b->arena, 1, sizeof(*message.groups));
    message.groups_count = 1;
    struct offset_fetch_request_offset_fetch_request_group *group = message.groups;
    *group = offset_fetch_request_offset_fetch_request_group_default;
    group->group_id = text_or_empty(b, "group");
    group->topics = arena_take(b->arena, count + 1, sizeof(*group->topics));
    for (size_t i = 0; i < count; i++) {
        group->topics[i].partition_indexes =
            partitions_of(b, parts[i], &group->topics[i].partition_indexes_count);
        group->topics[i].name = view_text(parts[i]);
        memset(group->topics[i].topic_id.bytes, parts[i][strlen(parts[i]) - 1] - '0', UUID_BYTES);
    }
    group->topics_count = script_words_get(b->words, "topics") == NULL ? -1 : (int32_t)count;
    send(b, &message);
}

static void delete_offsets(const struct building *b)
{
    struct offset_delete_request message = offset_delete_request_default;
    message.group_id = text_or_empty(b, "group");
    char **parts;
    size_t count = list(b, "topics", &parts);
    message.topics = arena_take(b->arena, count + 1, sizeof(*message.topics));
    message.topics_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        int32_t *partitions = partitions_of(b, parts[i], &message.topics[i].partitions_count);
        message.topics[i].name = view_text(parts[i]);
        message.topics[i].partitions =
            arena_take(b->arena, (size_t)message.topics[i].partitions_count + 1,
                       sizeof(*message.topics[i].partitions));
        for (int32_t k = 0; k < message.topics[i].partitions_count; k++) {
            message.topics[i].partitions[k].partition_index = partitions[k];
        }
    }
    send(b, &message);
}

/* A comma list as an array of strings. */
static struct view *views(const struct building *b, const char *key, int32_t *count)
{
    char **parts;
    *count = (int32_t)list(b, key, &parts);
    struct view *result = arena_take(b->arena, (size_t)*count + 1, sizeof(*result));
    for (int32_t i = 0; i < *count; i++) {
        result[i] = view_text(parts[i]);
    }
    return result;
}

static void list_groups(const struct building *b)
{
    struct list_groups_request message = list_groups_request_default;
    message.states_filter = views(b, "states", &message.states_filter_count);
    message.types_filter = views(b, "types", &message.types_filter_count);
    send(b, &message);
}

static void describe(const struct building *b)
{
    struct describe_groups_request message = describe_groups_request_default;
    message.groups = views(b, "groups", &message.groups_count);
    send(b, &message);
}

static void delete_groups(const struct building *b)
{
    struct delete_groups_request message = delete_groups_request_default;
    message.groups_names = views(b, "groups", &message.groups_names_count);
    send(b, &message);
}

struct command {
    const char *name;
    enum api_key api;
    int16_t version; /* unless the line says another */
    void (*build)(const struct building *b);
};

static const struct command commands[] = {
    {"join", API_JOIN_GROUP, 9, join},
    {"sync", API_SYNC_GROUP, 4, sync_group},
    {"heartbeat", API_HEARTBEAT, 4, heartbeat},
    {"leave", API_LEAVE_GROUP, 5, leave},
    {"commit", API_OFFSET_COMMIT, 9, commit},
    {"txn-commit", API_TXN_OFFSET_COMMIT, 5, txn_commit},
    {"fetch", API_OFFSET_FETCH, 9, fetch},
    {"delete-offsets", API_OFFSET_DELETE, 0, delete_offsets},
    {"list", API_LIST_GROUPS, 5, list_groups},
    {"describe", API_DESCRIBE_GROUPS, 6, describe},
    {"delete-groups", API_DELETE_GROUPS, 3, delete_groups},
};

bool script_send(struct harness *harness, const struct script_words *words)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(words->words[0], commands[i].name) != 0) {
            continue;
        }
        assert(words->count >= 2);
        int16_t version =
            (int16_t)script_words_number(words, "version", commands[i].version);
        struct harness_request *request =
            harness_request_new(harness, words->words[1], commands[i].api, version);
        struct building building = {harness, words, request, &request->arena};
        commands[i].build(&building);
        return true;
    }
    return false;
}
