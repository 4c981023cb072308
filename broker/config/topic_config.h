/* A topic's configuration: what it sets itself (overrides), and what that makes together with the
 * broker's keys and the defaults.
 *
 * The data path reads `struct topic_settings`, plain numbers; texts are only for those who ask. */
#ifndef OTTLA_BROKER_CONFIG_TOPIC_CONFIG_H
#define OTTLA_BROKER_CONFIG_TOPIC_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include "broker/config/config.h"

/* The longest value, in bytes: the longest string that a metadata record can hold. */
enum { TOPIC_VALUE_LONGEST = INT16_MAX };

/* One value that a topic (or group) sets itself, checked and in the form in which it is shown. */
struct topic_override {
    enum config_key key;
    struct view value;
};

/* Numbers of Kafka's CompressionType; producer keeps what the producer sent. */
enum topic_compression {
    TOPIC_COMPRESSION_NONE = 0,
    TOPIC_COMPRESSION_GZIP = 1,
    TOPIC_COMPRESSION_SNAPPY = 2,
    TOPIC_COMPRESSION_LZ4 = 3,
    TOPIC_COMPRESSION_ZSTD = 4,
    TOPIC_COMPRESSION_PRODUCER = 5
};

struct topic_settings {
    int64_t retention_ms;             /* -1 for ever */
    int64_t retention_bytes;          /* of one partition; -1 without limit */
    int64_t segment_ms;
    int64_t segment_jitter_ms;
    int64_t delete_retention_ms;      /* how long a tombstone stays in a compacted log */
    int64_t min_compaction_lag_ms;
    int64_t max_compaction_lag_ms;
    int64_t timestamp_before_max_ms;  /* how old a record's time may be */
    int64_t timestamp_after_max_ms;   /* how far ahead it may be */
    int64_t flush_messages;
    int64_t flush_ms;
    int64_t file_delete_delay_ms;
    double min_cleanable_ratio;
    int32_t max_message_bytes;
    int32_t max_decompressed_bytes;   /* of one batch */
    int32_t segment_bytes;
    int32_t segment_index_bytes;
    int32_t index_interval_bytes;
    int32_t min_insync_replicas;
    int32_t partition_groups;         /* cap when partitions are made */
    int32_t gzip_level;
    int32_t lz4_level;
    int32_t zstd_level;
    int32_t producer_expire_ms;       /* producer.id.expiration.ms: of all topics */
    uint8_t compression;              /* enum topic_compression */
    bool uses_append_time;            /* message.timestamp.type=LogAppendTime */
    bool compacts;                    /* cleanup.policy has compact */
    bool deletes;                     /* cleanup.policy has delete */
    bool preallocates;
};

/* Reads one override as a client gives it. STATUS_NOT_FOUND: no topic has such a key.
 * STATUS_INVALID: the value is null, wrong or too long; *why is a sentence for the client.
 * STATUS_LIMIT: the arena is full. */
MUST_USE enum status topic_override_check(struct view name, struct view value, struct arena *arena,
                                          struct topic_override *override, struct view *why);

/* The settings that checked overrides make with the broker's configuration. */
void topic_settings_resolve(const struct config *config, const struct topic_override *overrides,
                            uint32_t count, struct topic_settings *settings);

/* Whether the values together make sense; STATUS_INVALID with a sentence in *why when not. */
MUST_USE enum status topic_overrides_check(const struct config *config,
                                           const struct topic_override *overrides, uint32_t count,
                                           struct arena *arena, struct view *why);

/* A key's value for the topic or group, and where it comes from: the override, else the first
 * broker key of its synonyms that is not null, else the default. The text lives in the arena, the
 * configuration or the override. STATUS_LIMIT when the arena is full. */
MUST_USE enum status topic_config_effective(const struct config *config,
                                            const struct topic_override *overrides, uint32_t count,
                                            enum config_key key, struct arena *arena,
                                            struct view *value, enum config_source *source);

/* The override of that key; null when there is none. */
const struct topic_override *topic_override_find(const struct topic_override *overrides,
                                                 uint32_t count, enum config_key key);

#endif
