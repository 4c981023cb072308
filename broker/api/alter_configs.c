/* IncrementalAlterConfigs and AlterConfigs: commands of the controller, see
 * broker/api/controller_request.h. */
#include "broker/api/controller_request.h"
#include "broker/api/handlers.h"
#include "messages/errors.h"

#define PLAIN_RESULT alter_configs_response_alter_configs_resource_response_default
#define INCREMENTAL_RESULT \
    incremental_alter_configs_response_alter_configs_resource_response_default

static enum status make_plain(const struct controller *controller, struct request *request,
                              struct record_list *records, void *response)
{
    return controller_alter_configs(controller, request->message, &request->arena, records,
                                    response);
}

static void fail_plain(void *response, int16_t error)
{
    struct alter_configs_response *out = response;
    for (int32_t i = 0; i < out->responses_count; i++) {
        if (out->responses[i].error_code == KAFKA_NONE) {
            out->responses[i].error_code = error;
        }
    }
}

void alter_configs_refuse(struct request *request, int16_t error)
{
    const struct alter_configs_request *message = request->message;
    struct alter_configs_response response = alter_configs_response_default;
    size_t count = message->resources_count < 0 ? 0 : (size_t)message->resources_count;
    response.responses = request_elements(
        request, count, &PLAIN_RESULT,
        sizeof *response.responses);
    for (size_t i = 0; i < count; i++) {
        response.responses[i].resource_type = message->resources[i].resource_type;
        response.responses[i].resource_name = message->resources[i].resource_name;
        response.responses[i].error_code = error;
        response.responses[i].error_message = VIEW_NULL;
    }
    response.responses_count = (int32_t)count;
    request_answer(request, request->home, &response);
}

void alter_configs_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct alter_configs_response), make_plain, fail_plain};
    controller_request_start(request, &kind);
}

static enum status make_incremental(const struct controller *controller, struct request *request,
                                    struct record_list *records, void *response)
{
    return controller_incremental_alter_configs(controller, request->message, &request->arena,
                                                records, response);
}

static void fail_incremental(void *response, int16_t error)
{
    struct incremental_alter_configs_response *out = response;
    for (int32_t i = 0; i < out->responses_count; i++) {
        if (out->responses[i].error_code == KAFKA_NONE) {
            out->responses[i].error_code = error;
        }
    }
}

void incremental_alter_configs_refuse(struct request *request, int16_t error)
{
    const struct incremental_alter_configs_request *message = request->message;
    struct incremental_alter_configs_response response = incremental_alter_configs_response_default;
    size_t count = message->resources_count < 0 ? 0 : (size_t)message->resources_count;
    response.responses = request_elements(
        request, count, &INCREMENTAL_RESULT,
        sizeof *response.responses);
    for (size_t i = 0; i < count; i++) {
        response.responses[i].resource_type = message->resources[i].resource_type;
        response.responses[i].resource_name = message->resources[i].resource_name;
        response.responses[i].error_code = error;
        response.responses[i].error_message = VIEW_NULL;
    }
    response.responses_count = (int32_t)count;
    request_answer(request, request->home, &response);
}

void incremental_alter_configs_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct incremental_alter_configs_response), make_incremental, fail_incremental};
    controller_request_start(request, &kind);
}
