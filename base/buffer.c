/* A growing run of bytes: doubles when full, aborts when there is no memory. */
#include "base/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

/* What an encoder asks for behind a few bytes that are there already. */
enum { FIRST_BYTES = 512 };

uint8_t *buffer_extend(struct buffer *buffer, size_t bytes)
{
    assert(buffer->length <= buffer->capacity);
    size_t needed = buffer->length + bytes;
    assert(needed >= bytes);
    if (needed > buffer->capacity || buffer->data == NULL) {
        size_t capacity = buffer->capacity == 0 ? FIRST_BYTES : buffer->capacity * 2;
        capacity = capacity < needed ? needed : capacity;
        buffer->data = memory_resize(buffer->data, capacity, 1);
        buffer->capacity = capacity;
    }
    uint8_t *at = buffer->data + buffer->length;
    buffer->length = needed;
    return at;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t length)
{
    if (length > 0) {
        memcpy(buffer_extend(buffer, length), bytes, length);
    }
}

void buffer_append_be16(struct buffer *buffer, uint16_t value)
{
    store_be16(buffer_extend(buffer, sizeof value), value);
}

void buffer_append_be32(struct buffer *buffer, uint32_t value)
{
    store_be32(buffer_extend(buffer, sizeof value), value);
}

void buffer_append_be64(struct buffer *buffer, uint64_t value)
{
    store_be64(buffer_extend(buffer, sizeof value), value);
}

struct view buffer_view(const struct buffer *buffer)
{
    if (buffer->length == 0) {
        return VIEW_EMPTY;
    }
    return (struct view){buffer->data, buffer->length};
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}
