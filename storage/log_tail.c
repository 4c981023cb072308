/* A ring of batches that doubles when full. Bytes are shared by reference with whoever reads them;
 * a chunk is only ever written behind what was handed out. Cannot fail. */
#include "storage/log_tail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { COPY_BELOW_BYTES = 8 * 1024, CHUNK_BYTES_MIN = 4 * 1024, CHUNK_BYTES_MAX = 64 * 1024,
    RING_START = 4 };

void log_tail_free(struct log_tail *tail)
{
    while (tail->count > 0) {
        log_tail_drop(tail);
    }
    block_unref(tail->chunk);
    free(tail->ring);
    *tail = (struct log_tail){0};
}

struct tail_batch *log_tail_at(const struct log_tail *tail, size_t number)
{
    assert(number < tail->count);
    return &tail->ring[(tail->first + number) & (tail->capacity - 1)];
}

static void grow(struct log_tail *tail)
{
    size_t capacity = tail->capacity == 0 ? RING_START : tail->capacity * 2;
    struct tail_batch *ring = memory_new(capacity * sizeof *ring);
    for (size_t i = 0; i < tail->count; i++) {
        ring[i] = *log_tail_at(tail, i);
    }
    free(tail->ring);
    tail->ring = ring;
    tail->capacity = capacity;
    tail->first = 0;
}

/* A copy of the bytes behind the last copy; a new chunk when this one is full. */
static struct slice copy_to_chunk(struct log_tail *tail, struct view bytes)
{
    if (tail->chunk == NULL || tail->chunk->capacity - tail->chunk_used < bytes.length) {
        size_t capacity = tail->chunk == NULL ? CHUNK_BYTES_MIN : tail->chunk->capacity * 4;
        capacity = capacity > CHUNK_BYTES_MAX ? CHUNK_BYTES_MAX : capacity;
        capacity = capacity < bytes.length ? bytes.length : capacity;
        block_unref(tail->chunk);
        tail->chunk = block_new(capacity);
        tail->chunk_used = 0;
    }
    memcpy(tail->chunk->bytes + tail->chunk_used, bytes.data, bytes.length);
    struct slice slice = slice_of(block_ref(tail->chunk), tail->chunk_used, bytes.length);
    tail->chunk_used += bytes.length;
    return slice;
}

void log_tail_add(struct log_tail *tail, struct view bytes, struct block *block,
    struct tail_batch where)
{
    assert(where.last_offset >= where.base_offset);
    if (bytes.length < COPY_BELOW_BYTES || block == NULL) {
        where.slice = copy_to_chunk(tail, bytes);
    } else {
        where.slice = (struct slice){block_ref(block), bytes.data, bytes.length};
    }
    if (tail->count == tail->capacity) {
        grow(tail);
    }
    tail->count++;
    *log_tail_at(tail, tail->count - 1) = where;
    tail->bytes += bytes.length;
}

size_t log_tail_find(const struct log_tail *tail, int64_t offset)
{
    size_t low = 0;
    size_t high = tail->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (log_tail_at(tail, middle)->last_offset >= offset) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

size_t log_tail_drop(struct log_tail *tail)
{
    struct tail_batch *batch = log_tail_at(tail, 0);
    size_t length = batch->slice.length;
    block_unref(batch->slice.block);
    tail->first = (tail->first + 1) & (tail->capacity - 1);
    tail->count--;
    tail->written -= tail->written > 0 ? 1 : 0;
    assert(tail->bytes >= length && tail->written <= tail->count);
    tail->bytes -= length;
    if (tail->count == 0) {
        block_unref(tail->chunk);
        free(tail->ring);
        *tail = (struct log_tail){0};
    }
    return length;
}
