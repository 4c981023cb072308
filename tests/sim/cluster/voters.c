/* Adds and removes voters on metadata while everything goes on, its leader too, and moves nodes to
 * other addresses. In the end at least three vote, nothing changes any more, and every node knows
 * who they are. */
#include "tests/sim/cluster/voters.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/controller/controller.h"
#include "broker/group/group.h"
#include "broker/group/replicas.h"
#include "broker/server/cluster.h"
#include "broker/server/metadata_state.h"
#include "messages/add_raft_voter.h"
#include "messages/errors.h"
#include "messages/remove_raft_voter.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/growing.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/settings.h"
#include "tests/sim/cluster/world.h"

enum {
    ADD_VERSION = 1, REMOVE_VERSION = 0, TIMEOUT_MS = 2000, PACE_MS = 1500, LEAST_VOTERS = 3,
    NEAR_ENTRIES = 256           /* as group_is_near */
};

/* New nodes have been taken in by then: as with the faults, nothing happens before. */
static const uint64_t CALM_NS = 4000 * (uint64_t)MS_NS;

static bool was_recorded;        /* the first voter is: from then on voters change */

/* An entry that adds or removes a voter. */
struct voter_entry {
    uint64_t index;
    uint64_t term;
};

static struct growing voter_entries = {.item_bytes = sizeof(struct voter_entry)};
static bool proposes[NODES_MAX + 1]; /* its next command is one */

/* ---- What the nodes know ------------------------------------------------------------------- */

static const struct group *metadata_of(const struct sim_node *node)
{
    const struct broker *broker = node->broker;
    return broker == NULL || broker->shards[0].replicas == NULL
               ? NULL
               : replicas_group(broker->shards[0].replicas, METADATA_GROUP_ID);
}

static const struct quorum_voter *recorded(const struct sim_node *node, int32_t id)
{
    int count;
    const struct quorum_voter *voters = cluster_voters(&node->broker->shards[0], &count);
    for (int i = 0; i < count; i++) {
        if (voters[i].node_id == id) {
            return &voters[i];
        }
    }
    return NULL;
}

static int count_recorded(const struct sim_node *node)
{
    int count;
    assert(node->broker != NULL);
    cluster_voters(&node->broker->shards[0], &count);
    return count;
}

/* Whether Raft's voters are the recorded ones, and no change is under way. */
static bool follows(const struct sim_node *node)
{
    size_t count;
    int voters = 0;
    const struct group *group = metadata_of(node);
    const struct raft_member *members = raft_members(group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        bool votes = (members[i].flags & RAFT_VOTER) != 0;
        if ((members[i].flags & RAFT_OLD_VOTER) != 0 ||
            votes != (recorded(node, members[i].id) != NULL)) {
            return false;
        }
        voters += votes;
    }
    return voters == count_recorded(node);
}

/* Whether all nodes run, and know at least so many voters, the same ones. */
static bool all_agree(int least)
{
    for (int i = 0; i < cluster.count; i++) {
        const struct sim_node *node = &cluster.nodes[i];
        if (node->broker == NULL || metadata_of(node) == NULL || !follows(node) ||
            count_recorded(node) < least) {
            return false;
        }
        for (int32_t id = 1; id <= cluster.count; id++) {
            if ((recorded(node, id) != NULL) != (recorded(&cluster.nodes[0], id) != NULL)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether what the nodes know is in force on all shards: nothing was applied since. */
static bool images_agree(void)
{
    for (int i = 0; i < cluster.count; i++) {
        int count;
        const struct broker *broker = cluster.nodes[i].broker;
        const struct quorum_voter *voters = image_voters(broker->metadata->image, &count);
        bool is_same = count == count_recorded(&cluster.nodes[i]);
        for (int k = 0; k < count && is_same; k++) {
            is_same = recorded(&cluster.nodes[i], voters[k].node_id) != NULL;
        }
        if (!is_same) {
            return false;
        }
    }
    return true;
}

/* Whether the node's log has the entry, and may yet apply it. */
static bool may_apply(const struct sim_node *node, const struct voter_entry *entry)
{
    const struct group *group = metadata_of(node);
    uint64_t index = entry->index;
    return group != NULL && index > group->applied_index && index > raft_start_index(group->raft) &&
           index <= raft_last_index(group->raft) &&
           raft_entry_at(group->raft, index)->term == entry->term;
}

/* A change of voters that is in somebody's log and not applied there may still come to be. */
static bool is_under_way(void)
{
    for (size_t i = 0; i < voter_entries.count; i++) {
        for (int k = 0; k < cluster.count; k++) {
            if (may_apply(&cluster.nodes[k], growing_at(&voter_entries, i))) {
                return true;
            }
        }
    }
    return false;
}

/* One voter comes or goes: of the old and the new ones one are an even number, of whom one that
 * forgot is needed and does no harm, the others an odd number, among whom its vote must not count
 * (group_loss.h). A node that lost its disk votes or does not, whoever asks; so while both have to
 * agree, or nobody can say yet which ones do, nobody may be left who can lead, or one leads by a
 * vote that must not count. What is in a log, or was applied and is not in force, is under way.
 * Groups of partitions go from three replicas to three and lose one of each at most: of them
 * nothing is left out. */
bool voters_may_lose_disk(void)
{
    return !cluster.changes_voters || (all_agree(2) && images_agree() && !is_under_way());
}

/* Whether they are known where they are. */
bool voters_are_settled(void)
{
    bool all_known = all_agree(LEAST_VOTERS);
    for (int32_t id = 1; id <= cluster.count && all_known; id++) {
        const struct quorum_voter *voter = recorded(&cluster.nodes[0], id);
        all_known = voter == NULL || voter->port == node_find(id)->controller_port;
    }
    return all_known;
}

/* A node that lost its disk and is not whole again: no voters are changed meanwhile. */
static bool is_one_lost(void)
{
    for (int i = 0; i < cluster.count; i++) {
        if (!node_is_whole(&cluster.nodes[i])) {
            return true;
        }
    }
    return false;
}

/* ---- Invariants ---------------------------------------------------------------------------- */

static struct {
    uint64_t term;
    uint64_t members_index;
    uint8_t flags[NODES_MAX + 1];
} latest; /* of the leader of the highest term, as it was seen last */

void voters_start(void)
{
    growing_forget(&voter_entries);
    memset(proposes, 0, sizeof proposes);
    was_recorded = false;
    memset(&latest, 0, sizeof latest);
}

static void check_newcomer(const struct group *group, int32_t id)
{
    struct raft_peer_info peer;
    bool is_known = raft_peer_info(group->raft, id, &peer);
    bool takes = is_known && peer.state == RAFT_PEER_REPLICATE;
    world_require(takes && peer.match_index + NEAR_ENTRIES >= raft_commit_index(group->raft),
                  "node %d is to vote on metadata and has %" PRIu64 " of %" PRIu64 " entries%s", id,
                  is_known ? peer.match_index : 0, raft_commit_index(group->raft),
                  takes ? "" : ", and takes no more");
}

static void check_change(const struct group *group, const uint8_t flags[NODES_MAX + 1])
{
    int changes = 0;
    for (int32_t id = 1; id <= cluster.count; id++) {
        bool voted = (flags[id] & RAFT_OLD_VOTER) != 0;
        bool votes = (flags[id] & RAFT_VOTER) != 0;
        changes += voted != votes;
        if (votes && !voted && latest.term == raft_term(group->raft)) {
            check_newcomer(group, id);
        }
    }
    world_require(changes <= 1, "%d voters on metadata change at once", changes);
}

void check_voters(const struct group *group)
{
    uint8_t flags[NODES_MAX + 1] = {0};
    size_t count;
    bool is_joint = false;
    if (!cluster.changes_voters || group->id != METADATA_GROUP_ID ||
        raft_role(group->raft) != RAFT_LEADER) {
        return;
    }
    const struct raft_member *members = raft_members(group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        flags[members[i].id] = members[i].flags;
        is_joint = is_joint || (members[i].flags & RAFT_OLD_VOTER) != 0;
    }
    bool is_committed = raft_members_index(group->raft) <= raft_commit_index(group->raft);
    world_require((flags[node_current()->id] & (RAFT_VOTER | RAFT_OLD_VOTER)) != 0 ||
                      !is_committed,
                  "node %d leads the metadata and is no voter", node_current()->id);
    uint64_t index = raft_members_index(group->raft);
    if (is_joint && (latest.term != raft_term(group->raft) || latest.members_index != index)) {
        check_change(group, flags);
    }
    latest.term = raft_term(group->raft);
    latest.members_index = index;
}

struct refusal __real_controller_add_voter(const struct controller *controller,
                                           const struct add_raft_voter_request *request,
                                           struct view listener, struct arena *arena,
                                           struct record_list *records);
struct refusal __wrap_controller_add_voter(const struct controller *controller,
                                           const struct add_raft_voter_request *request,
                                           struct view listener, struct arena *arena,
                                           struct record_list *records);

/* The linker wraps what makes the records: the next entry of the metadata on this node has them. */
struct refusal __wrap_controller_add_voter(const struct controller *controller,
                                           const struct add_raft_voter_request *request,
                                           struct view listener, struct arena *arena,
                                           struct record_list *records)
{
    struct refusal refusal =
        __real_controller_add_voter(controller, request, listener, arena, records);
    proposes[node_current()->id] = refusal.error == KAFKA_NONE;
    return refusal;
}

struct refusal __real_controller_remove_voter(const struct controller *controller,
                                              const struct remove_raft_voter_request *request,
                                              struct arena *arena, struct record_list *records);
struct refusal __wrap_controller_remove_voter(const struct controller *controller,
                                              const struct remove_raft_voter_request *request,
                                              struct arena *arena, struct record_list *records);

struct refusal __wrap_controller_remove_voter(const struct controller *controller,
                                              const struct remove_raft_voter_request *request,
                                              struct arena *arena, struct record_list *records)
{
    struct refusal refusal = __real_controller_remove_voter(controller, request, arena, records);
    proposes[node_current()->id] = refusal.error == KAFKA_NONE;
    return refusal;
}

void voters_proposed(const struct group *group)
{
    bool *is_change = &proposes[node_current()->id];
    if (!cluster.changes_voters || group->id != METADATA_GROUP_ID || !*is_change) {
        return;
    }
    *is_change = false;
    struct voter_entry *entry = growing_add(&voter_entries);
    *entry = (struct voter_entry){raft_last_index(group->raft), raft_term(group->raft)};
}

/* ---- Changes ------------------------------------------------------------------------------- */

/* What is no error: it is so already, or is no more, or there is none yet to change. */
static void end_turn(struct client *client, const int16_t *error, int16_t refusal,
                     const char *what)
{
    bool is_early = error != NULL && *error == KAFKA_UNSUPPORTED_VERSION && !was_recorded;
    was_recorded = was_recorded || (error != NULL && *error == KAFKA_NONE);
    world_require(error == NULL || *error == KAFKA_NONE || *error == refusal || is_early ||
                      client_may_retry(*error),
                  "%s: error %d", what, error == NULL ? 0 : *error);
    client_later(client, PACE_MS);
}

static void added(void *owner, const void *message)
{
    const struct add_raft_voter_response *response = message;
    end_turn(owner, response == NULL ? NULL : &response->error_code, KAFKA_DUPLICATE_VOTER,
             "AddRaftVoter");
}

static void add(struct client *client, const struct sim_node *node)
{
    char host[16];
    snprintf(host, sizeof host, "node%d", (int)node->id);
    struct add_raft_voter_request_listener listener = {VIEW_LITERAL("CONTROLLER"), view_text(host),
                                                       (uint16_t)node->controller_port};
    struct add_raft_voter_request request = add_raft_voter_request_default;
    request.cluster_id = VIEW_NULL;
    request.timeout_ms = TIMEOUT_MS;
    request.voter_id = node->id;
    request.voter_directory_id = log_dir_identity(node->broker->log_dir)->directory_id;
    request.listeners = &listener;
    request.listeners_count = 1;
    request.ack_when_committed = !world_chance(3);
    world_say("node %d shall vote on metadata", node->id);
    caller_ask(&client->caller, client_any_node(), API_ADD_RAFT_VOTER, ADD_VERSION, &request,
               added);
}

static void removed(void *owner, const void *message)
{
    const struct remove_raft_voter_response *response = message;
    end_turn(owner, response == NULL ? NULL : &response->error_code, KAFKA_VOTER_NOT_FOUND,
             "RemoveRaftVoter");
}

static void drop(struct client *client, const struct quorum_voter *voter)
{
    struct remove_raft_voter_request request = remove_raft_voter_request_default;
    request.cluster_id = VIEW_NULL;
    request.voter_id = voter->node_id;
    request.voter_directory_id = voter->directory_id;
    world_say("node %d shall vote on metadata no more", voter->node_id);
    caller_ask(&client->caller, client_any_node(), API_REMOVE_RAFT_VOTER, REMOVE_VERSION, &request,
               removed);
}

static void start_moved(void *context, uint64_t tag)
{
    struct sim_node *node = context;
    (void)tag;
    if (node->broker == NULL && !node->is_away) {
        node_start(node);
    }
}

static void move(struct sim_node *node)
{
    node_kill(node, world_chance(2));
    settings_move(node);
    world_say("node %d: its controller is at port %u from now on", node->id,
              node->controller_port);
    world_after(world_random(1500 * (uint64_t)MS_NS), start_moved, node, 0);
}

/* The one that leads, or another one; null: the node that is asked knows too few. */
static const struct quorum_voter *any_voter(const struct sim_node *asked)
{
    int count;
    const struct quorum_voter *voters = cluster_voters(&asked->broker->shards[0], &count);
    int32_t leader = raft_leader(metadata_of(asked)->raft);
    const struct quorum_voter *leading = recorded(asked, leader);
    if (leading != NULL && world_chance(2)) {
        return count > 1 ? leading : NULL;
    }
    return count > 1 ? &voters[world_random((uint64_t)count)] : NULL;
}

/* False: nothing was begun. */
static bool change(struct client *client, bool adds)
{
    const struct sim_node *asked = &cluster.nodes[client_any_node() - 1];
    struct sim_node *node = &cluster.nodes[client_any_node() - 1];
    if (asked->broker == NULL || metadata_of(asked) == NULL || node->broker == NULL) {
        return false;
    }
    if (adds) {
        if (recorded(asked, node->id) != NULL || node->broker->log_dir == NULL) {
            return false;
        }
        add(client, node);
        return true;
    }
    const struct quorum_voter *voter = any_voter(asked);
    if (voter == NULL) {
        return false;
    }
    drop(client, voter);
    return true;
}

void voters_next(struct client *client)
{
    assert(client->kind == CLIENT_VOTERS);
    if (client->done || !client_may_begin(client)) {
        return;
    }
    if (world.now_ns < CALM_NS || is_one_lost()) {
        client_later(client, 300);
        return;
    }
    bool is_begun = false;
    if (clients_are_stopping()) {
        client->done = voters_are_settled();
        bool is_here = metadata_of(&cluster.nodes[0]) != NULL;
        is_begun = is_here && !client->done &&
                   count_recorded(&cluster.nodes[0]) < LEAST_VOTERS && change(client, true);
    } else if (world_chance(8)) {
        struct sim_node *node = &cluster.nodes[client_any_node() - 1];
        if (node->broker != NULL) {
            move(node);
        }
    } else {
        is_begun = change(client, !world_chance(3));
    }
    if (!is_begun && !client->done) {
        client_later(client, 300);
    }
}
