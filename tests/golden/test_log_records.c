/* Records of internal topics and files as a stock broker wrote them, each with its wrapping: the id
 * in a key chooses the schema of the value, metadata records carry frame, id and version. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "protocol/codec.h"
#include "protocol/varint.h"
#include "tests/golden/golden.h"

/* int16 version, body. */
static const char *check_versioned(struct golden_row *row, const struct message_type *type,
    struct view bytes, json_t *want)
{
    if (bytes.length < 2 || !message_has_version(type, (int16_t)load_be16(bytes.data))) {
        return "no version that is known";
    }
    return golden_check_body(row, type, (int16_t)load_be16(bytes.data),
        view_slice(bytes, 2, bytes.length - 2), want, false);
}

/* The key is int16 id and a body at version 0; the value's type is named like the key's. */
static const char *check_pair(struct golden_row *row, const char *name, json_t *want)
{
    const struct message_type *key_type = golden_type(name);
    struct view key = golden_hex(row, row->columns[3]);
    struct view value = golden_hex(row, row->columns[4]);
    if (key.length < 2 || load_be16(key.data) != key_type->id) {
        return "another record id";
    }
    const char *failure = golden_check_body(row, key_type, 0,
        view_slice(key, 2, key.length - 2), json_array_get(want, 0), false);
    if (failure != NULL || value.data == NULL || value.length == 0) {
        return failure;
    }
    struct view value_name = arena_format(&row->arena, "%.*sValue", (int)strlen(name) - 3, name);
    return check_versioned(row, golden_type((const char *)value_name.data), value,
        json_array_get(want, 1));
}

/* uvarint frame 1, id, version, body. */
static const char *check_metadata(struct golden_row *row, const char *name, json_t *want)
{
    const struct message_type *type = golden_type(name);
    struct view value = golden_hex(row, row->columns[4]);
    uint64_t frame = 0, id = 0, version = 0;
    if (varint_take_unsigned(&value, 5, &frame) != STATUS_OK || frame != 1 ||
        varint_take_unsigned(&value, 5, &id) != STATUS_OK || (int16_t)id != type->id ||
        varint_take_unsigned(&value, 5, &version) != STATUS_OK) {
        return "wrapping is not as expected";
    }
    return golden_check_body(row, type, (int16_t)version, value, want, false);
}

static const char *check(struct golden_row *row)
{
    json_error_t error;
    json_t *want = json_loads(row->columns[5], JSON_ALLOW_NUL, &error);
    const char *name = row->columns[1];
    const char *failure;
    if (strcmp(row->columns[0], "__cluster_metadata") == 0) {
        failure = check_metadata(row, name, want);
    } else if (strncmp(row->columns[0], "__", 2) == 0) {
        failure = check_pair(row, name, want);
    } else {
        failure = check_versioned(row, golden_type(name), golden_hex(row, row->columns[4]), want);
    }
    json_decref(want);
    return failure;
}

static void label(const struct golden_row *row, char *text, size_t size)
{
    snprintf(text, size, "%s %s", row->columns[0], row->columns[1]);
}

int main(int count, char **arguments)
{
    struct golden golden = {0};
    for (int i = 1; i < count; i++) {
        golden_run(&golden, arguments[i], check, label);
    }
    return golden_end(&golden);
}
