/* Happy path: elected, everything before is applied, offsets go on at the ends of the logs, the
 * other nodes are told. When leadership is lost, what was given offsets and is not committed is
 * forgotten: it may still commit, and is then applied like anything else. */
#include "broker/group/group_role.h"

#include <assert.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/planted.h"
#include "broker/group/confirm.h"
#include "broker/group/directory.h"
#include "broker/group/group_move.h"
#include "broker/group/in_sync.h"
#include "broker/group/install.h"
#include "broker/group/partition.h"
#include "broker/group/proposals.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"

void group_tell_role(struct group *group)
{
    struct broker *broker = group->shard->broker;
    int32_t leader = group->leads ? broker->node_id : raft_leader(group->raft);
    if (!group->leads && leader == broker->node_id) {
        leader = -1; /* elected, but not ready to serve */
    }
    int32_t epoch = (int32_t)raft_term(group->raft);
    struct group_leader known = directory_get(&broker->directory, group->id);
    if (known.epoch > epoch) {
        return; /* a later leader has told itself, and this node is no member any more */
    }
    bool is_other = known.leader >= 0 && known.leader != broker->node_id;
    if (leader < 0 && known.epoch == epoch && is_other) {
        return; /* that this replica does not hear it, as one that has left, changes nothing */
    }
    directory_set(&broker->directory, group->id, leader, epoch);
}

void group_started(struct group *group)
{
    if (group->starting) {
        group->starting = false;
        replicas_group_started(group->shard->replicas);
    }
}

static void begin_leading(struct group *group)
{
    assert(!group->leads && list_is_empty(&group->proposals));
    group->leads = true;
    log_debug("group", "group %" PRIu64 " is led here in term %" PRIu64, group->id,
              raft_term(group->raft));
    for (int32_t i = 0; i < group->partition_count; i++) {
        struct partition *partition = group->partitions[i];
        int64_t end = partition_log_end(partition->log);
        bool keeps = planted(PLANT_OFFSETS_KEPT) && partition->next_offset > end;
        partition->next_offset = keeps ? partition->next_offset : end;
        partition->lead_offset = partition->next_offset;
        if (!planted(PLANT_PROPOSED_KEPT)) {
            producer_state_forget_from(partition_log_producers(partition->log),
                                       partition->next_offset);
        }
    }
    group_move_note(group); /* the leader before may have begun what is wanted no more */
    group_tell_role(group);
    in_sync_begin(group);
    peers_tell_leader(group->shard, group->id, (int32_t)raft_term(group->raft),
                      in_sync_lag(group));
    if (group->machine != NULL) {
        group->machine->led(group, true);
    }
    group_started(group);
}

void group_lead_when_ready(struct group *group)
{
    bool is_leader = raft_role(group->raft) == RAFT_LEADER && group->storage == STATUS_OK;
    if (is_leader && !group->leads && !group->closed &&
        group->applied_index >= group->lead_index) {
        begin_leading(group);
    }
}

/* A later epoch will tell who leads itself; without one, as when no majority is there, nobody
 * might for long. */
static void tell_end(const struct group *group)
{
    int32_t epoch = (int32_t)raft_term(group->raft);
    struct group_leader known = directory_get(&group->shard->broker->directory, group->id);
    if (group->leads && known.leader == group->shard->broker->node_id && known.epoch == epoch) {
        peers_tell_end(group->shard, group->id, epoch);
    }
}

void group_stop_leading(struct group *group)
{
    bool led = group->leads;
    tell_end(group);
    group->leads = false;
    group_tell_role(group);
    if (!led) {
        return;
    }
    in_sync_end(group);
    for (int32_t i = 0; i < group->partition_count; i++) {
        struct partition *partition = group->partitions[i];
        if (!planted(PLANT_PROPOSED_KEPT)) {
            producer_state_drop_proposed(partition_log_producers(partition->log), 0);
        }
        partition_wake(partition);
    }
    if (group->machine != NULL) {
        group->machine->led(group, false);
    }
    proposals_fail(group, group->storage == STATUS_OK ? STATUS_CLOSED : group->storage);
    confirms_end(group);
}

void group_role_changed(struct group *group, enum raft_role role)
{
    log_debug("group", "group %" PRIu64 ": role %d in term %" PRIu64 ", leader %d", group->id,
              (int)role, raft_term(group->raft), raft_leader(group->raft));
    if (role == RAFT_LEADER) {
        group->lead_index = raft_last_index(group->raft);
        group_tell_role(group); /* nobody leads yet, until all that came before is applied */
        return;
    }
    group_stop_leading(group);
    install_cancel(group);
    if (raft_leader(group->raft) != RAFT_NO_NODE) {
        group_started(group);
    }
}
