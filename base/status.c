/* Names of the outcomes in base/status.h. Owns nothing and cannot fail. */
#include "base/status.h"

#include <assert.h>

static const char *const texts[] = {
    [STATUS_OK] = "ok",
    [STATUS_TRUNCATED] = "truncated",
    [STATUS_INVALID] = "invalid",
    [STATUS_LIMIT] = "over a limit",
    [STATUS_NOT_FOUND] = "not found",
    [STATUS_OUT_OF_RANGE] = "out of range",
    [STATUS_CORRUPT] = "corrupt",
    [STATUS_IO] = "input/output error",
    [STATUS_NO_SPACE] = "no space left on the disk",
    [STATUS_READ_ONLY] = "read-only file system",
    [STATUS_UNSUPPORTED] = "not supported",
    [STATUS_BUSY] = "busy",
    [STATUS_CLOSED] = "closed",
    [STATUS_TIMEOUT] = "timed out",
};

_Static_assert(sizeof texts / sizeof texts[0] == STATUS_COUNT, "every status has a text");

const char *status_text(enum status status)
{
    assert((unsigned)status < STATUS_COUNT);
    assert(texts[status] != 0);
    return texts[status];
}
