/* Every message in every version, as the stock Java classes write it: decoded, compared value by
 * value, and encoded back to the same bytes. Defaults are those of message_init. Vectors with
 * unknown tagged fields only have to be read, since they are dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/codec.h"
#include "tests/golden/golden.h"

static const char *check_default(struct golden_row *row, const struct message_type *type,
    int16_t version, struct view want)
{
    void *message = arena_take(&row->arena, 1, type->body->size_bytes);
    struct buffer bytes = {0};
    message_init(type, message);
    enum status status = message_encode_to(type, version, message, &bytes);
    bool same = status == STATUS_OK && view_equal(buffer_view(&bytes), want);
    buffer_free(&bytes);
    return same ? NULL : "defaults of message_init differ";
}

static const char *check(struct golden_row *row)
{
    const struct message_type *type = golden_type(row->columns[0]);
    int16_t version = (int16_t)atoi(row->columns[1]);
    const char *variant = row->columns[2];
    struct view input = golden_hex(row, row->columns[3]);
    if (!message_has_version(type, version)) {
        return "not a version";
    }
    json_error_t error;
    json_t *want = json_loads(row->columns[4], JSON_ALLOW_NUL, &error);
    golden_drop_tags(want);
    bool lossy = strcmp(variant, "tags") == 0;
    const char *failure = golden_check_body(row, type, version, input, want, lossy);
    json_decref(want);
    if (failure == NULL && strcmp(variant, "default") == 0) {
        failure = check_default(row, type, version, input);
    }
    return failure;
}

static void label(const struct golden_row *row, char *text, size_t size)
{
    snprintf(text, size, "%s", row->columns[0]);
}

int main(int count, char **arguments)
{
    struct golden golden = {0};
    for (int i = 1; i < count; i++) {
        golden_run(&golden, arguments[i], check, label);
    }
    return golden_end(&golden);
}
