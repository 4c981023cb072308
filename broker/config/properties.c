/* A reader for Java properties. Owns nothing.
 *
 * Happy path: take the natural lines that make a logical line (an odd number of backslashes before
 * the line's end continues it), find the first unescaped separator, unescape both halves. The only
 * input that is refused is a \u without four hexadecimal digits, as in Java. */
#include "broker/config/properties.h"

#include <assert.h>
#include <string.h>

void properties_init(struct properties_reader *reader, struct view text)
{
    assert(reader != NULL);
    *reader = (struct properties_reader){.rest = text};
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\f';
}

static struct view skip_blanks(struct view text)
{
    while (text.length > 0 && is_blank(text.data[0])) {
        text = view_slice(text, 1, text.length - 1);
    }
    return text;
}

/* Takes one natural line without its end off the rest. */
static struct view take_line(struct properties_reader *reader)
{
    struct view rest = reader->rest;
    size_t length = 0;
    while (length < rest.length && rest.data[length] != '\n' && rest.data[length] != '\r') {
        length++;
    }
    size_t next = length < rest.length ? length + 1 : length;
    if (next < rest.length && rest.data[length] == '\r' && rest.data[next] == '\n') {
        next++;
    }
    reader->rest = view_slice(rest, next, rest.length - next);
    reader->line++;
    return view_slice(rest, 0, length);
}

static bool is_continued(struct view line)
{
    size_t count = 0;
    while (count < line.length && line.data[line.length - 1 - count] == '\\') {
        count++;
    }
    return count % 2 == 1;
}

static struct view join(struct arena *arena, struct view a, struct view b)
{
    uint8_t *bytes = arena_take(arena, a.length + b.length + 1, 1);
    if (bytes == NULL) {
        return VIEW_NULL;
    }
    memcpy(bytes, a.data, a.length);
    memcpy(bytes + a.length, b.data, b.length);
    return (struct view){bytes, a.length + b.length};
}

/* The next line that says something, with its continuations; null view when the arena is full. */
static enum status take_logical_line(struct properties_reader *reader, struct arena *arena,
                                     struct view *out)
{
    struct view line = VIEW_EMPTY;
    while (line.length == 0 || line.data[0] == '#' || line.data[0] == '!') {
        if (reader->rest.length == 0) {
            return STATUS_NOT_FOUND;
        }
        line = skip_blanks(take_line(reader));
    }
    while (is_continued(line)) {
        line = view_slice(line, 0, line.length - 1);
        if (reader->rest.length == 0) {
            break;
        }
        line = join(arena, line, skip_blanks(take_line(reader)));
        if (line.data == NULL) {
            return STATUS_LIMIT;
        }
    }
    *out = line;
    return STATUS_OK;
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    uint8_t lower = byte | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Writes a code unit as UTF-8 and returns its length. Surrogates are written one by one. */
static size_t write_unit(uint8_t *out, unsigned unit)
{
    if (unit < 0x80) {
        out[0] = (uint8_t)unit;
        return 1;
    }
    if (unit < 0x800) {
        out[0] = (uint8_t)(0xc0 | unit >> 6);
        out[1] = (uint8_t)(0x80 | (unit & 63));
        return 2;
    }
    out[0] = (uint8_t)(0xe0 | unit >> 12);
    out[1] = (uint8_t)(0x80 | (unit >> 6 & 63));
    out[2] = (uint8_t)(0x80 | (unit & 63));
    return 3;
}

static uint8_t control_of(uint8_t letter)
{
    switch (letter) {
    case 't':
        return '\t';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 'f':
        return '\f';
    default:
        return letter;
    }
}

/* Reads the four digits of a \u escape; a negative result means that they are not there. */
static int read_unit(struct view digits)
{
    int unit = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = i < digits.length ? hex_digit(digits.data[i]) : -1;
        if (digit < 0) {
            return -1;
        }
        unit = unit << 4 | digit;
    }
    return unit;
}

/* An escaped text is never shorter than what it stands for. */
static enum status unescape(struct view text, struct arena *arena, struct view *out)
{
    uint8_t *bytes = arena_take(arena, text.length + 1, 1);
    if (bytes == NULL) {
        return STATUS_LIMIT;
    }
    size_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] != '\\' || i + 1 == text.length) {
            bytes[length++] = text.data[i];
        } else if (text.data[++i] != 'u') {
            bytes[length++] = control_of(text.data[i]);
        } else {
            int unit = read_unit(view_slice(text, i + 1, text.length - i - 1));
            if (unit < 0) {
                return STATUS_INVALID;
            }
            length += write_unit(bytes + length, (unsigned)unit);
            i += 4;
        }
    }
    assert(length <= text.length);
    *out = (struct view){bytes, length};
    return STATUS_OK;
}

static size_t key_length(struct view line)
{
    size_t at = 0;
    while (at < line.length && line.data[at] != '=' && line.data[at] != ':' &&
           !is_blank(line.data[at])) {
        at += line.data[at] == '\\' ? 2 : 1;
    }
    return at < line.length ? at : line.length;
}

/* Blanks, then at most one = or :, then blanks stand between key and value. */
static struct view after_separator(struct view rest)
{
    rest = skip_blanks(rest);
    if (rest.length > 0 && (rest.data[0] == '=' || rest.data[0] == ':')) {
        rest = skip_blanks(view_slice(rest, 1, rest.length - 1));
    }
    return rest;
}

enum status properties_next(struct properties_reader *reader, struct arena *arena,
                            struct view *key, struct view *value)
{
    assert(reader != NULL && arena != NULL);
    assert(key != NULL && value != NULL);
    struct view line = VIEW_EMPTY;
    enum status status = take_logical_line(reader, arena, &line);
    if (status != STATUS_OK) {
        return status;
    }
    size_t length = key_length(line);
    status = unescape(view_slice(line, 0, length), arena, key);
    if (status == STATUS_OK) {
        struct view rest = after_separator(view_slice(line, length, line.length - length));
        status = unescape(rest, arena, value);
    }
    return status;
}
