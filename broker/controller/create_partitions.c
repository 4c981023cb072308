/* CreatePartitions (KIP-195). Owns nothing.
 *
 * Happy path: the new partitions are placed behind those that are there, one record. The checks
 * come in Kafka's order. Names that stand there twice are answered once, before the others. */
#include "broker/controller/placement.h"

#include <assert.h>

#include "broker/config/topic_name.h"

#define WISH create_partitions_request_create_partitions_topic
#define RESULT create_partitions_response_create_partitions_topic_result

static struct refusal check_count(const struct command *command, const struct WISH *wish,
                                  const struct topic_image *topic)
{
    if (wish->count == topic->partition_count) {
        return (struct refusal){KAFKA_INVALID_PARTITIONS,
                                arena_format(command->arena,
                                             "The topic has %d partition(s) already",
                                             topic->partition_count)};
    }
    if (wish->count < topic->partition_count) {
        return (struct refusal){KAFKA_INVALID_PARTITIONS,
                                arena_format(command->arena,
                                             "The topic has %d partition(s): %d would be fewer",
                                             topic->partition_count, wish->count)};
    }
    if (wish->count - topic->partition_count > REQUEST_PARTITIONS_MOST) {
        return (struct refusal){KAFKA_POLICY_VIOLATION,
                                VIEW_LITERAL("One request may make no more than 100000 "
                                             "partitions")};
    }
    int32_t added = wish->count - topic->partition_count;
    if (wish->assignments_count >= 0 && wish->assignments_count != added) {
        return (struct refusal){KAFKA_INVALID_REPLICA_ASSIGNMENT,
                                arena_format(command->arena,
                                             "%d partition(s) would be added, but %d are assigned",
                                             added, wish->assignments_count)};
    }
    return REFUSAL_NONE;
}

static uint32_t cap_of(const struct command *command, const struct topic_image *topic)
{
    const struct config *config = controller_config(command->controller);
    return (uint32_t)(topic->is_internal
                          ? config_int(config, CONFIG_OTTLA_INTERNAL_TOPIC_PARTITION_GROUPS)
                          : topic_image_settings(topic)->partition_groups);
}

static enum status place_by_hand(struct command *command, const struct WISH *wish,
                                 const struct topic_image *topic, int32_t replication,
                                 struct partition_groups_record *record, struct refusal *refusal)
{
    struct replica_list *lists =
        arena_take(command->arena, (size_t)wish->assignments_count, sizeof *lists);
    if (lists == NULL) {
        return STATUS_LIMIT;
    }
    for (int32_t i = 0; i < wish->assignments_count; i++) {
        lists[i] = (struct replica_list){wish->assignments[i].broker_ids,
                                         wish->assignments[i].broker_ids_count};
        *refusal = placement_check(command, lists[i], replication);
        if (refusal->error != KAFKA_NONE) {
            return STATUS_OK;
        }
    }
    return placement_manual(command, topic, lists, wish->assignments_count,
                            cap_of(command, topic), record);
}

static enum status place(struct command *command, const struct WISH *wish,
                         const struct topic_image *topic, struct partition_groups_record *record,
                         struct refusal *refusal)
{
    int32_t replication;
    partition_group_target(topic_image_group(topic, 0), &replication);
    if (wish->assignments_count >= 0) {
        return place_by_hand(command, wish, topic, replication, record, refusal);
    }
    *refusal = placement_reach(command, replication);
    if (refusal->error != KAFKA_NONE) {
        return STATUS_OK;
    }
    return placement_spread(command, topic, wish->count, cap_of(command, topic), replication,
                            record);
}

static enum status add_partitions(struct command *command, const struct WISH *wish,
                                  bool validate_only, struct refusal *refusal)
{
    const struct topic_image *topic = image_topic(command->controller->image, wish->name);
    if (topic == NULL || topic->partition_count == 0) {
        *refusal = (struct refusal){KAFKA_UNKNOWN_TOPIC_OR_PARTITION, VIEW_NULL};
        return STATUS_OK;
    }
    *refusal = check_count(command, wish, topic);
    struct partition_groups_record record;
    enum status status = STATUS_OK;
    if (refusal->error == KAFKA_NONE) {
        status = place(command, wish, topic, &record, refusal);
    }
    if (status == STATUS_OK && refusal->error == KAFKA_NONE && !validate_only) {
        record.topic_id = topic->id;
        record_list_add(command->records, &partition_groups_record_type, 0, &record);
    }
    return status;
}

static void add_result(struct create_partitions_response *response, struct view name,
                       struct refusal refusal)
{
    struct RESULT *result = &response->results[response->results_count++];
    *result = create_partitions_response_create_partitions_topic_result_default;
    result->name = name;
    result->error_code = (int16_t)refusal.error;
    result->error_message = refusal.why;
}

static enum status refuse_repeated(const struct create_partitions_request *request,
                                   struct arena *arena, struct key_set *set,
                                   struct create_partitions_response *response)
{
    size_t count = (size_t)request->topics_count;
    struct view *names = arena_take(arena, count + 1, sizeof *names);
    if (names == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = request->topics[i].name;
    }
    enum status status = key_set_make(arena, names, count, set);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        if (set->marks[i] == KEY_FIRST) {
            add_result(response, names[i],
                       (struct refusal){KAFKA_INVALID_REQUEST,
                                        VIEW_LITERAL("Duplicate topic name.")});
        }
    }
    return status;
}

enum status controller_create_partitions(const struct controller *controller,
                                         const struct create_partitions_request *request,
                                         struct arena *arena, struct record_list *records,
                                         struct create_partitions_response *response)
{
    assert(request != NULL && response != NULL);
    assert(request->topics_count >= 0);
    struct command command;
    enum status status = command_start(&command, controller, arena, records);
    *response = create_partitions_response_default;
    response->results =
        arena_take(arena, (size_t)request->topics_count + 1, sizeof *response->results);
    if (status != STATUS_OK || response->results == NULL) {
        return STATUS_LIMIT;
    }
    struct key_set set;
    status = refuse_repeated(request, arena, &set, response);
    for (int32_t i = 0; i < request->topics_count && status == STATUS_OK; i++) {
        if (set.marks[i] != KEY_ONCE) {
            continue;
        }
        struct refusal refusal = REFUSAL_NONE;
        const struct WISH *wish = &request->topics[i];
        status = add_partitions(&command, wish, request->validate_only, &refusal);
        add_result(response, wish->name, refusal);
    }
    return status;
}
