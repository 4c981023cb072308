/* Loading and reading of the configuration. Owns one arena in which every text lives.
 *
 * Happy path: start from the defaults, let file, environment and overrides write over the raw texts
 * in this order, then parse every value once. So a wrong value that a stronger source replaces does
 * no harm, and the first wrong one that counts stops the load with a line for the operator. */
#include "broker/config/config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/config/cordon.h"
#include "broker/config/environment.h"
#include "broker/config/properties.h"
#include "broker/config/value.h"

enum {
    FILE_LIMIT_BYTES = 1 << 20,
    ARENA_LIMIT_BYTES = 16 << 20,
    EXTRA_LIMIT = 1024,
    NOTE_BYTES = 900
};

struct extra {
    struct view name;
    struct view value;
};

struct config {
    struct arena arena;
    struct config_value values[BROKER_CONFIG_COUNT];
    uint8_t origins[BROKER_CONFIG_COUNT];
    struct extra extras[EXTRA_LIMIT];
    int extra_count;
};

_Static_assert(BROKER_CONFIG_FIRST == 0, "broker keys index the values directly");

/* Copies into the arena with a final zero, so that texts can be C strings. */
static struct view keep(struct config *config, struct view text)
{
    return arena_copy(&config->arena, text);
}

static struct extra *find_extra(struct config *config, struct view name)
{
    for (int i = 0; i < config->extra_count; i++) {
        if (view_equal(config->extras[i].name, name)) {
            return &config->extras[i];
        }
    }
    return NULL;
}

static enum status set_extra(struct config *config, struct view name, struct view value)
{
    struct extra *extra = find_extra(config, name);
    if (extra == NULL && config->extra_count == EXTRA_LIMIT) {
        return STATUS_LIMIT;
    }
    if (extra == NULL) {
        extra = &config->extras[config->extra_count++];
        extra->name = keep(config, name);
    }
    extra->value = keep(config, value);
    return extra->name.data == NULL || extra->value.data == NULL ? STATUS_LIMIT : STATUS_OK;
}

/* `KAFKA_X=` with nothing behind it means "not set" wherever nothing cannot be a value. */
static bool means_unset(enum config_key key, struct view value, enum config_origin origin)
{
    uint8_t type = config_keys[key].type;
    bool can_be_empty = type == CONFIG_TYPE_STRING || type == CONFIG_TYPE_LIST;
    return origin == CONFIG_ORIGIN_ENVIRONMENT && !can_be_empty && config_trim(value).length == 0;
}

static enum status set_raw(struct config *config, struct view name, struct view value,
                           enum config_origin origin)
{
    enum config_key key = CONFIG_KEY_COUNT;
    if (!config_key_find(CONFIG_SCOPE_BROKER, name, &key)) {
        return set_extra(config, name, value);
    }
    if (means_unset(key, value, origin)) {
        return STATUS_OK;
    }
    config->values[key].text = keep(config, value);
    config->origins[key] = (uint8_t)origin;
    return config->values[key].text.data == NULL ? STATUS_LIMIT : STATUS_OK;
}

static void set_defaults(struct config *config)
{
    for (int i = 0; i < BROKER_CONFIG_COUNT; i++) {
        config->values[i].text = view_text(config_keys[i].default_text);
        config->origins[i] = CONFIG_ORIGIN_DEFAULT;
    }
}

static enum status load_text(struct config *config, const char *path, struct view text, char *why)
{
    struct properties_reader reader;
    properties_init(&reader, text);
    for (;;) {
        struct view key = VIEW_NULL;
        struct view value = VIEW_NULL;
        enum status status = properties_next(&reader, &config->arena, &key, &value);
        if (status == STATUS_NOT_FOUND) {
            return STATUS_OK;
        }
        if (status == STATUS_OK) {
            status = set_raw(config, key, value, CONFIG_ORIGIN_FILE);
        }
        if (status != STATUS_OK) {
            snprintf(why, CONFIG_WHY_BYTES, "%s:%d: %s", path, reader.line,
                     status == STATUS_INVALID ? "\\u needs four hexadecimal digits"
                                              : "too many names or too much text");
            return status;
        }
    }
}

static enum status load_file(struct config *config, const char *path, char *why)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(why, CONFIG_WHY_BYTES, "cannot read %s: %s", path, strerror(errno));
        return STATUS_IO;
    }
    char *text = memory_new(FILE_LIMIT_BYTES + 1);
    size_t length = fread(text, 1, FILE_LIMIT_BYTES + 1, file);
    enum status status = ferror(file) != 0 ? STATUS_IO : STATUS_OK;
    fclose(file);
    if (status != STATUS_OK) {
        snprintf(why, CONFIG_WHY_BYTES, "cannot read %s", path);
    } else if (length > FILE_LIMIT_BYTES) {
        snprintf(why, CONFIG_WHY_BYTES, "%s is larger than %d bytes", path, FILE_LIMIT_BYTES);
        status = STATUS_LIMIT;
    } else {
        status = load_text(config, path, (struct view){(const uint8_t *)text, length}, why);
    }
    free(text);
    return status;
}

static enum status load_environment(struct config *config, char *const *environment, char *why)
{
    for (char *const *variable = environment; *variable != NULL; variable++) {
        struct view key = VIEW_NULL;
        struct view value = VIEW_NULL;
        enum status status = environment_key(*variable, &config->arena, &key, &value);
        if (status == STATUS_OK) {
            status = set_raw(config, key, value, CONFIG_ORIGIN_ENVIRONMENT);
        }
        if (status == STATUS_LIMIT) {
            snprintf(why, CONFIG_WHY_BYTES, "too many or too long KAFKA_ environment variables");
            return status;
        }
    }
    return STATUS_OK;
}

static enum status load_override(struct config *config, const char *text, char *why)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        snprintf(why, CONFIG_WHY_BYTES, "--override %s: must be key=value", text);
        return STATUS_INVALID;
    }
    struct view name = config_trim((struct view){(const uint8_t *)text, (size_t)(equals - text)});
    enum status status = set_raw(config, name, view_text(equals + 1), CONFIG_ORIGIN_OVERRIDE);
    if (status != STATUS_OK) {
        snprintf(why, CONFIG_WHY_BYTES, "too many or too long overrides");
    }
    return status;
}

/* broker.id is the old name of node.id; what is set in one is valid for both. */
static enum status join_ids(struct config *config, char *why)
{
    bool node = config->origins[CONFIG_NODE_ID] != CONFIG_ORIGIN_DEFAULT;
    bool broker = config->origins[CONFIG_BROKER_ID] != CONFIG_ORIGIN_DEFAULT;
    struct view node_id = config_trim(config->values[CONFIG_NODE_ID].text);
    struct view broker_id = config_trim(config->values[CONFIG_BROKER_ID].text);
    if (node && broker && !view_equal(node_id, broker_id)) {
        snprintf(why, CONFIG_WHY_BYTES, "node.id %.*s and broker.id %.*s must be the same",
                 VIEW_PRINT(node_id), VIEW_PRINT(broker_id));
        return STATUS_INVALID;
    }
    enum config_key from = broker && !node ? CONFIG_BROKER_ID : CONFIG_NODE_ID;
    enum config_key to = broker && !node ? CONFIG_NODE_ID : CONFIG_BROKER_ID;
    config->values[to].text = config->values[from].text;
    config->origins[to] = config->origins[from];
    return STATUS_OK;
}

/* Texts that were trimmed inside a longer one get a final zero of their own. */
static enum status close_text(struct config *config, struct config_value *value)
{
    if (value->text.data == NULL || value->text.data[value->text.length] == '\0') {
        return STATUS_OK;
    }
    value->text = keep(config, value->text);
    return value->text.data == NULL ? STATUS_LIMIT : STATUS_OK;
}

static enum status parse_all(struct config *config, char *why)
{
    for (int i = 0; i < BROKER_CONFIG_COUNT; i++) {
        struct view reason = VIEW_LITERAL("too much text");
        enum status status = config_value_parse((enum config_key)i, config->values[i].text,
                                                &config->arena, &config->values[i], &reason);
        if (status == STATUS_OK) {
            status = close_text(config, &config->values[i]);
        }
        if (status != STATUS_OK) {
            snprintf(why, CONFIG_WHY_BYTES, "%.*s", VIEW_PRINT(reason));
            return status;
        }
    }
    return STATUS_OK;
}

static enum status check_cordon(struct config *config, char *why)
{
    struct view reason = VIEW_NULL;
    enum status status = cordon_check(config, config_text(config, CONFIG_CORDONED_LOG_DIRS),
                                      &config->arena, &reason);
    if (status == STATUS_INVALID) {
        snprintf(why, CONFIG_WHY_BYTES, "%.*s", VIEW_PRINT(reason));
    }
    return status;
}

static enum status load_all(struct config *config, const struct config_sources *sources, char *why)
{
    set_defaults(config);
    enum status status = STATUS_OK;
    if (sources->file_path != NULL) {
        status = load_file(config, sources->file_path, why);
    }
    if (status == STATUS_OK && sources->environment != NULL) {
        status = load_environment(config, sources->environment, why);
    }
    for (int i = 0; status == STATUS_OK && i < sources->override_count; i++) {
        status = load_override(config, sources->overrides[i], why);
    }
    if (status == STATUS_OK) {
        status = join_ids(config, why);
    }
    if (status == STATUS_OK) {
        status = parse_all(config, why);
    }
    uint32_t directories = 0;
    if (status == STATUS_OK) {
        config_data_directories(config, &directories);
        status = directories > 0 ? STATUS_OK : STATUS_INVALID;
        snprintf(why, CONFIG_WHY_BYTES, "log.dirs and log.dir name no directory");
    }
    return status == STATUS_OK ? check_cordon(config, why) : status;
}

enum status config_load(const struct config_sources *sources, struct config **config,
                        char why[CONFIG_WHY_BYTES])
{
    assert(sources != NULL && config != NULL && why != NULL);
    struct config *fresh = memory_new_zero(1, sizeof *fresh);
    arena_init(&fresh->arena, ARENA_LIMIT_BYTES);
    why[0] = '\0';
    enum status status = load_all(fresh, sources, why);
    if (status != STATUS_OK) {
        assert(why[0] != '\0');
        config_free(fresh);
        fresh = NULL;
    }
    *config = fresh;
    return status;
}

static void put_setting(struct config *config, const struct config_setting *setting)
{
    enum config_key key = setting->key;
    struct config_value value = {0};
    struct view why = VIEW_LITERAL("too much text");
    assert(key < BROKER_CONFIG_COUNT && setting->origin >= CONFIG_ORIGIN_ALL_BROKERS);
    if (config->origins[key] > setting->origin) {
        return;
    }
    enum status status =
        config_value_parse(key, keep(config, setting->value), &config->arena, &value, &why);
    if (status == STATUS_OK) {
        status = close_text(config, &value);
    }
    if (status != STATUS_OK) {
        log_warn("config", "a setting is left out: %.*s", VIEW_PRINT(why));
        return;
    }
    config->values[key] = value;
    config->origins[key] = (uint8_t)setting->origin;
}

struct config *config_with(const struct config *base, const struct config_setting *settings,
                           size_t count)
{
    assert(base != NULL && (settings != NULL || count == 0));
    struct config *copy = memory_new(sizeof *copy);
    *copy = *base;
    arena_init(&copy->arena, ARENA_LIMIT_BYTES);
    for (size_t i = 0; i < count; i++) {
        put_setting(copy, &settings[i]);
    }
    return copy;
}

void config_free(struct config *config)
{
    if (config != NULL) {
        arena_free(&config->arena);
        free(config);
    }
}

void config_log_notes(const struct config *config)
{
    char names[NOTE_BYTES] = "";
    size_t length = 0;
    for (int i = 0; i < config->extra_count; i++) {
        struct view name = config->extras[i].name;
        const char *excuse = environment_excuse(name);
        if (excuse == NULL && length + name.length + 3 < sizeof names) {
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%.*s",
                                       length == 0 ? "" : ", ", VIEW_PRINT(name));
        } else if (excuse != NULL && excuse[0] != '\0') {
            log_info("config", "%.*s is left out: %s", VIEW_PRINT(name), excuse);
        }
    }
    if (length > 0) {
        log_info("config", "not known, so without effect: %s", names);
    }
}

static const struct config_value *value_of(const struct config *config, enum config_key key)
{
    assert(config != NULL);
    assert(key < BROKER_CONFIG_COUNT);
    return &config->values[key];
}

bool config_bool(const struct config *config, enum config_key key)
{
    assert(config_keys[key].type == CONFIG_TYPE_BOOLEAN);
    assert(config_has(config, key));
    return value_of(config, key)->truth;
}

int64_t config_long(const struct config *config, enum config_key key)
{
    uint8_t type = config_keys[key].type;
    assert(type == CONFIG_TYPE_INT || type == CONFIG_TYPE_SHORT || type == CONFIG_TYPE_LONG);
    assert(config_has(config, key));
    return value_of(config, key)->number;
}

int32_t config_int(const struct config *config, enum config_key key)
{
    assert(config_keys[key].type != CONFIG_TYPE_LONG);
    return (int32_t)config_long(config, key);
}

double config_double(const struct config *config, enum config_key key)
{
    assert(config_keys[key].type == CONFIG_TYPE_DOUBLE);
    assert(config_has(config, key));
    return value_of(config, key)->real;
}

const struct view *config_list(const struct config *config, enum config_key key, uint32_t *count)
{
    assert(config_keys[key].type == CONFIG_TYPE_LIST);
    assert(count != NULL);
    *count = value_of(config, key)->item_count;
    return value_of(config, key)->items;
}

struct view config_text(const struct config *config, enum config_key key)
{
    struct view text = value_of(config, key)->text;
    assert(text.data == NULL || text.data[text.length] == '\0');
    return text;
}

const char *config_string(const struct config *config, enum config_key key)
{
    return (const char *)config_text(config, key).data;
}

bool config_has(const struct config *config, enum config_key key)
{
    return value_of(config, key)->text.data != NULL;
}

enum config_origin config_origin(const struct config *config, enum config_key key)
{
    assert(key < BROKER_CONFIG_COUNT);
    return (enum config_origin)config->origins[key];
}

struct view config_extra(const struct config *config, const char *name)
{
    for (int i = 0; i < config->extra_count; i++) {
        if (view_is(config->extras[i].name, name)) {
            return config->extras[i].value;
        }
    }
    return VIEW_NULL;
}

const struct view *config_data_directories(const struct config *config, uint32_t *count)
{
    const struct view *list = config_list(config, CONFIG_LOG_DIRS, count);
    if (*count == 0) {
        list = config_list(config, CONFIG_LOG_DIR, count);
    }
    return list;
}

bool config_has_role(const struct config *config, const char *role)
{
    uint32_t count = 0;
    const struct view *roles = config_list(config, CONFIG_PROCESS_ROLES, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (view_is(roles[i], role)) {
            return true;
        }
    }
    return false;
}
