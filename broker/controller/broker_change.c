/* What may be set while brokers run (config/settings.h), for one or for all of them: defaults of
 * topics, the rates to which moving replicas may be held (KIP-73), that a broker takes no new
 * replicas (KIP-1066). Every other key of a broker is read at its start alone. Owns nothing. */
#include "broker/controller/broker_change.h"

#include <assert.h>

#include "broker/config/describe.h"
#include "broker/config/settings.h"
#include "broker/config/value.h"

/* What there will be of one broker's settings, by key. */
struct wanted {
    struct view values[BROKER_CONFIG_COUNT]; /* null: taken back */
    bool is_named[BROKER_CONFIG_COUNT];
};

static struct refusal refuse(enum kafka_error error, struct view why)
{
    return (struct refusal){error, why};
}

/* Whether there is such a broker (empty: all of them). */
static struct refusal check_broker(const struct command *command, struct view name)
{
    const struct image *image = command->controller->image;
    assert(image != NULL);
    int64_t id = -1;
    bool found = name.length == 0;
    bool is_id = !found && config_number_parse(name, &id) && id >= 0 && id <= INT32_MAX;
    if (is_id) {
        found = command_has_broker(command, (int32_t)id);
        for (int i = 0; i < image_broker_count(image); i++) {
            found = found || image_broker(image, i)->broker_id == (int32_t)id;
        }
    }
    return found ? REFUSAL_NONE
                 : refuse(is_id ? KAFKA_BROKER_ID_NOT_REGISTERED : KAFKA_INVALID_REQUEST,
                          arena_format(command->arena, "There is no broker '%.*s'",
                                       VIEW_PRINT(name)));
}

/* Whether the key can be set for that broker (empty: for all), else why not. */
static struct refusal check_key(struct arena *arena, struct view broker, struct view name,
                                enum config_key *key)
{
    if (!config_key_find(CONFIG_SCOPE_BROKER, name, key) || !setting_is_key(*key)) {
        return refuse(KAFKA_INVALID_REQUEST,
                      arena_format(arena, "%.*s cannot be changed while the broker runs",
                                   VIEW_PRINT(name)));
    }
    if (broker.length == 0 && !setting_is_for_all(*key)) {
        return refuse(KAFKA_INVALID_REQUEST,
                      arena_format(arena, "Cannot update these configs at default cluster level, "
                                          "broker id must be specified: [%.*s]", VIEW_PRINT(name)));
    }
    if (broker.length > 0 && !setting_is_for_one(*key)) {
        return refuse(KAFKA_INVALID_CONFIG,
                      arena_format(arena, "%.*s cannot be set for one broker, as it is to hold "
                                          "whichever leads: set it for all, or for topics",
                                   VIEW_PRINT(name)));
    }
    return REFUSAL_NONE;
}

static enum status take_wish(const struct command *command, struct view broker,
                             const struct config_wish *wish, struct wanted *wanted,
                             struct refusal *refusal)
{
    struct arena *arena = command->arena;
    struct config_value value = {0};
    struct view why = VIEW_NULL;
    enum config_key key = CONFIG_KEY_COUNT;
    enum status status = STATUS_OK;
    *refusal = check_key(arena, broker, wish->name, &key);
    if (refusal->error != KAFKA_NONE) {
        return STATUS_OK;
    }
    if (wish->operation == CONFIG_OPERATION_SET && wish->value.data != NULL) {
        status = config_value_parse(key, wish->value, arena, &value, &why);
    } else if (wish->operation != CONFIG_OPERATION_DELETE) {
        why = arena_format(arena, "%.*s can be set and deleted", VIEW_PRINT(wish->name));
        status = STATUS_INVALID;
    }
    if (status == STATUS_OK && value.text.length > TOPIC_VALUE_LONGEST) {
        why = VIEW_LITERAL("A configuration may have no more than 32767 bytes");
        status = STATUS_INVALID;
    }
    if (status == STATUS_INVALID) {
        *refusal = refuse(KAFKA_INVALID_CONFIG, why);
        return STATUS_OK;
    }
    wanted->is_named[key] = true;
    wanted->values[key] = value.text;
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

static void record_all(const struct command *command, struct view broker,
                       const struct wanted *wanted, bool replaces)
{
    for (int i = 0; i < BROKER_CONFIG_COUNT; i++) {
        if (wanted->is_named[i] || (replaces && setting_is_key((enum config_key)i))) {
            record(command, broker, (enum config_key)i, wanted->values[i]);
        }
    }
}

enum status broker_change(struct command *command, struct view broker,
                          const struct config_wish *wishes, int32_t count, bool replaces,
                          bool validate_only, struct refusal *refusal)
{
    struct wanted wanted = {0};
    assert(command != NULL && refusal != NULL && count >= 0);
    *refusal = check_broker(command, broker);
    for (int32_t i = 0; i < count && refusal->error == KAFKA_NONE; i++) {
        enum status status = take_wish(command, broker, &wishes[i], &wanted, refusal);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (refusal->error == KAFKA_NONE && !validate_only) {
        record_all(command, broker, &wanted, replaces);
    }
    return STATUS_OK;
}
