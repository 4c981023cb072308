/* The image: what the metadata log says up to some record. Pure: records in, changes out.
 *
 * One thread owns the image and applies every committed record in order. What it tells of topics
 * are shared pictures (topic_image.h); each other thread is sent the changes and keeps an index of
 * its own, so that nobody takes a lock to look up a topic. */
#ifndef OTTLA_BROKER_CONTROLLER_IMAGE_H
#define OTTLA_BROKER_CONTROLLER_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/uuid.h"
#include "base/view.h"
#include "broker/config/config.h"
#include "broker/config/listeners.h"
#include "broker/controller/metadata_record.h"
#include "broker/controller/topic_image.h"
#include "broker/controller/topic_index.h"
#include "messages/metadata_records.h"

/* The group of the metadata log itself; topics' groups count from 1. */
enum { METADATA_GROUP_ID = 0 };

/* A topic before and after; no `before` means that it is new, no `after` that it is gone. Holds a
 * reference on both. */
struct image_change {
    struct topic_image *before;
    struct topic_image *after;
};

struct image_changes {
    struct image_change *items; /* in the order in which they happened */
    size_t count;
    size_t capacity;
    bool brokers_changed; /* or the voters */
};

/* Lets go of the changes; the struct is empty and may be used again. */
void image_changes_free(struct image_changes *changes);

/* Adds a change at the end, with references of its own on both; either may be null. */
void image_changes_add(struct image_changes *changes, struct topic_image *before,
                       struct topic_image *after);

/* Brings another thread's index (by name or by id) up to date. */
void image_changes_apply(const struct image_changes *changes, struct topic_index *index);

struct image;

/* An empty image. The configuration must outlive it. */
struct image *image_new(const struct config *config);

/* Releases the image; topic images that others hold stay alive. Null is allowed. */
void image_free(struct image *image);

/* Applies the value of one record. A topic's change is told when the first record about something
 * else comes, or by image_finish. Records of kinds that this version knows but does not use are
 * skipped. STATUS_CORRUPT: the bytes are no record, or contradict what is there.
 * STATUS_UNSUPPORTED: a kind or version that only a later broker knows. After a failure the image
 * must not be used further. */
MUST_USE enum status image_apply(struct image *image, struct view record,
                                 struct image_changes *changes);

/* Ends a run of image_apply calls: tells the last change. Lookups are true only after it. */
void image_finish(struct image *image, struct image_changes *changes);

/* Lookups; null when there is none. Borrowed: valid until the next image_apply, unless the caller
 * takes a reference. */
struct topic_image *image_topic(const struct image *image, struct view name);
struct topic_image *image_topic_by_id(const struct image *image, struct uuid id);

/* A topic whose name differs from this one only in "." and "_"; a topic of this very name may be
 * what is found. */
struct topic_image *image_topic_colliding(const struct image *image, struct view name);

/* One topic after the other, as topic_index_next. */
struct topic_image *image_next_topic(const struct image *image, uint32_t *cursor);

/* How much there is. */
uint32_t image_topic_count(const struct image *image);
int64_t image_partition_count(const struct image *image);

/* The registered brokers, sorted by id; valid until the next image_apply. */
const struct register_broker_record *image_broker(const struct image *image, int index);
int image_broker_count(const struct image *image);

/* A configuration of something other than a topic; the null view when it is not set. */
struct view image_config(const struct image *image, int8_t resource_type, struct view resource,
                         struct view name);

struct image_config {
    int8_t resource_type;
    struct view resource;
    struct view name;
    struct view value;
};

/* One such configuration after the other, in no order; the cursor begins with 0. False behind the
 * last. Valid until the next image_apply. */
bool image_next_config(const struct image *image, size_t *cursor, struct image_config *config);

/* This node's configuration with what was set while it runs, for all brokers or for it. Valid until
 * the next image_apply. */
const struct config *image_broker_config(const struct image *image);

/* Whether the broker takes no new replicas (KIP-1066): what is set while it runs counts more than
 * what it said itself. */
bool image_broker_is_cordoned(const struct image *image,
                              const struct register_broker_record *broker);

/* Who votes on metadata, sorted by id; none in a cluster whose voters are those of its
 * configuration. Valid until the next image_apply. */
const struct quorum_voter *image_voters(const struct image *image, int *count);

/* The lowest group id that was never given out, and the next producer id. */
uint64_t image_next_group_id(const struct image *image);
int64_t image_next_producer_id(const struct image *image);

/* The cluster id as recorded; the null view before there is one. */
struct view image_cluster_id(const struct image *image);

/* Adds what leads from one image (null: from an empty one) to another that was read from records of
 * its own: topics that are gone come first, since their names may be taken again. */
void image_difference(const struct image *before, const struct image *after,
                      struct image_changes *changes);

/* Appends records that make the same image when they are applied to an empty one. */
void image_snapshot(const struct image *image, struct record_list *records);

#endif
