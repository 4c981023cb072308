/* Reading messages: the decoder is a cursor over the input; each field of the version is read
 * into its place in the C struct. Structs start as a copy of their defaults, so that fields which
 * are not on the wire need no visit. The first thing that does not fit ends the whole message. */
#include "protocol/codec.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "protocol/codec_fields.h"

struct decoder {
    const uint8_t *at;
    const uint8_t *end;
    struct arena *arena;
    int16_t version;
    bool flexible;
};

static enum status decode_struct(struct decoder *decoder, const struct message_struct *structure,
    uint8_t *out);

static inline size_t left_bytes(const struct decoder *decoder)
{
    assert(decoder->at <= decoder->end);
    return (size_t)(decoder->end - decoder->at);
}

/* Kafka's unsigned varint: at most five bytes, and no more than 32 bits. */
static enum status decode_uvarint(struct decoder *decoder, uint32_t *value)
{
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (decoder->at == decoder->end) {
            return STATUS_TRUNCATED;
        }
        uint8_t byte = *decoder->at++;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = (uint32_t)sum;
            return sum <= UINT32_MAX ? STATUS_OK : STATUS_INVALID;
        }
    }
    return STATUS_INVALID;
}

/* A length or count with -1 for null: compact, or `plain_bytes` wide. Not above what is left. */
static inline enum status decode_length(struct decoder *decoder, bool compact, size_t plain_bytes,
    int32_t *length)
{
    if (compact) {
        uint32_t value = 0;
        if (decoder->at < decoder->end && *decoder->at < 0x80) {
            value = *decoder->at++;
        } else {
            enum status status = decode_uvarint(decoder, &value);
            if (status != STATUS_OK) {
                return status;
            }
        }
        if (value > INT32_MAX) {
            return STATUS_INVALID;
        }
        *length = (int32_t)value - 1;
    } else {
        if (left_bytes(decoder) < plain_bytes) {
            return STATUS_TRUNCATED;
        }
        *length = plain_bytes == 2 ? (int16_t)load_be16(decoder->at)
                                   : (int32_t)load_be32(decoder->at);
        decoder->at += plain_bytes;
    }
    if (*length < 0) {
        *length = -1;
        return STATUS_OK;
    }
    return (size_t)*length <= left_bytes(decoder) ? STATUS_OK : STATUS_TRUNCATED;
}

static inline enum status decode_view(struct decoder *decoder, const struct message_field *field,
    struct view *view)
{
    bool compact = decoder->flexible && !(field->flags & FIELD_PLAIN_LENGTH);
    int32_t length = 0;
    enum status status = decode_length(decoder, compact, field->kind == FIELD_STRING ? 2 : 4,
        &length);
    if (status != STATUS_OK) {
        return status;
    }
    if (length < 0) {
        *view = VIEW_NULL;
        return field_may_be_null(field, decoder->version) ? STATUS_OK : STATUS_INVALID;
    }
    if (field->kind == FIELD_STRING && length > FIELD_STRING_LIMIT_BYTES) {
        return STATUS_INVALID;
    }
    *view = (struct view){decoder->at, (size_t)length};
    decoder->at += length;
    return STATUS_OK;
}

/* Fixed-width values; the caller has seen that the bytes are there. */
static inline void load_fixed(const uint8_t *at, enum field_kind kind, uint8_t *out)
{
    switch (kind) {
    case FIELD_BOOL: {
        bool value = *at != 0;
        memcpy(out, &value, sizeof value);
        break;
    }
    case FIELD_INT8:
        *out = *at;
        break;
    case FIELD_INT16:
    case FIELD_UINT16: {
        uint16_t value = load_be16(at);
        memcpy(out, &value, sizeof value);
        break;
    }
    case FIELD_INT32:
    case FIELD_UINT32: {
        uint32_t value = load_be32(at);
        memcpy(out, &value, sizeof value);
        break;
    }
    case FIELD_INT64:
    case FIELD_FLOAT64: {
        uint64_t value = load_be64(at);
        memcpy(out, &value, sizeof value);
        break;
    }
    case FIELD_UUID:
        memcpy(out, at, sizeof(struct uuid));
        break;
    default:
        assert(false && "a kind of fixed width");
    }
}

static inline enum status decode_value(struct decoder *decoder, const struct message_field *field,
    uint8_t *out)
{
    switch ((enum field_kind)field->kind) {
    case FIELD_STRING:
    case FIELD_BYTES:
    case FIELD_RECORDS:
        return decode_view(decoder, field, (struct view *)(void *)out);
    case FIELD_STRUCT:
        return decode_struct(decoder, field->structure, out);
    default: {
        size_t width = field_value_size(field);
        if (left_bytes(decoder) < width) {
            return STATUS_TRUNCATED;
        }
        load_fixed(decoder->at, (enum field_kind)field->kind, out);
        decoder->at += width;
        return STATUS_OK;
    }
    }
}

/* Bytes that an element has on the wire at least. */
static size_t minimum_bytes(const struct decoder *decoder, const struct message_field *field)
{
    switch ((enum field_kind)field->kind) {
    case FIELD_STRUCT:
        return field->structure->minimum_bytes[decoder->version];
    case FIELD_STRING:
        return decoder->flexible ? 1 : 2;
    case FIELD_BYTES:
    case FIELD_RECORDS:
        return decoder->flexible ? 1 : 4;
    default:
        return field_value_size(field);
    }
}

static enum status decode_elements(struct decoder *decoder, const struct message_field *field,
    size_t count, uint8_t **elements)
{
    size_t minimum = minimum_bytes(decoder, field);
    assert(minimum > 0);
    if (count > left_bytes(decoder) / minimum) {
        return STATUS_TRUNCATED;
    }
    size_t size = field_value_size(field);
    uint8_t *at = arena_take(decoder->arena, count, size);
    if (at == NULL) {
        return STATUS_LIMIT;
    }
    *elements = at;
    for (size_t i = 0; i < count; i++, at += size) {
        enum status status = decode_value(decoder, field, at);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status decode_array(struct decoder *decoder, const struct message_field *field,
    uint8_t *out)
{
    int32_t count = 0;
    enum status status = decode_length(decoder, decoder->flexible, 4, &count);
    if (status != STATUS_OK) {
        return status;
    }
    if (count < 0 && !field_may_be_null(field, decoder->version)) {
        return STATUS_INVALID;
    }
    uint8_t *elements = NULL;
    if (count > 0) {
        status = decode_elements(decoder, field, (size_t)count, &elements);
    }
    memcpy(out, &elements, sizeof elements);
    memcpy(out + sizeof elements, &count, sizeof count);
    return status;
}

/* Null is any negative byte, but 0 for a struct that is itself a tagged field. */
static enum status decode_pointer(struct decoder *decoder, const struct message_field *field,
    uint8_t *out)
{
    if (left_bytes(decoder) < 1) {
        return STATUS_TRUNCATED;
    }
    int8_t mark = (int8_t)*decoder->at++;
    bool null = field->tag >= 0 ? mark == 0 : mark < 0;
    uint8_t *inner = NULL;
    enum status status = STATUS_OK;
    if (!null) {
        inner = arena_take(decoder->arena, 1, field->structure->size_bytes);
        status = inner == NULL ? STATUS_LIMIT : decode_struct(decoder, field->structure, inner);
    } else if (!field_may_be_null(field, decoder->version)) {
        status = STATUS_INVALID;
    }
    memcpy(out, &inner, sizeof inner);
    return status;
}

static inline enum status decode_field(struct decoder *decoder, const struct message_field *field,
    uint8_t *out)
{
    if (field->flags & FIELD_ARRAY) {
        return decode_array(decoder, field, out);
    }
    if (field->flags & FIELD_POINTER) {
        return decode_pointer(decoder, field, out);
    }
    return decode_value(decoder, field, out);
}

static const struct message_field *find_tagged(const struct decoder *decoder,
    const struct message_struct *structure, uint32_t tag)
{
    for (unsigned i = structure->plain_count; i < structure->field_count; i++) {
        const struct message_field *field = &structure->fields[i];
        if ((uint32_t)field->tag == tag && field_exists(field, decoder->version)) {
            return field;
        }
    }
    return NULL;
}

/* One tagged field: tag, size, content. The content must fill its size; unknown tags are
 * skipped. */
static enum status decode_tagged(struct decoder *decoder, const struct message_struct *structure,
    uint8_t *out)
{
    uint32_t tag = 0, size = 0;
    enum status status = decode_uvarint(decoder, &tag);
    if (status == STATUS_OK) {
        status = decode_uvarint(decoder, &size);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (size > left_bytes(decoder)) {
        return STATUS_TRUNCATED;
    }
    const uint8_t *behind = decoder->at + size;
    const struct message_field *field = find_tagged(decoder, structure, tag);
    if (field == NULL) {
        decoder->at = behind;
        return STATUS_OK;
    }
    const uint8_t *end = decoder->end;
    decoder->end = behind;
    status = decode_field(decoder, field, out + field->offset);
    decoder->end = end;
    return status == STATUS_OK && decoder->at != behind ? STATUS_INVALID : status;
}

static enum status decode_tagged_fields(struct decoder *decoder,
    const struct message_struct *structure, uint8_t *out)
{
    uint32_t count = 0;
    enum status status = decode_uvarint(decoder, &count);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = decode_tagged(decoder, structure, out);
    }
    return status;
}

static enum status decode_struct(struct decoder *decoder, const struct message_struct *structure,
    uint8_t *out)
{
    memcpy(out, structure->defaults, structure->size_bytes);
    for (unsigned i = 0; i < structure->plain_count; i++) {
        const struct message_field *field = &structure->fields[i];
        if (!field_exists(field, decoder->version)) {
            continue;
        }
        enum status status = decode_field(decoder, field, out + field->offset);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return decoder->flexible ? decode_tagged_fields(decoder, structure, out) : STATUS_OK;
}

enum status message_decode(const struct message_type *type, int16_t version, struct view *input,
    struct arena *arena, void *message)
{
    assert(message_has_version(type, version));
    assert(input->data != NULL && message != NULL);
    struct decoder decoder = {
        .at = input->data,
        .end = input->data + input->length,
        .arena = arena,
        .version = version,
        .flexible = version >= type->flexible_from,
    };
    enum status status = decode_struct(&decoder, type->body, message);
    assert(decoder.at <= decoder.end);
    if (status == STATUS_OK) {
        *input = (struct view){decoder.at, left_bytes(&decoder)};
    }
    return status;
}

enum status message_decode_whole(const struct message_type *type, int16_t version,
    struct view input, struct arena *arena, void *message)
{
    enum status status = message_decode(type, version, &input, arena, message);
    return status == STATUS_OK && input.length > 0 ? STATUS_INVALID : status;
}
