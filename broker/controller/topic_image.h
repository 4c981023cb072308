/* One topic as the metadata log has it: an immutable, reference-counted picture that threads share.
 * A change makes a new picture; whoever still holds the old one sees what was true before.
 *
 * A partition costs two bytes here: the number of its group within the topic. */
#ifndef OTTLA_BROKER_CONTROLLER_TOPIC_IMAGE_H
#define OTTLA_BROKER_CONTROLLER_TOPIC_IMAGE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "base/view.h"
#include "broker/config/config.h"
#include "broker/config/topic_config.h"

enum { TOPIC_GROUPS_MOST = UINT16_MAX };

/* One Raft group and where it lives. */
struct partition_group {
    uint64_t id;              /* never used again once it was given out */
    const int32_t *replicas;  /* broker ids, the preferred leader first */
    int32_t replica_count;    /* at least 1 */
};

/* Settings that many topics have in common. */
struct settings_share {
    atomic_uint references;
    struct topic_settings settings;
};

struct topic_image {
    atomic_uint references;
    int32_t partition_count;
    struct uuid id;
    struct view name;
    const uint16_t *slots;                 /* for each partition: index into groups */
    const struct partition_group *groups;
    const struct topic_override *overrides; /* sorted by key */
    struct settings_share *share;
    uint32_t group_count;
    uint32_t override_count;
    bool is_internal;
};

/* What a topic image is made from; nothing in it is kept. */
struct topic_parts {
    struct view name;
    struct uuid id;
    const uint16_t *slots;
    int32_t partition_count;
    const struct partition_group *groups;
    uint32_t group_count;
    const struct topic_override *overrides;
    uint32_t override_count;
};

/* A new share with one reference, resolved with the broker's configuration. */
struct settings_share *settings_share_new(const struct config *config,
                                          const struct topic_override *overrides, uint32_t count);

/* One reference more or less; the last one frees it. */
struct settings_share *settings_share_ref(struct settings_share *share);
void settings_share_unref(struct settings_share *share);

/* A new image with one reference, a copy of the parts. Takes the caller's reference on the share.
 * */
struct topic_image *topic_image_new(const struct topic_parts *parts, struct settings_share *share);

/* One reference more; safe from every thread. Returns the topic. */
struct topic_image *topic_image_ref(struct topic_image *topic);

/* One reference less; the last one frees the image. Null is allowed. */
void topic_image_unref(struct topic_image *topic);

/* Bytes of memory that the image takes, its shared settings left out. */
size_t topic_image_bytes(const struct topic_image *topic);

/* Whether the topic has the partition. */
static inline bool topic_image_has(const struct topic_image *topic, int32_t partition)
{
    return partition >= 0 && partition < topic->partition_count;
}

/* The group of a partition that the topic has. */
static inline const struct partition_group *topic_image_group(const struct topic_image *topic,
                                                              int32_t partition)
{
    assert(topic_image_has(topic, partition));
    assert(topic->slots[partition] < topic->group_count);
    return &topic->groups[topic->slots[partition]];
}

/* The settings for the data path; alive as long as the image. */
static inline const struct topic_settings *topic_image_settings(const struct topic_image *topic)
{
    return &topic->share->settings;
}

#endif
