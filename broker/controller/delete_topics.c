/* DeleteTopics (KIP-4, KIP-516 for deletion by id). Owns nothing.
 *
 * Happy path: a topic is named by name or by id, is there, is removed by one record. Up to version
 * 5 there are only names. What contradicts itself is refused and deletes nothing. */
#include "broker/controller/command.h"

#include <assert.h>

#define STATE delete_topics_request_delete_topic_state
#define RESULT delete_topics_response_deletable_topic_result

enum { FIRST_VERSION_WITH_IDS = 6, FIRST_VERSION_THAT_SAYS_DISABLED = 3 };

struct deleter {
    struct command command;
    struct delete_topics_response *response;
    struct STATE *states;
    size_t count;
    struct key_set names; /* of the states, null where there is none */
    struct key_set ids;   /* 16 bytes each, null where there is none */
    bool *is_done;        /* answered because something contradicts it */
};

static void answer(struct deleter *deleter, struct view name, struct uuid id,
                   struct refusal refusal)
{
    assert((size_t)deleter->response->responses_count < deleter->count);
    struct RESULT *result = &deleter->response->responses[deleter->response->responses_count++];
    *result = delete_topics_response_deletable_topic_result_default;
    result->name = name;
    result->topic_id = id;
    result->error_code = (int16_t)refusal.error;
    result->error_message = refusal.why;
}

static enum status copy_states(struct deleter *deleter, const struct delete_topics_request *request,
                               int16_t version)
{
    bool by_state = version >= FIRST_VERSION_WITH_IDS;
    int32_t count = by_state ? request->topics_count : request->topic_names_count;
    deleter->count = count < 0 ? 0 : (size_t)count;
    deleter->states =
        arena_take(deleter->command.arena, deleter->count + 1, sizeof *deleter->states);
    if (deleter->states == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < deleter->count; i++) {
        if (by_state) {
            deleter->states[i] = request->topics[i];
        } else {
            deleter->states[i].name = request->topic_names[i];
        }
    }
    return STATUS_OK;
}

static enum status find_repeated(struct deleter *deleter)
{
    struct arena *arena = deleter->command.arena;
    size_t count = deleter->count;
    struct view *names = arena_take(arena, count + 1, sizeof *names);
    struct view *ids = arena_take(arena, count + 1, sizeof *ids);
    deleter->is_done = arena_take(arena, count + 1, sizeof *deleter->is_done);
    if (names == NULL || ids == NULL || deleter->is_done == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        struct STATE *state = &deleter->states[i];
        names[i] = state->name;
        bool has_id = !uuid_is_zero(state->topic_id);
        ids[i] = has_id ? (struct view){state->topic_id.bytes, UUID_BYTES} : VIEW_NULL;
    }
    enum status status = key_set_make(arena, names, count, &deleter->names);
    return status == STATUS_OK ? key_set_make(arena, ids, count, &deleter->ids) : status;
}

static struct topic_image *find_topic(const struct deleter *deleter, size_t at)
{
    const struct image *image = deleter->command.controller->image;
    return deleter->names.keys[at].data != NULL ? image_topic(image, deleter->names.keys[at])
                                           : image_topic_by_id(image, deleter->states[at].topic_id);
}

/* What is wrong with the state by itself, or with its equals; answered for the first of them. */
static struct refusal check_state(const struct deleter *deleter, size_t at, bool *is_silent)
{
    bool has_name = deleter->names.keys[at].data != NULL;
    bool has_id = deleter->ids.keys[at].data != NULL;
    if (has_name && has_id) {
        return (struct refusal){KAFKA_INVALID_REQUEST,
                                VIEW_LITERAL("Give the topic's name or its id, not both.")};
    }
    if (!has_name && !has_id) {
        return (struct refusal){KAFKA_INVALID_REQUEST,
                                VIEW_LITERAL("Give the topic's name or its id.")};
    }
    if (has_name && deleter->names.marks[at] != KEY_ONCE) {
        *is_silent = deleter->names.marks[at] == KEY_LATER;
        return (struct refusal){KAFKA_INVALID_REQUEST, VIEW_LITERAL("Duplicate topic name.")};
    }
    if (has_id && deleter->ids.marks[at] != KEY_ONCE) {
        *is_silent = deleter->ids.marks[at] == KEY_LATER;
        return (struct refusal){KAFKA_INVALID_REQUEST, VIEW_LITERAL("Duplicate topic id.")};
    }
    return REFUSAL_NONE;
}

static void refuse_wrong_states(struct deleter *deleter)
{
    for (size_t i = 0; i < deleter->count; i++) {
        bool is_silent = false;
        struct refusal refusal = check_state(deleter, i, &is_silent);
        deleter->is_done[i] = refusal.error != KAFKA_NONE;
        if (deleter->is_done[i] && !is_silent) {
            answer(deleter, deleter->names.keys[i], deleter->states[i].topic_id, refusal);
        }
    }
}

/* The state that names the same topic by id; `count` when there is none. */
static size_t find_by_id(const struct deleter *deleter, struct uuid id)
{
    return key_set_find(&deleter->ids, (struct view){id.bytes, UUID_BYTES});
}

/* A topic that is named once by name and once by id is answered once and stays. */
static void refuse_both_ways(struct deleter *deleter)
{
    for (size_t i = 0; i < deleter->count; i++) {
        if (deleter->is_done[i] || deleter->names.keys[i].data == NULL) {
            continue;
        }
        const struct topic_image *topic = find_topic(deleter, i);
        size_t other = topic == NULL ? deleter->count : find_by_id(deleter, topic->id);
        if (other < deleter->count && !deleter->is_done[other]) {
            deleter->is_done[i] = true;
            deleter->is_done[other] = true;
            answer(deleter, topic->name, topic->id,
                   (struct refusal){KAFKA_INVALID_REQUEST,
                                    VIEW_LITERAL("The topic is named by name and by id.")});
        }
    }
}

static void delete_topic(struct deleter *deleter, const struct topic_image *topic)
{
    struct remove_topic_record record = {.topic_id = topic->id};
    record_list_add(deleter->command.records, &remove_topic_record_type, 0, &record);
    answer(deleter, topic->name, topic->id, REFUSAL_NONE);
}

static void delete_rest(struct deleter *deleter)
{
    for (size_t i = 0; i < deleter->count; i++) {
        if (deleter->is_done[i]) {
            continue;
        }
        const struct topic_image *topic = find_topic(deleter, i);
        if (topic != NULL) {
            delete_topic(deleter, topic);
        } else if (deleter->names.keys[i].data != NULL) {
            answer(deleter, deleter->names.keys[i], deleter->states[i].topic_id,
                   (struct refusal){KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
                                    VIEW_LITERAL("There is no topic of this name.")});
        } else {
            answer(deleter, VIEW_NULL, deleter->states[i].topic_id,
                   (struct refusal){KAFKA_UNKNOWN_TOPIC_ID,
                                    VIEW_LITERAL("There is no topic of this id.")});
        }
    }
}

static void refuse_all(struct deleter *deleter, int16_t version)
{
    bool says_it = version >= FIRST_VERSION_THAT_SAYS_DISABLED;
    enum kafka_error error = says_it ? KAFKA_TOPIC_DELETION_DISABLED : KAFKA_INVALID_REQUEST;
    struct refusal refusal = {error, VIEW_LITERAL("delete.topic.enable is false")};
    for (size_t i = 0; i < deleter->count; i++) {
        answer(deleter, deleter->names.keys[i], deleter->states[i].topic_id, refusal);
    }
}

static enum status start(struct deleter *deleter, const struct delete_topics_request *request,
                         int16_t version)
{
    enum status status = copy_states(deleter, request, version);
    if (status == STATUS_OK) {
        status = find_repeated(deleter);
    }
    *deleter->response = delete_topics_response_default;
    deleter->response->responses = arena_take(deleter->command.arena, deleter->count + 1,
                                              sizeof *deleter->response->responses);
    return deleter->response->responses == NULL ? STATUS_LIMIT : status;
}

enum status controller_delete_topics(const struct controller *controller,
                                     const struct delete_topics_request *request, int16_t version,
                                     struct arena *arena, struct record_list *records,
                                     struct delete_topics_response *response)
{
    assert(request != NULL && response != NULL);
    struct deleter deleter = {.response = response};
    enum status status = command_start(&deleter.command, controller, arena, records);
    if (status == STATUS_OK) {
        status = start(&deleter, request, version);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (!config_bool(controller_config(controller), CONFIG_DELETE_TOPIC_ENABLE)) {
        refuse_all(&deleter, version);
        return STATUS_OK;
    }
    refuse_wrong_states(&deleter);
    refuse_both_ways(&deleter);
    delete_rest(&deleter);
    return STATUS_OK;
}
