/* Requests for the leaders of partitions, held back while a new leader is being elected.
 *
 * A client that loses its connection asks another node at once who leads now. An answer without a
 * leader, or with the one that is gone, makes it wait for its own timer (librdkafka: up to a
 * second), though the new leader is known some hundredths of a second later. So the answer waits
 * for it, for LEADER_WAIT_MS at most, and only where most replicas live. Other requests of that
 * connection wait behind it, as the order of answers wants.
 */
#ifndef OTTLA_BROKER_API_LEADER_WAIT_H
#define OTTLA_BROKER_API_LEADER_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "broker/api/request.h"
#include "broker/controller/image.h"

enum { LEADER_WAIT_MS = 400 };

struct leader_wait {
    struct list_link link;       /* in the shard's */
    struct request *request;
    uint64_t deadline_ms;        /* monotonic */
    bool (*lacks_leader)(struct request *request); /* leader_is_coming, of what it asks for */
    void (*go)(struct request *request);
};

/* Whether the group's leader is lost, or perhaps lost, and its replicas can elect another one. */
bool leader_is_coming(const struct request *request, const struct partition_group *group);

/* Runs wait->go(request) as soon as wait->lacks_leader(request) is false, perhaps at once. The
 * memory lives as long as the request; link and deadline_ms are set here. */
void leader_wait_begin(struct leader_wait *wait);

#endif
