/* Reads vectors and holds the codec against them. Files that are missing or not in shape end the
 * process: the tests bring their own data. */
#include "tests/golden/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "protocol/codec.h"

enum { LINE_START_BYTES = 1 << 16, ROW_ARENA_BYTES = 1 << 24, LABEL_BYTES = 200 };

static char *read_line(gzFile file, char **line, size_t *capacity)
{
    size_t length = 0;
    for (;;) {
        if (*capacity - length < 2) {
            *capacity = *capacity > 0 ? *capacity * 2 : LINE_START_BYTES;
            *line = realloc(*line, *capacity);
        }
        if (gzgets(file, *line + length, (int)(*capacity - length)) == NULL) {
            return length > 0 ? *line : NULL;
        }
        length += strlen(*line + length);
        if ((*line)[length - 1] == '\n') {
            (*line)[length - 1] = '\0';
            return *line;
        }
    }
}

static void split(struct golden_row *row, char *line)
{
    row->count = 0;
    for (char *at = line; at != NULL && row->count < GOLDEN_COLUMNS;) {
        row->columns[row->count++] = strsep(&at, "\t");
    }
}

static void end_group(struct golden *golden)
{
    if (golden->label != NULL) {
        golden->tests++;
        golden->failed += golden->group_failed;
        printf("%s %d - %s\n", golden->group_failed ? "not ok" : "ok", golden->tests,
            golden->label);
    }
    free(golden->label);
    golden->label = NULL;
    golden->group_failed = false;
}

static void run_row(struct golden *golden, struct golden_row *row, const char *label,
    const char *(*check)(struct golden_row *row))
{
    if (golden->label == NULL || strcmp(golden->label, label) != 0) {
        end_group(golden);
        golden->label = strdup(label);
    }
    const char *failure = check(row);
    if (failure != NULL) {
        golden->group_failed = true;
        printf("# %.40s %.40s %.40s: %.2000s\n", row->columns[0], row->columns[1], row->columns[2],
            failure);
    }
    arena_free(&row->arena);
}

void golden_run(struct golden *golden, const char *path,
    const char *(*check)(struct golden_row *row),
    void (*label)(const struct golden_row *row, char *text, size_t size))
{
    gzFile file = gzopen(path, "rb");
    if (file == NULL) {
        printf("Bail out! no vectors at %s\n", path);
        exit(EXIT_FAILURE);
    }
    char *line = NULL;
    size_t capacity = 0;
    struct golden_row row;
    arena_init(&row.arena, ROW_ARENA_BYTES);
    while (read_line(file, &line, &capacity) != NULL) {
        char text[LABEL_BYTES];
        split(&row, line);
        label(&row, text, sizeof text);
        run_row(golden, &row, text, check);
    }
    end_group(golden);
    free(line);
    gzclose(file);
}

int golden_end(struct golden *golden)
{
    printf("1..%d\n", golden->tests);
    return golden->tests > 0 && golden->failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static uint8_t nibble(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

struct view golden_hex(struct golden_row *row, const char *text)
{
    if (strcmp(text, "-") == 0) {
        return VIEW_NULL;
    }
    size_t length = strlen(text) / 2;
    uint8_t *bytes = arena_take(&row->arena, length + 1, 1);
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(nibble(text[2 * i]) << 4 | nibble(text[2 * i + 1]));
    }
    return (struct view){bytes, length};
}

const struct message_type *golden_type(const char *name)
{
    for (size_t i = 0; i < message_type_count; i++) {
        if (strcmp(message_types[i]->name, name) == 0) {
            return message_types[i];
        }
    }
    printf("Bail out! no message %s\n", name);
    exit(EXIT_FAILURE);
}

void golden_drop_tags(json_t *json)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(json)) {
        json_object_del(json, "_tags");
        json_object_foreach(json, key, value) {
            golden_drop_tags(value);
        }
    }
    json_array_foreach(json, i, value) {
        golden_drop_tags(value);
    }
}

static const char *compare_json(struct golden_row *row, const struct message_type *type,
    int16_t version, const void *message, json_t *want)
{
    struct buffer text = {0};
    message_print_json(type, version, message, &text);
    json_error_t error;
    json_t *got = json_loadb((const char *)text.data, text.length,
        JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    const char *failure = NULL;
    if (got == NULL) {
        failure = "printed JSON cannot be read";
    } else if (!json_equal(got, want)) {
        struct view told = arena_format(&row->arena, "printed %.*s", (int)text.length, text.data);
        failure = (const char *)told.data;
    }
    json_decref(got);
    buffer_free(&text);
    return failure;
}

static const char *compare_bytes(const struct message_type *type, int16_t version,
    const void *message, struct view want)
{
    struct buffer bytes = {0};
    const char *failure = NULL;
    if (message_encode_to(type, version, message, &bytes) != STATUS_OK) {
        failure = "cannot be encoded";
    } else if (!view_equal(buffer_view(&bytes), want)) {
        failure = "encodes to other bytes";
    }
    buffer_free(&bytes);
    return failure;
}

/* What was decoded with unknown tags left out must come back equal through its own encoding. */
static const char *compare_again(struct golden_row *row, const struct message_type *type,
    int16_t version, const void *message)
{
    static const char *const failure = "differs after encoding and decoding";
    struct buffer bytes = {0};
    void *again = arena_take(&row->arena, 1, type->body->size_bytes);
    bool same = message_encode_to(type, version, message, &bytes) == STATUS_OK &&
        message_decode_whole(type, version, buffer_view(&bytes), &row->arena, again) == STATUS_OK &&
        message_equal(type, version, message, again);
    buffer_free(&bytes);
    return same ? NULL : failure;
}

const char *golden_check_part(struct golden_row *row, const struct message_type *type,
    int16_t version, struct view *input, json_t *want, bool lossy, void *message)
{
    struct view all = *input;
    enum status status = message_decode(type, version, input, &row->arena, message);
    if (status != STATUS_OK) {
        return (const char *)arena_format(&row->arena, "cannot be decoded: %s",
            status_text(status)).data;
    }
    const char *failure = want == NULL ? NULL : compare_json(row, type, version, message, want);
    if (failure == NULL) {
        struct view used = view_slice(all, 0, all.length - input->length);
        failure = lossy ? compare_again(row, type, version, message)
                        : compare_bytes(type, version, message, used);
    }
    return failure;
}

const char *golden_check_body(struct golden_row *row, const struct message_type *type,
    int16_t version, struct view input, json_t *want, bool lossy)
{
    void *message = arena_take(&row->arena, 1, type->body->size_bytes);
    const char *failure = golden_check_part(row, type, version, &input, want, lossy, message);
    if (failure == NULL && input.length > 0) {
        failure = "bytes are left over";
    }
    return failure;
}
