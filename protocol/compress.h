/* The four compressions of record batches, whole blocks at a time, with a bound on what comes
 * out.
 *
 * Unpacking reads every framing that clients write: gzip with several members, snappy in the
 * frame of snappy-java and as one raw block (librdkafka), any LZ4 frame, any zstd frame. Packing
 * writes what the stock Java client writes. What a client sent wrong is a status; nothing is
 * appended then.
 */
#ifndef OTTLA_PROTOCOL_COMPRESS_H
#define OTTLA_PROTOCOL_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/view.h"

/* Numbers as in bits 0-2 of a batch's attributes. */
enum compression {
    COMPRESSION_NONE = 0,
    COMPRESSION_GZIP = 1,
    COMPRESSION_SNAPPY = 2,
    COMPRESSION_LZ4 = 3,
    COMPRESSION_ZSTD = 4,
    COMPRESSION_COUNT
};

/* As level: what the compressor does when nobody asks for anything. */
enum { COMPRESS_LEVEL_DEFAULT = INT32_MIN };

/* Appends the packed bytes. Levels are the library's own (gzip 1-9, lz4 1-17, zstd -131072 to 22);
 * others are brought into that range; snappy has none. Cannot fail. */
void compress_pack(enum compression compression, int32_t level, struct view input,
    struct buffer *output);

/* Appends the unpacked bytes, at most `limit_bytes`.
 * STATUS_LIMIT: more would come out. STATUS_TRUNCATED: the input ends too early.
 * STATUS_INVALID: not of this compression, damaged, or no known compression. On failure the buffer
 * is as before. */
MUST_USE enum status compress_unpack(enum compression compression, struct view input,
    size_t limit_bytes, struct buffer *output);

#endif
