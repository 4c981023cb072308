/* gzip by zlib: one member is written, several are read. Bytes behind the last member that are no
 * member themselves make the input invalid. */
#include "protocol/compress_formats.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>

#include <zlib.h>

#include "protocol/compress.h"

/* 15 bits of window, and 16 says gzip instead of the zlib format. */
enum { GZIP_WINDOW_BITS = 15 + 16, GZIP_MEMORY_LEVEL = 8 };

static void *input_bytes(struct view input)
{
    return (void *)(uintptr_t)input.data;  /* zlib does not change its input */
}

static int clamp_level(int32_t level)
{
    if (level == COMPRESS_LEVEL_DEFAULT || level == Z_DEFAULT_COMPRESSION) {
        return Z_DEFAULT_COMPRESSION;
    }
    return level < 1 ? 1 : level > 9 ? 9 : level;
}

void compress_gzip_pack(int32_t level, struct view input, struct buffer *output)
{
    assert(input.length <= INT_MAX);
    z_stream stream = {0};
    int code = deflateInit2(&stream, clamp_level(level), Z_DEFLATED, GZIP_WINDOW_BITS,
        GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
    assert(code == Z_OK);
    uLong bound = deflateBound(&stream, input.length);
    size_t length = output->length;
    stream.next_out = buffer_extend(output, bound);
    stream.avail_out = (uInt)bound;
    stream.next_in = input_bytes(input);
    stream.avail_in = (uInt)input.length;
    code = deflate(&stream, Z_FINISH);
    assert(code == Z_STREAM_END);
    output->length = length + stream.total_out;
    deflateEnd(&stream);
}

/* Inflates one step into the sink. Z_STREAM_END in `*code` when a member is complete. */
static enum status inflate_step(z_stream *stream, size_t hint_bytes, struct compress_sink *sink,
    int *code)
{
    size_t room = 0;
    stream->next_out = compress_sink_room(sink, hint_bytes, &room);
    stream->avail_out = room < UINT_MAX ? (uInt)room : UINT_MAX;
    uInt offered = stream->avail_out;
    *code = inflate(stream, Z_NO_FLUSH);
    assert(*code != Z_MEM_ERROR && *code != Z_STREAM_ERROR);
    enum status status = compress_sink_take(sink, offered - stream->avail_out);
    if (status != STATUS_OK || *code == Z_OK || *code == Z_STREAM_END) {
        return status;
    }
    return *code == Z_BUF_ERROR ? STATUS_TRUNCATED : STATUS_INVALID;
}

enum status compress_gzip_unpack(struct view input, struct compress_sink *sink)
{
    if (input.length == 0) {
        return STATUS_TRUNCATED;
    }
    if (input.length > INT_MAX) {
        return STATUS_LIMIT;
    }
    z_stream stream = {.next_in = input_bytes(input), .avail_in = (uInt)input.length};
    int code = inflateInit2(&stream, GZIP_WINDOW_BITS);
    assert(code == Z_OK);
    enum status status = STATUS_OK;
    bool done = false;
    while (status == STATUS_OK && !done) {
        status = inflate_step(&stream, 4 * input.length, sink, &code);
        if (status == STATUS_OK && code == Z_STREAM_END) {
            done = stream.avail_in == 0;
            code = inflateReset(&stream);
            assert(code == Z_OK);
        }
    }
    inflateEnd(&stream);
    return status;
}
