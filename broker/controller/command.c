/* What all commands begin with. Owns nothing: everything lives in the arena. */
#include "broker/controller/command.h"

#include <assert.h>
#include <stdlib.h>

/* A broker while they are put into order. */
struct ranked_broker {
    struct view rack;
    int32_t id;
    int32_t rack_number;
    int32_t rank; /* how many of its rack come before it */
};

/* By rack, then by id. Brokers that name no rack are in one together, as in Kafka. */
static int compare_racks(const void *left, const void *right)
{
    const struct ranked_broker *a = left;
    const struct ranked_broker *b = right;
    int order = view_compare(a->rack, b->rack);
    return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

/* The first of each rack, then the second of each, and so on. */
static int compare_ranks(const void *left, const void *right)
{
    const struct ranked_broker *a = left;
    const struct ranked_broker *b = right;
    int order = (a->rank > b->rank) - (a->rank < b->rank);
    return order != 0 ? order : compare_racks(left, right);
}

static void alternate_racks(struct ranked_broker *brokers, int count)
{
    assert(count > 0 && brokers[0].rank == 0 && brokers[0].rack_number == 0);
    qsort(brokers, (size_t)count, sizeof *brokers, compare_racks);
    for (int i = 1; i < count; i++) {
        bool same = view_equal(brokers[i].rack, brokers[i - 1].rack);
        brokers[i].rack_number = brokers[i - 1].rack_number + (same ? 0 : 1);
        brokers[i].rank = same ? brokers[i - 1].rank + 1 : 0;
    }
    qsort(brokers, (size_t)count, sizeof *brokers, compare_ranks);
}

static enum status find_brokers(struct command *command)
{
    const struct image *image = command->controller->image;
    size_t most = (size_t)image_broker_count(image) + 1;
    struct ranked_broker *found = arena_take(command->arena, most, sizeof *found);
    int32_t *brokers = arena_take(command->arena, most, sizeof *brokers);
    int32_t *racks = arena_take(command->arena, most, sizeof *racks);
    int32_t *absent = arena_take(command->arena, most, sizeof *absent);
    int32_t *cordoned = arena_take(command->arena, most, sizeof *cordoned);
    if (found == NULL || brokers == NULL || racks == NULL || absent == NULL || cordoned == NULL) {
        return STATUS_LIMIT;
    }
    int count = 0;
    command->absent = absent;
    command->cordoned = cordoned;
    for (int i = 0; i < image_broker_count(image); i++) {
        const struct register_broker_record *broker = image_broker(image, i);
        if (image_broker_is_cordoned(image, broker)) {
            cordoned[command->cordoned_count++] = broker->broker_id;
        } else if (!broker->fenced && !broker->in_controlled_shutdown) {
            found[count++] =
                (struct ranked_broker){.rack = broker->rack, .id = broker->broker_id};
        } else {
            absent[command->absent_count++] = broker->broker_id;
        }
    }
    if (count == 0 && command->cordoned_count == 0) {
        found[count++].id = config_int(controller_config(command->controller), CONFIG_NODE_ID);
    }
    if (count > 0) {
        alternate_racks(found, count);
    }
    for (int i = 0; i < count; i++) {
        brokers[i] = found[i].id;
        racks[i] = found[i].rack_number;
    }
    assert((size_t)count <= most);
    command->brokers = brokers;
    command->racks = racks;
    command->broker_count = count;
    return STATUS_OK;
}

enum status command_start(struct command *command, const struct controller *controller,
                          struct arena *arena, struct record_list *records)
{
    assert(controller != NULL && controller->image != NULL);
    assert(arena != NULL && records != NULL);
    *command = (struct command){.controller = controller,
                                .arena = arena,
                                .records = records,
                                .next_group = image_next_group_id(controller->image)};
    return find_brokers(command);
}

static bool holds(const int32_t *ids, int count, int32_t id)
{
    assert(count >= 0 && ids != NULL);
    for (int i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

bool command_has_broker(const struct command *command, int32_t id)
{
    return holds(command->brokers, command->broker_count, id) ||
           holds(command->absent, command->absent_count, id) || command_is_cordoned(command, id);
}

bool command_can_take(const struct command *command, int32_t id)
{
    return holds(command->brokers, command->broker_count, id);
}

bool command_is_cordoned(const struct command *command, int32_t id)
{
    return holds(command->cordoned, command->cordoned_count, id);
}

/* By bytes, then by place. */
static int compare_keys(const void *left, const void *right)
{
    const struct view *a = *(const struct view *const *)left;
    const struct view *b = *(const struct view *const *)right;
    int order = view_compare(*a, *b);
    return order != 0 ? order : (a > b) - (a < b);
}

enum status key_set_make(struct arena *arena, const struct view *keys, size_t count,
                         struct key_set *set)
{
    assert(arena != NULL && set != NULL);
    assert(count == 0 || keys != NULL);
    *set = (struct key_set){.keys = keys, .count = count};
    set->marks = arena_take(arena, count + 1, sizeof *set->marks);
    set->sorted = arena_take(arena, count + 1, sizeof(const struct view *));
    if (set->marks == NULL || set->sorted == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        set->sorted[i] = &keys[i];
    }
    qsort(set->sorted, count, sizeof(const struct view *), compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (view_equal(*set->sorted[i - 1], *set->sorted[i])) {
            uint8_t *before = &set->marks[set->sorted[i - 1] - keys];
            *before = *before == KEY_ONCE ? KEY_FIRST : *before;
            set->marks[set->sorted[i] - keys] = KEY_LATER;
        }
    }
    return STATUS_OK;
}

static int compare_to_key(const void *key, const void *element)
{
    return view_compare(*(const struct view *)key, **(const struct view *const *)element);
}

size_t key_set_find(const struct key_set *set, struct view key)
{
    assert(key.data != NULL);
    const struct view *const *found =
        bsearch(&key, set->sorted, set->count, sizeof(const struct view *), compare_to_key);
    return found == NULL ? set->count : (size_t)(*found - set->keys);
}
