/* IncrementalAlterConfigs (KIP-339) and the older AlterConfigs. Owns nothing. Both requests are
 * brought into one shape; a resource that is named twice is refused each time, as Kafka does. */
#include "broker/controller/broker_change.h"

#include <assert.h>
#include <string.h>

#include "broker/config/describe.h"

#define INCREMENTAL incremental_alter_configs_request_alter_configs_resource
#define INCREMENTAL_RESULT incremental_alter_configs_response_alter_configs_resource_response
#define PLAIN alter_configs_request_alter_configs_resource
#define PLAIN_RESULT alter_configs_response_alter_configs_resource_response

/* One resource of either request. */
struct resource {
    struct view name;
    const struct config_wish *wishes;
    int32_t wish_count;
    int8_t type;
};

struct alterer {
    struct command command;
    struct resource *resources;
    struct refusal *refusals;
    size_t count;
    bool replaces;
    bool validate_only;
};

static enum status start(struct alterer *alterer, const struct controller *controller,
                         struct arena *arena, struct record_list *records, int32_t count)
{
    assert(count >= 0);
    enum status status = command_start(&alterer->command, controller, arena, records);
    alterer->count = (size_t)count;
    alterer->resources = arena_take(arena, alterer->count + 1, sizeof *alterer->resources);
    alterer->refusals = arena_take(arena, alterer->count + 1, sizeof *alterer->refusals);
    bool is_full = alterer->resources == NULL || alterer->refusals == NULL;
    return is_full ? STATUS_LIMIT : status;
}

/* Type and name as one key. */
static struct view resource_key(struct arena *arena, const struct resource *resource)
{
    uint8_t *bytes = arena_take(arena, resource->name.length + 1, 1);
    if (bytes == NULL) {
        return VIEW_NULL;
    }
    bytes[0] = (uint8_t)resource->type;
    memcpy(bytes + 1, resource->name.data, resource->name.length);
    return (struct view){bytes, resource->name.length + 1};
}

static enum status mark_repeated(struct alterer *alterer, struct key_set *set)
{
    struct arena *arena = alterer->command.arena;
    struct view *keys = arena_take(arena, alterer->count + 1, sizeof *keys);
    if (keys == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < alterer->count; i++) {
        keys[i] = resource_key(arena, &alterer->resources[i]);
        if (keys[i].data == NULL) {
            return STATUS_LIMIT;
        }
    }
    return key_set_make(arena, keys, alterer->count, set);
}

static enum status alter_one(struct alterer *alterer, size_t at)
{
    const struct resource *resource = &alterer->resources[at];
    if (resource->type == CONFIG_RESOURCE_BROKER) {
        return broker_change(&alterer->command, resource->name, resource->wishes,
                             resource->wish_count, alterer->replaces, alterer->validate_only,
                             &alterer->refusals[at]);
    }
    if (resource->type != CONFIG_RESOURCE_TOPIC) {
        alterer->refusals[at] = (struct refusal){
            KAFKA_INVALID_REQUEST,
            arena_format(alterer->command.arena,
                         "Resources of type %d cannot be changed while the broker runs",
                         resource->type)};
        return STATUS_OK;
    }
    return topic_change(&alterer->command, resource->name, resource->wishes, resource->wish_count,
                        alterer->replaces, alterer->validate_only, &alterer->refusals[at]);
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

static enum status read_incremental(struct alterer *alterer,
                                    const struct incremental_alter_configs_request *request)
{
    for (size_t i = 0; i < alterer->count; i++) {
        const struct INCREMENTAL *from = &request->resources[i];
        size_t count = from->configs_count < 0 ? 0 : (size_t)from->configs_count;
        struct config_wish *wishes =
            arena_take(alterer->command.arena, count + 1, sizeof *wishes);
        if (wishes == NULL) {
            return STATUS_LIMIT;
        }
        for (size_t j = 0; j < count; j++) {
            wishes[j] = (struct config_wish){from->configs[j].name, from->configs[j].value,
                                             from->configs[j].config_operation};
        }
        alterer->resources[i] = (struct resource){from->resource_name, wishes, (int32_t)count,
                                                  from->resource_type};
    }
    return STATUS_OK;
}

enum status controller_incremental_alter_configs(
    const struct controller *controller, const struct incremental_alter_configs_request *request,
    struct arena *arena, struct record_list *records,
    struct incremental_alter_configs_response *response)
{
    assert(request != NULL && response != NULL);
    struct alterer alterer = {.validate_only = request->validate_only};
    *response = incremental_alter_configs_response_default;
    enum status status = start(&alterer, controller, arena, records, request->resources_count);
    if (status == STATUS_OK) {
        status = read_incremental(&alterer, request);
    }
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
            .resource_type = alterer.resources[i].type,
            .resource_name = alterer.resources[i].name};
    }
    return STATUS_OK;
}

static enum status read_plain(struct alterer *alterer, const struct alter_configs_request *request)
{
    for (size_t i = 0; i < alterer->count; i++) {
        const struct PLAIN *from = &request->resources[i];
        size_t count = from->configs_count < 0 ? 0 : (size_t)from->configs_count;
        struct config_wish *wishes =
            arena_take(alterer->command.arena, count + 1, sizeof *wishes);
        if (wishes == NULL) {
            return STATUS_LIMIT;
        }
        for (size_t j = 0; j < count; j++) {
            wishes[j] = (struct config_wish){from->configs[j].name, from->configs[j].value,
                                             CONFIG_OPERATION_SET};
        }
        alterer->resources[i] = (struct resource){from->resource_name, wishes, (int32_t)count,
                                                  from->resource_type};
    }
    return STATUS_OK;
}

enum status controller_alter_configs(const struct controller *controller,
                                     const struct alter_configs_request *request,
                                     struct arena *arena, struct record_list *records,
                                     struct alter_configs_response *response)
{
    assert(request != NULL && response != NULL);
    struct alterer alterer = {.replaces = true, .validate_only = request->validate_only};
    *response = alter_configs_response_default;
    enum status status = start(&alterer, controller, arena, records, request->resources_count);
    if (status == STATUS_OK) {
        status = read_plain(&alterer, request);
    }
    if (status == STATUS_OK) {
        status = alter_all(&alterer);
    }
    response->responses = arena_take(arena, alterer.count + 1, sizeof *response->responses);
    if (status != STATUS_OK || response->responses == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < alterer.count; i++) {
        response->responses[response->responses_count++] = (struct PLAIN_RESULT){
            .error_code = (int16_t)alterer.refusals[i].error,
            .error_message = alterer.refusals[i].why,
            .resource_type = alterer.resources[i].type,
            .resource_name = alterer.resources[i].name};
    }
    return STATUS_OK;
}
