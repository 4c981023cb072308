/* Happy path: nothing is lost and nothing here does anything. Else the group is marked at its
 * opening, who claims to lead is asked, its answer sets the goal, and the log reaches it. A
 * question that fails is asked again at the next message. Nobody comes to be a leader when a
 * majority has lost its part; the log says what is waited for. */
#include "broker/group/group_loss.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/controller/topic_image.h"
#include "broker/group/boot.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_members.h"
#include "broker/group/group_move.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "messages/peer.h"
#include "protocol/codec.h"

enum { ASK_MS = 1000, ANSWER_BYTES = 4096 };

/* While what was lost is not made up for. */
struct group_loss {
    struct group *group;
    struct peer_call call;
    bool is_asking;
    bool is_marked;              /* in the journal, on the disk */
    uint64_t term;               /* not below that of the leader that was confirmed; 0: none yet */
};

static uint32_t count_voters(const struct group *group)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->member_count; i++) {
        count += (group->members[i].flags & RAFT_VOTER) != 0;
    }
    assert(count <= group->member_count);
    return count;
}

/* A directory stays incomplete across crashes until all of its groups have been opened and have
 * caught up; a journal alone that was removed shows by holding nothing. */
static bool has_lost(const struct broker *broker)
{
    return log_dir_is_incomplete(broker->log_dir) || broker->boot.groups == NULL;
}

/* Whoever finds the voters by asking does so in a cluster that is not new: the only voter can only
 * have lost what it had, and nobody else may say what that was. */
static bool is_only_voter(const struct group *group)
{
    const struct broker *broker = group->shard->broker;
    bool is_alone = group->topic == NULL && broker->changes_voters && broker->voter_count == 1 &&
                    broker->voters[0].node_id == broker->node_id;
    bool has_nothing = !atomic_load(&broker->keeps_metadata);
    if (is_alone && has_nothing && log_dir_is_incomplete(broker->log_dir)) {
        log_error("group", "this node was the only voter on metadata, and its data directory is "
                  "new: nobody leads before the directory that it had is back");
        return true;
    }
    return false;
}

/* Only what others have too can come again from them. */
static bool has_others(const struct group *group, const struct group_start *start)
{
    const struct partition_group *place = group_place(group);
    bool has = group->member_count > 0 || (place != NULL && partition_group_moves(place));
    for (size_t i = 0; i < start->latest_count; i++) {
        has = has || start->latest[i].id != group->shard->broker->node_id;
    }
    return has;
}

/* Who votes by what was heard last: the first ones may be a single one, which would lead alone. */
static enum status begin_with_latest(struct group *group, const struct group_start *start)
{
    enum status status = STATUS_OK;
    if (start->begin_with_latest != NULL) {
        status = start->begin_with_latest(start->machine_state);
        group_members_set(group, start->latest, start->latest_count, 0);
    }
    return status == STATUS_OK && group->member_count == 0 ? STATUS_CORRUPT : status;
}

bool group_loss_of_checkpoint(struct group *group, const struct group_start *start,
                              enum status status)
{
    struct journal_boot *boot = start->boot;
    assert(group->raft == NULL && group->loss == NULL);
    bool is_broken = status == STATUS_CORRUPT;
    bool is_missing = status == STATUS_NOT_FOUND && boot_lacks_entries(boot);
    if ((!is_broken && !is_missing) || (boot != NULL && boot->damaged)) {
        return false;
    }
    if (boot_is_whole(boot) || !has_others(group, start)) {
        log_warn("group", "group %" PRIu64 ": its checkpoint is not usable (%s); the logs are "
                 "scanned instead", group->id, status_text(status));
        return false;
    }
    group->storage = begin_with_latest(group, start);
    if (group->storage != STATUS_OK) {
        return false;
    }
    log_warn("group", "group %" PRIu64 ": its checkpoint is not usable (%s); it comes again from "
             "the other replicas", group->id, status_text(status));
    return true;
}

/* What the journal has of it is void with the checkpoint. Not before the group really begins: one
 * whose logs could not be read is opened again, and decides once more (unread.h). */
static void leave_boot(const struct group *group, struct journal_boot *boot)
{
    assert(boot->group == group->id && !boot->used);
    boot->used = true;
    boot_release(boot);
}

/* Whether the group moves here from others. It may have been here before. */
static bool is_newcomer(const struct group *group)
{
    const struct partition_group *place = group_place(group);
    int32_t count = 0;
    if (place == NULL || !partition_group_moves(place)) {
        return false;
    }
    const int32_t *original = partition_group_original(place, &count);
    assert(place->id == group->id && count > 0);
    bool was_here = false;
    for (int32_t i = 0; i < count; i++) {
        was_here = was_here || original[i] == group->shard->broker->node_id;
    }
    return !was_here;
}

static void hold(struct group *group)
{
    struct group_loss *loss = memory_new_zero(1, sizeof *loss);
    assert(group->loss == NULL);
    loss->group = group;
    group->loss = loss;
    atomic_fetch_add(&group->shard->broker->groups_catching_up, 1);
}

/* As it was when the process before this one ended. */
static void hold_again(struct group *group, const struct journal_boot *boot)
{
    hold(group);
    group->loss->is_marked = true;
    group->records_loss = true;
    if (boot->loss == BOOT_TOLD) {
        group->loss->term = boot->vote_term;
        group->catch_up_to = boot->catch_up_to;
    }
}

void group_loss_begin(struct group *group, const struct group_start *start,
                      const struct journal_boot *boot, bool checkpoint_is_lost)
{
    uint32_t voters = count_voters(group);
    group->catch_up_to = UINT64_MAX;
    if (checkpoint_is_lost && start->boot != NULL) {
        leave_boot(group, start->boot);
    }
    if (boot != NULL && boot->loss != BOOT_NOTHING_LOST) {
        hold_again(group, boot);
        return;
    }
    if (boot != NULL) {
        return; /* what it promised is there, or it has made up for what was lost */
    }
    bool has_nothing = checkpoint_is_lost || (start->existed && has_lost(group->shard->broker));
    bool is_shared = voters > 1 && voters % 2 == 1 && has_nothing;
    bool is_lost = is_shared || (start->existed && is_only_voter(group));
    if (!is_lost && (!is_newcomer(group) || planted(PLANT_NEWCOMER_BELIEVES))) {
        if (checkpoint_is_lost) {
            journal_forget(group->shard->broker->journal, group->id);
        }
        return;
    }
    hold(group);
    if (is_lost && group->topic != NULL &&
        replicas_may_log(group->shard->replicas, REPLICAS_LOG_LOSS)) {
        log_warn("group", "nothing is left here of group %" PRIu64 " and perhaps others; this node "
                 "votes in each again when it has caught up", group->id);
    }
}

static void marked(void *context, enum status status)
{
    struct group *group = context;
    if (status == STATUS_OK && group->loss != NULL) {
        group->loss->is_marked = true;
    }
}

void group_loss_record(struct group *group)
{
    if (group->loss != NULL && !group->loss->is_marked) {
        assert(raft_role(group->raft) == RAFT_FOLLOWER && !group->records_loss);
        group_journal_save_loss(group, true, marked, group);
    }
}

void group_loss_fill(struct group *group, struct journal_record *vote)
{
    const struct group_loss *loss = group->loss;
    group->records_loss = loss != NULL;
    if (loss == NULL || planted(PLANT_LOSS_NOT_KEPT)) {
        return;
    }
    bool is_told = loss->term > 0 && vote->term >= loss->term;
    assert(!is_told || group->catch_up_to != UINT64_MAX);
    vote->tag = is_told ? BOOT_TOLD : BOOT_LOST;
    vote->index = is_told ? group->catch_up_to : 0;
}

static bool read_answer(struct view body, struct peer_confirm_response *response)
{
    struct arena arena;
    arena_init(&arena, ANSWER_BYTES);
    enum status status =
        message_decode_whole(&peer_confirm_response_type, 0, body, &arena, response);
    arena_free(&arena);
    return status == STATUS_OK && response->error_code == KAFKA_NONE && response->term > 0 &&
           response->last_index >= 0;
}

static void answered(struct peer_call *call, enum status status, struct slice body)
{
    struct group_loss *loss = container_of(call, struct group_loss, call);
    struct peer_confirm_response response;
    assert(loss->is_asking && loss->is_marked);
    loss->is_asking = false;
    if (status != STATUS_OK || !read_answer(slice_view(body), &response) ||
        (uint64_t)response.term <= loss->term) {
        return;
    }
    loss->term = (uint64_t)response.term;
    loss->group->catch_up_to = (uint64_t)response.last_index;
    if (raft_term(loss->group->raft) >= loss->term) {
        group_journal_save_loss(loss->group, false, NULL, NULL);
    }
}

static void ask(struct group_loss *loss, int32_t leader)
{
    struct peer_confirm_request request = {.group = (int64_t)loss->group->id};
    struct buffer body = {0};
    assert(!loss->is_asking && leader != loss->group->shard->broker->node_id);
    loss->is_asking = true;
    loss->call = (struct peer_call){
        .node = leader, .api_key = API_PEER_CONFIRM, .timeout_ms = ASK_MS, .done = answered};
    enum status status = message_encode_to(&peer_confirm_request_type, 0, &request, &body);
    assert(status == STATUS_OK);
    (void)status;
    peers_call(loss->group->shard, &loss->call, buffer_view(&body));
    buffer_free(&body);
}

static bool is_leaders(const struct raft_message *message)
{
    return message->kind == RAFT_APPEND || message->kind == RAFT_HEARTBEAT;
}

bool group_loss_lets_pass(struct group *group, const struct raft_message *message)
{
    struct group_loss *loss = group->loss;
    bool is_untold = group->catch_up_to == UINT64_MAX;
    assert(loss == NULL || loss->group == group);
    if (loss != NULL && !planted(PLANT_LEADER_BELIEVED)) {
        if (message->term > loss->term && !loss->is_asking && loss->is_marked &&
            is_leaders(message)) {
            ask(loss, message->from);
        }
        return group_loss_lets_lead(group, message->term);
    }
    bool wants = is_untold && (loss != NULL || group->topic == NULL);
    if (wants && message->kind == RAFT_APPEND && message->term >= raft_term(group->raft)) {
        group->catch_up_to = message->index + message->entry_count;
    }
    return true;
}

bool group_loss_lets_lead(const struct group *group, uint64_t term)
{
    return group->loss == NULL || (group->loss->term > 0 && term >= group->loss->term) ||
           planted(PLANT_LEADER_BELIEVED);
}

/* It does not keep the directory incomplete any more. */
static void uncount(struct group *group)
{
    int before = atomic_fetch_sub(&group->shard->broker->groups_catching_up, 1);
    assert(group->loss == NULL && before > 0);
    (void)before;
    group->is_rejoining = false;
}

static void leave(struct group *group)
{
    assert(group->loss != NULL && !group->is_rejoining);
    group->is_rejoining = true;
    if (group->loss->is_asking) {
        peers_cancel(group->shard, &group->loss->call);
    }
    free(group->loss);
    group->loss = NULL;
}

/* Whether this node votes alone, or is one of an even number, by an entry that a leader sent since
 * the loss. Then nothing is left to hold back: what was committed before that change this node has
 * too, as it is before it in its log, and of what was committed since enough others have it
 * (group_loss.h), or nobody had to. And nobody might ever lead without this node, to bring it
 * up. */
static bool is_needed(const struct group *group)
{
    size_t count;
    uint32_t voters = 0;
    bool is_voter = false;
    const struct raft_member *members = raft_members(group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        bool votes = (members[i].flags & RAFT_VOTER) != 0;
        if ((members[i].flags & RAFT_OLD_VOTER) != 0) {
            return false;
        }
        voters += votes;
        is_voter = is_voter || (votes && members[i].id == raft_id(group->raft));
    }
    bool is_odd = voters > 1 && voters % 2 == 1;
    return is_voter && !is_odd && raft_members_index(group->raft) > 0 &&
           raft_durable_index(group->raft) >= raft_members_index(group->raft);
}

/* All entries in its log are of the confirmed leader or of later ones, which have what is
 * committed. A leader without entries has none to be waited for, but the vote of its term may be
 * lost. */
static bool has_caught_up(const struct group *group)
{
    bool is_heard = raft_term(group->raft) >= group->loss->term || planted(PLANT_CAUGHT_UP_UNHEARD);
    uint64_t durable = planted(PLANT_COMPLETE_UNSYNCED) ? raft_last_index(group->raft)
                                                        : raft_durable_index(group->raft);
    return is_heard && (durable >= group->catch_up_to || is_needed(group));
}

bool group_loss_is_over(struct group *group)
{
    if (group->is_rejoining &&
        (raft_is_saved(group->raft) || planted(PLANT_COMPLETE_UNSYNCED))) {
        uncount(group);
    }
    if (group->loss == NULL || group->storage != STATUS_OK || !has_caught_up(group)) {
        return false;
    }
    leave(group);
    log_debug("group", "group %" PRIu64 " has caught up", group->id);
    return true;
}

void group_loss_rejoined(struct group *group)
{
    if (group->records_loss && group->loss == NULL && !group->closed) {
        group_journal_save_loss(group, false, NULL, NULL);
    }
}

void group_loss_none(struct group *group)
{
    leave(group);
    group_step(group, &(struct raft_event){.kind = RAFT_EVENT_REJOIN});
    group_loss_rejoined(group);
}

void group_loss_end(struct group *group)
{
    if (group->loss != NULL) {
        leave(group);
    }
    if (group->is_rejoining) {
        uncount(group);
    }
}
