/* Allocation that aborts instead of failing. */
#include "base/memory.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C library keeps small pieces at hand for malloc, but not for calloc. */
enum { SMALL_BYTES = 1024 };

static void *or_abort(void *memory, size_t size)
{
    if (memory == NULL) {
        fprintf(stderr, "ottla: out of memory (%zu bytes asked for)\n", size);
        abort();
    }
    return memory;
}

void *memory_new(size_t size)
{
    return or_abort(malloc(size == 0 ? 1 : size), size);
}

void *memory_new_zero(size_t count, size_t size)
{
    assert(size > 0);
    if (count <= SMALL_BYTES / size) {
        size_t bytes = count == 0 ? size : count * size;
        return memset(memory_new(bytes), 0, bytes);
    }
    return or_abort(calloc(count, size), count * size);
}

void *memory_resize(void *old, size_t count, size_t size)
{
    assert(size > 0);
    assert(count <= SIZE_MAX / size);
    return or_abort(realloc(old, count == 0 ? size : count * size), count * size);
}

char *memory_copy_text(const char *text)
{
    assert(text != NULL);
    size_t size = strlen(text) + 1;
    return memcpy(memory_new(size), text, size);
}
