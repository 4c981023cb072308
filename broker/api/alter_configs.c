/* IncrementalAlterConfigs and AlterConfigs: commands of the controller, see
 * broker/api/controller_request.h. What only the broker itself can tell, whether a directory is one
 * of its own (cordoned.log.dirs, KIP-1066), is looked at first, where the client asks: tools ask
 * the broker that it is about. */
#include <assert.h>

#include "broker/api/controller_request.h"
#include "broker/api/handlers.h"
#include "broker/config/cordon.h"
#include "broker/config/describe.h"
#include "broker/config/value.h"
#include "broker/server/broker.h"
#include "messages/errors.h"

#define PLAIN alter_configs_request_alter_configs_resource
#define INCREMENTAL incremental_alter_configs_request_alter_configs_resource
#define PLAIN_RESULT alter_configs_response_alter_configs_resource_response_default
#define INCREMENTAL_RESULT \
    incremental_alter_configs_response_alter_configs_resource_response_default

/* What a resource of a refused request is told: its own fault, or that another one has one. */
static struct view fault_or_other(struct view why)
{
    return why.data != NULL
               ? why
               : VIEW_LITERAL("Nothing was changed: another resource of the request is refused");
}

/* What is wrong with a value for that broker, as far as this node can tell; the null view when
 * nothing is. */
static struct view fault_of(struct request *request, int8_t type, struct view resource,
                            struct view name, struct view value)
{
    const struct broker *broker = request->home->broker;
    struct view why = VIEW_NULL;
    int64_t id = -1;
    if (type != CONFIG_RESOURCE_BROKER || value.data == NULL ||
        !config_number_parse(resource, &id) ||
        !view_is(name, config_keys[CONFIG_CORDONED_LOG_DIRS].name)) {
        return VIEW_NULL;
    }
    assert(name.length > 0);
    enum status status = cordon_check(broker->config, value, &request->arena, &why);
    assert(status == STATUS_OK || why.data != NULL);
    if (status != STATUS_OK && id != broker->node_id) {
        return arena_format(&request->arena, "%.*s: only broker %lld knows its directories. Ask "
                                             "it, or set * for all of them",
                            VIEW_PRINT(value), (long long)id);
    }
    return why;
}

static struct view fault_of_plain(struct request *request, const struct PLAIN *resource)
{
    struct view why = VIEW_NULL;
    for (int32_t i = 0; i < resource->configs_count && why.data == NULL; i++) {
        why = fault_of(request, resource->resource_type, resource->resource_name,
                       resource->configs[i].name, resource->configs[i].value);
    }
    return why;
}

static struct view fault_of_incremental(struct request *request,
                                        const struct INCREMENTAL *resource)
{
    struct view why = VIEW_NULL;
    for (int32_t i = 0; i < resource->configs_count && why.data == NULL; i++) {
        why = fault_of(request, resource->resource_type, resource->resource_name,
                       resource->configs[i].name, resource->configs[i].value);
    }
    return why;
}

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

/* `whys`: what is wrong with each resource; null: nothing is, but the error holds for all. */
static void answer_plain(struct request *request, int16_t error, const struct view *whys)
{
    const struct alter_configs_request *message = request->message;
    struct alter_configs_response response = alter_configs_response_default;
    size_t count = message->resources_count < 0 ? 0 : (size_t)message->resources_count;
    response.responses = request_elements(request, count, &PLAIN_RESULT,
                                          sizeof *response.responses);
    for (size_t i = 0; i < count; i++) {
        response.responses[i].resource_type = message->resources[i].resource_type;
        response.responses[i].resource_name = message->resources[i].resource_name;
        response.responses[i].error_code = error;
        response.responses[i].error_message = whys == NULL ? VIEW_NULL : fault_or_other(whys[i]);
    }
    response.responses_count = (int32_t)count;
    request_answer(request, request->home, &response);
}

void alter_configs_refuse(struct request *request, int16_t error)
{
    answer_plain(request, error, NULL);
}

bool alter_configs_check(struct request *request)
{
    const struct alter_configs_request *message = request->message;
    size_t count = message->resources_count < 0 ? 0 : (size_t)message->resources_count;
    struct view *whys = request_take(request, count + 1, sizeof *whys);
    bool is_good = true;
    for (size_t i = 0; i < count; i++) {
        whys[i] = fault_of_plain(request, &message->resources[i]);
        is_good = is_good && whys[i].data == NULL;
    }
    if (!is_good) {
        answer_plain(request, KAFKA_INVALID_REQUEST, whys);
    }
    return is_good;
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

/* `whys`: what is wrong with each resource; null: nothing is, but the error holds for all. */
static void answer_incremental(struct request *request, int16_t error, const struct view *whys)
{
    const struct incremental_alter_configs_request *message = request->message;
    struct incremental_alter_configs_response response = incremental_alter_configs_response_default;
    size_t count = message->resources_count < 0 ? 0 : (size_t)message->resources_count;
    response.responses = request_elements(request, count, &INCREMENTAL_RESULT,
                                          sizeof *response.responses);
    for (size_t i = 0; i < count; i++) {
        response.responses[i].resource_type = message->resources[i].resource_type;
        response.responses[i].resource_name = message->resources[i].resource_name;
        response.responses[i].error_code = error;
        response.responses[i].error_message = whys == NULL ? VIEW_NULL : fault_or_other(whys[i]);
    }
    response.responses_count = (int32_t)count;
    request_answer(request, request->home, &response);
}

void incremental_alter_configs_refuse(struct request *request, int16_t error)
{
    answer_incremental(request, error, NULL);
}

bool incremental_alter_configs_check(struct request *request)
{
    const struct incremental_alter_configs_request *message = request->message;
    size_t count = message->resources_count < 0 ? 0 : (size_t)message->resources_count;
    struct view *whys = request_take(request, count + 1, sizeof *whys);
    bool is_good = true;
    for (size_t i = 0; i < count; i++) {
        whys[i] = fault_of_incremental(request, &message->resources[i]);
        is_good = is_good && whys[i].data == NULL;
    }
    if (!is_good) {
        answer_incremental(request, KAFKA_INVALID_REQUEST, whys);
    }
    return is_good;
}

void incremental_alter_configs_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct incremental_alter_configs_response), make_incremental, fail_incremental};
    controller_request_start(request, &kind);
}
