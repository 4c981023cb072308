/* The way of such a request: to shard 0 as a metadata command, and home again. */
#include "broker/api/controller_request.h"

#include <assert.h>

#include "broker/api/forward.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/errors.h"

struct controller_request {
    struct metadata_command command;
    struct request *request;
    void *response;
    const struct controller_request_kind *kind;
};

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct controller_request *asked = container_of(command, struct controller_request, command);
    const struct controller controller = {image};
    enum status status =
        asked->kind->make(&controller, asked->request, records, asked->response);
    assert(status == STATUS_OK);
    (void)status;
    request_encode(asked->request, asked->response);
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct controller_request *asked = container_of(command, struct controller_request, command);
    assert(command->wait.from == asked->request->home);
    if (error == KAFKA_NOT_CONTROLLER && forward_after_all(asked->request)) {
        return;
    }
    if (error != KAFKA_NONE) {
        asked->kind->fail(asked->response, error);
        request_encode(asked->request, asked->response);
    } else if (asked->kind->settle != NULL) {
        asked->kind->settle(asked->request, asked->response);
        return;
    }
    request_go_home(asked->request, asked->request->home);
}

void controller_request_start(struct request *request, const struct controller_request_kind *kind)
{
    struct controller_request *asked = request_take(request, 1, sizeof *asked);
    assert(request->message != NULL);
    assert(kind->make != NULL && kind->fail != NULL);
    asked->request = request;
    asked->kind = kind;
    asked->response = request_take(request, 1, kind->response_size);
    asked->command.run = run;
    asked->command.done = ended;
    metadata_submit(request->home, &asked->command);
}
