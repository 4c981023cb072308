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
    const int32_t *replicas;  /* broker ids, the preferred leader first. While the group moves: the
                               * target, then whoever else may hold it */
    int32_t replica_count;    /* at least 1 */
    int16_t target_count;     /* of the replicas are the target; 0: the group stays */
    int16_t original_count;   /* likewise; see partition_group_original */
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

/* What it was made from; valid as long as the image. */
struct topic_parts topic_image_parts(const struct topic_image *topic);

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

/* Whether the group is on its way to other replicas. */
static inline bool partition_group_moves(const struct partition_group *group)
{
    assert(group->target_count <= group->replica_count);
    return group->target_count > 0;
}

/* The replicas before the move, or those of a group that stays. Behind `replicas` of a group that
 * moves lie these, and then the number of the move. */
static inline const int32_t *partition_group_original(const struct partition_group *group,
                                                      int32_t *count)
{
    bool moves = partition_group_moves(group);
    assert(moves == (group->original_count > 0));
    *count = moves ? group->original_count : group->replica_count;
    return moves ? group->replicas + group->replica_count : group->replicas;
}

/* Those that shall hold it: the target, or the replicas of a group that stays. */
static inline const int32_t *partition_group_target(const struct partition_group *group,
                                                    int32_t *count)
{
    *count = partition_group_moves(group) ? group->target_count : group->replica_count;
    return group->replicas;
}

/* How many numbers begin at `replicas` in all. */
static inline size_t partition_group_numbers(const struct partition_group *group)
{
    assert(group->replica_count > 0);
    size_t extra = partition_group_moves(group) ? (size_t)group->original_count + 1 : 0;
    return (size_t)group->replica_count + extra;
}

/* The number of the move that is under way. */
static inline int32_t partition_group_move(const struct partition_group *group)
{
    assert(partition_group_moves(group));
    return group->replicas[group->replica_count + group->original_count];
}

/* Whether the broker held it before the move. */
static inline bool partition_group_was_on(const struct partition_group *group, int32_t broker)
{
    int32_t count;
    const int32_t *original = partition_group_original(group, &count);
    bool found = false;
    for (int32_t i = 0; i < count; i++) {
        found = found || original[i] == broker;
    }
    return found;
}

/* Whether the broker holds it, or shall. */
static inline bool partition_group_has(const struct partition_group *group, int32_t broker)
{
    for (int32_t i = 0; i < group->replica_count; i++) {
        if (group->replicas[i] == broker) {
            return true;
        }
    }
    return false;
}

/* The settings for the data path; alive as long as the image. */
static inline const struct topic_settings *topic_image_settings(const struct topic_image *topic)
{
    return &topic->share->settings;
}

#endif
