/* Checking and planning of one new topic. Owns nothing.
 *
 * The checks come in Kafka's order, because a client that makes two mistakes is told the first:
 * name, existence, configuration, then partitions and replicas. */
#include "broker/controller/topic_plan.h"

#include <assert.h>
#include <string.h>

#include "broker/config/topic_name.h"
#include "io/random.h"

#define CREATABLE create_topics_request_creatable_topic
#define ASSIGNMENT create_topics_request_creatable_replica_assignment

static struct refusal check_name(const struct command *command, struct view name)
{
    struct view why = VIEW_NULL;
    if (topic_name_check(name, command->arena, &why) != STATUS_OK) {
        return (struct refusal){KAFKA_INVALID_TOPIC_EXCEPTION, why};
    }
    const struct image *image = command->controller->image;
    if (image_topic(image, name) != NULL) {
        return (struct refusal){
            KAFKA_TOPIC_ALREADY_EXISTS,
            arena_format(command->arena, "Topic '%.*s' already exists.", VIEW_PRINT(name))};
    }
    const struct topic_image *other = image_topic_colliding(image, name);
    if (other != NULL) {
        return (struct refusal){
            KAFKA_INVALID_TOPIC_EXCEPTION,
            arena_format(command->arena,
                         "Topic '%.*s' is too much like '%.*s': '.' and '_' are the same in "
                         "metric names",
                         VIEW_PRINT(name), VIEW_PRINT(other->name))};
    }
    return REFUSAL_NONE;
}

/* Keeps the overrides sorted; of a key that is named twice the last value counts. */
static void insert_override(struct topic_plan *plan, struct topic_override override)
{
    uint32_t at = plan->override_count;
    while (at > 0 && plan->overrides[at - 1].key >= override.key) {
        at--;
    }
    bool is_there = at < plan->override_count && plan->overrides[at].key == override.key;
    if (!is_there) {
        memmove(&plan->overrides[at + 1], &plan->overrides[at],
                (plan->override_count - at) * sizeof *plan->overrides);
        plan->override_count++;
    }
    plan->overrides[at] = override;
}

static enum status plan_overrides(struct command *command, const struct CREATABLE *topic,
                                  struct topic_plan *plan, struct refusal *refusal)
{
    plan->overrides = arena_take(command->arena, TOPIC_CONFIG_COUNT + 1, sizeof *plan->overrides);
    if (plan->overrides == NULL) {
        return STATUS_LIMIT;
    }
    for (int32_t i = 0; i < topic->configs_count; i++) {
        struct topic_override override = {0};
        struct view why = VIEW_NULL;
        enum status status = topic_override_check(topic->configs[i].name, topic->configs[i].value,
                                                  command->arena, &override, &why);
        if (status == STATUS_LIMIT) {
            return status;
        }
        if (status != STATUS_OK) {
            *refusal = (struct refusal){KAFKA_INVALID_CONFIG, why};
            return STATUS_OK;
        }
        insert_override(plan, override);
    }
    struct view why = VIEW_NULL;
    enum status status =
        topic_overrides_check(controller_config(command->controller), plan->overrides,
                              plan->override_count, command->arena, &why);
    if (status != STATUS_OK) {
        *refusal = (struct refusal){KAFKA_INVALID_CONFIG, why};
    }
    return STATUS_OK;
}

static struct refusal check_counts(const struct command *command, const struct CREATABLE *topic)
{
    if (topic->assignments_count > 0 && topic->replication_factor != -1) {
        return (struct refusal){KAFKA_INVALID_REQUEST,
                                VIEW_LITERAL("The replication factor must be -1 where replicas are "
                                             "assigned by hand")};
    }
    if (topic->assignments_count > 0 && topic->num_partitions != -1) {
        return (struct refusal){KAFKA_INVALID_REQUEST,
                                VIEW_LITERAL("The number of partitions must be -1 where replicas "
                                             "are assigned by hand")};
    }
    if (topic->replication_factor < -1 || topic->replication_factor == 0) {
        return (struct refusal){KAFKA_INVALID_REPLICATION_FACTOR,
                                arena_format(command->arena,
                                             "The replication factor must be at least 1, or -1 for "
                                             "the default, not %d",
                                             topic->replication_factor)};
    }
    if (topic->num_partitions < -1 || topic->num_partitions == 0) {
        return (struct refusal){KAFKA_INVALID_PARTITIONS,
                                arena_format(command->arena,
                                             "The number of partitions must be at least 1, or -1 "
                                             "for the default, not %d",
                                             topic->num_partitions)};
    }
    return REFUSAL_NONE;
}

/* Puts each assignment where its partition index says; every index must be there once. */
static struct refusal order_assignments(const struct command *command,
                                        const struct CREATABLE *topic, struct replica_list *lists)
{
    int32_t replication = 0;
    for (int32_t i = 0; i < topic->assignments_count; i++) {
        const struct ASSIGNMENT *assignment = &topic->assignments[i];
        int32_t index = assignment->partition_index;
        struct replica_list list = {assignment->broker_ids, assignment->broker_ids_count};
        bool is_inside = index >= 0 && index < topic->assignments_count;
        if (is_inside && lists[index].brokers != NULL) {
            return (struct refusal){KAFKA_INVALID_REPLICA_ASSIGNMENT,
                                    arena_format(command->arena,
                                                 "Partition %d is assigned more than once", index)};
        }
        struct refusal refusal = placement_check(command, list, replication);
        if (refusal.error != KAFKA_NONE) {
            return refusal;
        }
        replication = list.count;
        if (is_inside) {
            lists[index] = list;
        }
    }
    for (int32_t i = 0; i < topic->assignments_count; i++) {
        if (lists[i].brokers == NULL) {
            return (struct refusal){KAFKA_INVALID_REPLICA_ASSIGNMENT,
                                    VIEW_LITERAL("The assigned partitions must count from 0 "
                                                 "without a gap")};
        }
    }
    return REFUSAL_NONE;
}

static uint32_t cap_of(const struct command *command, const struct topic_wish *wish,
                       const struct topic_plan *plan)
{
    if (wish->group_cap > 0) {
        return wish->group_cap;
    }
    struct topic_settings settings;
    topic_settings_resolve(controller_config(command->controller), plan->overrides,
                           plan->override_count, &settings);
    return (uint32_t)settings.partition_groups;
}

static enum status place_by_hand(struct command *command, const struct topic_wish *wish,
                                 struct topic_plan *plan, struct refusal *refusal)
{
    const struct CREATABLE *topic = wish->topic;
    size_t count = (size_t)topic->assignments_count;
    struct replica_list *lists = arena_take(command->arena, count, sizeof *lists);
    if (lists == NULL) {
        return STATUS_LIMIT;
    }
    *refusal = order_assignments(command, topic, lists);
    if (refusal->error != KAFKA_NONE) {
        return STATUS_OK;
    }
    plan->partition_count = topic->assignments_count;
    plan->replication = lists[0].count;
    return placement_manual(command, NULL, lists, topic->assignments_count,
                            cap_of(command, wish, plan), &plan->groups);
}

static enum status place_by_count(struct command *command, const struct topic_wish *wish,
                                  struct topic_plan *plan, struct refusal *refusal)
{
    const struct config *config = controller_config(command->controller);
    const struct CREATABLE *topic = wish->topic;
    plan->partition_count = topic->num_partitions == -1 ? config_int(config, CONFIG_NUM_PARTITIONS)
                                                        : topic->num_partitions;
    plan->replication = topic->replication_factor == -1
                            ? config_int(config, CONFIG_DEFAULT_REPLICATION_FACTOR)
                            : topic->replication_factor;
    *refusal = placement_reach(command, plan->replication);
    if (refusal->error != KAFKA_NONE) {
        return STATUS_OK;
    }
    return placement_spread(command, NULL, plan->partition_count, cap_of(command, wish, plan),
                            plan->replication, &plan->groups);
}

enum status topic_plan_make(struct command *command, const struct topic_wish *wish,
                            struct topic_plan *plan, struct refusal *refusal)
{
    assert(command != NULL && wish != NULL && wish->topic != NULL);
    assert(plan != NULL && refusal != NULL);
    *plan = (struct topic_plan){.name = wish->topic->name};
    *refusal = check_name(command, plan->name);
    if (refusal->error != KAFKA_NONE) {
        return STATUS_OK;
    }
    enum status status = plan_overrides(command, wish->topic, plan, refusal);
    if (status != STATUS_OK || refusal->error != KAFKA_NONE) {
        return status;
    }
    *refusal = check_counts(command, wish->topic);
    if (refusal->error != KAFKA_NONE) {
        return STATUS_OK;
    }
    plan->id = random_uuid();
    return wish->topic->assignments_count > 0 ? place_by_hand(command, wish, plan, refusal)
                                              : place_by_count(command, wish, plan, refusal);
}

void topic_plan_record(struct command *command, const struct topic_plan *plan)
{
    struct topic_record topic = {.name = plan->name, .topic_id = plan->id};
    record_list_add(command->records, &topic_record_type, 0, &topic);
    struct partition_groups_record groups = plan->groups;
    groups.topic_id = plan->id;
    record_list_add(command->records, &partition_groups_record_type, 0, &groups);
    for (uint32_t i = 0; i < plan->override_count; i++) {
        struct config_record config = {
            .resource_type = 2,
            .resource_name = plan->name,
            .name = view_text(config_keys[plan->overrides[i].key].name),
            .value = plan->overrides[i].value};
        record_list_add(command->records, &config_record_type, 0, &config);
    }
}
