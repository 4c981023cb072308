/* Writing messages: the encoder is a cursor into the caller's buffer that makes room in steps.
 * Everything is written in one pass; only the size in front of a tagged field is put in
 * afterwards. Records that lie elsewhere leave their length and a gap. What cannot be said in
 * this version fails, and the buffer is cut back to where it was. */
#include "protocol/codec.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "protocol/codec_fields.h"

enum { UVARINT_LIMIT_BYTES = 5, ROOM_STEP_BYTES = 256 };

struct encoder {
    uint8_t *at;
    uint8_t *end;
    struct message_output *output;
    int16_t version;
    bool flexible;
};

static enum status encode_struct(struct encoder *encoder, const struct message_struct *structure,
    const uint8_t *from);

/* Gives the buffer what was written and asks it for more. */
static void make_room(struct encoder *encoder, size_t bytes)
{
    struct buffer *buffer = encoder->output->buffer;
    if (encoder->at != NULL) {
        buffer->length = (size_t)(encoder->at - buffer->data);
    }
    size_t length = buffer->length;
    encoder->at = buffer_extend(buffer, bytes + ROOM_STEP_BYTES);
    buffer->length = length;
    encoder->end = buffer->data + buffer->capacity;
    assert((size_t)(encoder->end - encoder->at) >= bytes);
}

/* Where to write the next `bytes`; the cursor moves behind them. */
static inline uint8_t *room(struct encoder *encoder, size_t bytes)
{
    if ((size_t)(encoder->end - encoder->at) < bytes) {
        make_room(encoder, bytes);
    }
    uint8_t *at = encoder->at;
    encoder->at += bytes;
    return at;
}

static inline size_t position(const struct encoder *encoder)
{
    return (size_t)(encoder->at - encoder->output->buffer->data);
}

/* Writes a varint at `at` and returns its bytes. */
static inline size_t store_uvarint(uint8_t *at, uint32_t value)
{
    size_t bytes = 0;
    while (value >= 0x80) {
        at[bytes++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    at[bytes++] = (uint8_t)value;
    assert(bytes <= UVARINT_LIMIT_BYTES);
    return bytes;
}

/* A length or count; -1 is null. Lengths from 2^31 - 1 on are refused by the callers. */
static inline void encode_length(struct encoder *encoder, bool compact, size_t plain_bytes,
    int32_t length)
{
    assert(length >= -1 && length < INT32_MAX);
    if (compact) {
        uint8_t *at = room(encoder, UVARINT_LIMIT_BYTES);
        encoder->at = at + store_uvarint(at, (uint32_t)(length + 1));
    } else if (plain_bytes == 2) {
        store_be16(room(encoder, 2), (uint16_t)length);
    } else {
        store_be32(room(encoder, 4), (uint32_t)length);
    }
}

static inline enum status encode_view(struct encoder *encoder, const struct message_field *field,
    struct view view)
{
    bool compact = encoder->flexible && !(field->flags & FIELD_PLAIN_LENGTH);
    size_t plain_bytes = field->kind == FIELD_STRING ? 2 : 4;
    if (view.data == NULL) {
        if (!field_may_be_null(field, encoder->version)) {
            return STATUS_UNSUPPORTED;
        }
        encode_length(encoder, compact, plain_bytes, -1);
        return STATUS_OK;
    }
    if (view.length > (field->kind == FIELD_STRING ? FIELD_STRING_LIMIT_BYTES : INT32_MAX - 1)) {
        return STATUS_INVALID;
    }
    encode_length(encoder, compact, plain_bytes, (int32_t)view.length);
    memcpy(room(encoder, view.length), view.data, view.length);
    return STATUS_OK;
}

static void add_gap(struct encoder *encoder, uint32_t length)
{
    struct message_output *output = encoder->output;
    if (output->gap_count == output->gap_capacity) {
        output->gap_capacity = output->gap_capacity > 0 ? 2 * output->gap_capacity : 8;
        output->gaps = memory_resize(output->gaps, output->gap_capacity, sizeof *output->gaps);
    }
    output->gaps[output->gap_count++] = (struct message_gap){position(encoder), length};
}

static enum status encode_records(struct encoder *encoder, const struct message_field *field,
    const struct message_records *records)
{
    if (records->external_length == 0) {
        return encode_view(encoder, field, records->bytes);
    }
    assert(records->bytes.length == 0);
    assert(field->tag < 0);
    if (records->external_length >= INT32_MAX) {
        return STATUS_INVALID;
    }
    encode_length(encoder, encoder->flexible, 4, (int32_t)records->external_length);
    add_gap(encoder, records->external_length);
    return STATUS_OK;
}

static inline void encode_16(struct encoder *encoder, const uint8_t *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof value);
    store_be16(room(encoder, sizeof value), value);
}

static inline void encode_32(struct encoder *encoder, const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    store_be32(room(encoder, sizeof value), value);
}

static inline void encode_64(struct encoder *encoder, const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    store_be64(room(encoder, sizeof value), value);
}

/* For most fields this is a few instructions, and a call would be as many. */
__attribute__((always_inline)) static inline enum status encode_value(struct encoder *encoder,
    const struct message_field *field, const uint8_t *from)
{
    switch ((enum field_kind)field->kind) {
    case FIELD_BOOL:
    case FIELD_INT8:
        *room(encoder, 1) = *from;
        return STATUS_OK;
    case FIELD_INT16:
    case FIELD_UINT16:
        encode_16(encoder, from);
        return STATUS_OK;
    case FIELD_INT32:
    case FIELD_UINT32:
        encode_32(encoder, from);
        return STATUS_OK;
    case FIELD_INT64:
    case FIELD_FLOAT64:
        encode_64(encoder, from);
        return STATUS_OK;
    case FIELD_UUID:
        memcpy(room(encoder, sizeof(struct uuid)), from, sizeof(struct uuid));
        return STATUS_OK;
    case FIELD_STRING:
    case FIELD_BYTES:
        return encode_view(encoder, field, *(const struct view *)(const void *)from);
    case FIELD_RECORDS:
        return encode_records(encoder, field, (const void *)from);
    case FIELD_STRUCT:
        return encode_struct(encoder, field->structure, from);
    }
    assert(false && "a known kind of field");
    return STATUS_INVALID;
}

static enum status encode_array(struct encoder *encoder, const struct message_field *field,
    const uint8_t *from)
{
    struct field_array array = field_array(from);
    assert(array.count >= -1);
    if (array.count < 0 && !field_may_be_null(field, encoder->version)) {
        return STATUS_UNSUPPORTED;
    }
    encode_length(encoder, encoder->flexible, 4, array.count);
    size_t size = field_value_size(field);
    for (int32_t i = 0; i < array.count; i++) {
        enum status status = encode_value(encoder, field, array.elements + (size_t)i * size);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* Null is -1 and present 1, but 0 and 1 for a struct that is itself a tagged field. */
static enum status encode_pointer(struct encoder *encoder, const struct message_field *field,
    const uint8_t *from)
{
    const uint8_t *inner = field_pointer(from);
    if (inner == NULL) {
        if (!field_may_be_null(field, encoder->version)) {
            return STATUS_UNSUPPORTED;
        }
        *room(encoder, 1) = field->tag >= 0 ? 0 : 0xff;
        return STATUS_OK;
    }
    *room(encoder, 1) = 1;
    return encode_struct(encoder, field->structure, inner);
}

static inline enum status encode_field(struct encoder *encoder, const struct message_field *field,
    const uint8_t *from)
{
    if (field->flags & FIELD_ARRAY) {
        return encode_array(encoder, field, from);
    }
    if (field->flags & FIELD_POINTER) {
        return encode_pointer(encoder, field, from);
    }
    return encode_value(encoder, field, from);
}

/* Whether the field holds its default. A field may be looked at in a version that lacks it, where
 * its inner fields do not exist either, so that it is compared as it is in its own last version. */
static bool is_default(const struct message_field *field, int16_t version,
    const struct message_struct *structure, const uint8_t *from)
{
    int16_t seen_in = field_exists(field, version) ? version : field->last_version;
    const uint8_t *defaults = structure->defaults;
    return field_equal(field, seen_in, from + field->offset, defaults + field->offset);
}

/* Tag, size, content. One byte is kept for the size and the content moved when it needs more. */
static enum status encode_tagged(struct encoder *encoder, const struct message_field *field,
    const uint8_t *from)
{
    uint8_t *at = room(encoder, 2);
    at[0] = (uint8_t)field->tag;
    at[1] = 0;
    size_t start = position(encoder);
    enum status status = encode_field(encoder, field, from);
    if (status != STATUS_OK) {
        return status;
    }
    size_t size = position(encoder) - start;
    if (size >= INT32_MAX) {
        return STATUS_INVALID;
    }
    uint8_t varint[UVARINT_LIMIT_BYTES];
    size_t more = store_uvarint(varint, (uint32_t)size) - 1;
    room(encoder, more);
    uint8_t *content = encoder->output->buffer->data + start;
    memmove(content + more, content, size);
    memcpy(content - 1, varint, more + 1);
    return STATUS_OK;
}

static enum status encode_tagged_fields(struct encoder *encoder,
    const struct message_struct *structure, const uint8_t *from)
{
    *room(encoder, 1) = 0;
    size_t count_at = position(encoder) - 1;
    for (unsigned i = structure->plain_count; i < structure->field_count; i++) {
        const struct message_field *field = &structure->fields[i];
        if (!field_exists(field, encoder->version) ||
            is_default(field, encoder->version, structure, from)) {
            continue;
        }
        enum status status = encode_tagged(encoder, field, from + field->offset);
        if (status != STATUS_OK) {
            return status;
        }
        uint8_t *count = encoder->output->buffer->data + count_at;
        assert(*count < 0x7f);
        ++*count;
    }
    return STATUS_OK;
}

/* A field that this version lacks: dropped when that may be, else it must hold its default. */
static enum status check_lacking(const struct encoder *encoder, const struct message_field *field,
    const struct message_struct *structure, const uint8_t *from)
{
    if (field->flags & FIELD_IGNORABLE || is_default(field, encoder->version, structure, from)) {
        return STATUS_OK;
    }
    return STATUS_UNSUPPORTED;
}

static enum status encode_struct(struct encoder *encoder, const struct message_struct *structure,
    const uint8_t *from)
{
    for (unsigned i = 0; i < structure->field_count; i++) {
        const struct message_field *field = &structure->fields[i];
        enum status status = STATUS_OK;
        if (!field_exists(field, encoder->version)) {
            status = check_lacking(encoder, field, structure, from);
        } else if (i < structure->plain_count) {
            status = encode_field(encoder, field, from + field->offset);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return encoder->flexible ? encode_tagged_fields(encoder, structure, from) : STATUS_OK;
}

enum status message_encode(const struct message_type *type, int16_t version, const void *message,
    struct message_output *output)
{
    assert(message_has_version(type, version));
    assert(message != NULL && output->buffer != NULL);
    size_t length = output->buffer->length;
    size_t gap_count = output->gap_count;
    struct encoder encoder = {
        .output = output, .version = version, .flexible = version >= type->flexible_from};
    make_room(&encoder, 0);
    enum status status = encode_struct(&encoder, type->body, message);
    if (status == STATUS_OK) {
        output->buffer->length = position(&encoder);
    } else {
        output->buffer->length = length;
        output->gap_count = gap_count;
    }
    assert(output->buffer->length >= length);
    return status;
}

enum status message_encode_to(const struct message_type *type, int16_t version,
    const void *message, struct buffer *buffer)
{
    struct message_output output = {.buffer = buffer};
    enum status status = message_encode(type, version, message, &output);
    assert(output.gap_count == 0 && output.gaps == NULL);
    return status;
}
