/* CreateTopics (KIP-4, KIP-525 for the configurations in the answer, KIP-516 for ids). Owns
 * nothing.
 *
 * Happy path: each topic is planned, recorded, answered. Names that stand there twice are answered
 * once, after the others, as Kafka does. */
#include "broker/controller/topic_plan.h"

#include <assert.h>

#include "broker/config/topic_name.h"

#define CREATABLE create_topics_request_creatable_topic
#define RESULT create_topics_response_creatable_topic_result
#define ROW create_topics_response_creatable_topic_configs

enum { FIRST_VERSION_WITH_CONFIGS = 5 };

struct creator {
    struct command command;
    const struct create_topics_request *request;
    struct create_topics_response *response;
    struct key_set names;
    struct ROW *default_rows; /* shared by all topics without overrides; null until needed */
    int32_t default_row_count;
    bool wants_configs;
    bool is_too_large;
};

static enum status fill_rows(struct creator *creator, const struct topic_override *overrides,
                             uint32_t count, struct ROW **rows, int32_t *row_count)
{
    *row_count = 0;
    *rows = arena_take(creator->command.arena, TOPIC_CONFIG_COUNT, sizeof **rows);
    if (*rows == NULL) {
        return STATUS_LIMIT;
    }
    enum status status = STATUS_OK;
    for (int i = 0; i < TOPIC_CONFIG_COUNT && status == STATUS_OK; i++) {
        enum config_key key = (enum config_key)(TOPIC_CONFIG_FIRST + i);
        if (config_keys[key].internal) {
            continue;
        }
        struct ROW *row = &(*rows)[(*row_count)++];
        enum config_source source = CONFIG_SOURCE_DEFAULT;
        row->name = view_text(config_keys[key].name);
        status = topic_config_effective(controller_config(creator->command.controller), overrides,
                                        count, key, creator->command.arena, &row->value, &source);
        row->config_source = (int8_t)source;
    }
    return status;
}

static enum status answer_configs(struct creator *creator, const struct topic_plan *plan,
                                  struct RESULT *result)
{
    if (!creator->wants_configs) {
        return STATUS_OK;
    }
    if (plan->override_count > 0) {
        return fill_rows(creator, plan->overrides, plan->override_count, &result->configs,
                         &result->configs_count);
    }
    enum status status = STATUS_OK;
    if (creator->default_rows == NULL) {
        status = fill_rows(creator, NULL, 0, &creator->default_rows, &creator->default_row_count);
    }
    result->configs = creator->default_rows;
    result->configs_count = creator->default_row_count;
    return status;
}

static struct RESULT *add_result(struct creator *creator, struct view name)
{
    struct RESULT *result = &creator->response->topics[creator->response->topics_count++];
    *result = create_topics_response_creatable_topic_result_default;
    result->name = name;
    result->error_message = VIEW_NULL;
    return result;
}

static void refuse(struct RESULT *result, struct refusal refusal)
{
    assert(refusal.error != KAFKA_NONE);
    result->error_code = (int16_t)refusal.error;
    result->error_message = refusal.why;
}

static enum status create(struct creator *creator, const struct CREATABLE *topic,
                          struct RESULT *result)
{
    struct topic_plan plan;
    struct refusal refusal = REFUSAL_NONE;
    struct topic_wish wish = {.topic = topic};
    if (topic_is_internal(topic->name)) {
        wish.group_cap = (uint32_t)config_int(controller_config(creator->command.controller),
                                              CONFIG_OTTLA_INTERNAL_TOPIC_PARTITION_GROUPS);
    }
    enum status status = topic_plan_make(&creator->command, &wish, &plan, &refusal);
    if (status != STATUS_OK) {
        return status;
    }
    if (refusal.error != KAFKA_NONE) {
        refuse(result, refusal);
        return STATUS_OK;
    }
    if (!creator->request->validate_only) {
        topic_plan_record(&creator->command, &plan);
    }
    result->topic_id = plan.id;
    result->num_partitions = plan.partition_count;
    result->replication_factor = (int16_t)plan.replication;
    return answer_configs(creator, &plan, result);
}

static enum status answer(struct creator *creator, const struct CREATABLE *topic)
{
    struct RESULT *result = add_result(creator, topic->name);
    if (view_is(topic->name, TOPIC_CLUSTER_METADATA)) {
        refuse(result, (struct refusal){KAFKA_INVALID_REQUEST,
                                        VIEW_LITERAL("__cluster_metadata is the broker's own")});
        return STATUS_OK;
    }
    if (creator->is_too_large) {
        refuse(result, (struct refusal){KAFKA_POLICY_VIOLATION,
                                        VIEW_LITERAL("One request may make no more than 100000 "
                                                     "partitions")});
        return STATUS_OK;
    }
    return create(creator, topic, result);
}

static void answer_repeated(struct creator *creator)
{
    for (int32_t i = 0; i < creator->request->topics_count; i++) {
        if (creator->names.marks[i] == KEY_FIRST) {
            refuse(add_result(creator, creator->names.keys[i]),
                   (struct refusal){KAFKA_INVALID_REQUEST, VIEW_LITERAL("Duplicate topic name.")});
        }
    }
}

/* Whether the request as a whole would make too many partitions. */
static bool is_too_large(const struct creator *creator)
{
    int64_t total = 0;
    const struct config *config = controller_config(creator->command.controller);
    int32_t usual = config_int(config, CONFIG_NUM_PARTITIONS);
    for (int32_t i = 0; i < creator->request->topics_count; i++) {
        const struct CREATABLE *topic = &creator->request->topics[i];
        int32_t count = topic->num_partitions == -1 ? usual : topic->num_partitions;
        count = topic->assignments_count > 0 ? topic->assignments_count : count;
        total += count > 0 ? count : 0;
    }
    return total > REQUEST_PARTITIONS_MOST;
}

static enum status start(struct creator *creator, const struct controller *controller,
                         int16_t version, struct arena *arena, struct record_list *records)
{
    enum status status = command_start(&creator->command, controller, arena, records);
    if (status != STATUS_OK) {
        return status;
    }
    size_t count = (size_t)creator->request->topics_count;
    *creator->response = create_topics_response_default;
    creator->response->topics =
        arena_take(arena, count + 1, sizeof *creator->response->topics);
    struct view *names = arena_take(arena, count + 1, sizeof *names);
    if (creator->response->topics == NULL || names == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = creator->request->topics[i].name;
    }
    creator->wants_configs = version >= FIRST_VERSION_WITH_CONFIGS;
    creator->is_too_large = is_too_large(creator);
    return key_set_make(arena, names, count, &creator->names);
}

enum status controller_create_topics(const struct controller *controller,
                                     const struct create_topics_request *request, int16_t version,
                                     struct arena *arena, struct record_list *records,
                                     struct create_topics_response *response)
{
    assert(request != NULL && response != NULL);
    assert(request->topics_count >= 0);
    struct creator creator = {.request = request, .response = response};
    enum status status = start(&creator, controller, version, arena, records);
    for (int32_t i = 0; i < request->topics_count && status == STATUS_OK; i++) {
        if (creator.names.marks[i] == KEY_ONCE) {
            status = answer(&creator, &request->topics[i]);
        }
    }
    if (status == STATUS_OK) {
        answer_repeated(&creator);
        assert(response->topics_count <= request->topics_count);
    }
    return status;
}
