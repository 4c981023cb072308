/* A controller with its image for tests: commands are "committed" by applying their records. */
#ifndef OTTLA_TESTS_UNIT_BROKER_CONTROLLER_WORLD_H
#define OTTLA_TESTS_UNIT_BROKER_CONTROLLER_WORLD_H

#include <check.h>

#include "broker/controller/controller.h"

struct world {
    struct arena arena;
    struct config *config;
    struct image *image;
    struct controller controller;
    struct record_list records;   /* of the last command */
    struct image_changes changes; /* of the last commit */
};

/* Starts with these settings ("key=value", up to a null) and no broker but the node itself. */
void world_start(struct world *world, const char *const *settings);
void world_stop(struct world *world);

/* Registers brokers 1 to `count`. */
void world_add_brokers(struct world *world, int count);

/* Applies the records of the last command and forgets them; world->changes tells what changed. */
void world_commit(struct world *world);

/* Creates a topic and commits. */
void world_create(struct world *world, const char *name, int32_t partitions,
                  int16_t replication);

/* The topic, which must be there. */
struct topic_image *world_topic(struct world *world, const char *name);

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_SETTINGS ((const char *const[]){NULL})

#endif
