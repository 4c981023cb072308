/* Parsing and checking of single values. Owns nothing: results live in the caller's arena.
 *
 * Happy path: trim, parse by type, check by the key's table row. A failure is told as one sentence
 * that names value, key and what would be right, because it is all that an operator or a client
 * gets to see. */
#include "broker/config/value.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_NUMBER = 64, LONGEST_SHOWN = 200 };

struct view config_trim(struct view text)
{
    while (text.length > 0 && text.data[0] <= ' ') {
        text = view_slice(text, 1, text.length - 1);
    }
    while (text.length > 0 && text.data[text.length - 1] <= ' ') {
        text = view_slice(text, 0, text.length - 1);
    }
    return text;
}

bool config_number_parse(struct view text, int64_t *number)
{
    assert(number != NULL);
    size_t at = text.length > 0 && (text.data[0] == '-' || text.data[0] == '+');
    bool negative = at == 1 && text.data[0] == '-';
    if (at == text.length || text.data == NULL) {
        return false;
    }
    int64_t sum = 0;
    for (; at < text.length; at++) {
        int digit = text.data[at] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, negative ? -digit : digit, &sum)) {
            return false;
        }
    }
    *number = sum;
    return true;
}

bool config_real_parse(struct view text, double *real)
{
    assert(real != NULL);
    char copy[LONGEST_NUMBER];
    if (text.length == 0 || text.length >= sizeof copy || text.data[0] <= ' ') {
        return false;
    }
    memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    char *end = copy;
    *real = strtod(copy, &end);
    return end == copy + text.length && isfinite(*real);
}

static bool equal_any_case(struct view a, const char *b)
{
    return a.length == strlen(b) && strncasecmp((const char *)a.data, b, a.length) == 0;
}

static bool parse_truth(struct view text, struct config_value *value)
{
    value->truth = equal_any_case(text, "true");
    value->text = view_text(value->truth ? "true" : "false");
    return value->truth || equal_any_case(text, "false");
}

static size_t count_items(struct view text)
{
    size_t count = text.length > 0;
    for (size_t i = 0; i < text.length; i++) {
        count += text.data[i] == ',';
    }
    return count;
}

enum status config_list_split(struct view text, struct arena *arena, struct view **items,
                              uint32_t *count)
{
    assert(arena != NULL && items != NULL && count != NULL);
    text = config_trim(text);
    size_t total = count_items(text);
    *items = NULL;
    *count = 0;
    if (total == 0) {
        return STATUS_OK;
    }
    struct view *list = arena_take(arena, total, sizeof *list);
    if (list == NULL || total > UINT32_MAX) {
        return STATUS_LIMIT;
    }
    size_t from = 0;
    for (size_t i = 0; i < total; i++) {
        const uint8_t *comma = memchr(text.data + from, ',', text.length - from);
        size_t to = comma == NULL ? text.length : (size_t)(comma - text.data);
        list[i] = config_trim(view_slice(text, from, to - from));
        from = to + 1;
    }
    assert(from == text.length + 1);
    *items = list;
    *count = (uint32_t)total;
    return STATUS_OK;
}

static bool contains(const struct view *items, uint32_t count, struct view item)
{
    for (uint32_t i = 0; i < count; i++) {
        if (view_equal(items[i], item)) {
            return true;
        }
    }
    return false;
}

/* Kafka drops what a list of choices names twice (KIP-1161). */
static void drop_repeated(struct config_value *value)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < value->item_count; i++) {
        if (!contains(value->items, kept, value->items[i])) {
            value->items[kept++] = value->items[i];
        }
    }
    assert(kept <= value->item_count);
    value->item_count = kept;
}

/* Lists are shown without the blanks around their commas. */
static enum status join_items(struct arena *arena, struct config_value *value)
{
    if (value->item_count == 0) {
        value->text = VIEW_EMPTY;
        return STATUS_OK;
    }
    size_t length = value->item_count - 1;
    for (uint32_t i = 0; i < value->item_count; i++) {
        length += value->items[i].length;
    }
    uint8_t *joined = arena_take(arena, length + 1, 1);
    if (joined == NULL) {
        return STATUS_LIMIT;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < value->item_count; i++) {
        memcpy(joined + at, value->items[i].data, value->items[i].length);
        at += value->items[i].length;
        if (i + 1 < value->item_count) {
            joined[at++] = ',';
        }
    }
    assert(at == length);
    value->text = (struct view){joined, length};
    return STATUS_OK;
}

static bool fits_type(enum config_type type, int64_t number)
{
    switch (type) {
    case CONFIG_TYPE_INT:
        return number >= INT32_MIN && number <= INT32_MAX;
    case CONFIG_TYPE_SHORT:
        return number >= INT16_MIN && number <= INT16_MAX;
    default:
        return true;
    }
}

/* STATUS_INVALID when the text is not of the key's type. */
static enum status parse_type(const struct config_key_info *info, struct arena *arena,
                              struct config_value *value)
{
    enum status status = STATUS_OK;
    switch (info->type) {
    case CONFIG_TYPE_BOOLEAN:
        return parse_truth(value->text, value) ? STATUS_OK : STATUS_INVALID;
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_SHORT:
    case CONFIG_TYPE_LONG:
        return config_number_parse(value->text, &value->number) &&
                       fits_type(info->type, value->number)
                   ? STATUS_OK
                   : STATUS_INVALID;
    case CONFIG_TYPE_DOUBLE:
        return config_real_parse(value->text, &value->real) ? STATUS_OK : STATUS_INVALID;
    case CONFIG_TYPE_LIST:
        status = config_list_split(value->text, arena, &value->items, &value->item_count);
        if (status == STATUS_OK && info->choices != NULL) {
            drop_repeated(value);
        }
        return status == STATUS_OK ? join_items(arena, value) : status;
    default:
        return STATUS_OK;
    }
}

static bool in_range(const struct config_key_info *info, const struct config_value *value)
{
    double number = info->type == CONFIG_TYPE_DOUBLE ? value->real : (double)value->number;
    if (info->has_or && number == (double)info->or_value) {
        return true;
    }
    return number >= info->low && number <= info->high;
}

static bool is_choice(const struct config_key_info *info, struct view text)
{
    for (const char *const *choice = info->choices; *choice != NULL; choice++) {
        bool same = info->check == CONFIG_CHECK_CHOICES_ANY_CASE ? equal_any_case(text, *choice)
                                                                 : view_is(text, *choice);
        if (same) {
            return true;
        }
    }
    return false;
}

static bool are_choices(const struct config_key_info *info, const struct config_value *value)
{
    if (info->type != CONFIG_TYPE_LIST) {
        return is_choice(info, value->text);
    }
    for (uint32_t i = 0; i < value->item_count; i++) {
        if (!is_choice(info, value->items[i])) {
            return false;
        }
    }
    return true;
}

static bool is_pair(struct view item)
{
    const uint8_t *colon = memchr(item.data, ':', item.length);
    if (colon == NULL) {
        return false;
    }
    size_t at = (size_t)(colon - item.data);
    int64_t number = 0;
    return config_number_parse(view_slice(item, 0, at), &number) &&
           config_number_parse(view_slice(item, at + 1, item.length - at - 1), &number);
}

static bool is_throttled_list(const struct config_value *value)
{
    if (value->item_count == 1 && view_is(value->items[0], "*")) {
        return true;
    }
    for (uint32_t i = 0; i < value->item_count; i++) {
        if (!is_pair(value->items[i])) {
            return false;
        }
    }
    return true;
}

static bool passes_check(const struct config_key_info *info, const struct config_value *value)
{
    switch ((enum config_check)info->check) {
    case CONFIG_CHECK_RANGE:
        return in_range(info, value);
    case CONFIG_CHECK_CHOICES:
    case CONFIG_CHECK_CHOICES_ANY_CASE:
        return are_choices(info, value);
    case CONFIG_CHECK_NOT_EMPTY:
        return value->text.length > 0;
    case CONFIG_CHECK_THROTTLED:
        return is_throttled_list(value);
    case CONFIG_CHECK_NONE:
        return true;
    }
    return false;
}

static const char *type_words(enum config_type type)
{
    switch (type) {
    case CONFIG_TYPE_BOOLEAN:
        return "true or false";
    case CONFIG_TYPE_INT:
        return "a whole number of 32 bits";
    case CONFIG_TYPE_SHORT:
        return "a whole number of 16 bits";
    case CONFIG_TYPE_LONG:
        return "a whole number of 64 bits";
    case CONFIG_TYPE_DOUBLE:
        return "a number";
    case CONFIG_TYPE_LIST:
        return "a list separated by commas";
    default:
        return "a text";
    }
}

/* A password's text is never shown, not even a wrong one. */
static enum status explain(const struct config_key_info *info, struct view text,
                           struct arena *arena, struct view *why)
{
    struct view shown = text.length > LONGEST_SHOWN ? view_slice(text, 0, LONGEST_SHOWN) : text;
    shown = info->type == CONFIG_TYPE_PASSWORD ? VIEW_LITERAL("[hidden]") : shown;
    const char *allowed = info->allowed;
    *why = arena_format(arena, "Invalid value %.*s for configuration %s: must be %s%s%s",
                        VIEW_PRINT(shown), info->name, type_words(info->type),
                        allowed == NULL ? "" : ", ", allowed == NULL ? "" : allowed);
    return why->data == NULL ? STATUS_LIMIT : STATUS_INVALID;
}

enum status config_value_parse(enum config_key key, struct view text, struct arena *arena,
                               struct config_value *value, struct view *why)
{
    assert(key < CONFIG_KEY_COUNT);
    assert(arena != NULL && value != NULL && why != NULL);
    const struct config_key_info *info = &config_keys[key];
    *value = (struct config_value){.text = VIEW_NULL};
    if (text.data == NULL) {
        return STATUS_OK;
    }
    value->text = config_trim(text);
    enum status status = parse_type(info, arena, value);
    if (status == STATUS_LIMIT) {
        return status;
    }
    if (status != STATUS_OK || !passes_check(info, value)) {
        return explain(info, config_trim(text), arena, why);
    }
    assert(value->text.data != NULL);
    return STATUS_OK;
}

bool config_key_find(enum config_scope scope, struct view name, enum config_key *key)
{
    assert(key != NULL);
    for (int i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (config_keys[i].scope == scope && view_is(name, config_keys[i].name)) {
            *key = (enum config_key)i;
            return true;
        }
    }
    return false;
}
