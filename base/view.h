/* A borrowed run of bytes. It owns nothing: whoever hands out a view says how long it lives.
 * A view with data == NULL is Kafka's null; an empty view has a non-null pointer and length 0. */
#ifndef OTTLA_BASE_VIEW_H
#define OTTLA_BASE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view {
    const uint8_t *data;
    size_t length;
};

#define VIEW_NULL ((struct view){NULL, 0})
#define VIEW_EMPTY ((struct view){(const uint8_t *)"", 0})
/* A view of a string literal, without its final zero. */
#define VIEW_LITERAL(text) ((struct view){(const uint8_t *)(text), sizeof(text) - 1})
/* For printf("%.*s", VIEW_PRINT(v)). */
#define VIEW_PRINT(v) \
    (int)((v).data == NULL ? 6 : (v).length < 1024 ? (v).length : 1024), \
    ((const char *)((v).data ? (v).data : (const uint8_t *)"(null)"))

/* A view of a C string without its final zero; a null pointer gives the null view. */
struct view view_text(const char *text);

/* Whether both hold the same bytes; null equals only null. */
bool view_equal(struct view a, struct view b);

/* Whether the view holds exactly the bytes of `text`. */
bool view_is(struct view view, const char *text);

/* Order by bytes, shorter first on a common prefix: below, equal or above zero. */
int view_compare(struct view a, struct view b);

/* The bytes [from, from + length); asserts that they lie inside. */
struct view view_slice(struct view view, size_t from, size_t length);

/* A copy as a C string with a final zero, to be released with free(); null gives "". */
char *view_copy_text(struct view view);

#endif
