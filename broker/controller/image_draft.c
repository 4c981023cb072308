/* Changing a topic inside the image: the picture that is there is copied into a draft, the records
 * of one run change the draft, and in the end one new picture takes the old one's place. Owns the
 * draft's vectors and arena. Contradictions are told to the caller, nothing else can fail. */
#include "broker/controller/image_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/planted.h"

enum { DRAFT_ARENA_BYTES = 256 << 20 };

/* Makes room for `more` elements behind `count`. */
static void *reserve(void *items, uint32_t count, uint32_t more, uint32_t *capacity, size_t size)
{
    uint64_t needed = (uint64_t)count + more;
    if (needed <= *capacity) {
        return items;
    }
    uint64_t larger = *capacity < 8 ? 8 : (uint64_t)*capacity * 2;
    larger = larger < needed ? needed : larger;
    assert(larger <= UINT32_MAX);
    *capacity = (uint32_t)larger;
    return memory_resize(items, (size_t)larger, size);
}

static struct view keep(struct topic_draft *draft, struct view text)
{
    struct view copy = arena_copy(&draft->arena, text);
    assert(text.data == NULL || copy.data != NULL);
    return copy;
}

static void start(struct topic_draft *draft, struct view name, struct uuid id)
{
    assert(!draft->is_active);
    arena_init(&draft->arena, DRAFT_ARENA_BYTES);
    draft->is_active = true;
    draft->before = NULL;
    draft->name = keep(draft, name);
    draft->id = id;
    draft->slot_count = 0;
    draft->group_count = 0;
    draft->override_count = 0;
}

static void add_group(struct topic_draft *draft, const struct partition_group *group)
{
    size_t count = partition_group_numbers(group);
    int32_t *replicas = arena_take(&draft->arena, count, sizeof *replicas);
    assert(replicas != NULL);
    memcpy(replicas, group->replicas, count * sizeof *replicas);
    draft->groups = reserve(draft->groups, draft->group_count, 1, &draft->group_capacity,
                            sizeof *draft->groups);
    struct partition_group *added = &draft->groups[draft->group_count++];
    *added = *group;
    added->replicas = replicas;
}

static void start_from(struct topic_draft *draft, struct topic_image *topic)
{
    start(draft, topic->name, topic->id);
    draft->before = topic;
    for (uint32_t i = 0; i < topic->group_count; i++) {
        add_group(draft, &topic->groups[i]);
    }
    uint32_t count = (uint32_t)topic->partition_count;
    draft->slots = reserve(draft->slots, 0, count, &draft->slot_capacity, sizeof *draft->slots);
    memcpy(draft->slots, topic->slots, count * sizeof *draft->slots);
    draft->slot_count = count;
    draft->overrides = reserve(draft->overrides, 0, topic->override_count + 1,
                               &draft->override_capacity, sizeof *draft->overrides);
    for (uint32_t i = 0; i < topic->override_count; i++) {
        draft->overrides[i] = (struct topic_override){
            topic->overrides[i].key, keep(draft, topic->overrides[i].value)};
    }
    draft->override_count = topic->override_count;
}

void image_draft_new(struct image *image, struct view name, struct uuid id)
{
    assert(topic_index_find(&image->by_name, name) == NULL);
    assert(topic_index_find_id(&image->by_id, id) == NULL);
    start(&image->draft, name, id);
}

static bool open_topic(struct image *image, struct topic_image *topic)
{
    if (topic != NULL) {
        start_from(&image->draft, topic);
    }
    return topic != NULL;
}

bool image_draft_open_id(struct image *image, struct uuid id, struct image_changes *changes)
{
    if (image->draft.is_active && uuid_equal(image->draft.id, id)) {
        return true;
    }
    image_draft_finish(image, changes);
    return open_topic(image, topic_index_find_id(&image->by_id, id));
}

bool image_draft_open_name(struct image *image, struct view name, struct image_changes *changes)
{
    if (image->draft.is_active && view_equal(image->draft.name, name)) {
        return true;
    }
    image_draft_finish(image, changes);
    return open_topic(image, topic_index_find(&image->by_name, name));
}

bool image_draft_add(struct image *image, const struct partition_group *groups,
                     uint32_t group_count, int32_t first_partition, struct view slots)
{
    struct topic_draft *draft = &image->draft;
    assert(draft->is_active);
    size_t count = slots.length / 2;
    bool fits = slots.length % 2 == 0 && first_partition >= 0 &&
                (uint32_t)first_partition == draft->slot_count &&
                count <= INT32_MAX - draft->slot_count &&
                group_count <= TOPIC_GROUPS_MOST - draft->group_count;
    for (uint32_t i = 0; i < group_count && fits; i++) {
        fits = groups[i].replica_count > 0;
        if (fits) {
            add_group(draft, &groups[i]);
            uint64_t next = planted(PLANT_GROUP_IDS_REUSED) ? 0 : groups[i].id + 1;
            image->next_group_id = next > image->next_group_id ? next : image->next_group_id;
        }
    }
    if (!fits) {
        return false;
    }
    draft->slots = reserve(draft->slots, draft->slot_count, (uint32_t)count, &draft->slot_capacity,
                           sizeof *draft->slots);
    for (size_t i = 0; i < count && fits; i++) {
        uint16_t slot = load_be16(slots.data + 2 * i);
        draft->slots[draft->slot_count++] = slot;
        fits = slot < draft->group_count;
    }
    return fits;
}

bool image_draft_move(struct image *image, const struct partition_group *group)
{
    struct topic_draft *draft = &image->draft;
    assert(draft->is_active && group->replica_count > 0);
    uint32_t at = 0;
    while (at < draft->group_count && draft->groups[at].id != group->id) {
        at++;
    }
    if (at == draft->group_count) {
        return false;
    }
    uint32_t count = draft->group_count;
    assert(count > 0);
    add_group(draft, group); /* a copy in the arena, put where the group was */
    draft->groups[at] = draft->groups[count];
    draft->group_count = count;
    return true;
}

static uint32_t override_place(const struct topic_draft *draft, enum config_key key)
{
    uint32_t at = 0;
    while (at < draft->override_count && draft->overrides[at].key < key) {
        at++;
    }
    return at;
}

void image_draft_override(struct image *image, enum config_key key, struct view value)
{
    struct topic_draft *draft = &image->draft;
    assert(draft->is_active);
    uint32_t at = override_place(draft, key);
    bool is_there = at < draft->override_count && draft->overrides[at].key == key;
    size_t size = sizeof *draft->overrides;
    if (value.data == NULL) {
        if (is_there) {
            struct topic_override *place = &draft->overrides[at];
            memmove(place, place + 1, (draft->override_count - at - 1) * size);
            draft->override_count--;
        }
        return;
    }
    if (!is_there) {
        draft->overrides = reserve(draft->overrides, draft->override_count, 1,
                                   &draft->override_capacity, size);
        struct topic_override *place = &draft->overrides[at];
        memmove(place + 1, place, (draft->override_count - at) * size);
        draft->override_count++;
    }
    draft->overrides[at] = (struct topic_override){key, keep(draft, value)};
}

static bool can_collide(struct view name)
{
    return memchr(name.data, '.', name.length) != NULL ||
           memchr(name.data, '_', name.length) != NULL;
}

static void add_to_indexes(struct image *image, struct topic_image *topic)
{
    topic_index_add(&image->by_name, topic);
    topic_index_add(&image->by_id, topic);
    if (can_collide(topic->name)) {
        topic_index_add(&image->by_collision, topic);
    }
    image->partition_count += topic->partition_count;
}

/* The last reference may go here, so the topic must not be touched after. */
static void take_from_indexes(struct image *image, struct topic_image *topic)
{
    image->partition_count -= topic->partition_count;
    assert(image->partition_count >= 0);
    if (can_collide(topic->name)) {
        topic_index_remove(&image->by_collision, topic);
    }
    topic_index_remove(&image->by_id, topic);
    topic_index_remove(&image->by_name, topic);
}

static struct topic_image *build(struct image *image, const struct topic_draft *draft)
{
    struct topic_parts parts = {.name = draft->name,
                                .id = draft->id,
                                .slots = draft->slots,
                                .partition_count = (int32_t)draft->slot_count,
                                .groups = draft->groups,
                                .group_count = draft->group_count,
                                .overrides = draft->overrides,
                                .override_count = draft->override_count};
    return topic_image_new(
        &parts, image_settings_share(image, draft->overrides, draft->override_count));
}

void image_replace_topic(struct image *image, struct topic_image *before,
                         struct topic_image *after, struct image_changes *changes)
{
    assert(after != NULL && before != after);
    image_changes_add(changes, before, after);
    if (before != NULL) {
        take_from_indexes(image, before);
    }
    add_to_indexes(image, after);
    topic_image_unref(after);
}

void image_draft_finish(struct image *image, struct image_changes *changes)
{
    struct topic_draft *draft = &image->draft;
    if (!draft->is_active) {
        return;
    }
    image_replace_topic(image, draft->before, build(image, draft), changes);
    arena_free(&draft->arena);
    draft->is_active = false;
    draft->before = NULL;
}

void image_remove_topic(struct image *image, struct topic_image *topic,
                        struct image_changes *changes)
{
    assert(!image->draft.is_active);
    image_changes_add(changes, topic, NULL);
    take_from_indexes(image, topic);
}

void image_draft_free(struct topic_draft *draft)
{
    if (draft->is_active) {
        arena_free(&draft->arena);
    }
    free(draft->slots);
    free(draft->groups);
    free(draft->overrides);
    *draft = (struct topic_draft){0};
}
