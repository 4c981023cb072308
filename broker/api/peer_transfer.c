/* PeerTransfer: this node leads the groups, and another one shall. Each group is asked on its
 * shard; whether the other node then takes over is seen by who asks from what it tells. */
#include <assert.h>

#include "broker/api/fan_out.h"
#include "broker/api/handlers.h"
#include "broker/group/group_move.h"
#include "broker/group/replicas.h"
#include "messages/errors.h"
#include "messages/peer_placement.h"

struct transfer_part {
    struct part part;
    int32_t node;
};

static void run(struct shard *shard, struct part *base)
{
    struct transfer_part *part = container_of(base, struct transfer_part, part);
    struct group *group = replicas_group(shard->replicas, base->group_id);
    base->error = group == NULL ? KAFKA_NOT_LEADER_OR_FOLLOWER : group_hand_to(group, part->node);
    part_done(shard, base);
}

static void done(struct request *request)
{
    const struct peer_transfer_request *message = request->message;
    const struct transfer_part *parts = request->state;
    struct peer_transfer_response response = {.error_codes_count = message->groups_count};
    assert(parts != NULL);
    response.error_codes = request_take(request, (size_t)message->groups_count + 1,
                                        sizeof *response.error_codes);
    for (int32_t i = 0; i < message->groups_count; i++) {
        response.error_codes[i] = parts[i].part.error;
    }
    request_answer(request, request->home, &response);
}

void peer_transfer_handle(struct request *request)
{
    const struct peer_transfer_request *message = request->message;
    assert(message->groups_count >= 0); /* never null on the wire */
    struct transfer_part *parts =
        request_take(request, (size_t)message->groups_count + 1, sizeof *parts);
    struct fan_out *fan = fan_out_begin(request, run, done);
    request->state = parts;
    for (int32_t i = 0; i < message->groups_count; i++) {
        parts[i].node = message->groups[i].node_id;
        fan_out_add_group(fan, &parts[i].part, (uint64_t)message->groups[i].group);
    }
    fan_out_go(fan);
}
