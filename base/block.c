/* Reference-counted bytes. Counting is atomic, since blocks travel between threads; everything
 * else about a block is written before it is shared. */
#include "base/block.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_pool.h"
#include "base/list.h"
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

/* Ends the page before the bytes. */
struct paged_head {
    struct block_region *region; /* null: the memory is its own */
    struct block block;
};

_Static_assert(sizeof(struct paged_head) == sizeof(void *) + sizeof(struct block), "no padding");

size_t block_pages_bytes(size_t capacity)
{
    return BLOCK_PAGE + (capacity + BLOCK_PAGE - 1) / BLOCK_PAGE * BLOCK_PAGE;
}

struct block *block_on_pages(uint8_t *memory, size_t capacity, struct block_region *region)
{
    assert((uintptr_t)memory % BLOCK_PAGE == 0);
    void *place = memory + BLOCK_PAGE - sizeof(struct paged_head);
    struct paged_head *head = place;
    head->region = region;
    atomic_init(&head->block.references, 1);
    head->block.has_pages = true;
    head->block.capacity = capacity;
    size_t end = block_pages_bytes(capacity) - BLOCK_PAGE;
    memset(memory + BLOCK_PAGE + capacity, 0, end - capacity);
    return &head->block;
}

struct block *block_new_pages(size_t capacity)
{
    uint8_t *memory = aligned_alloc(BLOCK_PAGE, block_pages_bytes(capacity));
    assert(memory != NULL);
    return block_on_pages(memory, capacity, NULL);
}

static void free_block(struct block *block)
{
    if (!block->has_pages) {
        free(block);
        return;
    }
    struct paged_head *head = container_of(block, struct paged_head, block);
    if (head->region != NULL) {
        block_region_unref(head->region);
    } else {
        free((uint8_t *)block + sizeof *block - BLOCK_PAGE);
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
