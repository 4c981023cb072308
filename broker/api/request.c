/* A request's life: header and body decoded in place, handed to its handler, the answer encoded by
 * whoever holds it and written by its connection. What a client sends wrong ends in a closed
 * connection with a reason; nothing else here can fail. */
#include "broker/api/request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/api/forward.h"
#include "broker/api/parking.h"
#include "broker/api/request_header.h"
#include "broker/api/service.h"
#include "broker/config/listeners.h"
#include "io/clock.h"
#include "messages/header.h"
#include "protocol/api_table.h"

enum {
    DECODED_FACTOR = 8,                    /* bytes of structs for each byte of the frame */
    DECODED_EXTRA = 64 * 1024,
    DECODED_MOST = 16 * 1024 * 1024,       /* so that a frame of tiny elements stays small */
    COPY_BELOW_BYTES = 16 * 1024,          /* smaller answers are copied into the output */
};

static struct request *new_request(struct shard *home, struct block *frame, size_t length)
{
    assert(length <= frame->capacity);
    struct request *request = memory_new_zero(1, sizeof *request);
    request->home = home;
    request->frame = frame;
    request->frame_length = length;
    request->started_ns = clock_monotonic_ns();
    size_t limit = length * DECODED_FACTOR + DECODED_EXTRA;
    arena_init(&request->arena, limit < DECODED_MOST ? limit : DECODED_MOST);
    return request;
}

struct request *request_new(struct connection *connection, struct block *frame, size_t length)
{
    assert(connection != NULL && !connection->closed);
    struct request *request = new_request(connection->shard, frame, length);
    request->connection = connection;
    return request;
}

void *request_take(struct request *request, size_t count, size_t size)
{
    void *taken = arena_take(&request->arena, count, size);
    assert(taken != NULL);
    return taken;
}

void *request_elements(struct request *request, size_t count, const void *defaults, size_t size)
{
    void *taken = message_elements(&request->arena, count, defaults, size);
    assert(taken != NULL || count == 0);
    return taken;
}

static void refuse(struct request *request, const char *what)
{
    char reason[200];
    snprintf(reason, sizeof reason, "%s (api key %d, version %d, client id \"%.*s\")", what,
             request->api_key, request->api_version, VIEW_PRINT(request->client_id));
    struct connection *connection = request->connection;
    request->silent = true;
    request->answered = true;
    connection_close(connection, reason);
    connection_answered(connection);
}

/* ApiVersions in a version that is not known gets an answer in version 0 (KIP-511); for that only
 * the header up to the client id may be read, which is alike in both header versions. */
static bool is_future_api_versions(const struct request *request)
{
    return request->api_key == API_API_VERSIONS &&
           (request->api_version > request->api->last_version || request->api_version < 0);
}

static bool decode_header(struct request *request, struct view *input)
{
    request->api_key = (int16_t)load_be16(input->data);
    request->api_version = (int16_t)load_be16(input->data + 2);
    request->correlation_id = (int32_t)load_be32(input->data + 4);
    request->api = api_find(request->api_key);
    bool plain = request->api == NULL || is_future_api_versions(request);
    int16_t version = plain ? 1 : api_request_header_version(request->api, request->api_version);
    return request_header_read(version, input, &request->arena, &request->client_id) == STATUS_OK;
}

static enum status decode_message(struct request *request, struct view body)
{
    const struct message_type *type = request->api->request;
    request->body = body;
    request->message = request_take(request, 1, type->body->size_bytes);
    /* Bytes behind the message are passed over, as the stock broker does: librdkafka 2.16 leaves
     * three behind a Metadata request for all topics. */
    enum status status =
        message_decode(type, request->api_version, &body, &request->arena, request->message);
    /* What handlers take from here on is a small multiple of what was decoded. */
    request->arena.limit_bytes = SIZE_MAX / 2;
    return status;
}

void request_start(struct request *request)
{
    assert(request->frame_length >= 8);
    struct view input = {request->frame->bytes, request->frame_length};
    if (!decode_header(request, &input)) {
        refuse(request, "the request header cannot be read");
        return;
    }
    if (parking_takes(request)) {
        return;
    }
    const struct service *service = service_find(request->api_key);
    if (service == NULL || request->api == NULL) {
        refuse(request, "this api key is not served");
        return;
    }
    bool for_controllers = request->connection->listener->is_controller;
    if (for_controllers ? !service_for_controllers(request->api_key)
                        : !service_for_brokers(request->api_key)) {
        refuse(request, for_controllers ? "this api key is not served on a listener of controllers"
                                        : "this api key is served on listeners of controllers");
        return;
    }
    if (is_future_api_versions(request)) {
        service->handle(request);
        return;
    }
    const struct api *api = request->api;
    bool is_private = api_is_private(api->key);
    if (is_private && api->key != API_PEER_HELLO && request->connection->peer == NULL) {
        refuse(request, "this api key is for nodes of the cluster, which say hello first");
        return;
    }
    if (request->api_version < api->first_version ||
        request->api_version > service_last_version(api)) {
        refuse(request, "this version is not served");
        return;
    }
    enum status status = decode_message(request, input);
    if (status != STATUS_OK) {
        char what[80];
        snprintf(what, sizeof what, "the body of the request cannot be read: %s",
                 status_text(status));
        refuse(request, what);
        return;
    }
    if (service->check != NULL && !service->check(request)) {
        return;
    }
    if (service->refuse != NULL && forward_is_needed(request)) {
        forward_to_controller(request);
    } else {
        service->handle(request);
    }
}

bool request_run_inside(struct shard *shard, const struct inside_request *inside)
{
    const struct service *service = service_find_inside(inside->api_key);
    const struct api *api = api_find(inside->api_key);
    if (service == NULL || api == NULL || inside->api_version < api->first_version ||
        inside->api_version > api->last_version) {
        return false;
    }
    size_t length = inside->body.length + inside->client_id.length;
    struct block *frame = block_new(length);
    struct request *request = new_request(shard, frame, length);
    memcpy(frame->bytes, inside->body.data, inside->body.length);
    if (inside->client_id.data != NULL) {
        memcpy(frame->bytes + inside->body.length, inside->client_id.data,
               inside->client_id.length);
        request->client_id =
            (struct view){frame->bytes + inside->body.length, inside->client_id.length};
    }
    request->api = api;
    request->api_key = inside->api_key;
    request->api_version = inside->api_version;
    request->came_home = inside->came_home;
    request->asker = inside->asker;
    if (decode_message(request, (struct view){frame->bytes, inside->body.length}) != STATUS_OK) {
        request_free(request);
        return false;
    }
    service->handle(request);
    return true;
}

static bool append_message(struct request *request, const struct message_type *type,
                           int16_t version, const void *message, struct message_output *output)
{
    enum status status = message_encode(type, version, message, output);
    if (status != STATUS_OK) {
        log_error("api", "the answer to %s %d cannot be written: %s", request->api->name, version,
                  status_text(status));
    }
    return status == STATUS_OK;
}

static void set_size(struct buffer *answer, const struct message_output *output)
{
    size_t total = answer->length - 4;
    for (size_t i = 0; i < output->gap_count; i++) {
        total += output->gaps[i].length;
    }
    assert(total <= INT32_MAX);
    store_be32(answer->data, (uint32_t)total);
}

void request_encode(struct request *request, const void *response)
{
    /* What is not known is answered in version 0. */
    int16_t version = is_future_api_versions(request) ? 0 : request->api_version;
    struct buffer *answer = &request->answer;
    struct message_output output = {.buffer = answer};
    struct response_header header = {.correlation_id = request->correlation_id};
    answer->length = 0;
    free(request->gaps);
    buffer_append_be32(answer, 0);
    bool is_written = append_message(request, &response_header_type,
                                     api_response_header_version(request->api, version), &header,
                                     &output);
    request->answer_body = answer->length;
    if (is_written &&
        append_message(request, request->api->response, version, response, &output)) {
        set_size(answer, &output);
    } else {
        /* A fault of the broker's: this client has to do without, the others need not. */
        request->silent = true;
        request->close_after = true;
    }
    request->gaps = output.gaps;
    request->gap_count = output.gap_count;
    assert(request->gap_count == 0 || request->fill_gap != NULL);
}

static void arrive_home(struct shard *shard, struct mail *mail)
{
    struct request *request = request_of_mail(mail);
    assert(shard == request->home);
    (void)shard;
    request->answered = true;
    if (request->connection == NULL) {
        request->came_home(request);
        return;
    }
    if (request->silent && request->close_after) {
        connection_close(request->connection, "a request failed that cannot be answered");
    }
    connection_answered(request->connection);
}

void request_go_home(struct request *request, struct shard *here)
{
    assert(!request->answered);
    if (here == request->home) {
        arrive_home(here, &request->mail);
    } else {
        request_send(request, request->home, arrive_home);
    }
}

void request_answer(struct request *request, struct shard *here, const void *response)
{
    request_encode(request, response);
    request_go_home(request, here);
}

struct view request_answer_body(const struct request *request)
{
    const struct buffer *answer = &request->answer;
    assert(request->gap_count == 0);
    assert(request->answer_body <= answer->length);
    return request->silent ? VIEW_EMPTY
                           : view_slice(buffer_view(answer), request->answer_body,
                                        answer->length - request->answer_body);
}

void request_answer_as_is(struct request *request, struct view body)
{
    struct response_header header = {.correlation_id = request->correlation_id};
    struct message_output output = {.buffer = &request->answer};
    int16_t version = api_response_header_version(request->api, request->api_version);
    request->answer.length = 0;
    buffer_append_be32(&request->answer, 0);
    bool is_written = append_message(request, &response_header_type, version, &header, &output);
    assert(is_written);
    (void)is_written;
    request->answer_body = request->answer.length;
    buffer_append(&request->answer, body.data, body.length);
    set_size(&request->answer, &output);
    request_go_home(request, request->home);
}

void request_finish_silently(struct request *request, struct shard *here, bool close_connection)
{
    request->silent = true;
    request->close_after = close_connection;
    request_go_home(request, here);
}

void request_send(struct request *request, struct shard *to,
                  void (*run)(struct shard *shard, struct mail *mail))
{
    assert(to != NULL && run != NULL);
    request->mail.run = run;
    shard_post(to, &request->mail);
}

static void free_bytes(const void *data, size_t length, void *argument)
{
    (void)data;
    (void)length;
    free(argument);
}

/* evbuffer_add sizes a new chain by the one before it, and a file range counts there with its
 * position in the file: behind one, bytes go in as a piece of their own. */
static void add_piece(struct evbuffer *out, const uint8_t *bytes, size_t length)
{
    if (length > 0) {
        uint8_t *copy = memory_new(length);
        memcpy(copy, bytes, length);
        evbuffer_add_reference(out, copy, length, free_bytes, copy);
    }
}

static void write_spliced(struct request *request, struct evbuffer *out)
{
    const struct buffer *answer = &request->answer;
    size_t from = 0;
    for (size_t i = 0; i < request->gap_count; i++) {
        size_t to = request->gaps[i].position;
        assert(to >= from && to <= answer->length);
        add_piece(out, answer->data + from, to - from);
        request->fill_gap(request, i, out);
        from = to;
    }
    add_piece(out, answer->data + from, answer->length - from);
}

void request_write_answer(struct request *request, struct evbuffer *out)
{
    assert(request->answered);
    if (request->silent) {
        return;
    }
    assert(request->answer.length > 4);
    struct buffer *answer = &request->answer;
    struct connection *connection = request->connection;
    connection->spliced &= evbuffer_get_length(out) > 0;
    if (request->gap_count > 0) {
        connection->spliced = true;
        write_spliced(request, out);
    } else if (answer->length < COPY_BELOW_BYTES && !connection->spliced) {
        evbuffer_add(out, answer->data, answer->length);
    } else {
        evbuffer_add_reference(out, answer->data, answer->length, free_bytes, answer->data);
        *answer = (struct buffer){0};
    }
}

void request_free(struct request *request)
{
    if (request->release != NULL) {
        request->release(request);
    }
    free(request->gaps);
    buffer_free(&request->answer);
    arena_free(&request->arena);
    block_unref(request->frame);
    free(request);
}
