/* LZ4 frames. Written with independent 64 KiB blocks and no checksums, as the Java client does;
 * read with any parameters, and one frame after another. */
#include "protocol/compress_formats.h"

#include <assert.h>
#include <lz4frame.h>
#include <lz4hc.h>

#include "protocol/compress.h"

static int clamp_level(int32_t level)
{
    if (level == COMPRESS_LEVEL_DEFAULT || level < 1) {
        return 0;
    }
    return level > LZ4HC_CLEVEL_MAX ? LZ4HC_CLEVEL_MAX : level;
}

void compress_lz4_pack(int32_t level, struct view input, struct buffer *output)
{
    LZ4F_preferences_t preferences = {
        .frameInfo = {.blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent},
        .compressionLevel = clamp_level(level),
    };
    size_t length = output->length;
    size_t bound = LZ4F_compressFrameBound(input.length, &preferences);
    uint8_t *at = buffer_extend(output, bound);
    size_t packed = LZ4F_compressFrame(at, bound, input.data, input.length, &preferences);
    assert(!LZ4F_isError(packed));
    output->length = length + packed;
}

/* Frames until the input is used up; 0 from the library says that a frame is complete. A frame's
 * end mark is read after its last block was written, so no output can wait behind the input. */
static enum status unpack_frames(LZ4F_dctx *context, struct view input, struct compress_sink *sink)
{
    size_t at = 0, wanted = 1;
    while (at < input.length) {
        size_t room = 0, taken = input.length - at;
        uint8_t *out = compress_sink_room(sink, 4 * input.length, &room);
        size_t made = room;
        wanted = LZ4F_decompress(context, out, &made, input.data + at, &taken, NULL);
        if (LZ4F_isError(wanted)) {
            return STATUS_INVALID;
        }
        enum status status = compress_sink_take(sink, made);
        if (status != STATUS_OK) {
            return status;
        }
        at += taken;
        assert(made > 0 || taken > 0 || wanted == 0);
    }
    return wanted == 0 ? STATUS_OK : STATUS_TRUNCATED;
}

enum status compress_lz4_unpack(struct view input, struct compress_sink *sink)
{
    LZ4F_dctx *context = NULL;
    LZ4F_errorCode_t code = LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
    assert(!LZ4F_isError(code) && context != NULL);
    enum status status = unpack_frames(context, input, sink);
    LZ4F_freeDecompressionContext(context);
    return status;
}
