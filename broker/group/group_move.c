/* One step at a time: the members that Raft has are held against those that the image wants, and
 * the next change of members is asked for. Raft refuses while another one is under way; a leader
 * that is not in the target resigns by itself when it is out, and names a successor. */
#include "broker/group/group_move.h"

#include <assert.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/planted.h"
#include "broker/controller/cluster_image.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_members.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "messages/errors.h"

enum {
    NEAR_ENTRIES = 256,          /* so far behind counts as caught up: the rest is on its way */
    TELL_EVERY_MS = 1000,
    BALANCE_AT_ONCE = 256,       /* hand-overs; the others come a second later */
    BALANCE_AGAIN_MS = 1000,
    LEAVE_AGAIN_MS = 1000,
};

const struct partition_group *group_place(const struct group *group)
{
    const struct topic_image *topic = group->topic;
    for (uint32_t i = 0; topic != NULL && i < topic->group_count; i++) {
        if (topic->groups[i].id == group->id) {
            return &topic->groups[i];
        }
    }
    return NULL;
}

void group_move_note(struct group *group)
{
    struct replicas *replicas = group->shard->replicas;
    const struct partition_group *place = group_place(group);
    assert(!group->closed && replicas != NULL);
    bool moves = place != NULL && partition_group_moves(place);
    /* One that stays is looked at once more: a leader whose image was old may have begun something
     * else with it meanwhile. */
    bool may_differ = place != NULL && group->raft != NULL && group->leads;
    group->move = moves ? partition_group_move(place) : 0;
    group->move_told_ms = 0;
    if ((moves || may_differ) && !list_contains(&group->moving)) {
        list_push_back(&replicas->moving, &group->moving);
    } else if (!moves && !may_differ) {
        group_move_end(group);
    }
    replicas_keep_time(replicas);
}

void group_move_end(struct group *group)
{
    if (list_contains(&group->moving)) {
        list_remove(&group->moving);
    }
}

/* ---- Members ------------------------------------------------------------------------------- */

uint8_t group_member_flags(const struct group *group, int32_t node)
{
    size_t count;
    const struct raft_member *members = raft_members(group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        if (members[i].id == node) {
            return members[i].flags;
        }
    }
    return 0;
}

bool group_is_changing(const struct group *group)
{
    size_t count;
    const struct raft_member *members = raft_members(group->raft, &count);
    bool joint = false;
    for (size_t i = 0; i < count; i++) {
        joint = joint || (members[i].flags & RAFT_OLD_VOTER) != 0;
    }
    return joint || raft_members_index(group->raft) > raft_commit_index(group->raft);
}

/* Whether the members are the target, all of them voters, and nobody else. */
static bool is_there(const struct group *group, const struct partition_group *place)
{
    size_t count;
    int32_t target_count;
    const int32_t *target = partition_group_target(place, &target_count);
    raft_members(group->raft, &count);
    assert(count > 0 && target_count > 0);
    bool is_same = count == (size_t)target_count;
    for (int32_t i = 0; i < target_count && is_same; i++) {
        is_same = group_member_flags(group, target[i]) == RAFT_VOTER;
    }
    return is_same && !group_is_changing(group);
}

static void change(struct group *group, const struct raft_member *members, size_t count)
{
    assert(count > 0 && count <= RAFT_MEMBERS_MAX);
    group_step(group,
               &(struct raft_event){.kind = RAFT_EVENT_CHANGE_MEMBERS,
                                    .change = {.members = members, .count = count}});
}

/* The voters there are, and the others of the target as learners. True when that is already so. */
static bool has_learners(struct group *group, const int32_t *target, int32_t target_count)
{
    size_t now_count;
    size_t count = 0;
    struct raft_member wanted[2 * RAFT_MEMBERS_MAX];
    const struct raft_member *now = raft_members(group->raft, &now_count);
    for (size_t i = 0; i < now_count; i++) {
        if ((now[i].flags & RAFT_VOTER) != 0) {
            wanted[count++] = now[i];
        }
    }
    bool is_same = true;
    for (int32_t i = 0; i < target_count; i++) {
        uint8_t flags = group_member_flags(group, target[i]);
        is_same = is_same && flags != 0;
        if ((flags & RAFT_VOTER) == 0) {
            wanted[count++] = (struct raft_member){.id = target[i], .flags = RAFT_LEARNER};
        }
    }
    is_same = is_same && count == now_count;
    assert(count >= (size_t)target_count);
    if (!is_same && count <= RAFT_MEMBERS_MAX) {
        change(group, wanted, count);
    }
    return is_same;
}

bool group_is_near(const struct group *group, int32_t node)
{
    struct raft_peer_info peer;
    return node == raft_id(group->raft) ||
           (raft_peer_info(group->raft, node, &peer) && peer.state == RAFT_PEER_REPLICATE &&
            (peer.recently_active || !raft_needs_ticks(group->raft)) &&
            (!peer.withdrawn || planted(PLANT_VOTER_HELD_BACK)) &&
            peers_is_alive(group->shard->broker, node) &&
            peer.match_index + NEAR_ENTRIES >= raft_commit_index(group->raft));
}

bool group_move_is_unknown(const struct group *group, const struct raft_message *message)
{
    bool is_answer = message->kind == RAFT_APPEND_REPLY || message->kind == RAFT_HEARTBEAT_REPLY;
    return is_answer && message->note != group->move &&
           (group_member_flags(group, message->from) & RAFT_VOTER) == 0 &&
           !planted(PLANT_EARLIER_STAY_COUNTS);
}

static void take_step(struct group *group)
{
    const struct partition_group *place = group_place(group);
    struct raft_member voters[RAFT_MEMBERS_MAX];
    int32_t target_count;
    assert(place != NULL);
    const int32_t *target = partition_group_target(place, &target_count);
    if (!partition_group_moves(place) && (!group->leads || is_there(group, place))) {
        group_move_end(group);
        return;
    }
    if (!group->leads || group->storage != STATUS_OK || group_is_changing(group) ||
        target_count > RAFT_MEMBERS_MAX || is_there(group, place) ||
        !has_learners(group, target, target_count)) {
        return;
    }
    bool all_near = true;
    for (int32_t i = 0; i < target_count; i++) {
        voters[i] = (struct raft_member){.id = target[i], .flags = RAFT_VOTER};
        all_near = all_near && group_is_near(group, target[i]);
    }
    if (all_near) {
        change(group, voters, (size_t)target_count);
    }
}

void group_moves_tick(struct replicas *replicas)
{
    struct list_link *link = list_first(&replicas->moving);
    while (link != NULL) {
        struct list_link *next = list_next(&replicas->moving, link);
        take_step(container_of(link, struct group, moving));
        link = next;
    }
}

void group_moves_each_done(struct replicas *replicas, uint64_t now_ms,
                           void (*each)(struct shard *shard, const struct group *group,
                                        int32_t move))
{
    struct list_link *link = list_first(&replicas->moving);
    for (; link != NULL; link = list_next(&replicas->moving, link)) {
        struct group *group = container_of(link, struct group, moving);
        const struct partition_group *place = group_place(group);
        assert(place != NULL);
        if (partition_group_moves(place) && group->leads &&
            now_ms - group->move_told_ms >= TELL_EVERY_MS &&
            (is_there(group, place) || planted(PLANT_MOVE_ENDED_EARLY))) {
            group->move_told_ms = now_ms;
            each(replicas->shard, group, partition_group_move(place));
        }
    }
}

/* ---- Who leads ----------------------------------------------------------------------------- */

int16_t group_hand_to(struct group *group, int32_t node)
{
    int16_t error = group_error(group);
    assert(node >= 0 || node == RAFT_NO_NODE);
    if (error != KAFKA_NONE || node == raft_id(group->raft)) {
        return error;
    }
    if (group_member_flags(group, node) != RAFT_VOTER || !group_is_near(group, node)) {
        return KAFKA_PREFERRED_LEADER_NOT_AVAILABLE;
    }
    log_debug("group", "group %" PRIu64 ": node %d shall lead it", group->id, node);
    group_step(group, &(struct raft_event){.kind = RAFT_EVENT_TRANSFER, .node = node});
    return KAFKA_NONE;
}

/* The replica that should lead the group and is there; RAFT_NO_NODE when that is this one, or there
 * is none. */
static int32_t heir_of(const struct group *group)
{
    const struct partition_group *place = group_place(group);
    if (!group->leads || place == NULL || partition_group_moves(place) ||
        place->replicas[0] == raft_id(group->raft)) {
        return RAFT_NO_NODE;
    }
    const struct cluster_broker *broker =
        cluster_image_find(group->shard->replicas->cluster, place->replicas[0]);
    bool is_good = broker != NULL && !broker->is_fenced && !broker->is_stopping;
    return is_good ? broker->id : RAFT_NO_NODE;
}

void group_balance_tick(struct replicas *replicas, uint64_t now_ms)
{
    const struct broker *broker = replicas->shard->broker;
    const struct config *config = broker->config;
    if (!broker->in_cluster || now_ms < replicas->next_balance_ms) {
        return;
    }
    int64_t every_s = config_long(config, CONFIG_LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS);
    bool is_first = replicas->next_balance_ms == 0;
    bool is_on = config_bool(config, CONFIG_AUTO_LEADER_REBALANCE_ENABLE);
    int handed = 0;
    assert(every_s >= 1);
    replicas->next_balance_ms = now_ms + (uint64_t)every_s * 1000;
    if (is_first || !is_on || atomic_load(&broker->stopping)) {
        return;
    }
    struct group *group = replicas->groups;
    for (; group != NULL && handed < BALANCE_AT_ONCE; group = group->by_id.next) {
        int32_t heir = heir_of(group);
        if (heir != RAFT_NO_NODE && group_hand_to(group, heir) == KAFKA_NONE) {
            handed++;
        }
    }
    if (handed == BALANCE_AT_ONCE) {
        replicas->next_balance_ms = now_ms + BALANCE_AGAIN_MS;
    }
    if (handed > 0) {
        log_info("group", "%d groups are handed to their preferred leaders", handed);
    }
}

void group_leave_tick(struct replicas *replicas, uint64_t now_ms)
{
    const struct broker *broker = replicas->shard->broker;
    struct raft_event transfer = {.kind = RAFT_EVENT_TRANSFER, .node = RAFT_NO_NODE};
    if (!replicas->is_struck_off || now_ms < replicas->next_leave_ms ||
        atomic_load(&broker->stopping)) {
        return;
    }
    if (replicas->next_leave_ms == 0 && replicas->shard->number == 0) {
        log_warn("cluster", "broker %d is not registered any more: others shall lead what it "
                 "leads, until it is started anew", broker->node_id);
    }
    replicas->next_leave_ms = now_ms + LEAVE_AGAIN_MS;
    for (struct group *group = replicas->groups; group != NULL; group = group->by_id.next) {
        if (group->leads && group_place(group) != NULL && group_is_replicated(group)) {
            group_step(group, &transfer);
        }
    }
}
