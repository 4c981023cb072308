/* Owned strings and the little text output the dumps need. Nothing here can fail. */
#include "broker/coordinator/texts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct view coordinator_text_copy(struct view view)
{
    if (view.data == NULL) {
        return VIEW_NULL;
    }
    uint8_t *bytes = memory_new(view.length + 1);
    memcpy(bytes, view.data, view.length);
    return (struct view){bytes, view.length};
}

void coordinator_text_free(struct view *owned)
{
    free((void *)(uintptr_t)owned->data);
    *owned = VIEW_NULL;
}

void coordinator_text_print(struct buffer *text, const char *format, ...)
{
    char line[256];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    assert(length >= 0 && (size_t)length < sizeof(line));
    buffer_append(text, line, (size_t)length);
}

void coordinator_text_quote(struct buffer *text, struct view view)
{
    if (view.data == NULL) {
        coordinator_text_print(text, "null");
        return;
    }
    coordinator_text_print(text, "\"");
    for (size_t i = 0; i < view.length; i++) {
        uint8_t byte = view.data[i];
        if (byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\') {
            buffer_append(text, &byte, 1);
        } else {
            coordinator_text_print(text, "\\x%02x", byte);
        }
    }
    coordinator_text_print(text, "\"");
}
