/* Allocation that does not fail: out of memory ends the process with a message, so that no caller
 * carries a path that was never run. Everything that can grow has a bound of its own elsewhere. */
#ifndef OTTLA_BASE_MEMORY_H
#define OTTLA_BASE_MEMORY_H

#include <stddef.h>

/* Uninitialised bytes, to be released with free(). `size` may be 0. Aborts when there are none. */
void *memory_new(size_t size) __attribute__((malloc, returns_nonnull));

/* `count` zeroed elements of `size` bytes, to be released with free(). Aborts when there are none
 * or when the product overflows. */
void *memory_new_zero(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/* Like realloc() for `count` elements of `size` bytes; aborts instead of returning null. */
void *memory_resize(void *old, size_t count, size_t size) __attribute__((returns_nonnull));

/* A copy of a C string, to be released with free(). */
char *memory_copy_text(const char *text) __attribute__((malloc, returns_nonnull));

#endif
