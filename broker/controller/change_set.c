/* A list of changes and a hash that finds them by name. */
#include "broker/controller/change_set.h"

#include <assert.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/memory.h"
#include "base/planted.h"

struct change_place {
    size_t at; /* in the list */
    char *name;
    UT_hash_handle hh;
};

static struct view name_of(const struct image_change *change)
{
    assert(change->before != NULL || change->after != NULL);
    return change->before != NULL ? change->before->name : change->after->name;
}

static struct change_place *find(const struct change_set *set, struct view name)
{
    struct change_place *place = NULL;
    HASH_FIND(hh, set->places, name.data, name.length, place);
    return place;
}

static void append(struct change_set *set, const struct image_change *change)
{
    struct view name = name_of(change);
    struct change_place *place = memory_new_zero(1, sizeof *place);
    place->at = set->changes.count;
    place->name = view_copy_text(name);
    HASH_ADD_KEYPTR(hh, set->places, place->name, name.length, place);
    image_changes_add(&set->changes, change->before, change->after);
}

static void free_place(struct change_set *set, struct change_place *place)
{
    HASH_DEL(set->places, place);
    free(place->name);
    free(place);
}

/* The topic came and went. The last change gets its place. */
static void take_out(struct change_set *set, struct change_place *place)
{
    struct image_changes *changes = &set->changes;
    size_t at = place->at;
    topic_image_unref(changes->items[at].after);
    free_place(set, place);
    changes->count--;
    if (at < changes->count) {
        changes->items[at] = changes->items[changes->count];
        find(set, name_of(&changes->items[at]))->at = at;
    }
}

bool change_set_add(struct change_set *set, const struct image_change *change)
{
    struct change_place *place = find(set, name_of(change));
    if (place == NULL || planted(PLANT_CHANGES_LISTED)) {
        append(set, change);
        return true;
    }
    struct image_change *known = &set->changes.items[place->at];
    if (change->before == NULL || known->after == NULL) {
        return false;
    }
    assert(uuid_equal(known->after->id, change->before->id));
    if (known->before == NULL && change->after == NULL) {
        take_out(set, place);
        return true;
    }
    topic_image_unref(known->after);
    known->after = change->after == NULL ? NULL : topic_image_ref(change->after);
    return true;
}

void change_set_free(struct change_set *set)
{
    struct change_place *place;
    struct change_place *next;
    HASH_ITER(hh, set->places, place, next) {
        free_place(set, place);
    }
    image_changes_free(&set->changes);
}
