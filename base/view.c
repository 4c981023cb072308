/* Borrowed bytes: comparing, cutting and copying. Owns nothing. */
#include "base/view.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

struct view view_text(const char *text)
{
    if (text == NULL) {
        return VIEW_NULL;
    }
    return (struct view){(const uint8_t *)text, strlen(text)};
}

bool view_equal(struct view a, struct view b)
{
    if (a.data == NULL || b.data == NULL) {
        return a.data == b.data;
    }
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

bool view_is(struct view view, const char *text)
{
    assert(text != NULL);
    return view_equal(view, view_text(text));
}

int view_compare(struct view a, struct view b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0) {
        return order;
    }
    return a.length < b.length ? -1 : a.length > b.length;
}

struct view view_slice(struct view view, size_t from, size_t length)
{
    assert(from <= view.length);
    assert(length <= view.length - from);
    return (struct view){view.data + from, length};
}

char *view_copy_text(struct view view)
{
    char *text = memory_new(view.length + 1);
    if (view.length > 0) {
        memcpy(text, view.data, view.length);
    }
    text[view.length] = '\0';
    return text;
}
