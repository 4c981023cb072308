/* An open hash with linear steps, at most half full. */
#include "broker/api/name_set.h"

#include <assert.h>
#include <stdint.h>

void name_set_init(struct name_set *set, size_t count, struct arena *arena)
{
    size_t size = 4;
    while (size < count * 2 + 2) {
        size *= 2;
    }
    set->slots = arena_take(arena, size, sizeof *set->slots);
    assert(set->slots != NULL);
    set->mask = size - 1;
}

static uint64_t hash_bytes(struct view bytes)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (size_t i = 0; i < bytes.length; i++) {
        hash = (hash ^ bytes.data[i]) * 1099511628211u;
    }
    return hash ^ hash >> 32;
}

bool name_set_add(struct name_set *set, struct view name)
{
    assert(name.data != NULL);
    for (size_t at = hash_bytes(name) & set->mask;; at = (at + 1) & set->mask) {
        if (set->slots[at].data == NULL) {
            set->slots[at] = name;
            return true;
        }
        if (view_equal(set->slots[at], name)) {
            return false;
        }
    }
}
