/* BrokerHeartbeat (KIP-631), as it comes through PeerForward to the node that leads the metadata
 * log, from a broker that stops: one command with one record at most. Brokers that run send none:
 * their links tell that they live. */
#include <assert.h>

#include "broker/api/forward.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/controller/controller.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/broker_heartbeat.h"
#include "messages/errors.h"

struct heartbeat_command {
    struct metadata_command command;
    struct request *request;
    enum kafka_error error;
};

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct heartbeat_command *heartbeat = container_of(command, struct heartbeat_command, command);
    const struct controller controller = {image};
    heartbeat->error =
        controller_broker_heartbeat(&controller, heartbeat->request->message, records);
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct heartbeat_command *heartbeat = container_of(command, struct heartbeat_command, command);
    struct request *request = heartbeat->request;
    const struct broker_heartbeat_request *message = request->message;
    struct broker_heartbeat_response response = broker_heartbeat_response_default;
    if (error == KAFKA_NOT_CONTROLLER && forward_after_all(request)) {
        return;
    }
    response.error_code = error == KAFKA_NONE ? (int16_t)heartbeat->error : error;
    response.is_caught_up = true;
    response.is_fenced = message->want_fence;
    response.should_shut_down = message->want_shut_down && message->want_fence;
    request_answer(request, request->home, &response);
}

void broker_heartbeat_handle(struct request *request)
{
    struct heartbeat_command *heartbeat = request_take(request, 1, sizeof *heartbeat);
    assert(request->message != NULL);
    heartbeat->request = request;
    heartbeat->command.run = run;
    heartbeat->command.done = ended;
    metadata_submit(request->home, &heartbeat->command);
}
