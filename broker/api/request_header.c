/* A header without tagged fields, as nearly all are, is read here; any other, or what is wrong, by
 * the codec, for which a header costs as much as a small request. */
#include "broker/api/request_header.h"

#include <assert.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "messages/header.h"
#include "protocol/codec.h"

enum { LENGTH_AT = 8, CLIENT_ID_AT = 10 };

/* False: it is no such header, and nothing was read. */
static bool read_plain(int16_t version, struct view *input, struct view *client_id)
{
    size_t tags = version >= 2 ? 1 : 0;
    if (input->length < CLIENT_ID_AT + tags) {
        return false;
    }
    int16_t length = (int16_t)load_be16(input->data + LENGTH_AT);
    size_t end = CLIENT_ID_AT + (length > 0 ? (size_t)length : 0);
    if (input->length < end + tags || (tags > 0 && input->data[end] != 0)) {
        return false;
    }
    *client_id = length < 0 ? VIEW_NULL
                            : (struct view){input->data + CLIENT_ID_AT, (size_t)length};
    *input = view_slice(*input, end + tags, input->length - end - tags);
    return true;
}

enum status request_header_read(int16_t version, struct view *input, struct arena *arena,
                                struct view *client_id)
{
    assert(version == 1 || version == 2);
    assert(input->length >= LENGTH_AT);
    if (read_plain(version, input, client_id)) {
        return STATUS_OK;
    }
    struct request_header header;
    enum status status = message_decode(&request_header_type, version, input, arena, &header);
    *client_id = status == STATUS_OK ? header.client_id : VIEW_NULL;
    return status;
}
