/* One command for all names of a request that are missing: asked for here, run where the metadata
 * log is led. Whatever goes wrong on the way is LEADER_NOT_AVAILABLE: the client asks again. */
#include "broker/api/auto_create.h"

#include <assert.h>
#include <string.h>

#include "broker/api/forward.h"
#include "broker/api/handlers.h"
#include "broker/config/topic_name.h"
#include "broker/controller/controller.h"
#include "broker/server/broker.h"
#include "broker/server/brokers_to_come.h"
#include "broker/server/metadata_log.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "messages/peer_controller.h"

void auto_create_begin(struct auto_create *create, struct request *request)
{
    *create = (struct auto_create){.request = request};
}

void auto_create_add(struct auto_create *create, struct view name)
{
    assert(name.data != NULL);
    if (create->count == create->capacity) {
        int32_t capacity = create->capacity == 0 ? 8 : create->capacity * 2;
        struct view *names = request_take(create->request, (size_t)capacity, sizeof *names);
        if (create->count > 0) {
            memcpy(names, create->names, (size_t)create->count * sizeof *names);
        }
        create->names = names;
        create->capacity = capacity;
    }
    create->names[create->count++] = name;
}

static void created(struct controller_call *call, int16_t error, struct view body)
{
    struct auto_create *create = container_of(call, struct auto_create, call);
    struct request *request = create->request;
    struct peer_auto_create_response response;
    bool is_made = error == KAFKA_NONE &&
                   message_decode(&peer_auto_create_response_type, 0, &body, &request->arena,
                                  &response) == STATUS_OK &&
                   response.error_codes_count == create->count;
    for (int32_t i = 0; i < create->count; i++) {
        /* Retriable: the client asks again. */
        create->errors[i] = is_made ? response.error_codes[i] : KAFKA_LEADER_NOT_AVAILABLE;
    }
    create->done(create);
}

static struct view encode_names(const struct auto_create *create)
{
    struct peer_auto_create_request message = {.names = create->names,
                                               .names_count = create->count};
    struct buffer bytes = {0};
    enum status status = message_encode_to(&peer_auto_create_request_type, 0, &message, &bytes);
    assert(status == STATUS_OK); /* clients cannot name longer ones */
    (void)status;
    struct view copy = arena_copy(&create->request->arena, buffer_view(&bytes));
    buffer_free(&bytes);
    assert(copy.data != NULL);
    return copy;
}

void auto_create_go(struct auto_create *create, void (*done)(struct auto_create *create))
{
    assert(done != NULL);
    create->done = done;
    if (create->count == 0) {
        done(create);
        return;
    }
    create->errors = request_take(create->request, (size_t)create->count, sizeof *create->errors);
    create->call = (struct controller_call){.api_key = API_PEER_AUTO_CREATE,
                                            .repeatable = true,
                                            .client_id = create->request->client_id,
                                            .body = encode_names(create),
                                            .done = created};
    controller_call(create->request->home, &create->call);
}

/* ---- At the leader's ----------------------------------------------------------------------- */

struct creation {
    struct metadata_command command;
    struct request *request;
    int16_t *errors;
};

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct creation *creation = container_of(command, struct creation, command);
    struct request *request = creation->request;
    const struct peer_auto_create_request *message = request->message;
    const struct controller controller = {image};
    size_t count = (size_t)message->names_count;
    struct refusal *refusals = request_take(request, count, sizeof *refusals);
    int to_come = brokers_to_come(command->wait.from->broker, image);
    enum status status = controller_auto_create(&controller, to_come, message->names, count,
                                                &request->arena, records, refusals);
    assert(status == STATUS_OK);
    (void)status;
    for (size_t i = 0; i < count; i++) {
        creation->errors[i] = (int16_t)refusals[i].error;
    }
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct creation *creation = container_of(command, struct creation, command);
    struct request *request = creation->request;
    const struct peer_auto_create_request *message = request->message;
    if (error == KAFKA_NOT_CONTROLLER && forward_after_all(request)) {
        return;
    }
    for (int32_t i = 0; i < message->names_count && error != KAFKA_NONE; i++) {
        creation->errors[i] = KAFKA_LEADER_NOT_AVAILABLE;
    }
    struct peer_auto_create_response response = {.error_codes = creation->errors,
                                                 .error_codes_count = message->names_count};
    request_answer(request, request->home, &response);
}

void peer_auto_create_handle(struct request *request)
{
    const struct peer_auto_create_request *message = request->message;
    struct creation *creation = request_take(request, 1, sizeof *creation);
    assert(message->names_count >= 0); /* never null on the wire */
    creation->request = request;
    creation->errors =
        request_take(request, (size_t)message->names_count + 1, sizeof *creation->errors);
    creation->command.run = run;
    creation->command.done = ended;
    metadata_submit(request->home, &creation->command);
}

int16_t auto_create_error(const struct auto_create *create, struct view name)
{
    for (int32_t i = 0; i < create->count; i++) {
        if (view_equal(create->names[i], name)) {
            return create->errors[i] != KAFKA_NONE ? create->errors[i]
                                                   : KAFKA_LEADER_NOT_AVAILABLE;
        }
    }
    struct view why;
    return topic_name_check(name, &create->request->arena, &why) == STATUS_OK
               ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
               : KAFKA_INVALID_TOPIC_EXCEPTION;
}
