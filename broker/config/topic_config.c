/* Checking and resolving of topic configurations. Owns nothing.
 *
 * Happy path: an override wins, else the first broker key of the synonyms that has a value, else
 * the default in the table. Texts were checked when they came in, so resolving cannot fail: a text
 * that does not parse here is a bug. */
#include "broker/config/topic_config.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "broker/config/value.h"

const struct topic_override *topic_override_find(const struct topic_override *overrides,
                                                 uint32_t count, enum config_key key)
{
    for (uint32_t i = 0; i < count; i++) {
        if (overrides[i].key == key) {
            return &overrides[i];
        }
    }
    return NULL;
}

enum status topic_override_check(struct view name, struct view value, struct arena *arena,
                                 struct topic_override *override, struct view *why)
{
    assert(arena != NULL && override != NULL && why != NULL);
    enum config_key key = CONFIG_KEY_COUNT;
    if (!config_key_find(CONFIG_SCOPE_TOPIC, name, &key)) {
        *why = arena_format(arena, "Topics have no configuration %.*s", VIEW_PRINT(name));
        return why->data == NULL ? STATUS_LIMIT : STATUS_NOT_FOUND;
    }
    if (value.data == NULL) {
        *why = arena_format(arena, "The topic configuration %.*s needs a value",
                            VIEW_PRINT(name));
        return why->data == NULL ? STATUS_LIMIT : STATUS_INVALID;
    }
    struct config_value parsed = {0};
    enum status status = config_value_parse(key, value, arena, &parsed, why);
    if (status == STATUS_OK && parsed.text.length > TOPIC_VALUE_LONGEST) {
        *why = VIEW_LITERAL("A topic configuration may have no more than 32767 bytes");
        return STATUS_INVALID;
    }
    *override = (struct topic_override){key, parsed.text};
    return status;
}

/* The first broker key of the synonyms that has a value; null when none has. */
static const struct config_synonym *synonym_in_use(const struct config *config, enum config_key key)
{
    const struct config_key_info *info = &config_keys[key];
    for (int i = 0; i < info->synonym_count; i++) {
        if (config_has(config, (enum config_key)info->synonyms[i].key)) {
            return &info->synonyms[i];
        }
    }
    return NULL;
}

/* Minutes and hours as milliseconds; what is negative means "for ever", what is too large stays at
 * the largest number. */
static int64_t multiplied(int64_t number, int32_t multiplier)
{
    assert(multiplier >= 1);
    int64_t product = 0;
    if (multiplier > 1 && number < 0) {
        return -1;
    }
    return __builtin_mul_overflow(number, (int64_t)multiplier, &product) ? INT64_MAX : product;
}

/* A topic's synonym for a list's or text's key is taken as it is. */
static enum status synonym_text(const struct config *config, const struct config_synonym *synonym,
                                struct arena *arena, struct view *value)
{
    enum config_key key = (enum config_key)synonym->key;
    if (synonym->multiplier == 1) {
        *value = config_text(config, key);
        return STATUS_OK;
    }
    int64_t number = multiplied(config_long(config, key), synonym->multiplier);
    *value = arena_format(arena, "%" PRId64, number);
    return value->data == NULL ? STATUS_LIMIT : STATUS_OK;
}

static enum config_source source_of(enum config_origin origin)
{
    switch (origin) {
    case CONFIG_ORIGIN_ONE_BROKER:
        return CONFIG_SOURCE_DYNAMIC_BROKER;
    case CONFIG_ORIGIN_ALL_BROKERS:
        return CONFIG_SOURCE_DYNAMIC_DEFAULT;
    case CONFIG_ORIGIN_DEFAULT:
        return CONFIG_SOURCE_DEFAULT;
    default:
        return CONFIG_SOURCE_STATIC_BROKER;
    }
}

enum status topic_config_effective(const struct config *config,
                                   const struct topic_override *overrides, uint32_t count,
                                   enum config_key key, struct arena *arena, struct view *value,
                                   enum config_source *source)
{
    assert(config != NULL && arena != NULL && value != NULL && source != NULL);
    assert(key >= BROKER_CONFIG_COUNT && key < CONFIG_KEY_COUNT);
    const struct topic_override *override = topic_override_find(overrides, count, key);
    if (override != NULL) {
        *value = override->value;
        *source = CONFIG_SOURCE_TOPIC;
        return STATUS_OK;
    }
    *source = CONFIG_SOURCE_DEFAULT;
    const struct config_synonym *synonym = synonym_in_use(config, key);
    if (synonym == NULL) {
        *value = view_text(config_keys[key].default_text);
        return STATUS_OK;
    }
    *source = source_of(config_origin(config, (enum config_key)synonym->key));
    return synonym_text(config, synonym, arena, value);
}

/* What one resolve reads from. */
struct resolver {
    const struct config *config;
    const struct topic_override *overrides;
    uint32_t count;
};

static int64_t number_of(const struct resolver *from, enum config_key key)
{
    const struct topic_override *override = topic_override_find(from->overrides, from->count, key);
    int64_t number = 0;
    if (override == NULL) {
        const struct config_synonym *synonym = synonym_in_use(from->config, key);
        assert(synonym != NULL);
        return multiplied(config_long(from->config, (enum config_key)synonym->key),
                          synonym->multiplier);
    }
    bool parsed = config_number_parse(override->value, &number);
    assert(parsed);
    return number;
}

/* The text of a key whose synonym is no number. */
static struct view text_of(const struct resolver *from, enum config_key key)
{
    const struct topic_override *override = topic_override_find(from->overrides, from->count, key);
    if (override != NULL) {
        return override->value;
    }
    const struct config_synonym *synonym = synonym_in_use(from->config, key);
    assert(synonym != NULL && synonym->multiplier == 1);
    return config_text(from->config, (enum config_key)synonym->key);
}

static bool policy_has(struct view policy, const char *word)
{
    return memmem(policy.data, policy.length, word, strlen(word)) != NULL;
}

static uint8_t compression_of(struct view text)
{
    static const struct {
        const char *name;
        enum topic_compression code;
    } names[] = {
        {"uncompressed", TOPIC_COMPRESSION_NONE}, {"gzip", TOPIC_COMPRESSION_GZIP},
        {"snappy", TOPIC_COMPRESSION_SNAPPY},     {"lz4", TOPIC_COMPRESSION_LZ4},
        {"zstd", TOPIC_COMPRESSION_ZSTD},         {"producer", TOPIC_COMPRESSION_PRODUCER},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (view_is(text, names[i].name)) {
            return (uint8_t)names[i].code;
        }
    }
    assert(!"a checked compression type");
    return TOPIC_COMPRESSION_PRODUCER;
}

/* Which number goes where. */
struct target {
    uint16_t key;
    uint16_t offset;
    uint8_t bytes;
};

#define TARGET(config_key, field)                                             \
    {                                                                         \
        (uint16_t)(config_key), offsetof(struct topic_settings, field),       \
            sizeof(((struct topic_settings *)NULL)->field)                    \
    }

static const struct target targets[] = {
    TARGET(TOPIC_CONFIG_RETENTION_MS, retention_ms),
    TARGET(TOPIC_CONFIG_RETENTION_BYTES, retention_bytes),
    TARGET(TOPIC_CONFIG_SEGMENT_MS, segment_ms),
    TARGET(TOPIC_CONFIG_SEGMENT_JITTER_MS, segment_jitter_ms),
    TARGET(TOPIC_CONFIG_DELETE_RETENTION_MS, delete_retention_ms),
    TARGET(TOPIC_CONFIG_MIN_COMPACTION_LAG_MS, min_compaction_lag_ms),
    TARGET(TOPIC_CONFIG_MAX_COMPACTION_LAG_MS, max_compaction_lag_ms),
    TARGET(TOPIC_CONFIG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS, timestamp_before_max_ms),
    TARGET(TOPIC_CONFIG_MESSAGE_TIMESTAMP_AFTER_MAX_MS, timestamp_after_max_ms),
    TARGET(TOPIC_CONFIG_FLUSH_MESSAGES, flush_messages),
    TARGET(TOPIC_CONFIG_FLUSH_MS, flush_ms),
    TARGET(TOPIC_CONFIG_FILE_DELETE_DELAY_MS, file_delete_delay_ms),
    TARGET(TOPIC_CONFIG_MAX_MESSAGE_BYTES, max_message_bytes),
    TARGET(TOPIC_CONFIG_MAX_DECOMPRESSED_MESSAGE_BYTES, max_decompressed_bytes),
    TARGET(TOPIC_CONFIG_SEGMENT_BYTES, segment_bytes),
    TARGET(TOPIC_CONFIG_SEGMENT_INDEX_BYTES, segment_index_bytes),
    TARGET(TOPIC_CONFIG_INDEX_INTERVAL_BYTES, index_interval_bytes),
    TARGET(TOPIC_CONFIG_MIN_INSYNC_REPLICAS, min_insync_replicas),
    TARGET(TOPIC_CONFIG_OTTLA_TOPIC_PARTITION_GROUPS, partition_groups),
    TARGET(TOPIC_CONFIG_COMPRESSION_GZIP_LEVEL, gzip_level),
    TARGET(TOPIC_CONFIG_COMPRESSION_LZ4_LEVEL, lz4_level),
    TARGET(TOPIC_CONFIG_COMPRESSION_ZSTD_LEVEL, zstd_level),
};

static void store(const struct resolver *from, const struct target *target,
                  struct topic_settings *settings)
{
    char *at = (char *)settings + target->offset;
    int64_t number = number_of(from, (enum config_key)target->key);
    if (target->bytes == sizeof number) {
        memcpy(at, &number, sizeof number);
        return;
    }
    assert(target->bytes == sizeof(int32_t));
    assert(number >= INT32_MIN && number <= INT32_MAX);
    int32_t small = (int32_t)number;
    memcpy(at, &small, sizeof small);
}

/* internal.segment.bytes is for tests that need segments below the least allowed size. */
static void store_internal(const struct resolver *from, struct topic_settings *settings)
{
    enum config_key key = TOPIC_CONFIG_INTERNAL_SEGMENT_BYTES;
    const struct topic_override *override = topic_override_find(from->overrides, from->count, key);
    int64_t number = 0;
    if (override != NULL && config_number_parse(override->value, &number) && number > 0) {
        settings->segment_bytes = (int32_t)number;
    }
}

void topic_settings_resolve(const struct config *config, const struct topic_override *overrides,
                            uint32_t count, struct topic_settings *settings)
{
    assert(config != NULL && settings != NULL);
    assert(count == 0 || overrides != NULL);
    struct resolver from = {config, overrides, count};
    *settings = (struct topic_settings){0};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        store(&from, &targets[i], settings);
    }
    store_internal(&from, settings);
    struct view policy = text_of(&from, TOPIC_CONFIG_CLEANUP_POLICY);
    settings->compacts = policy_has(policy, "compact");
    settings->deletes = policy_has(policy, "delete");
    settings->compression = compression_of(text_of(&from, TOPIC_CONFIG_COMPRESSION_TYPE));
    struct view type = text_of(&from, TOPIC_CONFIG_MESSAGE_TIMESTAMP_TYPE);
    settings->uses_append_time = view_is(type, "LogAppendTime");
    settings->preallocates = view_is(text_of(&from, TOPIC_CONFIG_PREALLOCATE), "true");
    settings->producer_expire_ms = config_int(config, CONFIG_PRODUCER_ID_EXPIRATION_MS);
    bool parsed = config_real_parse(text_of(&from, TOPIC_CONFIG_MIN_CLEANABLE_DIRTY_RATIO),
                                    &settings->min_cleanable_ratio);
    assert(parsed);
    assert(settings->segment_bytes > 0 && settings->partition_groups > 0);
}

enum status topic_overrides_check(const struct config *config,
                                  const struct topic_override *overrides, uint32_t count,
                                  struct arena *arena, struct view *why)
{
    assert(arena != NULL && why != NULL);
    struct topic_settings settings;
    topic_settings_resolve(config, overrides, count, &settings);
    if (settings.min_compaction_lag_ms > settings.max_compaction_lag_ms) {
        *why = arena_format(arena,
                            "min.compaction.lag.ms (%" PRId64
                            ") must not be above max.compaction.lag.ms (%" PRId64 ")",
                            settings.min_compaction_lag_ms, settings.max_compaction_lag_ms);
        return STATUS_INVALID;
    }
    const struct topic_override *remote =
        topic_override_find(overrides, count, TOPIC_CONFIG_REMOTE_STORAGE_ENABLE);
    if (remote != NULL && view_is(remote->value, "true")) {
        *why = VIEW_LITERAL("remote.storage.enable must be false: tiered storage is not offered");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}
