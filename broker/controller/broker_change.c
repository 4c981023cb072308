/* What may be set while brokers run: the rates to which moving replicas may be held (KIP-73), which
 * tools that move partitions set and take back, and that a broker takes no new replicas (KIP-1066).
 * Every other key of a broker is read at its start alone. Owns nothing. */
#include "broker/controller/broker_change.h"

#include <assert.h>

#include "broker/config/describe.h"
#include "broker/config/value.h"

const enum config_key broker_change_keys[] = {
    CONFIG_FOLLOWER_REPLICATION_THROTTLED_RATE,
    CONFIG_LEADER_REPLICATION_THROTTLED_RATE,
    CONFIG_REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND,
    CONFIG_CORDONED_LOG_DIRS,
    CONFIG_KEY_COUNT,
};

enum { KEY_COUNT = sizeof broker_change_keys / sizeof broker_change_keys[0] - 1 };

static int key_place(struct view name)
{
    int at = 0;
    assert(KEY_COUNT == 4);
    while (at < KEY_COUNT && !view_is(name, config_keys[broker_change_keys[at]].name)) {
        at++;
    }
    return at;
}

static bool is_broker(const struct command *command, struct view name)
{
    const struct image *image = command->controller->image;
    assert(image != NULL);
    int64_t id = -1;
    bool found = name.length == 0;
    if (!found && config_number_parse(name, &id) && id >= 0 && id <= INT32_MAX) {
        found = command_has_broker(command, (int32_t)id);
        for (int i = 0; i < image_broker_count(image); i++) {
            found = found || image_broker(image, i)->broker_id == (int32_t)id;
        }
    }
    return found;
}

static enum status check_wish(const struct command *command, struct view broker,
                              const struct config_wish *wish, struct refusal *refusal)
{
    struct arena *arena = command->arena;
    struct config_value value = {0};
    struct view why = VIEW_NULL;
    int at = key_place(wish->name);
    assert(refusal->error == KAFKA_NONE);
    if (at == KEY_COUNT) {
        *refusal = (struct refusal){
            KAFKA_INVALID_REQUEST,
            arena_format(arena, "%.*s cannot be changed while the broker runs",
                         VIEW_PRINT(wish->name))};
        return STATUS_OK;
    }
    if (broker.length == 0 &&
        config_keys[broker_change_keys[at]].update == CONFIG_UPDATE_PER_BROKER) {
        *refusal = (struct refusal){
            KAFKA_INVALID_REQUEST,
            arena_format(arena, "Cannot update these configs at default cluster level, broker id "
                                "must be specified: [%.*s]", VIEW_PRINT(wish->name))};
        return STATUS_OK;
    }
    if (wish->operation == CONFIG_OPERATION_DELETE) {
        return STATUS_OK;
    }
    if (wish->operation != CONFIG_OPERATION_SET || wish->value.data == NULL) {
        *refusal = (struct refusal){
            KAFKA_INVALID_CONFIG,
            arena_format(arena, "%.*s can be set and deleted", VIEW_PRINT(wish->name))};
        return STATUS_OK;
    }
    enum status status = config_value_parse(broker_change_keys[at], wish->value, arena,
                                            &value, &why);
    if (status == STATUS_INVALID) {
        *refusal = (struct refusal){KAFKA_INVALID_CONFIG, why};
        return STATUS_OK;
    }
    return status;
}

static void record(const struct command *command, struct view broker, enum config_key key,
                   struct view value)
{
    struct view name = view_text(config_keys[key].name);
    struct view old = image_config(command->controller->image, CONFIG_RESOURCE_BROKER, broker,
                                   name);
    if (view_equal(old, value)) {
        return;
    }
    struct config_record record = {.resource_type = CONFIG_RESOURCE_BROKER,
                                   .resource_name = broker,
                                   .name = name,
                                   .value = value};
    record_list_add(command->records, &config_record_type, 0, &record);
}

enum status broker_change(struct command *command, struct view broker,
                          const struct config_wish *wishes, int32_t count, bool replaces,
                          bool validate_only, struct refusal *refusal)
{
    struct view values[KEY_COUNT] = {VIEW_NULL};
    bool is_named[KEY_COUNT] = {false};
    assert(command != NULL && refusal != NULL && count >= 0);
    *refusal = REFUSAL_NONE;
    if (!is_broker(command, broker)) {
        *refusal = (struct refusal){
            KAFKA_INVALID_REQUEST,
            arena_format(command->arena, "There is no broker '%.*s'", VIEW_PRINT(broker))};
    }
    for (int32_t i = 0; i < count && refusal->error == KAFKA_NONE; i++) {
        enum status status = check_wish(command, broker, &wishes[i], refusal);
        if (status != STATUS_OK) {
            return status;
        }
        if (refusal->error == KAFKA_NONE) {
            int at = key_place(wishes[i].name);
            is_named[at] = true;
            values[at] = wishes[i].operation == CONFIG_OPERATION_DELETE ? VIEW_NULL
                                                                        : wishes[i].value;
        }
    }
    for (int i = 0; i < KEY_COUNT && refusal->error == KAFKA_NONE && !validate_only; i++) {
        if (is_named[i] || replaces) {
            record(command, broker, broker_change_keys[i], values[i]);
        }
    }
    return STATUS_OK;
}
