/* Each decompressor, chosen by the first byte: nothing above the limit, and nothing at all when it
 * fails. */
#include <assert.h>
#include <stdlib.h>

#include "protocol/compress.h"

enum { LIMIT_BYTES = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct buffer output = {0};
    buffer_append(&output, "front", 5);
    enum status status = compress_unpack((enum compression)(data[0] & 7),
        (struct view){data + 1, size - 1}, LIMIT_BYTES, &output);
    assert(status == STATUS_OK || output.length == 5);
    assert(output.length <= 5 + LIMIT_BYTES);
    buffer_free(&output);
    return 0;
}
