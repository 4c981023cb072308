/* Who lost its part of a group believes only a leader that was confirmed since, and votes when it
 * has made up for the loss, whatever happens to its process meanwhile (the linker wraps the
 * functions). What is held back, and since when, is seen in what the journals are given. */
#include <inttypes.h>

#include "broker/controller/topic_image.h"
#include "broker/group/confirm.h"
#include "broker/group/group_loss.h"
#include "broker/group/group_move.h"
#include "broker/group/replicas.h"
#include "tests/sim/cluster/check.h"
#include "tests/sim/cluster/growing.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

/* A majority said that this leader still was one. */
struct confirmed {
    uint64_t group;
    uint64_t term;
    uint64_t at_ns;
};

/* A group that a node lost its part of, until it has made up for that. */
struct loss {
    uint64_t group;
    int32_t node;
    bool is_written;             /* in the journal: it listens to somebody */
    bool is_over;
    unsigned over_in;            /* life of the node; 0: it was given up */
    uint64_t since_ns;
};

/* A move of a group, in the order in which the metadata had them. */
struct move {
    uint64_t group;
    int32_t number;
    bool is_over;                /* the group stayed then; else another move came in its place */
};

/* The latest move of a group that a process has taken over; 0: none. */
struct known_move {
    uint64_t group;
    int32_t node;
    unsigned life;
    size_t order;
};

static struct growing moves = {.item_bytes = sizeof(struct move)};
static struct growing known_moves = {.item_bytes = sizeof(struct known_move)};
static struct growing confirmed = {.item_bytes = sizeof(struct confirmed)};
static struct growing losses = {.item_bytes = sizeof(struct loss)};

void check_losses_forget(void)
{
    growing_forget(&moves);
    growing_forget(&known_moves);
    growing_forget(&confirmed);
    growing_forget(&losses);
}

/* The latest one; null: there was none. */
static struct loss *loss_of(int32_t node, uint64_t group)
{
    for (size_t i = 0; i < losses.count; i++) {
        struct loss *loss = growing_at(&losses, i);
        if (loss->group == group && loss->node == node) {
            return loss;
        }
    }
    return NULL;
}

static void note_loss(int32_t node, uint64_t group)
{
    struct loss *loss = loss_of(node, group);
    loss = loss == NULL ? growing_add(&losses) : loss;
    *loss = (struct loss){.group = group, .node = node, .since_ns = world.now_ns};
}

static void end_loss(int32_t node, uint64_t group)
{
    struct loss *loss = loss_of(node, group);
    if (loss != NULL) {
        loss->is_over = true;
    }
}

bool check_losses_ended_here(uint64_t group)
{
    const struct sim_node *node = node_current();
    const struct loss *loss = loss_of(node->id, group);
    return loss != NULL && loss->is_over && loss->over_in == node->life;
}

/* With an even number of voters, or alone, it need not be held back. */
static bool is_needed(const struct group *group)
{
    size_t count;
    size_t voters = 0;
    const struct raft_member *members = raft_members(group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        voters += (members[i].flags & RAFT_VOTER) != 0;
    }
    return voters == 1 || voters % 2 == 0;
}

void check_losses_submitted(const struct journal_op *op)
{
    for (size_t i = 0; i < op->record_count; i++) {
        const struct journal_record *record = &op->records[i];
        if (record->kind == JOURNAL_ANEW) {
            note_loss(node_current()->id, record->group);
        } else if (record->kind == JOURNAL_FORGET) {
            end_loss(node_current()->id, record->group);
        }
    }
}

void check_losses_disk_lost(int32_t node)
{
    for (size_t i = 0; i < losses.count; i++) {
        struct loss *loss = growing_at(&losses, i);
        loss->is_over = loss->is_over || loss->node == node;
    }
}

void check_losses_vote(const struct group *group, const struct raft_message *message)
{
    const struct loss *loss = loss_of(message->from, group->id);
    bool is_vote = message->kind == RAFT_VOTE || message->kind == RAFT_PRE_VOTE ||
                   (message->kind == RAFT_VOTE_REPLY && message->accepted) ||
                   (message->kind == RAFT_PRE_VOTE_REPLY && message->accepted);
    world_require(!is_vote || loss == NULL || !loss->is_written || loss->is_over,
                  "group %" PRIu64 ": node %d, which lost its part and has not made up for it, "
                  "votes in term %" PRIu64, group->id, message->from, message->term);
}

/* The place of the group's move among all, from 1. */
static size_t order_of(const struct group *group)
{
    for (size_t i = 0; i < moves.count; i++) {
        const struct move *move = growing_at(&moves, i);
        if (move->group == group->id && move->number == group->move) {
            return i + 1;
        }
    }
    struct move *move = growing_add(&moves);
    *move = (struct move){.group = group->id, .number = group->move};
    return moves.count;
}

static struct known_move *known_move_of(const struct sim_node *node, uint64_t group)
{
    struct known_move *known;
    for (size_t i = 0; i < known_moves.count; i++) {
        known = growing_at(&known_moves, i);
        if (known->group == group && known->node == node->id && known->life == node->life) {
            return known;
        }
    }
    known = growing_add(&known_moves);
    *known = (struct known_move){.group = group, .node = node->id, .life = node->life};
    return known;
}

void __real_group_move_note(struct group *group);
void __wrap_group_move_note(struct group *group);

void __wrap_group_move_note(struct group *group)
{
    __real_group_move_note(group);
    struct known_move *known = known_move_of(node_current(), group->id);
    if (group->move != 0) {
        known->order = order_of(group);
    } else if (known->order > 0) {
        struct move *move = growing_at(&moves, known->order - 1);
        move->is_over = true;
    }
}

/* The first move since the group stayed for the last time. */
static size_t first_move_of(const struct group *group)
{
    size_t first = order_of(group);
    size_t at = first - 1;
    while (at > 0) {
        const struct move *before = growing_at(&moves, --at);
        if (before->group == group->id && before->is_over) {
            return first;
        }
        first = before->group == group->id ? at + 1 : first;
    }
    return first;
}

/* Whether the node has the group from an earlier stay: of what moved it since it knows nothing. */
static bool is_of_before(const struct sim_node *node, const struct group *group)
{
    const struct broker *broker = node->broker;
    const struct replicas *replicas =
        broker == NULL ? NULL : broker->shards[group->id % (unsigned)broker->shard_count].replicas;
    return group->move != 0 && replicas != NULL && replicas_group(replicas, group->id) != NULL &&
           known_move_of(node, group->id)->order < first_move_of(group);
}

void check_losses_voter(const struct group *group, int32_t voter)
{
    struct raft_peer_info peer;
    bool is_peer = raft_peer_info(group->raft, voter, &peer);
    world_require(!is_peer || !peer.withdrawn,
                  "group %" PRIu64 ": node %d is made a voter and may not vote", group->id, voter);
    world_require(!is_of_before(node_find(voter), group), "group %" PRIu64 ": node %d is made a "
                  "voter by what it has of an earlier stay", group->id, voter);
}

static struct confirmed *confirmed_of(uint64_t group, uint64_t term)
{
    struct confirmed *found;
    for (size_t i = 0; i < confirmed.count; i++) {
        found = growing_at(&confirmed, i);
        if (found->group == group && found->term == term) {
            return found;
        }
    }
    found = growing_add(&confirmed);
    *found = (struct confirmed){.group = group, .term = term};
    return found;
}

void __real_confirms_ready(struct group *group, uint64_t round, uint64_t index);
void __wrap_confirms_ready(struct group *group, uint64_t round, uint64_t index);

void __wrap_confirms_ready(struct group *group, uint64_t round, uint64_t index)
{
    struct confirmed *latest = confirmed_of(group->id, raft_term(group->raft));
    latest->at_ns = world.now_ns;
    __real_confirms_ready(group, round, index);
}

/* That leader, or one before it: since the node lost its part. */
static bool was_confirmed(uint64_t group, uint64_t term)
{
    const struct loss *loss = loss_of(node_current()->id, group);
    bool was = false;
    for (size_t i = 0; i < confirmed.count && loss != NULL && !was; i++) {
        const struct confirmed *one = growing_at(&confirmed, i);
        was = one->group == group && one->term <= term && one->at_ns >= loss->since_ns;
    }
    return was;
}

/* Whether the group moves here from others. */
static bool comes_by_move(const struct group *group)
{
    int32_t count = 0;
    bool was_here = false;
    const struct partition_group *place = group_place(group);
    const int32_t *original = place == NULL ? NULL : partition_group_original(place, &count);
    for (int32_t i = 0; i < count; i++) {
        was_here = was_here || original[i] == node_current()->id;
    }
    return place != NULL && !was_here;
}

bool __real_group_loss_lets_pass(struct group *group, const struct raft_message *message);
bool __wrap_group_loss_lets_pass(struct group *group, const struct raft_message *message);

/* It listens to a leader that was confirmed since, and to none before that one; and so does who may
 * have been a replica before. */
bool __wrap_group_loss_lets_pass(struct group *group, const struct raft_message *message)
{
    bool passes = __real_group_loss_lets_pass(group, message);
    struct loss *loss = loss_of(node_current()->id, group->id);
    if (passes && loss != NULL && group->loss != NULL) {
        loss->is_written = true;
    }
    bool is_leaders = message->kind == RAFT_APPEND || message->kind == RAFT_HEARTBEAT;
    bool is_fresh = raft_last_index(group->raft) == 0 && raft_term(group->raft) == 0;
    bool is_wary = group->loss != NULL || (is_fresh && comes_by_move(group));
    world_require(!passes || !is_leaders || !is_wary || was_confirmed(group->id, message->term),
                  "group %" PRIu64 ": node %d, which lost its part, believes node %d in term %"
                  PRIu64, group->id, node_current()->id, message->from, message->term);
    return passes;
}

bool __real_group_loss_is_over(struct group *group);
bool __wrap_group_loss_is_over(struct group *group);

/* And it votes again only in a term that is not before that leader's, and with what that one had on
 * its disk. */
bool __wrap_group_loss_is_over(struct group *group)
{
    bool is_over = __real_group_loss_is_over(group);
    world_require(!is_over || was_confirmed(group->id, raft_term(group->raft)),
                  "group %" PRIu64 ": node %d, which lost its part, votes again in term %" PRIu64
                  ", before that of every leader it may believe", group->id, node_current()->id,
                  raft_term(group->raft));
    world_require(!is_over || is_needed(group) ||
                      raft_durable_index(group->raft) >= group->catch_up_to,
                  "group %" PRIu64 ": node %d, which lost its part, votes again before entry %"
                  PRIu64 " is on its disk", group->id, node_current()->id, group->catch_up_to);
    struct loss *loss = loss_of(node_current()->id, group->id);
    if (is_over && loss != NULL) {
        loss->is_over = true;
        loss->over_in = node_current()->life;
    }
    return is_over;
}

void __real_group_loss_none(struct group *group);
void __wrap_group_loss_none(struct group *group);

/* Nothing is known to anybody in a new cluster. */
void __wrap_group_loss_none(struct group *group)
{
    end_loss(node_current()->id, group->id);
    __real_group_loss_none(group);
}
