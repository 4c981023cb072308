/* An open-addressed hash table with linear probing; removal shifts the followers back, so there are
 * no tombstones. Owns one reference on each topic. Nothing can fail. */
#include "broker/controller/topic_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/config/topic_name.h"

enum { FIRST_CAPACITY = 16 };

void topic_index_init(struct topic_index *index, enum topic_index_key key)
{
    *index = (struct topic_index){.key = key};
}

/* FNV-1a with a final mix; "." and "_" count as the same where names collide. */
static uint32_t hash_name(const struct topic_index *index, struct view name)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < name.length; i++) {
        uint8_t byte = name.data[i];
        byte = index->key == TOPIC_INDEX_COLLISION && byte == '.' ? '_' : byte;
        hash = (hash ^ byte) * 1099511628211u;
    }
    return (uint32_t)(hash ^ hash >> 32);
}

/* Ids are random already. */
static uint32_t hash_id(struct uuid id)
{
    uint32_t hash;
    memcpy(&hash, id.bytes + 8, sizeof hash);
    return hash;
}

static uint32_t hash_topic(const struct topic_index *index, const struct topic_image *topic)
{
    return index->key == TOPIC_INDEX_ID ? hash_id(topic->id) : hash_name(index, topic->name);
}

static void place(struct topic_index *index, struct topic_image *topic)
{
    uint32_t mask = index->capacity - 1;
    uint32_t at = hash_topic(index, topic) & mask;
    while (index->table[at] != NULL) {
        at = (at + 1) & mask;
    }
    index->table[at] = topic;
}

static void grow(struct topic_index *index)
{
    struct topic_image **old = index->table;
    uint32_t old_capacity = index->capacity;
    index->capacity = old_capacity == 0 ? FIRST_CAPACITY : old_capacity * 2;
    assert(index->capacity > old_capacity);
    index->table = memory_new_zero(index->capacity, sizeof(struct topic_image *));
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i] != NULL) {
            place(index, old[i]);
        }
    }
    free(old);
}

void topic_index_add(struct topic_index *index, struct topic_image *topic)
{
    assert(index->key != TOPIC_INDEX_NAME || topic_index_find(index, topic->name) == NULL);
    assert(index->key != TOPIC_INDEX_ID || topic_index_find_id(index, topic->id) == NULL);
    if ((uint64_t)(index->count + 1) * 4 > (uint64_t)index->capacity * 3) {
        grow(index);
    }
    place(index, topic_image_ref(topic));
    index->count++;
    assert(index->count < index->capacity);
}

/* Moves back every follower whose own place lies at or before the hole. */
static void close_hole(struct topic_index *index, uint32_t hole)
{
    uint32_t mask = index->capacity - 1;
    uint32_t at = hole;
    index->table[hole] = NULL;
    for (;;) {
        at = (at + 1) & mask;
        struct topic_image *topic = index->table[at];
        if (topic == NULL) {
            return;
        }
        uint32_t home = hash_topic(index, topic) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            index->table[hole] = topic;
            index->table[at] = NULL;
            hole = at;
        }
    }
}

void topic_index_remove(struct topic_index *index, struct topic_image *topic)
{
    assert(index->count > 0);
    uint32_t mask = index->capacity - 1;
    uint32_t at = hash_topic(index, topic) & mask;
    while (index->table[at] != topic) {
        assert(index->table[at] != NULL);
        at = (at + 1) & mask;
    }
    close_hole(index, at);
    index->count--;
    topic_image_unref(topic);
}

static bool has_name(const struct topic_index *index, const struct topic_image *topic,
                     struct view name)
{
    return index->key == TOPIC_INDEX_COLLISION ? topic_names_collide(topic->name, name)
                                               : view_equal(topic->name, name);
}

struct topic_image *topic_index_find(const struct topic_index *index, struct view name)
{
    assert(index->key != TOPIC_INDEX_ID);
    if (index->capacity == 0) {
        return NULL;
    }
    uint32_t mask = index->capacity - 1;
    uint32_t at = hash_name(index, name) & mask;
    while (index->table[at] != NULL && !has_name(index, index->table[at], name)) {
        at = (at + 1) & mask;
    }
    return index->table[at];
}

struct topic_image *topic_index_find_id(const struct topic_index *index, struct uuid id)
{
    assert(index->key == TOPIC_INDEX_ID);
    if (index->capacity == 0) {
        return NULL;
    }
    uint32_t mask = index->capacity - 1;
    uint32_t at = hash_id(id) & mask;
    while (index->table[at] != NULL && !uuid_equal(index->table[at]->id, id)) {
        at = (at + 1) & mask;
    }
    return index->table[at];
}

struct topic_image *topic_index_next(const struct topic_index *index, uint32_t *cursor)
{
    while (*cursor < index->capacity) {
        struct topic_image *topic = index->table[(*cursor)++];
        if (topic != NULL) {
            return topic;
        }
    }
    return NULL;
}

void topic_index_free(struct topic_index *index)
{
    uint32_t cursor = 0;
    struct topic_image *topic;
    while ((topic = topic_index_next(index, &cursor)) != NULL) {
        topic_image_unref(topic);
    }
    free(index->table);
    topic_index_init(index, index->key);
}
