/* One interpreter for all messages: reads, writes, prints, compares and invents them by walking
 * the generated tables.
 *
 * Decoding puts structs and arrays into the caller's arena; strings, bytes and records are views
 * into the input, alive as long as the input is. Every count is held against the bytes that are
 * left before anything is allocated, so that the arena's limit and the input's length bound the
 * work. Encoding appends to a buffer; whatever fails leaves the buffer as it was.
 *
 * Shapes (protocol/descriptor.h, generated headers): a nullable struct is a pointer; `x` with
 * `x_count` is an array and count -1 its null; a view with data NULL is null.
 */
#ifndef OTTLA_PROTOCOL_CODEC_H
#define OTTLA_PROTOCOL_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/status.h"
#include "base/view.h"
#include "protocol/descriptor.h"

/* Bytes that are counted in the encoded lengths but were not written: the caller sends
 * buffer[0, position), then `length` bytes of its own (a file range, a shared block), and so on. */
struct message_gap {
    size_t position;       /* in the buffer, counted from the buffer's start */
    uint32_t length;       /* bytes to be put there, at least 1 */
};

/* Where an encoded message goes. Start with {.buffer = &buffer}; the gaps array grows by itself and
 * belongs to the caller, who ends with free(output.gaps). */
struct message_output {
    struct buffer *buffer;
    struct message_gap *gaps;
    size_t gap_count;
    size_t gap_capacity;
};

/* Sets every field to its default; strings that may not be null become empty ones. Nested structs
 * too; elements of arrays are the caller's (see message_elements, or assign the generated
 * `<struct>_default`). The default of ConsumerGroupMemberMetadataValue.classicMemberMetadata points
 * to read-only memory: replace it, do not write through it. */
void message_init(const struct message_type *type, void *message);

/* `count` elements copied from `defaults` (the generated `<struct>_default`, `size` bytes), in the
 * arena. Null only when the arena's limit would be passed; count 0 gives a pointer that must not
 * be read. */
void *message_elements(struct arena *arena, size_t count, const void *defaults, size_t size);

/* Whether the version is one of the message's own. */
bool message_has_version(const struct message_type *type, int16_t version);

/* Reads one message and advances `input` behind it; fields that the version lacks get their
 * defaults, unknown tagged fields are skipped. `version` must be one of the message's.
 * STATUS_TRUNCATED: the input ends too early, or a count or length says more than there is.
 * STATUS_INVALID: null where none may be, a bad varint, a tagged field of the wrong size.
 * STATUS_LIMIT: the arena is full. On failure input and message are unspecified. */
MUST_USE enum status message_decode(const struct message_type *type, int16_t version,
    struct view *input, struct arena *arena, void *message);

/* Like message_decode, but STATUS_INVALID also when bytes are left over. */
MUST_USE enum status message_decode_whole(const struct message_type *type, int16_t version,
    struct view input, struct arena *arena, void *message);

/* Appends the message. `version` must be one of the message's.
 * STATUS_UNSUPPORTED: a field that the version lacks and that is not ignorable has a value other
 * than its default, or something is null that may not be null in this version.
 * STATUS_INVALID: a string above 32767 bytes. On failure buffer and gaps are as before. */
MUST_USE enum status message_encode(const struct message_type *type, int16_t version,
    const void *message, struct message_output *output);

/* message_encode for messages without gaps: `records` must not be external. */
MUST_USE enum status message_encode_to(const struct message_type *type, int16_t version,
    const void *message, struct buffer *buffer);

/* Whether the fields of this version are equal, deeply. External records are equal by length. */
bool message_equal(const struct message_type *type, int16_t version, const void *a,
    const void *b);

/* Appends the fields of this version as one line of JSON, in wire order: bytes, records and uuids
 * as hex, null as null. For logs and tests. */
void message_print_json(const struct message_type *type, int16_t version, const void *message,
    struct buffer *buffer);

/* Fills the message with random values that this version can carry. `*seed` moves on; the same seed
 * gives the same message. False when the arena is full. For tests. */
MUST_USE bool message_random(const struct message_type *type, int16_t version, uint64_t *seed,
    struct arena *arena, void *message);

#endif
