/* PeerConfirm: a node that lost its part of a group asks whether this one leads it. That node
 * answers no message of the group meanwhile (group_loss.h), so that the majority which confirms it
 * is one of others. */
#include <assert.h>

#include "broker/api/fan_out.h"
#include "broker/api/handlers.h"
#include "broker/group/confirm.h"
#include "broker/group/replicas.h"
#include "messages/errors.h"
#include "messages/peer.h"
#include "raft/raft.h"

struct confirm_part {
    struct part part;
    struct confirm confirm;
    struct shard *shard;         /* of the group */
    int64_t term;
    int64_t last_index;
};

static void still_leads(struct confirm *confirm, bool leads)
{
    struct confirm_part *part = container_of(confirm, struct confirm_part, confirm);
    struct group *group = replicas_group(part->shard->replicas, part->part.group_id);
    assert(part->part.error == KAFKA_NONE);
    if (leads && group != NULL) {
        part->term = (int64_t)raft_term(group->raft);
        part->last_index = (int64_t)raft_last_index(group->raft);
    } else {
        part->part.error = KAFKA_NOT_LEADER_OR_FOLLOWER;
    }
    part_done(part->shard, &part->part);
}

static void run(struct shard *shard, struct part *base)
{
    struct confirm_part *part = container_of(base, struct confirm_part, part);
    struct group *group = replicas_group(shard->replicas, base->group_id);
    part->shard = shard;
    part->confirm.done = still_leads;
    if (group == NULL) {
        still_leads(&part->confirm, false);
    } else {
        group_confirm(group, &part->confirm);
    }
}

static void done(struct request *request)
{
    const struct confirm_part *part = request->state;
    assert(part->term > 0 || part->part.error != KAFKA_NONE);
    struct peer_confirm_response response = {
        .error_code = part->part.error, .term = part->term, .last_index = part->last_index};
    request_answer(request, request->home, &response);
}

void peer_confirm_handle(struct request *request)
{
    const struct peer_confirm_request *message = request->message;
    struct confirm_part *part = request_take(request, 1, sizeof *part);
    struct fan_out *fan = fan_out_begin(request, run, done);
    request->state = part;
    fan_out_add_group(fan, &part->part, (uint64_t)message->group);
    fan_out_go(fan);
}
