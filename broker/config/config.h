/* The broker's configuration: every key of keys.tsv with its value and where the value came from.
 * Read once at the start, never changed after, so every thread may read it without a lock. What is
 * set while the broker runs makes another one of it (config_with).
 *
 * A key is looked for in the overrides (--override key=value), the environment, the properties file
 * and the defaults; the first that has it wins. See docs/configuration.md. */
#ifndef OTTLA_BROKER_CONFIG_CONFIG_H
#define OTTLA_BROKER_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/view.h"
#include "broker/config/keys.h"

enum { CONFIG_WHY_BYTES = 1024 };

/* Where a value came from, weakest first. */
enum config_origin {
    CONFIG_ORIGIN_DEFAULT,
    CONFIG_ORIGIN_FILE,
    CONFIG_ORIGIN_ENVIRONMENT,
    CONFIG_ORIGIN_OVERRIDE,
    CONFIG_ORIGIN_ALL_BROKERS, /* set while the brokers run, for all of them */
    CONFIG_ORIGIN_ONE_BROKER   /* and for this one */
};

/* A value that was set while the broker runs. */
struct config_setting {
    enum config_key key;
    enum config_origin origin;
    struct view value;
};

struct config_sources {
    const char *file_path;         /* properties file; null without one */
    char *const *environment;      /* as in environ; null without one */
    const char *const *overrides;  /* "key=value" */
    int override_count;
};

struct config;

/* Reads all sources. On failure `why` has one line for the operator: STATUS_INVALID for a wrong
 * value or syntax, STATUS_IO when the file cannot be read, STATUS_LIMIT when it is over 1 MiB.
 * Release the result with config_free. */
MUST_USE enum status config_load(const struct config_sources *sources, struct config **config,
                                 char why[CONFIG_WHY_BYTES]);

/* A copy of the configuration with these values in place of its own, of several for one key that
 * of the strongest origin. One that this version does not take is left out. `base` must outlive it,
 * the settings need not. Release it with config_free. */
struct config *config_with(const struct config *base, const struct config_setting *settings,
                           size_t count);

/* Releases the configuration and every view that came out of it; null is allowed. */
void config_free(struct config *config);

/* Says once, at info level, which names were not known, and which were left out on purpose. */
void config_log_notes(const struct config *config);

/* Typed values. The key must be one of the broker scope and of that type, and not null. */
bool config_bool(const struct config *config, enum config_key key);
int32_t config_int(const struct config *config, enum config_key key); /* also type short */
int64_t config_long(const struct config *config, enum config_key key); /* also int and short */
double config_double(const struct config *config, enum config_key key);

/* The items of a list, none when it is null or empty; they live as long as the configuration. */
const struct view *config_list(const struct config *config, enum config_key key, uint32_t *count);

/* The text of a value of any type, as DescribeConfigs shows it; the null view when it is null. Ends
 * with a zero byte that is not counted. */
struct view config_text(const struct config *config, enum config_key key);

/* The same as a C string; null when the value is null. */
const char *config_string(const struct config *config, enum config_key key);

/* Whether the key has a value other than null. */
bool config_has(const struct config *config, enum config_key key);

/* Where the value came from. */
enum config_origin config_origin(const struct config *config, enum config_key key);

/* The value of a name that is no key (advertised.host.name, listener.name.x.y...); null view when
 * no source has it. */
struct view config_extra(const struct config *config, const char *name);

/* The data directories: log.dirs, or log.dir when that is not set; at least one. */
const struct view *config_data_directories(const struct config *config, uint32_t *count);

/* Whether process.roles has the role ("broker", "controller"). */
bool config_has_role(const struct config *config, const char *role);

#endif
