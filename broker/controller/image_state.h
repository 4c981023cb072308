/* The inside of the image, for its own files alone (image.c, image_apply.c, image_draft.c,
 * image_snapshot.c). */
#ifndef OTTLA_BROKER_CONTROLLER_IMAGE_STATE_H
#define OTTLA_BROKER_CONTROLLER_IMAGE_STATE_H

#include "base/arena.h"
#include "broker/controller/image.h"

/* A broker's registration, kept as its record with the bytes that it points into. */
struct image_broker_entry {
    struct arena arena;
    struct register_broker_record record;
};

/* A configuration of something other than a topic: kept and handed on, not looked into here. */
struct image_config_entry {
    int8_t resource_type;
    char *resource_name;
    char *name;
    char *value;
};

/* The topic that is being changed by the records of one run; its vectors are used again and again.
 * */
struct topic_draft {
    bool is_active;
    struct topic_image *before; /* null when the topic is new; a reference of the index */
    struct arena arena;         /* name, replicas, override values */
    struct view name;
    struct uuid id;
    uint16_t *slots;
    struct partition_group *groups;
    struct topic_override *overrides;
    uint32_t slot_count, slot_capacity;
    uint32_t group_count, group_capacity;
    uint32_t override_count, override_capacity;
};

struct image {
    const struct config *own;        /* the node's configuration as it started */
    struct config *config;           /* with what was set while it runs */
    bool settings_changed;           /* since that one was made */
    bool topics_changed;             /* so that topics have other values, too */
    struct settings_share *defaults; /* of topics without overrides */
    struct topic_index by_name;
    struct topic_index by_id;
    struct topic_index by_collision; /* only names with "." or "_" */
    struct topic_draft draft;
    struct image_broker_entry *brokers; /* sorted by id */
    int broker_count;
    struct quorum_voter *voters; /* sorted by id; each owns its host */
    int voter_count;
    struct image_config_entry *configs;
    size_t config_count;
    struct view cluster_id; /* owned */
    uint64_t next_group_id;
    int64_t next_producer_id;
    int64_t partition_count;
};

/* Makes a fresh topic the draft; there must be none of that name or id. */
void image_draft_new(struct image *image, struct view name, struct uuid id);

/* Makes the topic the draft, or leaves it the draft when it is already; false when there is no such
 * topic. Either way the draft before it is finished. */
bool image_draft_open_id(struct image *image, struct uuid id, struct image_changes *changes);
bool image_draft_open_name(struct image *image, struct view name, struct image_changes *changes);

/* Adds groups and partitions; the slots are big-endian uint16. False when they contradict what the
 * topic has. */
bool image_draft_add(struct image *image, const struct partition_group *groups,
                     uint32_t group_count, int32_t first_partition, struct view slots);

/* The group of that id lives on other replicas from now on, or moves; false when the topic has no
 * such group. */
bool image_draft_move(struct image *image, const struct partition_group *group);

/* Sets, replaces or (null value) takes away an override. */
void image_draft_override(struct image *image, enum config_key key, struct view value);

/* The record's value is in the image: takes what it says of this node's configuration to be there
 * at the next image_settings_finish. */
void image_settings_note(struct image *image, const struct config_record *record);

/* Makes the configuration anew when something was noted, and every topic that has other values by
 * it. There must be no draft. */
void image_settings_finish(struct image *image, struct image_changes *changes);

/* The settings of a topic with these overrides; the reference is the caller's. */
struct settings_share *image_settings_share(struct image *image,
                                            const struct topic_override *overrides,
                                            uint32_t count);

/* Another picture takes a topic's place, with the caller's reference on it; no place (null): it is
 * new. */
void image_replace_topic(struct image *image, struct topic_image *before,
                         struct topic_image *after, struct image_changes *changes);

/* Puts the draft's topic into the indexes and tells the change; nothing when there is no draft. */
void image_draft_finish(struct image *image, struct image_changes *changes);

/* Takes the topic out of the indexes and tells the change. There must be no draft. */
void image_remove_topic(struct image *image, struct topic_image *topic,
                        struct image_changes *changes);

/* Releases the draft's memory. */
void image_draft_free(struct topic_draft *draft);

#endif
