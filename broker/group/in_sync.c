/* An array beside the group while it is led here. What a replica has is held against a goal: what
 * the leader had when the replica was last seen to have everything, or for one that lags what was
 * committed a tick ago. Nothing can fail. */
#include "broker/group/in_sync.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/planted.h"
#include "broker/controller/cluster_image.h"
#include "broker/group/directory.h"
#include "broker/group/group_move.h"
#include "broker/group/lag.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "io/clock.h"

struct replica_sync {
    int32_t node;
    bool lags;
    bool is_awaited;             /* keeps up by the word of the leader before, not shown yet */
    uint64_t goal;               /* index that it has to reach */
    uint64_t had_ms;             /* when it had everything; of those that keep up */
};

struct in_sync {
    uint64_t lag;                /* as told */
    uint64_t began_ms;
    int32_t count;
    struct replica_sync replicas[];
};

static bool is_voter(const struct group *group, int32_t node)
{
    struct raft_peer_info peer;
    return raft_peer_info(group->raft, node, &peer) && (peer.flags & RAFT_VOTER) != 0;
}

static uint64_t lag_now(const struct group *group, const struct partition_group *place)
{
    const struct in_sync *in_sync = group->in_sync;
    uint64_t lag = lag_untold(place);
    assert(in_sync->count == place->replica_count);
    for (int32_t i = 0; i < in_sync->count; i++) {
        lag = lag_with(lag, i, in_sync->replicas[i].lags);
    }
    return lag;
}

static void take_over(const struct group *group, const struct in_sync *before,
                      struct replica_sync *replica)
{
    for (int32_t i = 0; i < before->count; i++) {
        if (before->replicas[i].node == replica->node) {
            *replica = before->replicas[i];
            return;
        }
    }
    assert(group->in_sync == before);
}

/* For the replicas that the image names; what is known of those that stay is kept. */
static void make(struct group *group, const struct partition_group *place)
{
    struct broker *broker = group->shard->broker;
    struct in_sync *before = group->in_sync;
    size_t count = (size_t)place->replica_count;
    struct in_sync *made =
        memory_new_zero(1, sizeof *made + count * sizeof made->replicas[0]);
    uint64_t told = lag_of(directory_lag(&broker->directory, group->id), place);
    uint64_t now_ms = clock_monotonic_ms();
    made->count = place->replica_count;
    made->began_ms = before != NULL ? before->began_ms : now_ms;
    for (int32_t i = 0; i < made->count; i++) {
        struct replica_sync *replica = &made->replicas[i];
        int32_t node = place->replicas[i];
        bool is_self = node == broker->node_id;
        bool lags = !is_self && (lag_has(told, i) || !peers_is_alive(broker, node) ||
                                 !is_voter(group, node));
        *replica = (struct replica_sync){.node = node,
                                         .lags = lags,
                                         .is_awaited = !lags && !is_self,
                                         .goal = raft_commit_index(group->raft),
                                         .had_ms = now_ms};
        if (before != NULL) {
            take_over(group, before, replica);
        }
    }
    free(before);
    group->in_sync = made;
    made->lag = lag_now(group, place);
    directory_set_lag(&broker->directory, group->id, made->lag);
}

static void tell(const struct group *group)
{
    peers_tell_leader(group->shard, group->id, (int32_t)raft_term(group->raft),
                      in_sync_lag(group));
}

void in_sync_begin(struct group *group)
{
    const struct partition_group *place = group_place(group);
    assert(group->leads && group->in_sync == NULL);
    if (place != NULL && place->replica_count > 1) {
        make(group, place);
    }
}

void in_sync_end(struct group *group)
{
    free(group->in_sync);
    group->in_sync = NULL;
}

/* One that keeps up has, within the time, all that the leader had. */
static void look_at_good(const struct group *group, struct replica_sync *replica,
                         const struct raft_peer_info *peer, uint64_t now_ms)
{
    if (peer->match_index >= replica->goal) {
        replica->goal = raft_last_index(group->raft);
        replica->had_ms = now_ms;
    } else if (now_ms - replica->had_ms > group->shard->replicas->lag_ms) {
        replica->lags = true;
    }
}

/* The word of the leader before counts until the replica has shown itself, or was to have. */
static void look_at_awaited(const struct group *group, struct replica_sync *replica,
                            const struct raft_peer_info *peer, uint64_t now_ms)
{
    if (peer->state == RAFT_PEER_REPLICATE && peer->match_index >= replica->goal) {
        replica->is_awaited = false;
        look_at_good(group, replica, peer, now_ms);
    } else if (now_ms - group->in_sync->began_ms >= IN_SYNC_AWAIT_MS) {
        replica->is_awaited = false;
        replica->lags = true;
    }
}

static void look_at_lagging(const struct group *group, struct replica_sync *replica,
                            const struct raft_peer_info *peer, uint64_t now_ms)
{
    bool is_back = peer->state == RAFT_PEER_REPLICATE && peer->match_index >= replica->goal &&
                   peers_is_alive(group->shard->broker, replica->node);
    if (is_back && !planted(PLANT_LAG_KEPT)) {
        replica->lags = false;
        replica->goal = raft_last_index(group->raft);
        replica->had_ms = now_ms;
    } else {
        replica->goal = raft_commit_index(group->raft);
    }
}

static void look_at(const struct group *group, struct replica_sync *replica, uint64_t now_ms)
{
    struct raft_peer_info peer;
    if (replica->node == raft_id(group->raft)) {
        return;
    }
    bool is_here = raft_peer_info(group->raft, replica->node, &peer) &&
                   (peer.flags & RAFT_VOTER) != 0 && peer.state != RAFT_PEER_SNAPSHOT;
    if (!is_here) {
        replica->lags = true;
        replica->is_awaited = false;
        replica->goal = raft_commit_index(group->raft);
    } else if (replica->lags) {
        look_at_lagging(group, replica, &peer, now_ms);
    } else if (replica->is_awaited) {
        look_at_awaited(group, replica, &peer, now_ms);
    } else {
        look_at_good(group, replica, &peer, now_ms);
    }
}

static void changed(struct group *group)
{
    struct in_sync *in_sync = group->in_sync;
    uint64_t lag = lag_now(group, group_place(group));
    if (lag != in_sync->lag) {
        in_sync->lag = lag;
        directory_set_lag(&group->shard->broker->directory, group->id, lag);
        tell(group);
    }
}

void in_sync_tick(struct group *group, uint64_t now_ms)
{
    struct in_sync *in_sync = group->in_sync;
    bool any = false;
    for (int32_t i = 0; in_sync != NULL && i < in_sync->count; i++) {
        bool lagged = in_sync->replicas[i].lags;
        look_at(group, &in_sync->replicas[i], now_ms);
        any = any || in_sync->replicas[i].lags != lagged;
    }
    if (any) {
        changed(group);
    }
}

void in_sync_replicas_changed(struct group *group)
{
    const struct partition_group *place = group_place(group);
    if (!group->leads || place == NULL) {
        return;
    }
    uint64_t before = in_sync_lag(group);
    if (place->replica_count > 1) {
        make(group, place);
        in_sync_tick(group, clock_monotonic_ms()); /* a group at rest has none */
    } else {
        in_sync_end(group);
    }
    if (in_sync_lag(group) != before) {
        tell(group);
    }
}

void in_sync_lost(struct group *group, int32_t node)
{
    struct in_sync *in_sync = group->in_sync;
    assert(node != raft_id(group->raft));
    for (int32_t i = 0; in_sync != NULL && i < in_sync->count; i++) {
        struct replica_sync *replica = &in_sync->replicas[i];
        if (replica->node == node && !replica->lags) {
            replica->lags = true;
            replica->is_awaited = false;
            replica->goal = raft_commit_index(group->raft);
            changed(group);
        }
    }
}

uint64_t in_sync_lag(const struct group *group)
{
    return group->in_sync != NULL ? group->in_sync->lag : 0;
}

bool in_sync_is_online(const struct shard *shard, int32_t node)
{
    if (node == shard->broker->node_id) {
        return true;
    }
    const struct cluster_broker *found = cluster_image_find(shard->replicas->cluster, node);
    return found != NULL && !found->is_fenced && peers_is_alive(shard->broker, node);
}

bool in_sync_has(const struct group *group, int32_t least)
{
    size_t count;
    int32_t voters = 0;
    const struct in_sync *in_sync = group->in_sync;
    int32_t found = in_sync == NULL ? 1 : 0; /* alone */
    const struct raft_member *members = raft_members(group->raft, &count);
    assert(group->leads && least > 0);
    for (size_t i = 0; i < count; i++) {
        voters += (members[i].flags & RAFT_VOTER) != 0 ? 1 : 0;
    }
    for (int32_t i = 0; in_sync != NULL && i < in_sync->count && found < least; i++) {
        const struct replica_sync *replica = &in_sync->replicas[i];
        found += !replica->lags && in_sync_is_online(group->shard, replica->node) ? 1 : 0;
    }
    return found >= least || found >= voters;
}
