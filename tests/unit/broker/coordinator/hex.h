/* Bytes from hexadecimal text, for records that the reference wrote. */
#ifndef OTTLA_TESTS_UNIT_BROKER_COORDINATOR_HEX_H
#define OTTLA_TESTS_UNIT_BROKER_COORDINATOR_HEX_H

#include <stdlib.h>
#include <string.h>

#include "base/view.h"

/* The bytes, to be released by hex_free. */
static inline struct view hex_bytes(const char *text)
{
    size_t length = strlen(text) / 2;
    uint8_t *bytes = malloc(length + 1);
    for (size_t i = 0; i < length; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return (struct view){bytes, length};
}

static inline void hex_free(struct view view)
{
    free((void *)(uintptr_t)view.data);
}

#endif
