/* Environment variables of the usual container images as configuration keys. Owns nothing.
 *
 * Happy path: an alias from the table, or the prefix is cut off and the rest is turned into a key.
 * There is nothing to fail but the arena's limit: what is not understood is left to the caller. */
#include "broker/config/environment.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

struct name_pair {
    const char *name;
    const char *other;
};

/* Variables whose key does not follow from their name. */
static const struct name_pair aliases[] = {
    {"CLUSTER_ID", "cluster.id"},
    {"KAFKA_KRAFT_CLUSTER_ID", "cluster.id"},
    {"KAFKA_LOG4J_ROOT_LOGLEVEL", "ottla.log.level"},
};

/* Names, or beginnings of names when they end in a dot, that mean nothing here. */
static const struct name_pair excuses[] = {
    {"zookeeper.", "there is no ZooKeeper to connect to, this broker stands alone"},
    {"heap.opts", ""},
    {"opts", ""},
    {"jmx.", ""},
    {"log4j.", ""},
    {"gc.", ""},
    {"jvm.", ""},
    {"confluent.", ""},
    {"advertised.host.name", ""},
    {"advertised.port", ""},
    {"create.topics", ""},
    {"home", ""},
    {"version", ""},
    {"debug", ""},
    {"user", ""},
    {"group", ""},
    {"volume.dir", ""},
    {"conf.dir", ""},
    {"conf.file", ""},
    {"data.dir", ""},
};

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* x_y -> x.y, x__y -> x_y, x___y -> x-y; longer runs are made of threes from the left. */
static struct view key_of(struct view name, struct arena *arena)
{
    uint8_t *key = arena_take(arena, name.length + 1, 1);
    if (key == NULL) {
        return VIEW_NULL;
    }
    size_t length = 0;
    for (size_t i = 0; i < name.length;) {
        size_t run = 0;
        while (run < 3 && i + run < name.length && name.data[i + run] == '_') {
            run++;
        }
        key[length++] = run == 0 ? (uint8_t)tolower(name.data[i]) : (uint8_t)("._-"[run - 1]);
        i += run == 0 ? 1 : run;
    }
    assert(length <= name.length);
    return (struct view){key, length};
}

static const char *alias_of(struct view name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (view_is(name, aliases[i].name)) {
            return aliases[i].other;
        }
    }
    return NULL;
}

enum status environment_key(const char *variable, struct arena *arena, struct view *key,
                            struct view *value)
{
    assert(variable != NULL && arena != NULL);
    assert(key != NULL && value != NULL);
    const char *equals = strchr(variable, '=');
    if (equals == NULL) {
        return STATUS_NOT_FOUND;
    }
    struct view name = {(const uint8_t *)variable, (size_t)(equals - variable)};
    *value = view_text(equals + 1);
    const char *alias = alias_of(name);
    if (alias != NULL) {
        *key = view_text(alias);
        return STATUS_OK;
    }
    const char *prefix = starts_with(variable, "KAFKA_CFG_") ? "KAFKA_CFG_" : "KAFKA_";
    size_t skip = strlen(prefix);
    if (!starts_with(variable, prefix) || name.length <= skip) {
        return STATUS_NOT_FOUND;
    }
    *key = key_of(view_slice(name, skip, name.length - skip), arena);
    return key->data == NULL ? STATUS_LIMIT : STATUS_OK;
}

const char *environment_excuse(struct view key)
{
    for (size_t i = 0; i < sizeof excuses / sizeof *excuses; i++) {
        size_t length = strlen(excuses[i].name);
        bool is_start = excuses[i].name[length - 1] == '.';
        bool fits = is_start ? key.length > length : key.length == length;
        if (fits && memcmp(key.data, excuses[i].name, length) == 0) {
            return excuses[i].other;
        }
    }
    return NULL;
}
