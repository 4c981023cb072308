/* A bump allocator with one lifetime: a request's memory is taken from it piece by piece and
 * released whole. It has a bound, so that what a client sends cannot make it grow for ever. */
#ifndef OTTLA_BASE_ARENA_H
#define OTTLA_BASE_ARENA_H

#include <stddef.h>

#include "base/view.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;  /* newest first */
    size_t used_bytes;           /* handed out so far */
    size_t limit_bytes;          /* never hand out more than this */
};

/* Starts an empty arena; nothing is allocated until the first take. */
void arena_init(struct arena *arena, size_t limit_bytes);

/* Zeroed memory for `count` elements of `size` bytes, aligned for any type, alive until
 * arena_free. Null when the arena's limit would be passed (the only failure). */
void *arena_take(struct arena *arena, size_t count, size_t size);

/* A copy of the bytes in the arena; the null view stays null. Null view too when over the limit. */
struct view arena_copy(struct arena *arena, struct view view);

/* printf into the arena; the view excludes the final zero that is there. Null when over the
 * limit. */
struct view arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Releases everything; the arena may be used again. */
void arena_free(struct arena *arena);

#endif
