/* The image as records: what a fresh image must be told to become this one. Cannot fail. */
#include "broker/controller/image_state.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/controller/move_record.h"
#include "messages/ottla_records.h"

static void add_groups(const struct topic_image *topic, struct record_list *records)
{
    struct partition_groups_record record = partition_groups_record_default;
    struct partition_groups_record_partition_group *groups =
        memory_new_zero(topic->group_count, sizeof *groups);
    for (uint32_t i = 0; i < topic->group_count; i++) {
        groups[i].group_id = (int64_t)topic->groups[i].id;
        groups[i].replicas = (int32_t *)(uintptr_t)partition_group_original(
            &topic->groups[i], &groups[i].replicas_count);
    }
    size_t count = (size_t)topic->partition_count;
    uint8_t *slots = memory_new(2 * count);
    for (size_t i = 0; i < count; i++) {
        store_be16(slots + 2 * i, topic->slots[i]);
    }
    record.topic_id = topic->id;
    record.groups = groups;
    record.groups_count = (int32_t)topic->group_count;
    record.slots = (struct view){slots, 2 * count};
    record_list_add(records, &partition_groups_record_type, 0, &record);
    free(groups);
    free(slots);
}

static void add_moves(const struct topic_image *topic, struct record_list *records)
{
    for (uint32_t i = 0; i < topic->group_count; i++) {
        if (partition_group_moves(&topic->groups[i])) {
            move_record_add(records, topic->id, &topic->groups[i]);
        }
    }
}

static void add_topic(const struct topic_image *topic, struct record_list *records)
{
    struct topic_record record = {.name = topic->name, .topic_id = topic->id};
    record_list_add(records, &topic_record_type, 0, &record);
    add_groups(topic, records);
    add_moves(topic, records);
    for (uint32_t i = 0; i < topic->override_count; i++) {
        struct config_record config = {
            .resource_type = 2,
            .resource_name = topic->name,
            .name = view_text(config_keys[topic->overrides[i].key].name),
            .value = topic->overrides[i].value};
        record_list_add(records, &config_record_type, 0, &config);
    }
}

static void add_other_configs(const struct image *image, struct record_list *records)
{
    for (size_t i = 0; i < image->config_count; i++) {
        const struct image_config_entry *entry = &image->configs[i];
        struct config_record config = {.resource_type = entry->resource_type,
                                       .resource_name = view_text(entry->resource_name),
                                       .name = view_text(entry->name),
                                       .value = view_text(entry->value)};
        record_list_add(records, &config_record_type, 0, &config);
    }
}

static void add_counters(const struct image *image, struct record_list *records)
{
    if (image->next_producer_id > 0) {
        struct producer_ids_record ids = producer_ids_record_default;
        ids.next_producer_id = image->next_producer_id;
        record_list_add(records, &producer_ids_record_type, 0, &ids);
    }
    struct next_group_record next = {.next_group_id = (int64_t)image->next_group_id};
    record_list_add(records, &next_group_record_type, 0, &next);
}

void image_snapshot(const struct image *image, struct record_list *records)
{
    assert(image != NULL && records != NULL);
    assert(!image->draft.is_active);
    if (image->cluster_id.data != NULL) {
        struct cluster_record cluster = {.cluster_id = image->cluster_id};
        record_list_add(records, &cluster_record_type, 0, &cluster);
    }
    for (int i = 0; i < image->broker_count; i++) {
        record_list_add(records, &register_broker_record_type,
                        register_broker_record_type.last_version, &image->brokers[i].record);
    }
    for (int i = 0; i < image->voter_count && !planted(PLANT_SNAPSHOT_LACKS_VOTERS); i++) {
        const struct quorum_voter *voter = &image->voters[i];
        struct voter_record record = {voter->node_id, voter->directory_id, voter->host,
                                      voter->port};
        record_list_add(records, &voter_record_type, 0, &record);
    }
    add_other_configs(image, records);
    uint32_t cursor = 0;
    const struct topic_image *topic;
    while ((topic = image_next_topic(image, &cursor)) != NULL) {
        add_topic(topic, records);
    }
    add_counters(image, records);
}
