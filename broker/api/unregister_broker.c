/* UnregisterBroker (KIP-746): a broker that is gone for good is forgotten. A command of the
 * controller; one that still runs may register again when it starts anew. */
#include <assert.h>

#include "broker/api/forward.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/controller/controller.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/errors.h"
#include "messages/unregister_broker.h"

struct unregistration {
    struct metadata_command command;
    struct request *request;
    enum kafka_error error;
};

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct unregistration *leaving = container_of(command, struct unregistration, command);
    const struct unregister_broker_request *message = leaving->request->message;
    const struct controller controller = {image};
    leaving->error = controller_unregister_broker(&controller, message->broker_id, records);
}

void unregister_broker_refuse(struct request *request, int16_t error)
{
    struct unregister_broker_response response = unregister_broker_response_default;
    const struct unregister_broker_request *message = request->message;
    assert(message != NULL);
    response.error_code = error;
    response.error_message =
        error == KAFKA_BROKER_ID_NOT_REGISTERED
            ? arena_format(&request->arena, "Broker ID %d is not currently registered",
                           message->broker_id)
            : VIEW_NULL;
    request_answer(request, request->home, &response);
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct unregistration *leaving = container_of(command, struct unregistration, command);
    assert(command->wait.from == leaving->request->home);
    if (error == KAFKA_NOT_CONTROLLER && forward_after_all(leaving->request)) {
        return;
    }
    unregister_broker_refuse(leaving->request,
                             error == KAFKA_NONE ? (int16_t)leaving->error : error);
}

void unregister_broker_handle(struct request *request)
{
    struct unregistration *leaving = request_take(request, 1, sizeof *leaving);
    leaving->request = request;
    leaving->command.run = run;
    leaving->command.done = ended;
    metadata_submit(request->home, &leaving->command);
}
