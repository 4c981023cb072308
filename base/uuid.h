/* Kafka's 16-byte ids and their text form: URL-safe base64 without padding, 22 characters
 * (org.apache.kafka.common.Uuid). All zero means none. */
#ifndef OTTLA_BASE_UUID_H
#define OTTLA_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/view.h"

enum { UUID_BYTES = 16, UUID_TEXT_LENGTH = 22 };

struct uuid {
    uint8_t bytes[UUID_BYTES];
};

_Static_assert(sizeof(struct uuid) == 16, "a uuid is 16 bytes on the wire and on disk");

/* Whether both are the same 16 bytes. */
bool uuid_equal(struct uuid a, struct uuid b);

/* Whether this is the all-zero id. */
bool uuid_is_zero(struct uuid uuid);

/* Writes 22 characters and a final zero. */
void uuid_text(struct uuid uuid, char text[UUID_TEXT_LENGTH + 1]);

/* Reads the 22-character form. STATUS_INVALID when it is not one. */
MUST_USE enum status uuid_parse(struct view text, struct uuid *uuid);

#endif
