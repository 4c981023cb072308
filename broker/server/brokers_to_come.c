/* The voters are held against the registrations. Nothing can fail. */
#include "broker/server/brokers_to_come.h"

#include <assert.h>

#include "broker/peer/liveness.h"
#include "broker/server/broker.h"
#include "io/clock.h"

static bool is_registered(const struct image *image, int32_t node)
{
    for (int i = 0; i < image_broker_count(image); i++) {
        if (image_broker(image, i)->broker_id == node) {
            return true;
        }
    }
    return false;
}

/* Whoever was not heard yet, or was not for long, may be a broker. */
static bool is_no_broker(const struct broker *broker, int32_t node, uint64_t now_ms)
{
    return node != broker->node_id &&
           liveness_known_ms(liveness_find(&broker->liveness, node), now_ms) >= BROKERS_TO_COME_MS;
}

int brokers_to_come(const struct broker *broker, const struct image *image)
{
    int count;
    int to_come = 0;
    uint64_t now_ms = clock_monotonic_ms();
    const struct quorum_voter *voters = image_voters(image, &count);
    assert(broker->config != NULL);
    if (!broker->in_cluster || !config_has_role(broker->config, "broker")) {
        return 0;
    }
    if (count == 0) {
        voters = broker->voters;
        count = broker->voter_count;
    }
    for (int i = 0; i < count; i++) {
        int32_t node = voters[i].node_id;
        to_come += !is_registered(image, node) && !is_no_broker(broker, node, now_ms) ? 1 : 0;
    }
    return to_come;
}
