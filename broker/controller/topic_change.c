/* Changing a topic's configuration (KIP-339). Owns nothing.
 *
 * Happy path: a copy of the overrides is changed wish by wish, the whole is checked, and each key
 * that ends up different becomes a record. */
#include "broker/controller/topic_change.h"

#include <assert.h>
#include <string.h>

#include "broker/config/topic_name.h"
#include "broker/config/value.h"

struct changer {
    struct command *command;
    const struct topic_image *topic;
    struct topic_override *overrides; /* what there will be, each key once */
    uint32_t count;
};

static struct refusal refuse(enum kafka_error error, struct view why)
{
    return (struct refusal){error, why};
}

static void remove_override(struct changer *changer, enum config_key key)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < changer->count; i++) {
        if (changer->overrides[i].key != key) {
            changer->overrides[kept++] = changer->overrides[i];
        }
    }
    changer->count = kept;
}

static void insert_override(struct changer *changer, struct topic_override override)
{
    remove_override(changer, override.key);
    assert(changer->count < TOPIC_CONFIG_COUNT);
    changer->overrides[changer->count++] = override;
}

static bool list_has(const struct view *items, uint32_t count, struct view item)
{
    for (uint32_t i = 0; i < count; i++) {
        if (view_equal(items[i], item)) {
            return true;
        }
    }
    return false;
}

/* Joins the items that are none of the others behind the text. */
static enum status join(struct arena *arena, struct view *text, const struct view *items,
                        uint32_t count, const struct view *others, uint32_t other_count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list_has(others, other_count, items[i])) {
            continue;
        }
        size_t length = text->length + items[i].length + 1;
        uint8_t *bytes = arena_take(arena, length, 1);
        if (bytes == NULL) {
            return STATUS_LIMIT;
        }
        size_t at = text->length;
        memcpy(bytes, text->data, at);
        if (at > 0) {
            bytes[at++] = ',';
        }
        memcpy(bytes + at, items[i].data, items[i].length);
        *text = (struct view){bytes, at + items[i].length};
    }
    return STATUS_OK;
}

/* The list with the wish's items behind it, those that are there already left out, or without them;
 * the value in use is what is added to, be it an override or a default. */
static enum status change_list(struct changer *changer, enum config_key key,
                               const struct config_wish *wish, struct view *value)
{
    struct arena *arena = changer->command->arena;
    struct view old = VIEW_NULL;
    enum config_source source = CONFIG_SOURCE_DEFAULT;
    struct view *items = NULL;
    struct view *changes = NULL;
    uint32_t item_count = 0;
    uint32_t change_count = 0;
    enum status status =
        topic_config_effective(controller_config(changer->command->controller), changer->overrides,
                               changer->count, key, arena, &old, &source);
    if (status == STATUS_OK) {
        status = config_list_split(old, arena, &items, &item_count);
    }
    if (status == STATUS_OK) {
        status = config_list_split(wish->value, arena, &changes, &change_count);
    }
    bool takes = wish->operation == CONFIG_OPERATION_SUBTRACT;
    *value = VIEW_EMPTY;
    if (status == STATUS_OK) {
        status = join(arena, value, items, item_count, changes, takes ? change_count : 0);
    }
    if (status == STATUS_OK && !takes) {
        status = join(arena, value, changes, change_count, items, item_count);
    }
    return status;
}

static enum status set_value(struct changer *changer, struct view name, struct view value,
                             struct refusal *refusal)
{
    struct topic_override override = {0};
    struct view why = VIEW_NULL;
    enum status status =
        topic_override_check(name, value, changer->command->arena, &override, &why);
    if (status == STATUS_LIMIT) {
        return status;
    }
    if (status != STATUS_OK) {
        *refusal = refuse(KAFKA_INVALID_CONFIG, why);
        return STATUS_OK;
    }
    insert_override(changer, override);
    return STATUS_OK;
}

static enum status change_key(struct changer *changer, enum config_key key,
                              const struct config_wish *wish, struct refusal *refusal)
{
    if (wish->operation == CONFIG_OPERATION_SET) {
        return set_value(changer, wish->name, wish->value, refusal);
    }
    if (config_keys[key].type != CONFIG_TYPE_LIST) {
        *refusal = refuse(KAFKA_INVALID_CONFIG,
                          arena_format(changer->command->arena,
                                       "%s is no list that could be added to or taken from",
                                       config_keys[key].name));
        return STATUS_OK;
    }
    struct view value = VIEW_NULL;
    enum status status = change_list(changer, key, wish, &value);
    return status == STATUS_OK ? set_value(changer, wish->name, value, refusal) : status;
}

static enum status apply_wish(struct changer *changer, const struct config_wish *wish,
                              struct refusal *refusal)
{
    enum config_key key = CONFIG_KEY_COUNT;
    bool is_known = config_key_find(CONFIG_SCOPE_TOPIC, wish->name, &key);
    if (wish->operation < CONFIG_OPERATION_SET || wish->operation > CONFIG_OPERATION_SUBTRACT) {
        *refusal = refuse(KAFKA_INVALID_REQUEST,
                          arena_format(changer->command->arena, "There is no operation %d",
                                       wish->operation));
        return STATUS_OK;
    }
    if (wish->operation == CONFIG_OPERATION_DELETE) {
        if (is_known) {
            remove_override(changer, key);
        }
        return STATUS_OK;
    }
    if (wish->value.data == NULL) {
        *refusal = refuse(KAFKA_INVALID_REQUEST,
                          arena_format(changer->command->arena, "%.*s needs a value",
                                       VIEW_PRINT(wish->name)));
        return STATUS_OK;
    }
    return is_known ? change_key(changer, key, wish, refusal)
                    : set_value(changer, wish->name, wish->value, refusal);
}

static enum status check_names(const struct changer *changer, const struct config_wish *wishes,
                               int32_t count, struct refusal *refusal)
{
    struct arena *arena = changer->command->arena;
    struct view *names = arena_take(arena, (size_t)count + 1, sizeof *names);
    struct key_set set;
    if (names == NULL) {
        return STATUS_LIMIT;
    }
    for (int32_t i = 0; i < count; i++) {
        names[i] = wishes[i].name;
    }
    enum status status = key_set_make(arena, names, (size_t)count, &set);
    for (int32_t i = 0; i < count && status == STATUS_OK; i++) {
        if (set.marks[i] != KEY_ONCE) {
            *refusal = refuse(KAFKA_INVALID_REQUEST,
                              arena_format(arena, "%.*s is named more than once",
                                           VIEW_PRINT(names[i])));
        }
    }
    return status;
}

static void record_key(const struct changer *changer, enum config_key key, struct view value)
{
    struct config_record record = {.resource_type = 2,
                                   .resource_name = changer->topic->name,
                                   .name = view_text(config_keys[key].name),
                                   .value = value};
    record_list_add(changer->command->records, &config_record_type, 0, &record);
}

/* A record for each key whose override is new, other or gone. */
static void record_differences(const struct changer *changer)
{
    const struct topic_image *topic = changer->topic;
    for (int i = 0; i < TOPIC_CONFIG_COUNT; i++) {
        enum config_key key = (enum config_key)(TOPIC_CONFIG_FIRST + i);
        const struct topic_override *before =
            topic_override_find(topic->overrides, topic->override_count, key);
        const struct topic_override *after =
            topic_override_find(changer->overrides, changer->count, key);
        struct view old = before == NULL ? VIEW_NULL : before->value;
        struct view new = after == NULL ? VIEW_NULL : after->value;
        if (!view_equal(old, new)) {
            record_key(changer, key, new);
        }
    }
}

static enum status start(struct changer *changer, struct view name, bool replaces,
                         struct refusal *refusal)
{
    struct arena *arena = changer->command->arena;
    struct view why = VIEW_NULL;
    if (topic_name_check(name, arena, &why) != STATUS_OK) {
        *refusal = refuse(KAFKA_INVALID_TOPIC_EXCEPTION, why);
        return STATUS_OK;
    }
    changer->topic = image_topic(changer->command->controller->image, name);
    if (changer->topic == NULL) {
        *refusal = refuse(KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
                          arena_format(arena, "There is no topic '%.*s'", VIEW_PRINT(name)));
        return STATUS_OK;
    }
    changer->overrides = arena_take(arena, TOPIC_CONFIG_COUNT + 1, sizeof *changer->overrides);
    if (changer->overrides == NULL) {
        return STATUS_LIMIT;
    }
    changer->count = replaces ? 0 : changer->topic->override_count;
    if (changer->count > 0) {
        memcpy(changer->overrides, changer->topic->overrides,
               changer->count * sizeof *changer->overrides);
    }
    return STATUS_OK;
}

enum status topic_change(struct command *command, struct view topic_name,
                         const struct config_wish *wishes, int32_t count, bool replaces,
                         bool validate_only, struct refusal *refusal)
{
    assert(command != NULL && refusal != NULL && count >= 0);
    struct changer changer = {.command = command};
    *refusal = REFUSAL_NONE;
    enum status status = check_names(&changer, wishes, count, refusal);
    if (status == STATUS_OK && refusal->error == KAFKA_NONE) {
        status = start(&changer, topic_name, replaces, refusal);
    }
    for (int32_t i = 0; i < count && status == STATUS_OK && refusal->error == KAFKA_NONE; i++) {
        status = apply_wish(&changer, &wishes[i], refusal);
    }
    if (status != STATUS_OK || refusal->error != KAFKA_NONE) {
        return status;
    }
    struct view why = VIEW_NULL;
    if (topic_overrides_check(controller_config(command->controller), changer.overrides,
                              changer.count, command->arena, &why) != STATUS_OK) {
        *refusal = refuse(KAFKA_INVALID_CONFIG, why);
    } else if (!validate_only) {
        record_differences(&changer);
    }
    return STATUS_OK;
}
