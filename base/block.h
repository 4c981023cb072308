/* Reference-counted bytes shared between a connection, the journal, the log's tail and answers.
 *
 * A frame is read into one block; batches inside it are slices. The last one to let go frees it, on
 * whichever thread that is. The bytes may be changed only while the block has a single owner.
 */
#ifndef OTTLA_BASE_BLOCK_H
#define OTTLA_BASE_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

struct block_region;

struct block {
    atomic_uint references;
    bool has_pages;
    size_t capacity;
    uint8_t bytes[];
};

enum { BLOCK_PAGE = 4096 };

/* Part of a block. It does not hold a reference by itself; who keeps one calls block_ref. */
struct slice {
    struct block *block;
    const uint8_t *data;
    size_t length;
};

/* A new block with one reference and uninitialised bytes. */
struct block *block_new(size_t capacity);

/* The same in pages of memory of which nothing else has a part: the bytes begin with the first,
 * and behind them in the last one is zero. So a device can be given the sectors around a slice. */
struct block *block_new_pages(size_t capacity);

/* For pools of such blocks (block_pool.h): what one takes with its head. */
size_t block_pages_bytes(size_t capacity);

/* And one made on so much memory, which is the region's. */
struct block *block_on_pages(uint8_t *memory, size_t capacity, struct block_region *region);

/* A new block holding a copy of the bytes. */
struct block *block_copy(struct view view);

/* The same block with another capacity; its bytes up to the smaller one are kept. It must have a
 * single owner; the old pointer is gone. */
struct block *block_resize(struct block *block, size_t capacity);

/* One more reference; returns the block. */
struct block *block_ref(struct block *block);

/* One reference less; frees the block with the last one. Null is allowed. */
void block_unref(struct block *block);

/* A slice over a whole block, sharing the caller's reference. */
struct slice slice_of(struct block *block, size_t from, size_t length);

/* The slice's bytes. */
static inline struct view slice_view(struct slice slice)
{
    return (struct view){slice.data, slice.length};
}

#endif
