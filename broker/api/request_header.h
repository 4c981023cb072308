/* The header in front of every request.
 */
#ifndef OTTLA_BROKER_API_REQUEST_HEADER_H
#define OTTLA_BROKER_API_REQUEST_HEADER_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"

/* Reads a header of version 1 or 2, of which there are eight bytes at least, and advances `input`
 * behind it. The client id is a view into the input; data NULL: there is none. Fails as
 * message_decode does. */
MUST_USE enum status request_header_read(int16_t version, struct view *input, struct arena *arena,
                                         struct view *client_id);

#endif
