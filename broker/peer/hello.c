/* Both sides of a hello check that they mean each other: another cluster's node at that address, or
 * a second process of the same node, would take part where it must not. */
#include "broker/peer/hello.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "broker/peer/link.h"
#include "broker/server/broker.h"
#include "messages/errors.h"

void hello_write(const struct shard *shard, int32_t wanted_id, struct buffer *body)
{
    const struct broker *broker = shard->broker;
    struct peer_hello_request hello = {
        .cluster_id = view_text(broker->cluster_id),
        .node_id = broker->node_id,
        .incarnation = broker->self.incarnation,
        .shard = shard->number,
        .shard_count = broker->shard_count,
        .wanted_id = wanted_id,
        .host = view_text(broker->own_place.host),
        .port = broker->own_place.port,
    };
    enum status status = message_encode_to(&peer_hello_request_type, 0, &hello, body);
    assert(status == STATUS_OK);
    (void)status;
}

const char *hello_objection(const struct broker *broker, int32_t wanted_id,
                            const struct peer_hello_response *answer, char *text, size_t size)
{
    bool is_ours = view_is(answer->cluster_id, broker->cluster_id);
    if (is_ours && answer->node_id != wanted_id && answer->node_id != broker->node_id) {
        snprintf(text, size, "node %d answers there", answer->node_id);
        return text;
    }
    if (answer->error_code != KAFKA_NONE) {
        snprintf(text, size, "it refused this node: %.*s (%s)", VIEW_PRINT(answer->error_message),
                 kafka_error_name(answer->error_code));
        return text;
    }
    if (!is_ours) {
        snprintf(text, size, "it belongs to cluster %.*s, not to %s",
                 VIEW_PRINT(answer->cluster_id), broker->cluster_id);
        return text;
    }
    return NULL;
}

bool hello_may_change(const struct peer_link *link, const struct peer_hello_response *answer)
{
    /* After a quick restart the other node may not know yet that the process before is gone. */
    return answer->error_code == KAFKA_DUPLICATE_BROKER_REGISTRATION ||
           places_is_meeting(&link->places);
}
