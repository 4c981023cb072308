/* Reads text in the syntax of Java properties files, as server.properties is written: comments with
 * # or !, keys ended by =, : or blanks, lines continued with a backslash, the escapes \t \n \r \f
 * and \uXXXX. Bytes are taken as UTF-8 (as Java does since version 9). */
#ifndef OTTLA_BROKER_CONFIG_PROPERTIES_H
#define OTTLA_BROKER_CONFIG_PROPERTIES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"

struct properties_reader {
    struct view rest; /* what is not yet read */
    int line;         /* number of the last line read, from 1, for messages */
};

/* Starts to read; the text must live as long as the reader. */
void properties_init(struct properties_reader *reader, struct view text);

/* The next key and value, copied into the arena. STATUS_NOT_FOUND at the end, STATUS_INVALID on a
 * broken \u escape, STATUS_LIMIT when the arena is full. */
MUST_USE enum status properties_next(struct properties_reader *reader, struct arena *arena,
                                     struct view *key, struct view *value);

#endif
