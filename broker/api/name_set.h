/* A set of names in a request's memory, to see repetitions in constant time. */
#ifndef OTTLA_BROKER_API_NAME_SET_H
#define OTTLA_BROKER_API_NAME_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/view.h"

struct name_set {
    struct view *slots;
    size_t mask;
};

/* Makes room for `count` names in the arena. The arena must have no limit that this could pass. */
void name_set_init(struct name_set *set, size_t count, struct arena *arena);

/* Adds the bytes, which must outlive the set; false when they were in it already. */
bool name_set_add(struct name_set *set, struct view name);

#endif
