/* Whole frames with size and header: the header versions of the API table are the stock ones, and
 * header and body come back byte for byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "messages/header.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"
#include "tests/golden/golden.h"

static const char *check_frame(struct golden_row *row, bool is_request, const struct api *api,
    int16_t version, struct view frame, json_t *want)
{
    int16_t header_version = is_request ? api_request_header_version(api, version)
                                        : api_response_header_version(api, version);
    const struct message_type *type = is_request ? &request_header_type : &response_header_type;
    void *header = arena_take(&row->arena, 1, type->body->size_bytes);
    if (header_version != atoi(row->columns[3])) {
        return "another header version";
    }
    const char *failure = golden_check_part(row, type, header_version, &frame,
        json_object_get(want, "header"), false, header);
    if (failure != NULL) {
        return failure;
    }
    return golden_check_body(row, is_request ? api->request : api->response, version, frame,
        json_object_get(want, "body"), false);
}

static const char *check(struct golden_row *row)
{
    const struct api *api = api_find(atoi(row->columns[1]));
    int16_t version = (int16_t)atoi(row->columns[2]);
    struct view frame = golden_hex(row, row->columns[4]);
    if (api == NULL || frame.length < 4 || load_be32(frame.data) != frame.length - 4) {
        return "unknown key or wrong size";
    }
    json_error_t error;
    json_t *want = json_loads(row->columns[5], JSON_ALLOW_NUL, &error);
    const char *failure = check_frame(row, strcmp(row->columns[0], "request") == 0, api, version,
        view_slice(frame, 4, frame.length - 4), want);
    json_decref(want);
    return failure;
}

static void label(const struct golden_row *row, char *text, size_t size)
{
    snprintf(text, size, "%s %s", api_find(atoi(row->columns[1]))->name, row->columns[0]);
}

int main(int count, char **arguments)
{
    struct golden golden = {0};
    for (int i = 1; i < count; i++) {
        golden_run(&golden, arguments[i], check, label);
    }
    return golden_end(&golden);
}
