/* One list for each shard. A request leaves it when the broker serves, or when its client goes. */
#include "broker/api/parking.h"

#include <assert.h>
#include <stdatomic.h>

#include "broker/net/connection.h"
#include "broker/server/broker.h"
#include "messages/api_keys.h"
#include "protocol/api_table.h"

static void client_gone(struct request *request)
{
    assert(list_contains(&request->parked));
    list_remove(&request->parked);
    request_finish_silently(request, request->home, false);
}

/* Who votes is asked when there is no leader yet, and by those whom that one needs. */
static bool is_early(const struct request *request)
{
    const struct connection *connection = request->connection;
    bool is_for_voters = request->api_key == API_DESCRIBE_CLUSTER && connection != NULL &&
                         connection->listener != NULL && connection->listener->is_controller;
    return is_for_voters || api_is_private(request->api_key) ||
           request->api_key == API_API_VERSIONS;
}

bool parking_takes(struct request *request)
{
    struct shard *shard = request->home;
    if (is_early(request) || atomic_load_explicit(&shard->broker->serving, memory_order_relaxed)) {
        return false;
    }
    request->cancel = client_gone;
    list_push_back(&shard->connections->parked, &request->parked);
    return true;
}

void parking_end(struct shard *shard)
{
    struct list_link *link;
    assert(atomic_load(&shard->broker->serving));
    while ((link = list_pop_front(&shard->connections->parked)) != NULL) {
        struct request *request = container_of(link, struct request, parked);
        request->cancel = NULL;
        request_start(request);
    }
}
