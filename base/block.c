/* Reference-counted bytes. Counting is atomic, since blocks travel between threads; everything
 * else about a block is written before it is shared. */
#include "base/block.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

_Static_assert(offsetof(struct block, bytes) == sizeof(struct block), "bytes follow at once");

struct block *block_new(size_t capacity)
{
    struct block *block = memory_new(sizeof *block + capacity);
    atomic_init(&block->references, 1);
    block->has_pages = false;
    block->capacity = capacity;
    return block;
}

/* The head lies at the end of a page of its own. */
struct block *block_new_pages(size_t capacity)
{
    size_t padded = (capacity + BLOCK_PAGE - 1) / BLOCK_PAGE * BLOCK_PAGE;
    uint8_t *memory = aligned_alloc(BLOCK_PAGE, BLOCK_PAGE + padded);
    assert(memory != NULL);
    struct block *block = (struct block *)(void *)(memory + BLOCK_PAGE - sizeof *block);
    atomic_init(&block->references, 1);
    block->has_pages = true;
    block->capacity = capacity;
    memset(block->bytes + capacity, 0, padded - capacity);
    return block;
}

static void free_block(struct block *block)
{
    if (block->has_pages) {
        free((uint8_t *)block + sizeof *block - BLOCK_PAGE);
    } else {
        free(block);
    }
}

struct block *block_copy(struct view view)
{
    struct block *block = block_new(view.length);
    if (view.length > 0) {
        memcpy(block->bytes, view.data, view.length);
    }
    return block;
}

struct block *block_resize(struct block *block, size_t capacity)
{
    assert(atomic_load_explicit(&block->references, memory_order_acquire) == 1);
    assert(capacity > 0);
    if (block->has_pages) {
        struct block *other = block_new_pages(capacity);
        memcpy(other->bytes, block->bytes, block->capacity < capacity ? block->capacity : capacity);
        free_block(block);
        return other;
    }
    block = memory_resize(block, sizeof *block + capacity, 1);
    block->capacity = capacity;
    return block;
}

struct block *block_ref(struct block *block)
{
    assert(block != NULL);
    unsigned before = atomic_fetch_add_explicit(&block->references, 1, memory_order_relaxed);
    assert(before > 0);
    return block;
}

void block_unref(struct block *block)
{
    if (block == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        free_block(block);
    }
}

struct slice slice_of(struct block *block, size_t from, size_t length)
{
    assert(block != NULL);
    assert(from <= block->capacity);
    assert(length <= block->capacity - from);
    return (struct slice){block, block->bytes + from, length};
}
