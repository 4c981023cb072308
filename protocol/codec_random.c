/* Random messages for tests: whatever a version can carry comes up, with lengths around the steps
 * of the encodings (empty, 126 to 129) more often than chance would have it. The seed alone
 * decides, so that a failure can be had again. */
#include "protocol/codec.h"

#include <assert.h>
#include <string.h>

#include "protocol/codec_fields.h"

enum { ELEMENT_LIMIT = 4, SHORT_LIMIT_BYTES = 20, STEP_LENGTH_BYTES = 125 };

struct inventor {
    uint64_t *seed;
    struct arena *arena;
    int16_t version;
};

static bool invent_struct(struct inventor *inventor, const struct message_struct *structure,
    uint8_t *out);

/* SplitMix64. */
static uint64_t next(struct inventor *inventor)
{
    uint64_t value = *inventor->seed += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

static size_t below(struct inventor *inventor, size_t limit)
{
    assert(limit > 0);
    return next(inventor) % limit;
}

static bool one_in(struct inventor *inventor, size_t times)
{
    return below(inventor, times) == 0;
}

static size_t invent_length(struct inventor *inventor)
{
    return one_in(inventor, 8) ? STEP_LENGTH_BYTES + below(inventor, 6)
                               : below(inventor, SHORT_LIMIT_BYTES);
}

/* Letters for strings, anything for bytes. */
static bool invent_view(struct inventor *inventor, const struct message_field *field,
    struct view *view)
{
    if (field_may_be_null(field, inventor->version) && one_in(inventor, 4)) {
        *view = VIEW_NULL;
        return true;
    }
    size_t length = invent_length(inventor);
    uint8_t *bytes = arena_take(inventor->arena, length + 1, 1);
    if (bytes == NULL) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)next(inventor);
        bytes[i] = field->kind == FIELD_STRING ? (uint8_t)('a' + byte % 26) : byte;
    }
    *view = (struct view){bytes, length};
    return true;
}

/* Small numbers, extremes and anything else. */
static uint64_t invent_number(struct inventor *inventor)
{
    uint64_t value = next(inventor);
    switch (below(inventor, 4)) {
    case 0:
        return value % 3 - 1;
    case 1:
        return value % 2 == 0 ? UINT64_C(0x7fffffff7fff7f7f) : UINT64_C(0x8000000080008080);
    default:
        return value;
    }
}

static bool invent_value(struct inventor *inventor, const struct message_field *field,
    uint8_t *out)
{
    uint64_t number = invent_number(inventor);
    double fraction = (double)(int64_t)number / 1024;
    bool truth = number % 2 == 0;
    switch ((enum field_kind)field->kind) {
    case FIELD_BOOL:
        memcpy(out, &truth, sizeof truth);
        return true;
    case FIELD_FLOAT64:
        memcpy(out, &fraction, sizeof fraction);
        return true;
    case FIELD_UUID:
        memcpy(out, &number, sizeof number);
        number = next(inventor);
        memcpy(out + sizeof number, &number, sizeof number);
        return true;
    case FIELD_STRING:
    case FIELD_BYTES:
    case FIELD_RECORDS:
        return invent_view(inventor, field, (struct view *)(void *)out);
    case FIELD_STRUCT:
        return invent_struct(inventor, field->structure, out);
    default:
        memcpy(out, &number, field_value_size(field));
        return true;
    }
}

static bool invent_array(struct inventor *inventor, const struct message_field *field,
    uint8_t *out)
{
    int32_t count = (int32_t)below(inventor, ELEMENT_LIMIT);
    if (field->kind < FIELD_STRING && one_in(inventor, 8)) {
        count += STEP_LENGTH_BYTES;
    }
    if (field_may_be_null(field, inventor->version) && one_in(inventor, 4)) {
        count = -1;
    }
    uint8_t *elements = NULL;
    size_t size = field_value_size(field);
    if (count > 0 && (elements = arena_take(inventor->arena, (size_t)count, size)) == NULL) {
        return false;
    }
    for (int32_t i = 0; i < count; i++) {
        if (!invent_value(inventor, field, elements + (size_t)i * size)) {
            return false;
        }
    }
    memcpy(out, &elements, sizeof elements);
    memcpy(out + sizeof elements, &count, sizeof count);
    return true;
}

static bool invent_pointer(struct inventor *inventor, const struct message_field *field,
    uint8_t *out)
{
    uint8_t *inner = NULL;
    if (!field_may_be_null(field, inventor->version) || !one_in(inventor, 3)) {
        inner = arena_take(inventor->arena, 1, field->structure->size_bytes);
        if (inner == NULL || !invent_struct(inventor, field->structure, inner)) {
            return false;
        }
    }
    memcpy(out, &inner, sizeof inner);
    return true;
}

static bool invent_field(struct inventor *inventor, const struct message_field *field,
    uint8_t *out)
{
    if (field->flags & FIELD_ARRAY) {
        return invent_array(inventor, field, out);
    }
    if (field->flags & FIELD_POINTER) {
        return invent_pointer(inventor, field, out);
    }
    return invent_value(inventor, field, out);
}

static bool invent_struct(struct inventor *inventor, const struct message_struct *structure,
    uint8_t *out)
{
    memcpy(out, structure->defaults, structure->size_bytes);
    for (unsigned i = 0; i < structure->field_count; i++) {
        const struct message_field *field = &structure->fields[i];
        bool keep_default = field->tag >= 0 && one_in(inventor, 3);
        if (field_exists(field, inventor->version) && !keep_default &&
            !invent_field(inventor, field, out + field->offset)) {
            return false;
        }
    }
    return true;
}

bool message_random(const struct message_type *type, int16_t version, uint64_t *seed,
    struct arena *arena, void *message)
{
    assert(message_has_version(type, version));
    struct inventor inventor = {.seed = seed, .arena = arena, .version = version};
    return invent_struct(&inventor, type->body, message);
}
