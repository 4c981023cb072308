/* Blocks for what comes in from other nodes and goes to the disk, cut one behind the other out of
 * regions of memory that the kernel may map by one large page each: then a device gets it in a few
 * pieces instead of one for each 4 KiB, which is a good part of what a direct write costs.
 *
 * A region is used again when its last block is gone; blocks that come together go together, as a
 * rule. Some regions are kept, others go back to the system.
 */
#ifndef OTTLA_BASE_BLOCK_POOL_H
#define OTTLA_BASE_BLOCK_POOL_H

#include <stddef.h>

#include "base/block.h"

struct block_pool;
struct block_region;

/* Smaller blocks have pages by themselves: few of them would keep a whole region. */
enum { BLOCK_REGION_BYTES = 2 * 1024 * 1024, BLOCK_POOL_LEAST = 128 * 1024 };

/* A pool without memory. It belongs to one thread; its blocks may go anywhere. */
struct block_pool *block_pool_new(void);

/* Lets go of the pool; blocks out of it may live on. Null is allowed. */
void block_pool_free(struct block_pool *pool);

/* A new block as of block_new_pages. */
struct block *block_pool_take(struct block_pool *pool, size_t capacity);

/* For block.c: one block of the region less. From any thread. */
void block_region_unref(struct block_region *region);

#endif
