/* A list of items of one size that grows at its end: what the checks remember of a run. */
#ifndef OTTLA_TESTS_SIM_CLUSTER_GROWING_H
#define OTTLA_TESTS_SIM_CLUSTER_GROWING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"

struct growing {
    size_t item_bytes;           /* set at the beginning, never zero */
    uint8_t *bytes;
    size_t count;
    size_t capacity;
};

/* Valid until the next one is added. */
static inline void *growing_at(const struct growing *list, size_t at)
{
    assert(at < list->count && list->item_bytes > 0);
    return list->bytes + at * list->item_bytes;
}

/* One more at the end; its bytes are to be set. */
static inline void *growing_add(struct growing *list)
{
    assert(list->item_bytes > 0);
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 16;
        list->bytes = memory_resize(list->bytes, list->capacity, list->item_bytes);
    }
    list->count++;
    return growing_at(list, list->count - 1);
}

/* Empty again. */
static inline void growing_forget(struct growing *list)
{
    free(list->bytes);
    *list = (struct growing){.item_bytes = list->item_bytes};
}

#endif
