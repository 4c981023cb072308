/* Messages as JSON, for log lines, tools and the tests that hold the codec against other software's
 * idea of a message. Written straight into the buffer; nothing can fail. Views that are not UTF-8
 * are printed byte by byte as they are. */
#include "protocol/codec.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"
#include "protocol/codec_fields.h"

enum { NUMBER_TEXT_BYTES = 40 };

static void print_struct(const struct message_struct *structure, int16_t version,
    const uint8_t *from, struct buffer *out);

static void print_text(struct buffer *out, const char *text)
{
    buffer_append(out, text, strlen(text));
}

static void print_int(struct buffer *out, int64_t value)
{
    char text[NUMBER_TEXT_BYTES];
    int length = snprintf(text, sizeof text, "%" PRId64, value);
    assert(length > 0 && length < NUMBER_TEXT_BYTES);
    buffer_append(out, text, (size_t)length);
}

/* With a point or an exponent, so that readers take it for what it is; JSON has no infinities. */
static void print_double(struct buffer *out, double value)
{
    char text[NUMBER_TEXT_BYTES];
    int length = snprintf(text, sizeof text, "%.17g", value);
    assert(length > 0 && length < NUMBER_TEXT_BYTES);
    if (strpbrk(text, "in") != NULL) {
        print_text(out, "null");
        return;
    }
    print_text(out, text);
    if (strpbrk(text, ".e") == NULL) {
        print_text(out, ".0");
    }
}

static void print_character(struct buffer *out, uint8_t character)
{
    char text[NUMBER_TEXT_BYTES];
    if (character == '"' || character == '\\') {
        text[0] = '\\';
        text[1] = (char)character;
        buffer_append(out, text, 2);
    } else if (character < 0x20) {
        snprintf(text, sizeof text, "\\u%04x", character);
        print_text(out, text);
    } else {
        buffer_append(out, &character, 1);
    }
}

static void print_string(struct buffer *out, struct view view)
{
    if (view.data == NULL) {
        print_text(out, "null");
        return;
    }
    print_text(out, "\"");
    for (size_t i = 0; i < view.length; i++) {
        print_character(out, view.data[i]);
    }
    print_text(out, "\"");
}

static void print_hex(struct buffer *out, struct view view)
{
    static const char digits[] = "0123456789abcdef";
    if (view.data == NULL) {
        print_text(out, "null");
        return;
    }
    print_text(out, "\"");
    uint8_t *at = buffer_extend(out, 2 * view.length);
    for (size_t i = 0; i < view.length; i++) {
        at[2 * i] = (uint8_t)digits[view.data[i] >> 4];
        at[2 * i + 1] = (uint8_t)digits[view.data[i] & 15];
    }
    print_text(out, "\"");
}

static void print_records(struct buffer *out, const struct message_records *records)
{
    if (records->external_length == 0) {
        print_hex(out, records->bytes);
        return;
    }
    print_text(out, "{\"externalLength\":");
    print_int(out, records->external_length);
    print_text(out, "}");
}

static int64_t load_int(enum field_kind kind, const uint8_t *from)
{
    uint16_t value16;
    uint32_t value32;
    int64_t value64;
    switch (kind) {
    case FIELD_INT8:
        return (int8_t)*from;
    case FIELD_INT16:
        memcpy(&value16, from, sizeof value16);
        return (int16_t)value16;
    case FIELD_UINT16:
        memcpy(&value16, from, sizeof value16);
        return value16;
    case FIELD_INT32:
        memcpy(&value32, from, sizeof value32);
        return (int32_t)value32;
    case FIELD_UINT32:
        memcpy(&value32, from, sizeof value32);
        return value32;
    default:
        assert(kind == FIELD_INT64);
        memcpy(&value64, from, sizeof value64);
        return value64;
    }
}

static void print_value(const struct message_field *field, int16_t version, const uint8_t *from,
    struct buffer *out)
{
    switch ((enum field_kind)field->kind) {
    case FIELD_BOOL:
        print_text(out, *from != 0 ? "true" : "false");
        break;
    case FIELD_FLOAT64:
        print_double(out, *(const double *)(const void *)from);
        break;
    case FIELD_UUID:
        print_hex(out, (struct view){from, sizeof(struct uuid)});
        break;
    case FIELD_STRING:
        print_string(out, *(const struct view *)(const void *)from);
        break;
    case FIELD_BYTES:
        print_hex(out, *(const struct view *)(const void *)from);
        break;
    case FIELD_RECORDS:
        print_records(out, (const void *)from);
        break;
    case FIELD_STRUCT:
        print_struct(field->structure, version, from, out);
        break;
    default:
        print_int(out, load_int((enum field_kind)field->kind, from));
    }
}

static void print_array(const struct message_field *field, int16_t version, const uint8_t *from,
    struct buffer *out)
{
    struct field_array array = field_array(from);
    if (array.count < 0) {
        print_text(out, "null");
        return;
    }
    size_t size = field_value_size(field);
    print_text(out, "[");
    for (int32_t i = 0; i < array.count; i++) {
        print_text(out, i > 0 ? "," : "");
        print_value(field, version, array.elements + (size_t)i * size, out);
    }
    print_text(out, "]");
}

static void print_field(const struct message_field *field, int16_t version, const uint8_t *from,
    struct buffer *out)
{
    if (field->flags & FIELD_ARRAY) {
        print_array(field, version, from, out);
    } else if (field->flags & FIELD_POINTER) {
        const uint8_t *inner = field_pointer(from);
        if (inner == NULL) {
            print_text(out, "null");
        } else {
            print_struct(field->structure, version, inner, out);
        }
    } else {
        print_value(field, version, from, out);
    }
}

static void print_struct(const struct message_struct *structure, int16_t version,
    const uint8_t *from, struct buffer *out)
{
    const char *between = "";
    print_text(out, "{");
    for (unsigned i = 0; i < structure->field_count; i++) {
        const struct message_field *field = &structure->fields[i];
        if (!field_exists(field, version)) {
            continue;
        }
        print_text(out, between);
        print_text(out, "\"");
        print_text(out, field->name);
        print_text(out, "\":");
        print_field(field, version, from + field->offset, out);
        between = ",";
    }
    print_text(out, "}");
}

void message_print_json(const struct message_type *type, int16_t version, const void *message,
    struct buffer *buffer)
{
    assert(message_has_version(type, version));
    assert(message != NULL);
    print_struct(type->body, version, message, buffer);
}
