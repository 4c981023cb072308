/* The one table of what the broker serves: API key and handler. The versions are those of
 * protocol/api_table.h: what a stock Kafka 4.4 broker offers for that key. Dispatch and ApiVersions
 * come from here; a key is listed only when it is served right. Private keys, of requests between
 * nodes, are served to connections that said hello, and never listed.
 */
#ifndef OTTLA_BROKER_API_SERVICE_H
#define OTTLA_BROKER_API_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api;
struct request;

struct service {
    int16_t key;
    /* Takes the request on its connection's shard, with its message decoded; ends in
     * request_answer, perhaps much later and on another shard. */
    void (*handle)(struct request *request);
    /* Not null: only the node that leads the metadata log can run it, so that others pass it on
     * (broker/api/forward.h). Answers it with this error when that cannot be done. */
    void (*refuse)(struct request *request, int16_t error);
    /* Not null: looks at what can be told on the node alone that the client asks, before all else.
     * False: it has answered. */
    bool (*check)(struct request *request);
    bool reads; /* it changes nothing: where it is passed on to may be asked again */
};

/* Null when the key is not served. */
const struct service *service_find(int16_t key);

/* Whether the key is served on a listener of controllers: besides what nodes say to each other,
 * what is about the nodes themselves, settings and moves: what tools ask with
 * --bootstrap-controller. */
bool service_for_controllers(int16_t key);

/* Whether the key is served on all other listeners: as on a stock broker's. */
bool service_for_brokers(int16_t key);

/* The last version that is served: the one that a stock broker lists, if it lists the key. */
int16_t service_last_version(const struct api *api);

/* What may be asked inside the cluster: what is passed on to the leader of the metadata log, and
 * what nodes alone ask of it. Null when there is none. */
const struct service *service_find_inside(int16_t key);

/* The table, in order of keys. */
const struct service *service_table(size_t *count);

#endif
