/* A region holds a reference on its pool, each block one on its region, the pool one on the region
 * that blocks are cut from now. Regions that nobody uses wait in a short list, under a lock, as the
 * last block may go on any thread. */
#include "base/block_pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/memory.h"

enum { REGIONS_KEPT = 6 };

struct block_region {
    atomic_uint references;
    size_t used;
    uint8_t *memory;          /* BLOCK_REGION_BYTES of them, aligned to that */
    struct block_pool *pool;
    struct block_region *next; /* in the pool's free ones */
};

struct block_pool {
    atomic_uint references;
    struct block_region *current;
    pthread_mutex_t lock;     /* guards the rest */
    struct block_region *free; /* the one used last, the warmest, first */
    size_t free_count;
    bool closed;
};

struct block_pool *block_pool_new(void)
{
    struct block_pool *pool = memory_new_zero(1, sizeof *pool);
    atomic_init(&pool->references, 1);
    int error = pthread_mutex_init(&pool->lock, NULL);
    assert(error == 0);
    return pool;
}

static void unref_pool(struct block_pool *pool)
{
    if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) == 1) {
        assert(pool->free == NULL && pool->closed);
        pthread_mutex_destroy(&pool->lock);
        free(pool);
    }
}

/* Twice as much is asked for, so that a well aligned part of it can be kept. */
static uint8_t *map_memory(void)
{
    enum { BYTES = BLOCK_REGION_BYTES };
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    uint8_t *all = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert(all != MAP_FAILED);
    size_t before = (size_t)(-(uintptr_t)all % BYTES);
    if (before > 0) {
        munmap(all, before);
    }
    munmap(all + before + BYTES, BYTES - before);
    madvise(all + before, BYTES, MADV_HUGEPAGE); /* a hint */
    return all + before;
}

static struct block_region *new_region(struct block_pool *pool)
{
    struct block_region *region = memory_new_zero(1, sizeof *region);
    region->memory = map_memory();
    region->pool = pool;
    atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
    return region;
}

static void free_region(struct block_region *region)
{
    struct block_pool *pool = region->pool;
    munmap(region->memory, BLOCK_REGION_BYTES);
    free(region);
    unref_pool(pool);
}

static struct block_region *take_region(struct block_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct block_region *region = pool->free;
    if (region != NULL) {
        pool->free = region->next;
        pool->free_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    region = region == NULL ? new_region(pool) : region;
    atomic_store_explicit(&region->references, 1, memory_order_relaxed);
    region->used = 0;
    return region;
}

void block_region_unref(struct block_region *region)
{
    if (atomic_fetch_sub_explicit(&region->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct block_pool *pool = region->pool;
    pthread_mutex_lock(&pool->lock);
    bool is_kept = !pool->closed && pool->free_count < REGIONS_KEPT;
    if (is_kept) {
        region->next = pool->free;
        pool->free = region;
        pool->free_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!is_kept) {
        free_region(region);
    }
}

void block_pool_free(struct block_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    struct block_region *unused = pool->free;
    pool->free = NULL;
    pool->closed = true;
    pthread_mutex_unlock(&pool->lock);
    while (unused != NULL) {
        struct block_region *next = unused->next;
        free_region(unused);
        unused = next;
    }
    if (pool->current != NULL) {
        block_region_unref(pool->current);
    }
    unref_pool(pool);
}

struct block *block_pool_take(struct block_pool *pool, size_t capacity)
{
    size_t needed = block_pages_bytes(capacity);
    if (capacity < BLOCK_POOL_LEAST || needed > BLOCK_REGION_BYTES) {
        return block_new_pages(capacity);
    }
    if (pool->current == NULL || needed > BLOCK_REGION_BYTES - pool->current->used) {
        if (pool->current != NULL) {
            block_region_unref(pool->current);
        }
        pool->current = take_region(pool);
    }
    struct block_region *region = pool->current;
    atomic_fetch_add_explicit(&region->references, 1, memory_order_relaxed);
    uint8_t *memory = region->memory + region->used;
    region->used += needed;
    return block_on_pages(memory, capacity, region);
}
