/* A bump allocator: chunks in a list, the newest one is cut. Happy path: a small request fits
 * into the first chunk. The only failure is the arena's own limit. */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_CHUNK_BYTES = 960, LARGEST_STEP_BYTES = 256 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t size;
    size_t used;
    alignas(max_align_t) uint8_t bytes[];
};

void arena_init(struct arena *arena, size_t limit_bytes)
{
    assert(limit_bytes > 0);
    *arena = (struct arena){.limit_bytes = limit_bytes};
}

static struct arena_chunk *chunk_for(struct arena *arena, size_t bytes)
{
    struct arena_chunk *chunk = arena->chunks;
    if (chunk != NULL && chunk->size - chunk->used >= bytes) {
        return chunk;
    }
    size_t size = chunk == NULL ? FIRST_CHUNK_BYTES : chunk->size * 2;
    size = size > LARGEST_STEP_BYTES ? LARGEST_STEP_BYTES : size;
    size = size < bytes ? bytes : size;
    struct arena_chunk *fresh = memory_new(sizeof *fresh + size);
    *fresh = (struct arena_chunk){.next = chunk, .size = size};
    arena->chunks = fresh;
    return fresh;
}

void *arena_take(struct arena *arena, size_t count, size_t size)
{
    assert(size > 0);
    if (count > SIZE_MAX / 2 / size) {
        return NULL;
    }
    size_t align = alignof(max_align_t);
    size_t bytes = (count * size + align - 1) / align * align;
    if (bytes > arena->limit_bytes - arena->used_bytes) {
        return NULL;
    }
    struct arena_chunk *chunk = chunk_for(arena, bytes);
    void *taken = chunk->bytes + chunk->used;
    chunk->used += bytes;
    arena->used_bytes += bytes;
    assert(chunk->used <= chunk->size);
    return memset(taken, 0, bytes);
}

struct view arena_copy(struct arena *arena, struct view view)
{
    if (view.data == NULL) {
        return VIEW_NULL;
    }
    uint8_t *copy = arena_take(arena, view.length + 1, 1);
    if (copy == NULL) {
        return VIEW_NULL;
    }
    memcpy(copy, view.data, view.length);
    return (struct view){copy, view.length};
}

struct view arena_format(struct arena *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    assert(length >= 0);
    char *text = arena_take(arena, (size_t)length + 1, 1);
    if (text == NULL) {
        return VIEW_NULL;
    }
    va_start(list, format);
    vsnprintf(text, (size_t)length + 1, format, list);
    va_end(list);
    return (struct view){(const uint8_t *)text, (size_t)length};
}

void arena_free(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
    arena->used_bytes = 0;
}
