/* BrokerRegistration (KIP-631), as it comes through PeerForward to the node that leads the metadata
 * log: one command with one record, whose offset is the registration's epoch. */
#include <assert.h>

#include "broker/api/forward.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/controller/controller.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/broker_registration.h"
#include "messages/errors.h"

struct registration_command {
    struct metadata_command command;
    struct request *request;
    int64_t epoch;
};

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct registration_command *registration =
        container_of(command, struct registration_command, command);
    const struct broker *broker = command->wait.from->broker;
    const struct controller controller = {image};
    enum status status = controller_register_broker(
        &controller, registration->request->message, metadata_next_offset(broker),
        &registration->request->arena, records, &registration->epoch);
    assert(status == STATUS_OK);
    (void)status;
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct registration_command *registration =
        container_of(command, struct registration_command, command);
    struct request *request = registration->request;
    struct broker_registration_response response = broker_registration_response_default;
    if (error == KAFKA_NOT_CONTROLLER && forward_after_all(request)) {
        return;
    }
    response.error_code = error;
    response.broker_epoch = error == KAFKA_NONE ? registration->epoch : -1;
    request_answer(request, request->home, &response);
}

void broker_registration_handle(struct request *request)
{
    const struct broker_registration_request *message = request->message;
    if (!view_is(message->cluster_id, request->home->broker->cluster_id)) {
        struct broker_registration_response response = broker_registration_response_default;
        response.error_code = KAFKA_INCONSISTENT_CLUSTER_ID;
        request_answer(request, request->home, &response);
        return;
    }
    struct registration_command *registration = request_take(request, 1, sizeof *registration);
    registration->request = request;
    registration->command.run = run;
    registration->command.done = ended;
    metadata_submit(request->home, &registration->command);
}
