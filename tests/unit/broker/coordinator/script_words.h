/* Words of a script line: a command, plain words, and key=value pairs, cut out of the line in
 * place. `#1` in a value stands for the first random id, `#2` for the second, and so on. */
#ifndef OTTLA_TESTS_UNIT_BROKER_COORDINATOR_SCRIPT_WORDS_H
#define OTTLA_TESTS_UNIT_BROKER_COORDINATOR_SCRIPT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/view.h"

enum { SCRIPT_WORDS_MAX = 32 };

struct script_words {
    char *words[SCRIPT_WORDS_MAX];
    size_t count;
};

/* Splits the line, which is changed. */
void script_words_split(struct script_words *words, char *line);

/* The value behind `key=`, or null. */
const char *script_words_get(const struct script_words *words, const char *key);
int64_t script_words_number(const struct script_words *words, const char *key, int64_t otherwise);

/* The value with ids written out, in the arena; null view when the key is absent. */
struct view script_words_text(const struct script_words *words, const char *key,
                              struct arena *arena);

/* Writes out `#N` in the text. */
struct view script_expand(struct arena *arena, const char *text);

/* Appends the bytes with random ids cut down to `#N`. */
void script_shorten(struct buffer *out, struct view text);

/* Splits `text` at the separator into parts in the arena; the count. */
size_t script_split(struct arena *arena, const char *text, char separator, char ***parts);

#endif
