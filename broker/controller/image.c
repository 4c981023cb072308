/* The image's life and its lookups. Owns the indexes, the brokers' records and the draft. Nothing
 * here can fail; see image_apply.c for what comes in. */
#include "broker/controller/image.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/config/cordon.h"
#include "broker/config/describe.h"
#include "broker/controller/image_state.h"

struct image *image_new(const struct config *config)
{
    assert(config != NULL);
    struct image *image = memory_new_zero(1, sizeof *image);
    image->own = config;
    image->config = config_with(config, NULL, 0);
    image->defaults = settings_share_new(image->config, NULL, 0);
    topic_index_init(&image->by_name, TOPIC_INDEX_NAME);
    topic_index_init(&image->by_id, TOPIC_INDEX_ID);
    topic_index_init(&image->by_collision, TOPIC_INDEX_COLLISION);
    image->next_group_id = METADATA_GROUP_ID + 1;
    return image;
}

static void free_configs(struct image *image)
{
    for (size_t i = 0; i < image->config_count; i++) {
        free(image->configs[i].resource_name);
        free(image->configs[i].name);
        free(image->configs[i].value);
    }
    free(image->configs);
}

void image_free(struct image *image)
{
    if (image == NULL) {
        return;
    }
    image_draft_free(&image->draft);
    topic_index_free(&image->by_name);
    topic_index_free(&image->by_id);
    topic_index_free(&image->by_collision);
    for (int i = 0; i < image->broker_count; i++) {
        arena_free(&image->brokers[i].arena);
    }
    free(image->brokers);
    for (int i = 0; i < image->voter_count; i++) {
        free((void *)(uintptr_t)image->voters[i].host.data);
    }
    free(image->voters);
    free_configs(image);
    free((void *)(uintptr_t)image->cluster_id.data);
    settings_share_unref(image->defaults);
    config_free(image->config);
    free(image);
}

void image_changes_free(struct image_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        topic_image_unref(changes->items[i].before);
        topic_image_unref(changes->items[i].after);
    }
    free(changes->items);
    *changes = (struct image_changes){0};
}

void image_changes_add(struct image_changes *changes, struct topic_image *before,
                       struct topic_image *after)
{
    if (changes->count == changes->capacity) {
        changes->capacity = changes->capacity == 0 ? 8 : changes->capacity * 2;
        changes->items = memory_resize(changes->items, changes->capacity, sizeof *changes->items);
    }
    changes->items[changes->count++] = (struct image_change){
        before == NULL ? NULL : topic_image_ref(before),
        after == NULL ? NULL : topic_image_ref(after)};
}

void image_difference(const struct image *before, const struct image *after,
                      struct image_changes *changes)
{
    uint32_t cursor = 0;
    struct topic_image *topic;
    while (before != NULL && (topic = image_next_topic(before, &cursor)) != NULL) {
        if (image_topic_by_id(after, topic->id) == NULL) {
            image_changes_add(changes, topic, NULL);
        }
    }
    cursor = 0;
    while ((topic = image_next_topic(after, &cursor)) != NULL) {
        image_changes_add(changes, before == NULL ? NULL : image_topic_by_id(before, topic->id),
                          topic);
    }
    changes->brokers_changed |= image_broker_count(after) > 0 ||
                                (before != NULL && image_broker_count(before) > 0) ||
                                after->voter_count > 0 ||
                                (before != NULL && before->voter_count > 0);
}

void image_changes_apply(const struct image_changes *changes, struct topic_index *index)
{
    for (size_t i = 0; i < changes->count; i++) {
        if (changes->items[i].before != NULL) {
            topic_index_remove(index, changes->items[i].before);
        }
        if (changes->items[i].after != NULL) {
            topic_index_add(index, changes->items[i].after);
        }
    }
}

struct topic_image *image_topic(const struct image *image, struct view name)
{
    return topic_index_find(&image->by_name, name);
}

struct topic_image *image_topic_by_id(const struct image *image, struct uuid id)
{
    return topic_index_find_id(&image->by_id, id);
}

struct topic_image *image_topic_colliding(const struct image *image, struct view name)
{
    return topic_index_find(&image->by_collision, name);
}

struct topic_image *image_next_topic(const struct image *image, uint32_t *cursor)
{
    return topic_index_next(&image->by_name, cursor);
}

uint32_t image_topic_count(const struct image *image)
{
    assert(image->by_name.count == image->by_id.count);
    return image->by_name.count;
}

int64_t image_partition_count(const struct image *image)
{
    return image->partition_count;
}

const struct register_broker_record *image_broker(const struct image *image, int index)
{
    assert(index >= 0 && index < image->broker_count);
    return &image->brokers[index].record;
}

const struct quorum_voter *image_voters(const struct image *image, int *count)
{
    assert(image != NULL && count != NULL);
    *count = image->voter_count;
    return image->voters;
}

int image_broker_count(const struct image *image)
{
    return image->broker_count;
}

struct view image_config(const struct image *image, int8_t resource_type, struct view resource,
                         struct view name)
{
    assert(image != NULL && name.length > 0);
    for (size_t i = 0; i < image->config_count; i++) {
        const struct image_config_entry *entry = &image->configs[i];
        if (entry->resource_type == resource_type && view_is(resource, entry->resource_name) &&
            view_is(name, entry->name)) {
            return view_text(entry->value);
        }
    }
    return VIEW_NULL;
}

bool image_next_config(const struct image *image, size_t *cursor, struct image_config *config)
{
    assert(image != NULL && cursor != NULL);
    if (*cursor >= image->config_count) {
        return false;
    }
    const struct image_config_entry *entry = &image->configs[(*cursor)++];
    *config = (struct image_config){.resource_type = entry->resource_type,
                                    .resource = view_text(entry->resource_name),
                                    .name = view_text(entry->name),
                                    .value = view_text(entry->value)};
    return true;
}

const struct config *image_broker_config(const struct image *image)
{
    assert(!image->settings_changed);
    return image->config;
}

bool image_broker_is_cordoned(const struct image *image,
                              const struct register_broker_record *broker)
{
    char id[16];
    assert(broker->broker_id >= 0);
    snprintf(id, sizeof id, "%d", broker->broker_id);
    struct view set = image_config(image, CONFIG_RESOURCE_BROKER, view_text(id),
                                   view_text(config_keys[CONFIG_CORDONED_LOG_DIRS].name));
    return set.data != NULL ? cordon_is_set(set) : broker->cordoned_log_dirs_count > 0;
}

uint64_t image_next_group_id(const struct image *image)
{
    assert(image->next_group_id > METADATA_GROUP_ID);
    return image->next_group_id;
}

int64_t image_next_producer_id(const struct image *image)
{
    return image->next_producer_id;
}

struct view image_cluster_id(const struct image *image)
{
    return image->cluster_id;
}
