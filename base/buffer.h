/* A growing run of bytes with one owner: messages are encoded into it. */
#ifndef OTTLA_BASE_BUFFER_H
#define OTTLA_BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

struct buffer {
    uint8_t *data;
    size_t length;
    size_t capacity;
};

/* Makes room for `bytes` more and returns where they go; the length grows by them. The pointer is
 * valid until the next call. */
uint8_t *buffer_extend(struct buffer *buffer, size_t bytes);

/* Appends a copy of the bytes. */
void buffer_append(struct buffer *buffer, const void *bytes, size_t length);

/* Big-endian integers at the end. */
void buffer_append_be16(struct buffer *buffer, uint16_t value);
void buffer_append_be32(struct buffer *buffer, uint32_t value);
void buffer_append_be64(struct buffer *buffer, uint64_t value);

/* The bytes so far; valid until the next append. Never the null view. */
struct view buffer_view(const struct buffer *buffer);

/* Releases the bytes; the buffer is empty and may be used again. */
void buffer_free(struct buffer *buffer);

#endif
