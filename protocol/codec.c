/* What is small about messages: defaults, versions, equality and the field accessors' shape.
 * Comparing walks the same tables as reading and writing does. Nothing here can fail but for a full
 * arena. */
#include "protocol/codec.h"

#include <assert.h>
#include <string.h>

#include "base/uuid.h"
#include "protocol/codec_fields.h"

void message_init(const struct message_type *type, void *message)
{
    assert(type != NULL && message != NULL);
    memcpy(message, type->body->defaults, type->body->size_bytes);
}

void *message_elements(struct arena *arena, size_t count, const void *defaults, size_t size)
{
    assert(size > 0 && defaults != NULL);
    uint8_t *elements = arena_take(arena, count > 0 ? count : 1, size);
    if (elements == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(elements + i * size, defaults, size);
    }
    return elements;
}

bool message_has_version(const struct message_type *type, int16_t version)
{
    return version >= type->first_version && version <= type->last_version;
}


static bool struct_equal(const struct message_struct *structure, int16_t version, const uint8_t *a,
    const uint8_t *b)
{
    for (unsigned i = 0; i < structure->field_count; i++) {
        const struct message_field *field = &structure->fields[i];
        if (field_exists(field, version) &&
            !field_equal(field, version, a + field->offset, b + field->offset)) {
            return false;
        }
    }
    return true;
}

static bool records_equal(const uint8_t *a, const uint8_t *b)
{
    struct message_records left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left.external_length == right.external_length && view_equal(left.bytes, right.bytes);
}

static bool value_equal(const struct message_field *field, int16_t version, const uint8_t *a,
    const uint8_t *b)
{
    switch ((enum field_kind)field->kind) {
    case FIELD_STRING:
    case FIELD_BYTES: {
        const struct view *left = (const void *)a;
        const struct view *right = (const void *)b;
        return view_equal(*left, *right);
    }
    case FIELD_RECORDS:
        return records_equal(a, b);
    case FIELD_STRUCT:
        return struct_equal(field->structure, version, a, b);
    default:
        return memcmp(a, b, field_value_size(field)) == 0;
    }
}

static bool array_equal(const struct message_field *field, int16_t version, const uint8_t *a,
    const uint8_t *b)
{
    struct field_array left = field_array(a), right = field_array(b);
    if (left.count != right.count) {
        return false;
    }
    size_t size = field_value_size(field);
    for (int32_t i = 0; i < left.count; i++) {
        size_t at = (size_t)i * size;
        if (!value_equal(field, version, left.elements + at, right.elements + at)) {
            return false;
        }
    }
    return true;
}

bool field_equal(const struct message_field *field, int16_t version, const uint8_t *a,
    const uint8_t *b)
{
    if (field->flags & FIELD_ARRAY) {
        return array_equal(field, version, a, b);
    }
    if (field->flags & FIELD_POINTER) {
        const uint8_t *left = field_pointer(a);
        const uint8_t *right = field_pointer(b);
        if (left == NULL || right == NULL) {
            return left == right;
        }
        return struct_equal(field->structure, version, left, right);
    }
    return value_equal(field, version, a, b);
}

bool message_equal(const struct message_type *type, int16_t version, const void *a, const void *b)
{
    assert(message_has_version(type, version));
    return struct_equal(type->body, version, a, b);
}
