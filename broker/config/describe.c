/* DescribeConfigs. Owns nothing: reads the key table, the configuration and its sources.
 *
 * Happy path: one result for each resource, one row for each key of its scope that the client asked
 * for. What Kafka does that is not obvious, seen in its answers: an empty list of keys means all;
 * the message of a good result is empty, not null; a key that others stand behind
 * (log.retention.ms, in minutes and in hours) shows no synonyms while it has no value itself, and
 * those of all of them when it has; a key that can only be set while the broker runs (the
 * replication throttles) is listed when it is set. */
#include "broker/config/describe.h"

#include <assert.h>

#include "broker/config/topic_name.h"
#include "broker/config/value.h"
#include "messages/errors.h"

/* The generated names, shorter. */
#define RESOURCE describe_configs_request_describe_configs_resource
#define RESULT describe_configs_response_describe_configs_result
#define ROW describe_configs_response_describe_configs_resource_result
#define SYNONYM describe_configs_response_describe_configs_synonym

enum { MOST_SYNONYMS = 12 };

struct describer {
    const struct config *config;
    const struct describe_sources *sources;
    const struct describe_configs_request *request;
    const struct RESOURCE *resource;
    const struct topic_override *overrides;
    uint32_t override_count;
    struct view node_id; /* of this broker, as text */
    struct arena *arena;
};

/* What is set while brokers run, for the one of that id or (empty) for all. */
static struct view setting(const struct describer *from, struct view broker, enum config_key key)
{
    return from->sources->find_setting(from->sources->context, broker, key);
}

static bool is_set(const struct describer *from, enum config_key key)
{
    return setting(from, from->resource->resource_name, key).data != NULL ||
           setting(from, VIEW_EMPTY, key).data != NULL;
}

/* The resource that stands for all brokers has only what is set for them. */
static bool is_all_brokers(const struct describer *from)
{
    return from->resource->resource_type == CONFIG_RESOURCE_BROKER &&
           from->resource->resource_name.length == 0;
}

static bool is_wanted(const struct describer *from, enum config_key key)
{
    const struct config_key_info *info = &config_keys[key];
    if ((info->internal || is_all_brokers(from)) && !is_set(from, key)) {
        return false;
    }
    const struct RESOURCE *resource = from->resource;
    for (int32_t i = 0; i < resource->configuration_keys_count; i++) {
        if (view_is(resource->configuration_keys[i], info->name)) {
            return true;
        }
    }
    return resource->configuration_keys_count <= 0;
}

static bool is_sensitive(const struct config_key_info *info)
{
    return info->type == CONFIG_TYPE_PASSWORD;
}

static void add_synonym(struct ROW *row, const struct config_key_info *info, struct view value,
                        enum config_source source)
{
    assert(row->synonyms_count < MOST_SYNONYMS);
    row->synonyms[row->synonyms_count++] = (struct SYNONYM){
        .name = view_text(info->name),
        .value = is_sensitive(info) ? VIEW_NULL : value,
        .source = (int8_t)source};
}

/* A broker's key, or those that stand in for each other: the first that has a value counts. */
struct chain {
    const struct config_synonym *keys;
    int count;
};

/* What operators wrote for the keys, then their defaults. */
static void add_broker_synonyms(const struct describer *from, struct chain chain, struct ROW *row)
{
    for (int i = 0; i < chain.count; i++) {
        enum config_key key = (enum config_key)chain.keys[i].key;
        if (config_origin(from->config, key) != CONFIG_ORIGIN_DEFAULT) {
            add_synonym(row, &config_keys[key], config_text(from->config, key),
                        CONFIG_SOURCE_STATIC_BROKER);
        }
    }
    for (int i = 0; i < chain.count; i++) {
        const struct config_key_info *info = &config_keys[chain.keys[i].key];
        if (info->default_text != NULL) {
            add_synonym(row, info, view_text(info->default_text), CONFIG_SOURCE_DEFAULT);
        }
    }
}

/* The first in the list is the one in use. */
static void finish_row(const struct describer *from, const struct config_key_info *info,
                       struct ROW *row)
{
    row->name = view_text(info->name);
    row->config_type = (int8_t)info->type;
    row->is_sensitive = is_sensitive(info);
    row->value = row->is_sensitive ? VIEW_NULL : row->value;
    row->config_source =
        row->synonyms_count > 0 ? row->synonyms[0].source : (int8_t)CONFIG_SOURCE_DEFAULT;
    row->synonyms_count = from->request->include_synonyms ? row->synonyms_count : 0;
    bool documented = from->request->include_documentation;
    row->documentation = documented ? view_text(info->documentation) : VIEW_NULL;
}

/* What is set for that broker, and for all, while they run. */
static void add_settings(const struct describer *from, struct view broker, enum config_key key,
                         struct ROW *row)
{
    const struct config_key_info *info = &config_keys[key];
    struct view own = setting(from, broker, key);
    struct view common = setting(from, VIEW_EMPTY, key);
    if (own.data != NULL && broker.length > 0) {
        add_synonym(row, info, own, CONFIG_SOURCE_DYNAMIC_BROKER);
    }
    if (common.data != NULL) {
        add_synonym(row, info, common, CONFIG_SOURCE_DYNAMIC_DEFAULT);
    }
}

/* Adds the synonyms of the broker's keys; the value in use becomes that of the first one when it
 * was set while the broker runs, unless the row has an earlier one. */
static void add_chain(const struct describer *from, struct view broker, struct chain chain,
                      struct ROW *row)
{
    int32_t before = row->synonyms_count;
    enum config_key first = (enum config_key)chain.keys[0].key;
    assert(chain.count > 0);
    add_settings(from, broker, first, row);
    bool is_set = row->synonyms_count > before;
    if (is_set && before == 0) {
        row->value = row->synonyms[0].value;
    }
    if (is_set || config_has(from->config, first)) {
        add_broker_synonyms(from, chain, row);
    }
}

/* The keys that stand behind this one of a broker: those of the topics' key that it is first of. */
static struct chain chain_of(const struct config_synonym *self)
{
    for (int i = TOPIC_CONFIG_FIRST; i < TOPIC_CONFIG_FIRST + TOPIC_CONFIG_COUNT; i++) {
        const struct config_key_info *info = &config_keys[i];
        if (info->synonym_count > 1 && info->synonyms[0].key == self->key) {
            return (struct chain){info->synonyms, info->synonym_count};
        }
    }
    return (struct chain){self, 1};
}

static enum status fill_broker_row(const struct describer *from, enum config_key key,
                                   struct ROW *row)
{
    struct config_synonym self = {.key = (uint16_t)key, .multiplier = 1};
    struct view broker = from->resource->resource_name;
    row->value = config_text(from->config, key);
    row->read_only = config_keys[key].update == CONFIG_UPDATE_RESTART;
    if (is_all_brokers(from)) {
        add_settings(from, broker, key, row);
        row->value = row->synonyms[0].value;
    } else {
        add_chain(from, broker, chain_of(&self), row);
    }
    return STATUS_OK;
}

/* A key that has no other value than what is set while the broker runs. */
static enum status fill_setting_row(const struct describer *from, enum config_key key,
                                    struct ROW *row)
{
    add_settings(from, from->resource->resource_name, key, row);
    assert(row->synonyms_count > 0);
    row->value = row->synonyms[0].value;
    return STATUS_OK;
}

/* A key of a topic, group or subscription. */
static enum status fill_other_row(const struct describer *from, enum config_key key,
                                  struct ROW *row)
{
    const struct config_key_info *info = &config_keys[key];
    enum config_source source = CONFIG_SOURCE_DEFAULT;
    enum status status = topic_config_effective(from->config, from->overrides, from->override_count,
                                                key, from->arena, &row->value, &source);
    if (status == STATUS_OK && source == CONFIG_SOURCE_TOPIC) {
        add_synonym(row, info, row->value, source);
    }
    if (info->synonym_count > 0) {
        add_chain(from, from->node_id, (struct chain){info->synonyms, info->synonym_count}, row);
    } else if (info->scope == CONFIG_SCOPE_GROUP && info->default_text != NULL) {
        add_synonym(row, info, view_text(info->default_text), CONFIG_SOURCE_DEFAULT);
    }
    return status;
}

static enum status fill_row(const struct describer *from, enum config_key key, struct ROW *row)
{
    row->synonyms = arena_take(from->arena, MOST_SYNONYMS, sizeof *row->synonyms);
    if (row->synonyms == NULL) {
        return STATUS_LIMIT;
    }
    enum status status = STATUS_OK;
    if (config_keys[key].internal) {
        status = fill_setting_row(from, key, row);
    } else if (config_keys[key].scope == CONFIG_SCOPE_BROKER) {
        status = fill_broker_row(from, key, row);
    } else {
        status = fill_other_row(from, key, row);
    }
    finish_row(from, &config_keys[key], row);
    return status;
}

/* All keys from `first` on that the client wants to know. */
static enum status fill_rows(const struct describer *from, int first, int count,
                             struct RESULT *result)
{
    assert(first >= 0 && first + count <= CONFIG_KEY_COUNT);
    result->configs = arena_take(from->arena, (size_t)count, sizeof *result->configs);
    if (result->configs == NULL) {
        return STATUS_LIMIT;
    }
    enum status status = STATUS_OK;
    for (int key = first; key < first + count && status == STATUS_OK; key++) {
        if (is_wanted(from, (enum config_key)key)) {
            struct ROW *row = &result->configs[result->configs_count++];
            status = fill_row(from, (enum config_key)key, row);
        }
    }
    assert(result->configs_count <= count);
    return status;
}

static enum status refuse(struct RESULT *result, enum kafka_error error, struct view why)
{
    result->error_code = (int16_t)error;
    result->error_message = why;
    return STATUS_OK;
}

static enum status describe_topic(struct describer *from, struct RESULT *result)
{
    struct view name = from->resource->resource_name;
    struct view why = VIEW_NULL;
    if (topic_name_check(name, from->arena, &why) != STATUS_OK) {
        return refuse(result, KAFKA_INVALID_TOPIC_EXCEPTION, why);
    }
    if (!from->sources->find_topic(from->sources->context, name, &from->overrides,
                                   &from->override_count)) {
        return refuse(result, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, VIEW_EMPTY);
    }
    return fill_rows(from, TOPIC_CONFIG_FIRST, TOPIC_CONFIG_COUNT, result);
}

/* Whether the resource is this broker; else the result says why not. */
static bool is_this_broker(const struct describer *from, struct RESULT *result)
{
    struct view name = from->resource->resource_name;
    int64_t id = 0;
    int32_t own = config_int(from->config, CONFIG_NODE_ID);
    if (!config_number_parse(name, &id)) {
        refuse(result, KAFKA_INVALID_REQUEST,
               arena_format(from->arena, "A broker resource is named by its number, not by '%.*s'",
                            VIEW_PRINT(name)));
        return false;
    }
    if (id != own) {
        refuse(result, KAFKA_INVALID_REQUEST,
               arena_format(from->arena,
                            "This is broker %d: a broker resource is named %d or empty here, not "
                            "%.*s",
                            own, own, VIEW_PRINT(name)));
        return false;
    }
    return true;
}

static enum status describe_broker(const struct describer *from, struct RESULT *result)
{
    return is_all_brokers(from) || is_this_broker(from, result)
               ? fill_rows(from, BROKER_CONFIG_FIRST, BROKER_CONFIG_COUNT, result)
               : STATUS_OK;
}

static enum status describe_one(struct describer *from, struct RESULT *result)
{
    result->resource_type = from->resource->resource_type;
    result->resource_name = from->resource->resource_name;
    result->error_message = VIEW_EMPTY;
    switch (from->resource->resource_type) {
    case CONFIG_RESOURCE_TOPIC:
        return describe_topic(from, result);
    case CONFIG_RESOURCE_BROKER:
        return describe_broker(from, result);
    case CONFIG_RESOURCE_BROKER_LOGGER:
        is_this_broker(from, result);
        return STATUS_OK;
    case CONFIG_RESOURCE_GROUP:
        return fill_rows(from, GROUP_CONFIG_FIRST, GROUP_CONFIG_COUNT, result);
    case CONFIG_RESOURCE_CLIENT_METRICS:
        return fill_rows(from, CLIENT_METRICS_CONFIG_FIRST, CLIENT_METRICS_CONFIG_COUNT, result);
    default:
        return refuse(result, KAFKA_INVALID_REQUEST,
                      arena_format(from->arena, "There are no resources of type %d",
                                   from->resource->resource_type));
    }
}

enum status describe_configs(const struct config *config, const struct describe_sources *sources,
                             const struct describe_configs_request *request, struct arena *arena,
                             struct describe_configs_response *response)
{
    assert(config != NULL && sources != NULL);
    assert(request != NULL && arena != NULL && response != NULL);
    *response = describe_configs_response_default;
    if (request->resources_count <= 0) {
        return STATUS_OK;
    }
    size_t count = (size_t)request->resources_count;
    response->results = arena_take(arena, count, sizeof *response->results);
    if (response->results == NULL) {
        return STATUS_LIMIT;
    }
    response->results_count = request->resources_count;
    struct describer from = {.config = config,
                             .sources = sources,
                             .request = request,
                             .node_id = arena_format(arena, "%d",
                                                     config_int(config, CONFIG_NODE_ID)),
                             .arena = arena};
    enum status status = from.node_id.data == NULL ? STATUS_LIMIT : STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        from.resource = &request->resources[i];
        from.overrides = NULL;
        from.override_count = 0;
        status = describe_one(&from, &response->results[i]);
    }
    return status;
}
