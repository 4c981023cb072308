/* One configuration value: text in, checked and typed value out. The same rules serve the
 * configuration file, the environment and what clients send in CreateTopics.
 *
 * What Kafka's ConfigDef accepts is accepted: surrounding blanks are dropped, booleans in any case,
 * lists with blanks around their commas. Everything else is refused with the reason. */
#ifndef OTTLA_BROKER_CONFIG_VALUE_H
#define OTTLA_BROKER_CONFIG_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/view.h"
#include "broker/config/keys.h"

struct config_value {
    struct view text;    /* as DescribeConfigs shows it; the null view when there is no value */
    struct view *items;  /* of a list */
    uint32_t item_count;
    bool truth;          /* of a boolean */
    int64_t number;      /* of an int, short or long */
    double real;         /* of a double */
};

/* Reads `text` as a value of `key`. Texts of the value point into `text`, into constants or into
 * the arena. A null text gives the null value, always allowed here. STATUS_INVALID: *why is one
 * sentence "Invalid value V for K: must be ..." in the arena. STATUS_LIMIT: the arena is full. */
MUST_USE enum status config_value_parse(enum config_key key, struct view text, struct arena *arena,
                                        struct config_value *value, struct view *why);

/* Reads a whole number with an optional sign; false when it is none or does not fit. */
bool config_number_parse(struct view text, int64_t *number);

/* Reads a finite decimal number; false when it is none. */
bool config_real_parse(struct view text, double *real);

/* The text without blanks (space and below) on both sides. */
struct view config_trim(struct view text);

/* Splits at commas and trims; an empty text has no items. STATUS_LIMIT when the arena is full. */
MUST_USE enum status config_list_split(struct view text, struct arena *arena, struct view **items,
                                       uint32_t *count);

/* The key of that scope with exactly this name; false when there is none. */
bool config_key_find(enum config_scope scope, struct view name, enum config_key *key);

#endif
