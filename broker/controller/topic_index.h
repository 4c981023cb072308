/* Finds topic images by name, by id, or by the names that would collide. Each thread keeps its own
 * index of shared images and brings it up to date with the changes it is sent (see image.h).
 *
 * An open-addressed table of pointers: 8 bytes a place, at most three quarters of them taken. */
#ifndef OTTLA_BROKER_CONTROLLER_TOPIC_INDEX_H
#define OTTLA_BROKER_CONTROLLER_TOPIC_INDEX_H

#include <stdint.h>

#include "base/uuid.h"
#include "base/view.h"
#include "broker/controller/topic_image.h"

enum topic_index_key {
    TOPIC_INDEX_NAME,
    TOPIC_INDEX_ID,
    TOPIC_INDEX_COLLISION /* names with "." and "_" taken for the same; may hold several */
};

struct topic_index {
    struct topic_image **table; /* null where a place is free */
    uint32_t capacity;          /* a power of two, or 0 */
    uint32_t count;
    enum topic_index_key key;
};

/* Starts an empty index; nothing is allocated until the first topic. */
void topic_index_init(struct topic_index *index, enum topic_index_key key);

/* Lets go of all topics and of the table. */
void topic_index_free(struct topic_index *index);

/* Adds the topic with a reference of its own. By name or id there must be none of that key yet. */
void topic_index_add(struct topic_index *index, struct topic_image *topic);

/* Takes out exactly this image, which must be in the index, and drops its reference. */
void topic_index_remove(struct topic_index *index, struct topic_image *topic);

/* The topic of that name or id in an index of that key; null when there is none. Borrowed: valid
 * until the index changes. */
struct topic_image *topic_index_find(const struct topic_index *index, struct view name);
struct topic_image *topic_index_find_id(const struct topic_index *index, struct uuid id);

/* One topic after the other in no order: start with *cursor = 0; null at the end. The index must
 * not change meanwhile. */
struct topic_image *topic_index_next(const struct topic_index *index, uint32_t *cursor);

#endif
