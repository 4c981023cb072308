/* What the golden tests share: rows of tab-separated vectors out of gzip files, hex, JSON, and TAP
 * lines for meson. A row that does not pass is told in a comment line with its reason. */
#ifndef OTTLA_TESTS_GOLDEN_GOLDEN_H
#define OTTLA_TESTS_GOLDEN_GOLDEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/view.h"
#include "protocol/descriptor.h"

enum { GOLDEN_COLUMNS = 8, GOLDEN_MESSAGE_BYTES = 4096 };

struct golden_row {
    char *columns[GOLDEN_COLUMNS];
    size_t count;
    struct arena arena;      /* emptied after each row */
};

/* One file's rows; each group of rows with the same label becomes one TAP test. */
struct golden {
    char *label;
    int tests;
    int failed;
    bool group_failed;
};

/* Calls `check` for every row of the file; it returns null, or why the row does not pass. `label`
 * names the group of a row; rows of a group follow one another. */
void golden_run(struct golden *golden, const char *path,
    const char *(*check)(struct golden_row *row),
    void (*label)(const struct golden_row *row, char *text, size_t size));

/* Writes the plan; the process exit code. */
int golden_end(struct golden *golden);

/* The bytes of a hex text; "-" gives the null view. */
struct view golden_hex(struct golden_row *row, const char *text);

/* The type of this name; ends the test when there is none. */
const struct message_type *golden_type(const char *name);

/* Decodes the whole input, compares with the JSON (`_tags` left out) and encodes back to the same
 * bytes unless `lossy`. Null, or what went wrong. `want` may be null: only the bytes are
 * compared. */
const char *golden_check_body(struct golden_row *row, const struct message_type *type,
    int16_t version, struct view input, json_t *want, bool lossy);

/* Like golden_check_body for a message at the start of the input, which moves on. */
const char *golden_check_part(struct golden_row *row, const struct message_type *type,
    int16_t version, struct view *input, json_t *want, bool lossy, void *message);

/* Takes unknown tagged fields out of expected JSON, deeply. */
void golden_drop_tags(json_t *json);

#endif
