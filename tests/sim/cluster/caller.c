/* Requests are encoded and answers decoded by the codec; a line breaks with its wire. */
#include "tests/sim/cluster/caller.h"

#include <assert.h>
#include <string.h>

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
    return caller->call_count > 0;
}

static void end(struct caller *caller, int index, const void *response)
{
    assert(index >= 0 && index < caller->call_count);
    struct call call = caller->calls[index];
    caller->call_count--;
    memmove(&caller->calls[index], &caller->calls[index + 1],
            (size_t)(caller->call_count - index) * sizeof call);
    caller->node = call.node;
    call.done(call.owner, response);
}

/* The oldest request to this node, up to a number; -1: none. */
static int oldest(const struct caller *caller, int node, int32_t last)
{
    for (int i = 0; i < caller->call_count; i++) {
        if (caller->calls[i].node == node && caller->calls[i].correlation <= last) {
            return i;
        }
    }
    return -1;
}

/* Nothing that was sent on it is answered any more. */
static void end_all(struct line *line)
{
    struct caller *caller = line->caller;
    int32_t last = caller->last_correlation;
    int index;
    assert(line->wire == NULL);
    while ((index = oldest(caller, line->node, last)) >= 0) {
        end(caller, index, NULL);
    }
}

static void broke(void *owner)
{
    struct line *line = owner;
    line->wire = NULL;
    end_all(line);
}

/* One frame. */
static void take_answer(struct line *line, const uint8_t *bytes, size_t length)
{
    struct caller *caller = line->caller;
    int index = oldest(caller, line->node, caller->last_correlation);
    world_require(index >= 0 && caller->calls[index].correlation == (int32_t)load_be32(bytes + 4),
                  "node %d answers out of order", line->node);
    const struct call *call = &caller->calls[index];
    const struct api *api = api_find(call->api);
    struct view rest = {bytes + 4, length - 4};
    struct arena arena;
    struct response_header header;
    arena_init(&arena, 1 << 24);
    void *response = arena_take(&arena, 1, api->response->body->size_bytes);
    enum status status =
        message_decode(&response_header_type, api_response_header_version(api, call->version),
                       &rest, &arena, &header);
    if (status == STATUS_OK) {
        status = message_decode(api->response, call->version, &rest, &arena, response);
    }
    world_require(status == STATUS_OK, "the answer to %s cannot be read", api->name);
    end(caller, index, response);
    arena_free(&arena);
}

static void received(void *owner, const uint8_t *bytes, size_t length)
{
    struct line *line = owner;
    while (length > 0) {
        size_t frame = length < 8 ? 0 : 4 + (size_t)load_be32(bytes);
        world_require(frame >= 8 && frame <= length, "an answer of %zu bytes", length);
        take_answer(line, bytes, frame);
        bytes += frame;
        length -= frame;
    }
}

static void timed_out(void *context, uint64_t correlation)
{
    struct caller *caller = context;
    for (int i = 0; i < caller->call_count; i++) {
        if (caller->calls[i].correlation == (int32_t)correlation) {
            struct line *line = &caller->lines[caller->calls[i].node];
            assert(line->wire != NULL);
            wire_close(line->wire, 0);
            line->wire = NULL;
            end_all(line);
            return;
        }
    }
}

void caller_ask_for(struct caller *caller, int node, enum api_key api_key, int16_t version,
                    const void *message, answered *done, void *owner)
{
    const struct api *api = api_find(api_key);
    struct buffer frame = {0};
    struct request_header header = {.request_api_key = (int16_t)api_key,
                                    .request_api_version = version,
                                    .correlation_id = ++caller->last_correlation,
                                    .client_id = VIEW_LITERAL("sim")};
    assert(caller->call_count < CALLS_MOST && node >= 1 && node <= NODES_MAX);
    buffer_append_be32(&frame, 0);
    enum status status = message_encode_to(&request_header_type,
                                           api_request_header_version(api, version), &header,
                                           &frame);
    if (status == STATUS_OK) {
        status = message_encode_to(api->request, version, message, &frame);
    }
    world_require(status == STATUS_OK, "%s cannot be encoded", api->name);
    store_be32(frame.data, (uint32_t)(frame.length - 4));
    caller->calls[caller->call_count++] =
        (struct call){caller->last_correlation, node, api_key, version, done, owner};
    struct line *line = &caller->lines[node];
    if (line->wire == NULL) {
        const struct wire_end wire_end = {caller->place, line, received, broke};
        line->wire = wire_open(&wire_end, node, 9092);
    }
    wire_send(line->wire, 0, frame.data, frame.length);
    buffer_free(&frame);
    uint64_t patience_ms = world_chance(20) ? world_random(IMPATIENT_MS) : CALL_TIMEOUT_MS;
    world_after(patience_ms * MS_NS, timed_out, caller,
                (uint64_t)caller->last_correlation);
}

void caller_ask(struct caller *caller, int node, enum api_key api, int16_t version,
                const void *message, answered *done)
{
    caller_ask_for(caller, node, api, version, message, done, caller->owner);
}
