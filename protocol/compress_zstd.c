/* zstd frames, read one after another. The window that a frame may ask for is bounded, since it is
 * memory that the sender chooses. */
#include "protocol/compress_formats.h"

#include <assert.h>
#include <zstd.h>

#include "protocol/compress.h"

/* 128 MiB, what level 22 needs and the library's own default. */
enum { WINDOW_LOG_LIMIT = 27 };

void compress_zstd_pack(int32_t level, struct view input, struct buffer *output)
{
    size_t length = output->length;
    size_t bound = ZSTD_compressBound(input.length);
    uint8_t *at = buffer_extend(output, bound);
    /* The library brings levels into its range by itself. */
    int chosen = level == COMPRESS_LEVEL_DEFAULT ? ZSTD_CLEVEL_DEFAULT : level;
    size_t packed = ZSTD_compress(at, bound, input.data, input.length, chosen);
    assert(!ZSTD_isError(packed));
    output->length = length + packed;
}

/* Frames until the input is used up; 0 from the library says that a frame is complete. */
static enum status unpack_frames(ZSTD_DCtx *context, struct view input,
    struct compress_sink *sink)
{
    ZSTD_inBuffer in = {input.data, input.length, 0};
    size_t wanted = 1;
    bool full = false;
    while (in.pos < in.size || full) {
        size_t room = 0;
        uint8_t *at = compress_sink_room(sink, 4 * input.length, &room);
        ZSTD_outBuffer out = {at, room, 0};
        wanted = ZSTD_decompressStream(context, &out, &in);
        if (ZSTD_isError(wanted)) {
            return STATUS_INVALID;
        }
        enum status status = compress_sink_take(sink, out.pos);
        if (status != STATUS_OK) {
            return status;
        }
        full = out.pos == out.size && wanted != 0;
    }
    return wanted == 0 ? STATUS_OK : STATUS_TRUNCATED;
}

enum status compress_zstd_unpack(struct view input, struct compress_sink *sink)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    assert(context != NULL);
    size_t code = ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG_LIMIT);
    assert(!ZSTD_isError(code));
    enum status status = unpack_frames(context, input, sink);
    ZSTD_freeDCtx(context);
    return status;
}
