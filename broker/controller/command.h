/* What the commands share: which brokers there are, group ids to give out, names named twice.
 * For the controller's own files alone. */
#ifndef OTTLA_BROKER_CONTROLLER_COMMAND_H
#define OTTLA_BROKER_CONTROLLER_COMMAND_H

#include "broker/controller/controller.h"

struct command {
    const struct controller *controller;
    struct arena *arena;
    struct record_list *records;
    const int32_t *brokers; /* none where all are cordoned; neighbours are of different racks where
                             * they can be */
    const int32_t *racks;   /* for each of them: the number of its rack, from 0 */
    int broker_count;
    const int32_t *absent;  /* fenced, or stopping: taken only where the others do not suffice */
    int absent_count;
    const int32_t *cordoned; /* take no new replicas (KIP-1066); in none of the other lists */
    int cordoned_count;
    int brokers_to_come;    /* that are not registered yet; only internal topics wait for them */
    uint64_t next_group;    /* the next group id to give out */
};

/* No refusal. */
#define REFUSAL_NONE ((struct refusal){KAFKA_NONE, {NULL, 0}})

/* Looks up the brokers: the registered ones that are there, or this node alone while none is.
 * STATUS_LIMIT when the arena is full. */
MUST_USE enum status command_start(struct command *command, const struct controller *controller,
                                   struct arena *arena, struct record_list *records);

/* Whether the broker is registered, or this node alone. */
bool command_has_broker(const struct command *command, int32_t id);

/* Whether it is there as well: neither fenced, nor stopping, nor cordoned. */
bool command_can_take(const struct command *command, int32_t id);

/* Whether it is registered, and takes no new replicas. */
bool command_is_cordoned(const struct command *command, int32_t id);

enum key_mark {
    KEY_ONCE,  /* there is no other like it */
    KEY_FIRST, /* the first of several */
    KEY_LATER  /* one of the others */
};

/* What a client named, with those found that it named twice. */
struct key_set {
    const struct view *keys;
    const struct view **sorted;
    uint8_t *marks; /* enum key_mark, for each key */
    size_t count;
};

/* Sorts and marks the keys, which must stay alive. STATUS_LIMIT when the arena is full. */
MUST_USE enum status key_set_make(struct arena *arena, const struct view *keys, size_t count,
                                  struct key_set *set);

/* The place of a key like this one; `count` when there is none. */
size_t key_set_find(const struct key_set *set, struct view key);

#endif
