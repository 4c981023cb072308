/* Snappy in the frame of snappy-java, and as one raw block, which librdkafka and others send. The
 * frame is eight magic bytes, two int32 versions, and blocks of int32 length and raw snappy. */
#include "protocol/compress_formats.h"

#include <assert.h>
#include <snappy-c.h>
#include <string.h>

#include "base/bytes.h"

enum {
    FRAME_MAGIC_BYTES = 8,
    FRAME_HEADER_BYTES = 16,
    BLOCK_HEADER_BYTES = 4,
    BLOCK_INPUT_BYTES = 32 * 1024,
    /* Three bytes of input can ask for 64 bytes of output, and no element does better. */
    EXPANSION_LIMIT = 22
};

static const uint8_t frame_magic[FRAME_MAGIC_BYTES] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};

static void pack_block(struct view input, struct buffer *output)
{
    size_t length = output->length;
    size_t packed = snappy_max_compressed_length(input.length);
    uint8_t *at = buffer_extend(output, BLOCK_HEADER_BYTES + packed);
    snappy_status status = snappy_compress((const char *)input.data, input.length,
        (char *)at + BLOCK_HEADER_BYTES, &packed);
    assert(status == SNAPPY_OK);
    store_be32(at, (uint32_t)packed);
    output->length = length + BLOCK_HEADER_BYTES + packed;
}

void compress_snappy_pack(struct view input, struct buffer *output)
{
    buffer_append(output, frame_magic, sizeof frame_magic);
    buffer_append_be32(output, 1);  /* version */
    buffer_append_be32(output, 1);  /* lowest version that can read it */
    for (size_t from = 0; from < input.length; from += BLOCK_INPUT_BYTES) {
        size_t left = input.length - from;
        pack_block(view_slice(input, from, left < BLOCK_INPUT_BYTES ? left : BLOCK_INPUT_BYTES),
            output);
    }
}

/* A raw block names its unpacked length; it is believed only as far as the block can carry it. */
static enum status unpack_block(struct view block, struct compress_sink *sink)
{
    size_t length = 0;
    const char *data = (const char *)block.data;
    if (snappy_uncompressed_length(data, block.length, &length) != SNAPPY_OK ||
        length / EXPANSION_LIMIT > block.length) {
        return STATUS_INVALID;
    }
    struct buffer *buffer = sink->buffer;
    if (length > sink->limit_bytes - (buffer->length - sink->start)) {
        return STATUS_LIMIT;
    }
    char *at = (char *)buffer_extend(buffer, length);
    size_t unpacked = length;
    snappy_status status = snappy_uncompress(data, block.length, at, &unpacked);
    assert(status != SNAPPY_OK || unpacked == length);
    return status == SNAPPY_OK ? STATUS_OK : STATUS_INVALID;
}

static enum status unpack_frame(struct view input, struct compress_sink *sink)
{
    if (input.length < FRAME_HEADER_BYTES) {
        return STATUS_TRUNCATED;
    }
    size_t at = FRAME_HEADER_BYTES;
    while (at < input.length) {
        if (input.length - at < BLOCK_HEADER_BYTES) {
            return STATUS_TRUNCATED;
        }
        size_t length = load_be32(input.data + at);
        at += BLOCK_HEADER_BYTES;
        if (length > input.length - at) {
            return STATUS_TRUNCATED;
        }
        enum status status = unpack_block(view_slice(input, at, length), sink);
        if (status != STATUS_OK) {
            return status;
        }
        at += length;
    }
    return STATUS_OK;
}

enum status compress_snappy_unpack(struct view input, struct compress_sink *sink)
{
    if (input.length >= FRAME_MAGIC_BYTES &&
        memcmp(input.data, frame_magic, FRAME_MAGIC_BYTES) == 0) {
        return unpack_frame(input, sink);
    }
    return input.length == 0 ? STATUS_TRUNCATED : unpack_block(input, sink);
}
