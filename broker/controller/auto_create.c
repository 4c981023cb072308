/* Topics that come to be because they are used (KIP-361 for who may ask), and the broker's own
 * topics. Owns nothing: builds the same wish that a client's CreateTopics would be. */
#include "broker/controller/topic_plan.h"

#include <assert.h>

#include "broker/config/topic_name.h"

#define CREATABLE create_topics_request_creatable_topic
#define SETTING create_topics_request_creatable_topic_config

enum { MOST_SETTINGS = 4 };

/* How an internal topic is made. */
struct internal_topic {
    const char *name;
    enum config_key partitions;
    enum config_key replication;
    enum config_key segment_bytes;
    enum config_key min_insync; /* CONFIG_KEY_COUNT: the usual one */
};

static const struct internal_topic internal_topics[] = {
    {TOPIC_CONSUMER_OFFSETS, CONFIG_OFFSETS_TOPIC_NUM_PARTITIONS,
     CONFIG_OFFSETS_TOPIC_REPLICATION_FACTOR, CONFIG_OFFSETS_TOPIC_SEGMENT_BYTES,
     CONFIG_KEY_COUNT},
    {TOPIC_TRANSACTION_STATE, CONFIG_TRANSACTION_STATE_LOG_NUM_PARTITIONS,
     CONFIG_TRANSACTION_STATE_LOG_REPLICATION_FACTOR, CONFIG_TRANSACTION_STATE_LOG_SEGMENT_BYTES,
     CONFIG_TRANSACTION_STATE_LOG_MIN_ISR},
    {TOPIC_SHARE_GROUP_STATE, CONFIG_SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS,
     CONFIG_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR,
     CONFIG_SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES,
     CONFIG_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR},
};

static const struct internal_topic *find_internal(struct view name)
{
    for (size_t i = 0; i < sizeof internal_topics / sizeof *internal_topics; i++) {
        if (view_is(name, internal_topics[i].name)) {
            return &internal_topics[i];
        }
    }
    return NULL;
}

static int32_t at_most(int32_t value, int32_t limit)
{
    assert(limit > 0);
    return value < limit ? value : limit;
}

/* One node must be able to have the topics that by default want three brokers. But what they are
 * made with they keep: until all brokers are there that count, they are not made. */
static int32_t most_replicas(const struct command *command)
{
    int32_t most = image_broker_count(command->controller->image) + command->brokers_to_come;
    return most > 0 ? most : 1; /* a node that stands alone does not register */
}

static enum status wish_internal(const struct command *command,
                                 const struct internal_topic *internal, struct CREATABLE *topic)
{
    const struct config *config = controller_config(command->controller);
    struct SETTING *settings = arena_take(command->arena, MOST_SETTINGS, sizeof *settings);
    if (settings == NULL) {
        return STATUS_LIMIT;
    }
    int32_t replication = config_int(config, internal->replication);
    topic->num_partitions = config_int(config, internal->partitions);
    topic->replication_factor = (int16_t)at_most(replication, most_replicas(command));
    topic->configs = settings;
    settings[topic->configs_count++] =
        (struct SETTING){VIEW_LITERAL("cleanup.policy"), VIEW_LITERAL("compact")};
    settings[topic->configs_count++] =
        (struct SETTING){VIEW_LITERAL("compression.type"), VIEW_LITERAL("producer")};
    settings[topic->configs_count++] = (struct SETTING){
        VIEW_LITERAL("segment.bytes"), config_text(config, internal->segment_bytes)};
    if (internal->min_insync != CONFIG_KEY_COUNT) {
        int32_t min_insync = at_most(config_int(config, internal->min_insync),
                                     topic->replication_factor);
        struct view text = arena_format(command->arena, "%d", min_insync);
        settings[topic->configs_count++] =
            (struct SETTING){VIEW_LITERAL("min.insync.replicas"), text};
    }
    assert(topic->configs_count <= MOST_SETTINGS);
    return STATUS_OK;
}

static enum status create(struct command *command, struct view name, struct refusal *refusal)
{
    struct CREATABLE topic = create_topics_request_creatable_topic_default;
    topic.name = name;
    topic.num_partitions = -1;
    topic.replication_factor = -1;
    struct topic_wish wish = {.topic = &topic};
    const struct internal_topic *internal = find_internal(name);
    enum status status = STATUS_OK;
    if (internal != NULL) {
        wish.group_cap = (uint32_t)config_int(controller_config(command->controller),
                                              CONFIG_OTTLA_INTERNAL_TOPIC_PARTITION_GROUPS);
        status = wish_internal(command, internal, &topic);
    }
    struct topic_plan plan;
    if (status == STATUS_OK) {
        status = topic_plan_make(command, &wish, &plan, refusal);
    }
    if (status == STATUS_OK && refusal->error == KAFKA_NONE) {
        topic_plan_record(command, &plan);
    }
    return status;
}

enum status controller_auto_create(const struct controller *controller, int brokers_to_come,
                                   const struct view *names, size_t count, struct arena *arena,
                                   struct record_list *records, struct refusal *refusals)
{
    assert(count == 0 || (names != NULL && refusals != NULL));
    struct command command;
    struct key_set set = {0};
    enum status status = command_start(&command, controller, arena, records);
    command.brokers_to_come = brokers_to_come;
    if (status == STATUS_OK) {
        status = key_set_make(arena, names, count, &set);
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        refusals[i] = REFUSAL_NONE;
        if (view_is(names[i], TOPIC_CLUSTER_METADATA)) {
            refusals[i] = (struct refusal){KAFKA_INVALID_TOPIC_EXCEPTION,
                                           VIEW_LITERAL("__cluster_metadata is the broker's own")};
        } else if (image_topic(controller->image, names[i]) == NULL &&
                   set.marks[i] != KEY_LATER) {
            status = create(&command, names[i], &refusals[i]);
        }
    }
    return status;
}
