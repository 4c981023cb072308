/* Owned byte strings: a view whose bytes were allocated for it alone. Null stays null, and an owned
 * empty string is not null. */
#ifndef OTTLA_BROKER_COORDINATOR_TEXTS_H
#define OTTLA_BROKER_COORDINATOR_TEXTS_H

#include "base/buffer.h"
#include "base/view.h"

/* A copy of the bytes, owned by the caller. */
struct view coordinator_text_copy(struct view view);

/* Releases an owned string and makes it null. */
void coordinator_text_free(struct view *owned);

/* Appends the bytes in double quotes with everything outside printable ASCII as \xNN; `null` for
 * null. */
void coordinator_text_quote(struct buffer *text, struct view view);

/* Appends formatted text. */
void coordinator_text_print(struct buffer *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
