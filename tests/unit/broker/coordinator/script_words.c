/* Cutting lines into words. Malformed scripts abort. */
#include "tests/unit/broker/coordinator/script_words.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ID_ZEROS[] = "00000000-0000-0000-0000-";
enum { ID_ZEROS_LENGTH = sizeof(ID_ZEROS) - 1, ID_LENGTH = 36 };

void script_words_split(struct script_words *words, char *line)
{
    words->count = 0;
    char *state = NULL;
    for (char *word = strtok_r(line, " \t", &state); word != NULL;
         word = strtok_r(NULL, " \t", &state)) {
        assert(words->count < SCRIPT_WORDS_MAX);
        words->words[words->count++] = word;
    }
}

const char *script_words_get(const struct script_words *words, const char *key)
{
    size_t length = strlen(key);
    for (size_t i = 1; i < words->count; i++) {
        if (strncmp(words->words[i], key, length) == 0 && words->words[i][length] == '=') {
            return words->words[i] + length + 1;
        }
    }
    return NULL;
}

int64_t script_words_number(const struct script_words *words, const char *key, int64_t otherwise)
{
    const char *text = script_words_get(words, key);
    return text == NULL ? otherwise : strtoll(text, NULL, 10);
}

struct view script_expand(struct arena *arena, const char *text)
{
    struct view result = arena_format(arena, "%s", "");
    while (*text != '\0') {
        if (*text == '#' && isdigit((unsigned char)text[1])) {
            char *end;
            unsigned long long number = strtoull(text + 1, &end, 10);
            result = arena_format(arena, "%s%s%012llx", (const char *)result.data, ID_ZEROS,
                                  number);
            text = end;
        } else {
            result = arena_format(arena, "%s%c", (const char *)result.data, *text++);
        }
    }
    return result;
}

struct view script_words_text(const struct script_words *words, const char *key,
                              struct arena *arena)
{
    const char *text = script_words_get(words, key);
    return text == NULL ? VIEW_NULL : script_expand(arena, text);
}

void script_shorten(struct buffer *out, struct view text)
{
    size_t i = 0;
    while (i < text.length) {
        const char *at = (const char *)text.data + i;
        if (text.length - i >= ID_LENGTH && memcmp(at, ID_ZEROS, ID_ZEROS_LENGTH) == 0) {
            char digits[ID_LENGTH - ID_ZEROS_LENGTH + 1] = {0};
            memcpy(digits, at + ID_ZEROS_LENGTH, ID_LENGTH - ID_ZEROS_LENGTH);
            char number[32];
            int length = snprintf(number, sizeof(number), "#%llu", strtoull(digits, NULL, 16));
            buffer_append(out, number, (size_t)length);
            i += ID_LENGTH;
        } else {
            buffer_append(out, at, 1);
            i++;
        }
    }
}

size_t script_split(struct arena *arena, const char *text, char separator, char ***parts)
{
    size_t room = 1;
    for (const char *at = text; *at != '\0'; at++) {
        room += *at == separator;
    }
    *parts = arena_take(arena, room, sizeof(**parts));
    size_t count = 0;
    while (text != NULL && *text != '\0') {
        const char *end = strchrnul(text, separator);
        struct view part = arena_format(arena, "%.*s", (int)(end - text), text);
        (*parts)[count++] = (char *)(uintptr_t)part.data;
        text = *end == '\0' ? NULL : end + 1;
    }
    assert(count <= room);
    return count;
}
