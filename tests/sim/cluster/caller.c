/* Requests are encoded and answers decoded by the codec; a line breaks with its wire. */
#include "tests/sim/cluster/caller.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "messages/header.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"
#include "tests/sim/cluster/world.h"

void caller_start(struct caller *caller, int place, void *owner)
{
    *caller = (struct caller){.place = place, .owner = owner};
    for (int i = 0; i <= NODES_MAX; i++) {
        caller->lines[i] = (struct line){caller, i, NULL};
    }
}

bool caller_waits(const struct caller *caller)
{
    return caller->correlation != 0;
}

static void end(struct caller *caller, const void *response)
{
    assert(caller->correlation != 0);
    caller->correlation = 0;
    caller->done(caller->owner, response);
}

static void broke(void *owner)
{
    struct line *line = owner;
    line->wire = NULL;
    if (caller_waits(line->caller) && line->caller->node == line->node) {
        end(line->caller, NULL);
    }
}

static void received(void *owner, const uint8_t *bytes, size_t length)
{
    struct line *line = owner;
    struct caller *caller = line->caller;
    world_require(length >= 8 && load_be32(bytes) + 4 == length, "an answer of %zu bytes", length);
    int32_t correlation = (int32_t)load_be32(bytes + 4);
    if (caller->correlation != correlation) {
        return; /* it took too long */
    }
    const struct api *api = api_find(caller->api);
    struct view rest = {bytes + 4, length - 4};
    struct arena arena;
    struct response_header header;
    arena_init(&arena, 1 << 24);
    void *response = arena_take(&arena, 1, api->response->body->size_bytes);
    enum status status =
        message_decode(&response_header_type, api_response_header_version(api, caller->version),
                       &rest, &arena, &header);
    if (status == STATUS_OK) {
        status = message_decode(api->response, caller->version, &rest, &arena, response);
    }
    world_require(status == STATUS_OK, "the answer to %s cannot be read", api->name);
    end(caller, response);
    arena_free(&arena);
}

static void timed_out(void *context, uint64_t correlation)
{
    struct caller *caller = context;
    if (caller->correlation != (int32_t)correlation) {
        return;
    }
    struct line *line = &caller->lines[caller->node];
    if (line->wire != NULL) {
        wire_close(line->wire, 0);
        line->wire = NULL;
    }
    end(caller, NULL);
}

void caller_ask(struct caller *caller, int node, enum api_key api_key, int16_t version,
                const void *message, answered *done)
{
    const struct api *api = api_find(api_key);
    struct buffer frame = {0};
    struct request_header header = {.request_api_key = (int16_t)api_key,
                                    .request_api_version = version,
                                    .correlation_id = ++caller->last_correlation,
                                    .client_id = VIEW_LITERAL("sim")};
    assert(!caller_waits(caller) && node >= 1 && node <= NODES_MAX);
    buffer_append_be32(&frame, 0);
    enum status status = message_encode_to(&request_header_type,
                                           api_request_header_version(api, version), &header,
                                           &frame);
    if (status == STATUS_OK) {
        status = message_encode_to(api->request, version, message, &frame);
    }
    world_require(status == STATUS_OK, "%s cannot be encoded", api->name);
    store_be32(frame.data, (uint32_t)(frame.length - 4));
    caller->correlation = caller->last_correlation;
    caller->node = node;
    caller->api = api_key;
    caller->version = version;
    caller->done = done;
    struct line *line = &caller->lines[node];
    if (line->wire == NULL) {
        const struct wire_end wire_end = {caller->place, line, received, broke};
        line->wire = wire_open(&wire_end, node, 9092);
    }
    wire_send(line->wire, 0, frame.data, frame.length);
    buffer_free(&frame);
    uint64_t patience_ms = world_chance(20) ? world_random(IMPATIENT_MS) : CALL_TIMEOUT_MS;
    world_after(patience_ms * MS_NS, timed_out, caller,
                (uint64_t)caller->correlation);
}
