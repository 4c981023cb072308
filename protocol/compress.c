/* Chooses the compression and keeps the bound: every decompressor writes into a sink that stops it
 * at the limit, whatever the input claims about its size. On failure the output is cut back. */
#include "protocol/compress.h"

#include <assert.h>

#include "protocol/compress_formats.h"

enum { SINK_ROOM_MINIMUM_BYTES = 512, SINK_ROOM_MAXIMUM_BYTES = 1 << 20 };

static size_t sink_used(const struct compress_sink *sink)
{
    assert(sink->buffer->length >= sink->start);
    return sink->buffer->length - sink->start;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

uint8_t *compress_sink_room(struct compress_sink *sink, size_t hint_bytes, size_t *bytes)
{
    struct buffer *buffer = sink->buffer;
    size_t allowed = sink->limit_bytes + 1 - sink_used(sink);
    assert(allowed > 0);
    if (buffer->capacity == buffer->length) {
        size_t want = smaller(hint_bytes, SINK_ROOM_MAXIMUM_BYTES);
        want = want < SINK_ROOM_MINIMUM_BYTES ? SINK_ROOM_MINIMUM_BYTES : want;
        size_t length = buffer->length;
        buffer_extend(buffer, smaller(want, allowed));
        buffer->length = length;
    }
    *bytes = smaller(buffer->capacity - buffer->length, allowed);
    assert(*bytes > 0);
    return buffer->data + buffer->length;
}

enum status compress_sink_take(struct compress_sink *sink, size_t bytes)
{
    assert(bytes <= sink->buffer->capacity - sink->buffer->length);
    sink->buffer->length += bytes;
    return sink_used(sink) <= sink->limit_bytes ? STATUS_OK : STATUS_LIMIT;
}

void compress_pack(enum compression compression, int32_t level, struct view input,
    struct buffer *output)
{
    size_t length = output->length;
    switch (compression) {
    case COMPRESSION_GZIP:
        compress_gzip_pack(level, input, output);
        break;
    case COMPRESSION_SNAPPY:
        compress_snappy_pack(input, output);
        break;
    case COMPRESSION_LZ4:
        compress_lz4_pack(level, input, output);
        break;
    case COMPRESSION_ZSTD:
        compress_zstd_pack(level, input, output);
        break;
    default:
        assert(compression == COMPRESSION_NONE);
        buffer_append(output, input.data, input.length);
    }
    assert(output->length >= length);
}

static enum status unpack_plain(struct view input, struct compress_sink *sink)
{
    if (input.length > sink->limit_bytes) {
        return STATUS_LIMIT;
    }
    buffer_append(sink->buffer, input.data, input.length);
    return STATUS_OK;
}

static enum status unpack_into(enum compression compression, struct view input,
    struct compress_sink *sink)
{
    switch (compression) {
    case COMPRESSION_NONE:
        return unpack_plain(input, sink);
    case COMPRESSION_GZIP:
        return compress_gzip_unpack(input, sink);
    case COMPRESSION_SNAPPY:
        return compress_snappy_unpack(input, sink);
    case COMPRESSION_LZ4:
        return compress_lz4_unpack(input, sink);
    case COMPRESSION_ZSTD:
        return compress_zstd_unpack(input, sink);
    default:
        return STATUS_INVALID;
    }
}

enum status compress_unpack(enum compression compression, struct view input, size_t limit_bytes,
    struct buffer *output)
{
    assert(limit_bytes < SIZE_MAX / 2);
    struct compress_sink sink = {output, output->length, limit_bytes};
    enum status status = unpack_into(compression, input, &sink);
    if (status != STATUS_OK) {
        output->length = sink.start;
    }
    assert(sink_used(&sink) <= limit_bytes);
    return status;
}
