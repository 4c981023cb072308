/* A request as a connection reads it, without its size: key and version choose header and body. */
#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "messages/header.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"

enum { ARENA_BYTES = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_body(const struct api *api, int16_t version, struct view body,
    struct arena *arena)
{
    void *request = malloc(api->request->body->size_bytes);
    enum status status = message_decode_whole(api->request, version, body, arena, request);
    if (status == STATUS_OK) {
        struct buffer bytes = {0};
        status = message_encode_to(api->request, version, request, &bytes);
        assert(status == STATUS_OK);
        buffer_free(&bytes);
    }
    free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) {
        return 0;
    }
    const struct api *api = api_find((int16_t)load_be16(data));
    int16_t version = (int16_t)load_be16(data + 2);
    if (api == NULL || !message_has_version(api->request, version)) {
        return 0;
    }
    struct arena arena;
    struct request_header header;
    struct view input = {data, size};
    arena_init(&arena, ARENA_BYTES);
    if (message_decode(&request_header_type, api_request_header_version(api, version), &input,
        &arena, &header) == STATUS_OK) {
        assert(header.request_api_key == api->key);
        check_body(api, version, input, &arena);
    }
    assert(arena.used_bytes <= ARENA_BYTES);
    arena_free(&arena);
    return 0;
}
