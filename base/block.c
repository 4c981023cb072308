/* Reference-counted bytes. Counting is atomic, since blocks travel between threads; everything
 * else about a block is written before it is shared. */
#include "base/block.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct block *block_new(size_t capacity)
{
    struct block *block = memory_new(sizeof *block + capacity);
    atomic_init(&block->references, 1);
    block->capacity = capacity;
    return block;
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
        free(block);
    }
}

struct slice slice_of(struct block *block, size_t from, size_t length)
{
    assert(block != NULL);
    assert(from <= block->capacity);
    assert(length <= block->capacity - from);
    return (struct slice){block, block->bytes + from, length};
}
