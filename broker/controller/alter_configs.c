/* IncrementalAlterConfigs (KIP-339) and the older AlterConfigs, which is carried out as one that
 * sets everything and replaces what was there. Owns nothing. A resource that is named twice is
 * refused each time, as Kafka does. */
#include "broker/controller/broker_change.h"

#include <assert.h>
#include <string.h>

#include "broker/config/describe.h"

#define INCREMENTAL incremental_alter_configs_request_alter_configs_resource
#define INCREMENTAL_CONFIG incremental_alter_configs_request_alterable_config
#define INCREMENTAL_RESULT incremental_alter_configs_response_alter_configs_resource_response
#define PLAIN alter_configs_request_alter_configs_resource
#define PLAIN_RESULT alter_configs_response_alter_configs_resource_response

struct alterer {
    struct command command;
    const struct incremental_alter_configs_request *request;
    struct refusal *refusals;
    size_t count;
    bool replaces;
};

static enum status start(struct alterer *alterer, const struct controller *controller,
                         struct arena *arena, struct record_list *records)
{
    int32_t count = alterer->request->resources_count;
    enum status status = command_start(&alterer->command, controller, arena, records);
    alterer->count = count < 0 ? 0 : (size_t)count;
    alterer->refusals = arena_take(arena, alterer->count + 1, sizeof *alterer->refusals);
    return alterer->refusals == NULL ? STATUS_LIMIT : status;
}

/* Type and name as one key. */
static struct view resource_key(struct arena *arena, const struct INCREMENTAL *resource)
{
    struct view name = resource->resource_name;
    uint8_t *bytes = arena_take(arena, name.length + 1, 1);
    if (bytes == NULL) {
        return VIEW_NULL;
    }
    bytes[0] = (uint8_t)resource->resource_type;
    memcpy(bytes + 1, name.data, name.length);
    return (struct view){bytes, name.length + 1};
}

static enum status mark_repeated(struct alterer *alterer, struct key_set *set)
{
    struct arena *arena = alterer->command.arena;
    struct view *keys = arena_take(arena, alterer->count + 1, sizeof *keys);
    if (keys == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < alterer->count; i++) {
        keys[i] = resource_key(arena, &alterer->request->resources[i]);
        if (keys[i].data == NULL) {
            return STATUS_LIMIT;
        }
    }
    return key_set_make(arena, keys, alterer->count, set);
}

/* Null: there is no room. */
static const struct config_wish *wishes_of(struct alterer *alterer,
                                           const struct INCREMENTAL *resource)
{
    size_t count = resource->configs_count < 0 ? 0 : (size_t)resource->configs_count;
    struct config_wish *wishes = arena_take(alterer->command.arena, count + 1, sizeof *wishes);
    for (size_t i = 0; i < count && wishes != NULL; i++) {
        wishes[i] = (struct config_wish){resource->configs[i].name, resource->configs[i].value,
                                         resource->configs[i].config_operation};
    }
    return wishes;
}

static enum status alter_one(struct alterer *alterer, size_t at)
{
    const struct INCREMENTAL *resource = &alterer->request->resources[at];
    const struct config_wish *wishes = wishes_of(alterer, resource);
    bool validate_only = alterer->request->validate_only;
    if (wishes == NULL) {
        return STATUS_LIMIT;
    }
    if (resource->resource_type == CONFIG_RESOURCE_BROKER) {
        return broker_change(&alterer->command, resource->resource_name, wishes,
                             resource->configs_count, alterer->replaces, validate_only,
                             &alterer->refusals[at]);
    }
    if (resource->resource_type != CONFIG_RESOURCE_TOPIC) {
        alterer->refusals[at] = (struct refusal){
            KAFKA_INVALID_REQUEST,
            arena_format(alterer->command.arena,
                         "Resources of type %d cannot be changed while the broker runs",
                         resource->resource_type)};
        return STATUS_OK;
    }
    return topic_change(&alterer->command, resource->resource_name, wishes,
                        resource->configs_count, alterer->replaces, validate_only,
                        &alterer->refusals[at]);
}

static enum status alter_all(struct alterer *alterer)
{
    struct key_set set = {0};
    enum status status = mark_repeated(alterer, &set);
    for (size_t i = 0; i < alterer->count && status == STATUS_OK; i++) {
        if (set.marks[i] == KEY_ONCE) {
            status = alter_one(alterer, i);
        } else {
            alterer->refusals[i] = (struct refusal){
                KAFKA_INVALID_REQUEST, VIEW_LITERAL("The resource is named more than once")};
        }
    }
    return status;
}

static enum status alter(const struct controller *controller,
                         const struct incremental_alter_configs_request *request, bool replaces,
                         struct arena *arena, struct record_list *records,
                         struct incremental_alter_configs_response *response)
{
    assert(request != NULL && response != NULL);
    struct alterer alterer = {.request = request, .replaces = replaces};
    *response = incremental_alter_configs_response_default;
    enum status status = start(&alterer, controller, arena, records);
    if (status == STATUS_OK) {
        status = alter_all(&alterer);
    }
    response->responses = arena_take(arena, alterer.count + 1, sizeof *response->responses);
    if (status != STATUS_OK || response->responses == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < alterer.count; i++) {
        response->responses[response->responses_count++] = (struct INCREMENTAL_RESULT){
            .error_code = (int16_t)alterer.refusals[i].error,
            .error_message = alterer.refusals[i].why,
            .resource_type = request->resources[i].resource_type,
            .resource_name = request->resources[i].resource_name};
    }
    return STATUS_OK;
}

enum status controller_incremental_alter_configs(
    const struct controller *controller, const struct incremental_alter_configs_request *request,
    struct arena *arena, struct record_list *records,
    struct incremental_alter_configs_response *response)
{
    return alter(controller, request, false, arena, records, response);
}

static bool set_all(struct arena *arena, const struct PLAIN *from, struct INCREMENTAL *to)
{
    size_t count = from->configs_count < 0 ? 0 : (size_t)from->configs_count;
    *to = (struct INCREMENTAL){.resource_type = from->resource_type,
                               .resource_name = from->resource_name,
                               .configs = arena_take(arena, count + 1, sizeof *to->configs),
                               .configs_count = (int32_t)count};
    for (size_t i = 0; i < count && to->configs != NULL; i++) {
        to->configs[i] = (struct INCREMENTAL_CONFIG){.name = from->configs[i].name,
                                                     .config_operation = CONFIG_OPERATION_SET,
                                                     .value = from->configs[i].value};
    }
    return to->configs != NULL;
}

enum status controller_alter_configs(const struct controller *controller,
                                     const struct alter_configs_request *request,
                                     struct arena *arena, struct record_list *records,
                                     struct alter_configs_response *response)
{
    struct incremental_alter_configs_response answer;
    struct incremental_alter_configs_request all = incremental_alter_configs_request_default;
    size_t count = request->resources_count < 0 ? 0 : (size_t)request->resources_count;
    *response = alter_configs_response_default;
    all.validate_only = request->validate_only;
    all.resources = arena_take(arena, count + 1, sizeof *all.resources);
    response->responses = arena_take(arena, count + 1, sizeof *response->responses);
    bool is_full = all.resources == NULL || response->responses == NULL;
    for (size_t i = 0; i < count && !is_full; i++) {
        is_full = !set_all(arena, &request->resources[i], &all.resources[all.resources_count++]);
    }
    enum status status =
        is_full ? STATUS_LIMIT : alter(controller, &all, true, arena, records, &answer);
    for (int32_t i = 0; status == STATUS_OK && i < answer.responses_count; i++) {
        response->responses[response->responses_count++] = (struct PLAIN_RESULT){
            .error_code = answer.responses[i].error_code,
            .error_message = answer.responses[i].error_message,
            .resource_type = answer.responses[i].resource_type,
            .resource_name = answer.responses[i].resource_name};
    }
    return status;
}
