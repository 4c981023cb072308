/* Topics that come into being because somebody asks for them: auto.create.topics.enable, and the
 * internal topics. All names of a request are made together by one command of the node that leads
 * the metadata log, whose configuration says how.
 */
#ifndef OTTLA_BROKER_API_AUTO_CREATE_H
#define OTTLA_BROKER_API_AUTO_CREATE_H

#include <stdint.h>

#include "broker/api/controller_call.h"
#include "broker/api/request.h"

struct auto_create {
    struct controller_call call;
    struct request *request;
    struct view *names;
    int16_t *errors;              /* one for each name */
    int32_t count;
    int32_t capacity;
    void (*done)(struct auto_create *create);
};

/* Starts with no names. Memory comes from the request. */
void auto_create_begin(struct auto_create *create, struct request *request);

/* Adds a name that was not found. It must live as long as the request. */
void auto_create_add(struct auto_create *create, struct view name);

/* Makes what was added; `done` runs on the request's home shard, at once when nothing was. */
void auto_create_go(struct auto_create *create, void (*done)(struct auto_create *create));

/* After that, for a name that is still not there: why. A name that was not added is
 * UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION when no topic may have it. */
int16_t auto_create_error(const struct auto_create *create, struct view name);

#endif
