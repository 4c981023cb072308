/* What one configuration key is: its type, default, allowed values and where it may be set. The
 * table itself is generated from keys.tsv into broker/config/keys.h; nothing here changes at run
 * time. The numbers of types and sources are those of DescribeConfigs (KIP-226, KIP-569). */
#ifndef OTTLA_BROKER_CONFIG_KEY_INFO_H
#define OTTLA_BROKER_CONFIG_KEY_INFO_H

#include <stdbool.h>
#include <stdint.h>

/* DescribeConfigsResponse.configType. */
enum config_type {
    CONFIG_TYPE_BOOLEAN = 1,
    CONFIG_TYPE_STRING = 2,
    CONFIG_TYPE_INT = 3,
    CONFIG_TYPE_SHORT = 4,
    CONFIG_TYPE_LONG = 5,
    CONFIG_TYPE_DOUBLE = 6,
    CONFIG_TYPE_LIST = 7,
    CONFIG_TYPE_CLASS = 8,
    CONFIG_TYPE_PASSWORD = 9
};

/* DescribeConfigsResponse.configSource. */
enum config_source {
    CONFIG_SOURCE_TOPIC = 1,
    CONFIG_SOURCE_DYNAMIC_BROKER = 2,
    CONFIG_SOURCE_DYNAMIC_DEFAULT = 3,
    CONFIG_SOURCE_STATIC_BROKER = 4,
    CONFIG_SOURCE_DEFAULT = 5
};

/* What kind of resource carries the key. */
enum config_scope {
    CONFIG_SCOPE_BROKER,
    CONFIG_SCOPE_TOPIC,
    CONFIG_SCOPE_GROUP,
    CONFIG_SCOPE_CLIENT_METRICS,
    CONFIG_SCOPE_QUOTA
};

/* When a new value takes effect. */
enum config_update {
    CONFIG_UPDATE_RESTART,      /* read-only while the broker runs */
    CONFIG_UPDATE_PER_BROKER,   /* on one broker */
    CONFIG_UPDATE_CLUSTER_WIDE, /* on one broker or on all */
    CONFIG_UPDATE_ALWAYS        /* topics, groups, subscriptions, quotas */
};

/* How a value is checked once its type fits. */
enum config_check {
    CONFIG_CHECK_NONE,
    CONFIG_CHECK_RANGE,            /* low..high, or the one value `or_value` when `has_or` */
    CONFIG_CHECK_CHOICES,          /* one of the choices; for a list, each element */
    CONFIG_CHECK_CHOICES_ANY_CASE, /* the same, upper and lower case alike */
    CONFIG_CHECK_NOT_EMPTY,        /* a text of at least one character */
    CONFIG_CHECK_THROTTLED         /* "*", or a list of partition:broker */
};

/* A broker key that gives a topic's or group's value when that has none of its own. */
struct config_synonym {
    uint16_t key;       /* enum config_key */
    int32_t multiplier; /* 60000 for a key in minutes */
};

struct config_key_info {
    const char *name;
    const char *default_text;  /* null when the default is null or the key has none */
    const char *documentation; /* whole sentences, or null */
    const char *allowed;       /* how the check reads in an error message; null without one */
    const char *const *choices; /* null-terminated */
    const struct config_synonym *synonyms;
    double low;
    double high;
    int32_t or_value;
    uint8_t synonym_count;
    uint8_t type;       /* enum config_type */
    uint8_t scope;      /* enum config_scope */
    uint8_t update;     /* enum config_update */
    uint8_t check;      /* enum config_check */
    uint8_t importance; /* 0 high, 1 medium, 2 low */
    bool has_or;
    bool internal;      /* accepted, but not listed by DescribeConfigs */
    bool required;      /* there is no default */
};

#endif
