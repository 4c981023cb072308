/* Topic images: one allocation that holds the struct and everything it points to, but for the
 * shared settings. Built once, then only read; the last reference frees it on whichever thread that
 * is. */
#include "broker/controller/topic_image.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/config/topic_name.h"

struct settings_share *settings_share_new(const struct config *config,
                                          const struct topic_override *overrides, uint32_t count)
{
    struct settings_share *share = memory_new_zero(1, sizeof *share);
    atomic_init(&share->references, 1);
    topic_settings_resolve(config, overrides, count, &share->settings);
    return share;
}

struct settings_share *settings_share_ref(struct settings_share *share)
{
    unsigned before = atomic_fetch_add_explicit(&share->references, 1, memory_order_relaxed);
    assert(before > 0);
    return share;
}

void settings_share_unref(struct settings_share *share)
{
    unsigned before = atomic_fetch_sub_explicit(&share->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        free(share);
    }
}

/* Where the parts go behind the struct, widest alignment first. */
struct layout {
    size_t groups;
    size_t overrides;
    size_t replicas;
    size_t slots;
    size_t texts;
    size_t total;
};

static size_t count_replicas(const struct topic_parts *parts)
{
    size_t count = 0;
    for (uint32_t i = 0; i < parts->group_count; i++) {
        count += partition_group_numbers(&parts->groups[i]);
    }
    return count;
}

static size_t count_text(const struct topic_parts *parts)
{
    size_t bytes = parts->name.length;
    for (uint32_t i = 0; i < parts->override_count; i++) {
        bytes += parts->overrides[i].value.length;
    }
    return bytes;
}

static struct layout lay_out(const struct topic_parts *parts)
{
    _Static_assert(sizeof(struct topic_image) % alignof(struct partition_group) == 0, "aligned");
    _Static_assert(alignof(struct topic_override) == alignof(struct partition_group), "aligned");
    struct layout at = {.groups = sizeof(struct topic_image)};
    at.overrides = at.groups + parts->group_count * sizeof(struct partition_group);
    at.replicas = at.overrides + parts->override_count * sizeof(struct topic_override);
    at.slots = at.replicas + count_replicas(parts) * sizeof(int32_t);
    at.texts = at.slots + (size_t)parts->partition_count * sizeof(uint16_t);
    at.total = at.texts + count_text(parts);
    return at;
}

static void copy_groups(const struct topic_parts *parts, struct partition_group *groups,
                        int32_t *replicas)
{
    for (uint32_t i = 0; i < parts->group_count; i++) {
        size_t count = partition_group_numbers(&parts->groups[i]);
        memcpy(replicas, parts->groups[i].replicas, count * sizeof *replicas);
        groups[i] = parts->groups[i];
        groups[i].replicas = replicas;
        replicas += count;
    }
}

static struct view copy_text(uint8_t **at, struct view text)
{
    memcpy(*at, text.data, text.length);
    struct view copy = {*at, text.length};
    *at += text.length;
    return copy;
}

static void copy_overrides(const struct topic_parts *parts, struct topic_override *overrides,
                           uint8_t *text)
{
    for (uint32_t i = 0; i < parts->override_count; i++) {
        assert(i == 0 || parts->overrides[i - 1].key < parts->overrides[i].key);
        overrides[i].key = parts->overrides[i].key;
        overrides[i].value = copy_text(&text, parts->overrides[i].value);
    }
}

struct topic_image *topic_image_new(const struct topic_parts *parts, struct settings_share *share)
{
    assert(parts->name.length > 0 && parts->name.length <= TOPIC_NAME_LONGEST);
    assert(parts->partition_count >= 0 && parts->group_count <= TOPIC_GROUPS_MOST);
    assert(share != NULL);
    struct layout at = lay_out(parts);
    uint8_t *bytes = memory_new(at.total);
    struct topic_image *topic = (struct topic_image *)(void *)bytes;
    uint16_t *slots = (uint16_t *)(void *)(bytes + at.slots);
    struct partition_group *groups = (struct partition_group *)(void *)(bytes + at.groups);
    struct topic_override *overrides = (struct topic_override *)(void *)(bytes + at.overrides);
    uint8_t *text = bytes + at.texts;
    *topic = (struct topic_image){.partition_count = parts->partition_count,
                                  .id = parts->id,
                                  .name = copy_text(&text, parts->name),
                                  .slots = slots,
                                  .groups = groups,
                                  .overrides = overrides,
                                  .share = share,
                                  .group_count = parts->group_count,
                                  .override_count = parts->override_count,
                                  .is_internal = topic_is_internal(parts->name)};
    atomic_init(&topic->references, 1);
    copy_groups(parts, groups, (int32_t *)(void *)(bytes + at.replicas));
    copy_overrides(parts, overrides, text);
    for (int32_t i = 0; i < parts->partition_count; i++) {
        assert(parts->slots[i] < parts->group_count);
        slots[i] = parts->slots[i];
    }
    return topic;
}

struct topic_image *topic_image_ref(struct topic_image *topic)
{
    unsigned before = atomic_fetch_add_explicit(&topic->references, 1, memory_order_relaxed);
    assert(before > 0);
    return topic;
}

void topic_image_unref(struct topic_image *topic)
{
    if (topic == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&topic->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        settings_share_unref(topic->share);
        free(topic);
    }
}

struct topic_parts topic_image_parts(const struct topic_image *topic)
{
    return (struct topic_parts){.name = topic->name,
                                .id = topic->id,
                                .slots = topic->slots,
                                .partition_count = topic->partition_count,
                                .groups = topic->groups,
                                .group_count = topic->group_count,
                                .overrides = topic->overrides,
                                .override_count = topic->override_count};
}

size_t topic_image_bytes(const struct topic_image *topic)
{
    struct topic_parts parts = topic_image_parts(topic);
    return lay_out(&parts).total;
}
