/* One pair of functions for each compression, behind compress.h; and the bounded output that
 * unpacking writes into. For the compress_*.c files alone. */
#ifndef OTTLA_PROTOCOL_COMPRESS_FORMATS_H
#define OTTLA_PROTOCOL_COMPRESS_FORMATS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/view.h"

/* Output that grows up to a limit. One byte above it can be written, so that a decompressor which
 * fills exactly the limit and one that wants more can be told apart. */
struct compress_sink {
    struct buffer *buffer;
    size_t start;        /* the buffer's length before */
    size_t limit_bytes;
};

/* Where to write next; `*bytes` is how much goes there, at least 1 while the sink is not over its
 * limit. The first room is about `hint_bytes`. */
uint8_t *compress_sink_room(struct compress_sink *sink, size_t hint_bytes, size_t *bytes);

/* Takes what was written. STATUS_LIMIT when it is too much. */
MUST_USE enum status compress_sink_take(struct compress_sink *sink, size_t bytes);

/* Append the input packed in the format. */
void compress_gzip_pack(int32_t level, struct view input, struct buffer *output);
void compress_snappy_pack(struct view input, struct buffer *output);
void compress_lz4_pack(int32_t level, struct view input, struct buffer *output);
void compress_zstd_pack(int32_t level, struct view input, struct buffer *output);

/* Unpack the whole input into the sink. STATUS_CORRUPT or STATUS_TRUNCATED: it is not of this
 * format; STATUS_LIMIT: the sink is full. */
MUST_USE enum status compress_gzip_unpack(struct view input, struct compress_sink *sink);
MUST_USE enum status compress_snappy_unpack(struct view input, struct compress_sink *sink);
MUST_USE enum status compress_lz4_unpack(struct view input, struct compress_sink *sink);
MUST_USE enum status compress_zstd_unpack(struct view input, struct compress_sink *sink);

#endif
