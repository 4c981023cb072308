/* The invariants: what must hold after every step, whatever happened before.
 *
 * - one leader per term; one vote per node and term, across crashes, and on disk before it is told
 * - log matching: an index and a term name one entry with one predecessor, everywhere
 * - leader completeness: what was committed in earlier terms is in a new leader's log
 * - a leader commits by counting only entries of its own term, and others along with them
 * - what is committed never changes, was durable on a majority, and is applied alike everywhere
 * - an acknowledged entry is on the acknowledging node's disk
 * - terms and commit indexes only rise
 * - a confirmed read sees everything acknowledged before it was asked
 * - a withdrawn node gives no vote and asks for none
 * - nobody leads for long without a majority in reach, or rests with a lost leader or, as a leader,
 *   without a member that was gone and is back
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/sim/raft/sim.h"

void check_fail(const struct cluster *cluster, const char *format, ...)
{
    printf("\nFAILED seed %llu at %llu: ", (unsigned long long)cluster->seed,
           (unsigned long long)cluster->now);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct node *node = &cluster->nodes[i];
        char text[400] = "down";
        if (node->up) {
            raft_state_text(node->raft, text, sizeof text);
        }
        printf("  n%d %s\n", node->id, text);
    }
    fflush(stdout);
    exit(EXIT_FAILURE);
}

/* No message is on its way for longer than this many ticks. */
enum { LATE_TICKS = 60 };

/* ---- Log matching ---- */

struct log_cell {
    uint64_t index; /* 0 = free */
    uint64_t term;
    uint64_t before; /* the term of the predecessor */
    uint64_t content;
};

static struct log_cell *find_cell(struct history *history, uint64_t index, uint64_t term)
{
    uint64_t at = hash_mix(index * 131, term);
    for (;; at++) {
        struct log_cell *cell = &history->cells[at & (history->cell_capacity - 1)];
        if (cell->index == 0 || (cell->index == index && cell->term == term)) {
            return cell;
        }
    }
}

static void grow_cells(struct history *history)
{
    if (history->cell_count * 2 < history->cell_capacity) {
        return;
    }
    struct log_cell *old = history->cells;
    uint32_t old_capacity = history->cell_capacity;
    history->cell_capacity = old_capacity == 0 ? 1024 : old_capacity * 2;
    history->cells = memory_new_zero(history->cell_capacity, sizeof *history->cells);
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].index != 0) {
            *find_cell(history, old[i].index, old[i].term) = old[i];
        }
    }
    free(old);
}

static uint64_t content_of(const struct raft_entry *entry)
{
    uint64_t content = hash_mix(1, entry->kind);
    for (size_t i = 0; i < entry->payload.length; i++) {
        content = hash_mix(content, entry->payload.data[i]);
    }
    return content;
}

void check_appended(struct cluster *cluster, const struct node *node, uint64_t first,
                    uint64_t last)
{
    struct history *history = &cluster->history;
    for (uint64_t index = first; index <= last; index++) {
        const struct raft_entry *entry = raft_entry_at(node->raft, index);
        uint64_t before = index - 1 == raft_start_index(node->raft)
                              ? raft_start_term(node->raft)
                              : raft_entry_at(node->raft, index - 1)->term;
        grow_cells(history);
        struct log_cell *cell = find_cell(history, index, entry->term);
        if (cell->index == 0) {
            *cell = (struct log_cell){index, entry->term, before, content_of(entry)};
            history->cell_count++;
        } else if (cell->before != before || cell->content != content_of(entry)) {
            check_fail(cluster, "log matching: %llu@%llu on node %d is not what it was elsewhere",
                       (unsigned long long)index, (unsigned long long)entry->term, node->id);
        }
    }
}

/* ---- Commit ---- */

/* Whether a majority of the members with this flag has the entry on disk. */
static bool on_majority(struct cluster *cluster, const struct raft_member *members, size_t count,
                        uint8_t flag, uint64_t index, uint64_t term)
{
    uint32_t voters = 0;
    uint32_t have = 0;
    for (size_t i = 0; i < count; i++) {
        if ((members[i].flags & flag) != 0) {
            voters++;
            have += disk_has(&cluster_node(cluster, members[i].id)->disk, index, term) ? 1 : 0;
        }
    }
    return voters == 0 || have > voters / 2;
}

static void check_durable(struct cluster *cluster, const struct node *node, uint64_t index,
                          uint64_t term)
{
    size_t count;
    const struct raft_member *members = raft_members(node->raft, &count);
    if (faults_is_damaged(cluster)) {
        return; /* what was acknowledged before the damage may count for a while */
    }
    if (!on_majority(cluster, members, count, RAFT_VOTER, index, term) ||
        !on_majority(cluster, members, count, RAFT_OLD_VOTER, index, term)) {
        check_fail(cluster, "node %d commits %llu@%llu without a durable majority", node->id,
                   (unsigned long long)index, (unsigned long long)term);
    }
}

void check_counted(const struct cluster *cluster, const struct node *node, uint64_t last)
{
    if (raft_role(node->raft) == RAFT_LEADER &&
        raft_entry_at(node->raft, last)->term != raft_term(node->raft)) {
        check_fail(cluster, "node %d commits %llu of an older term by counting", node->id,
                   (unsigned long long)last);
    }
}

void check_committed(struct cluster *cluster, const struct node *node, uint64_t index,
                     uint64_t term, uint64_t hash)
{
    struct history *history = &cluster->history;
    assert(index < INDEX_MAX);
    if (index > history->committed) {
        if (index != history->committed + 1) {
            check_fail(cluster, "node %d commits %llu, which nobody led to", node->id,
                       (unsigned long long)index);
        }
        check_durable(cluster, node, index, term);
        history->committed = index;
        history->terms[index] = term;
        history->hashes[index] = hash;
        history->commit_terms[index] = raft_term(node->raft);
    } else if (history->terms[index] != term || history->hashes[index] != hash) {
        check_fail(cluster, "node %d has another committed entry at %llu@%llu (was @%llu)",
                   node->id, (unsigned long long)index, (unsigned long long)term,
                   (unsigned long long)history->terms[index]);
    }
}

/* ---- Leaders and votes ---- */

static void check_complete(struct cluster *cluster, const struct node *node)
{
    const struct history *history = &cluster->history;
    for (uint64_t index = raft_start_index(node->raft) + 1; index <= history->committed; index++) {
        if (history->commit_terms[index] >= raft_term(node->raft)) {
            return;
        }
        if (index > raft_last_index(node->raft) ||
            raft_entry_at(node->raft, index)->term != history->terms[index]) {
            check_fail(cluster, "leader completeness: node %d leads term %llu without %llu@%llu",
                       node->id, (unsigned long long)raft_term(node->raft),
                       (unsigned long long)index, (unsigned long long)history->terms[index]);
        }
    }
}

void check_leader(struct cluster *cluster, const struct node *node)
{
    uint64_t term = raft_term(node->raft);
    assert(term < TERM_MAX);
    int32_t *leader = &cluster->history.leaders[term];
    if (*leader != 0) {
        check_fail(cluster, "nodes %d and %d lead term %llu", *leader, node->id,
                   (unsigned long long)term);
    }
    *leader = node->id;
    cluster->leaders++;
    check_complete(cluster, node);
}

static void check_vote(struct cluster *cluster, const struct node *node, uint64_t term,
                       int32_t candidate)
{
    assert(term < TERM_MAX);
    int32_t *vote = &cluster->history.votes[term][node->id - 1];
    if (*vote != 0 && *vote != candidate) {
        check_fail(cluster, "node %d votes for %d and %d in term %llu", node->id, *vote, candidate,
                   (unsigned long long)term);
    }
    *vote = candidate;
    if (node->disk.saved_term != term || node->disk.saved_vote != candidate) {
        check_fail(cluster, "node %d tells its vote for %d in term %llu, which is not on its disk",
                   node->id, candidate, (unsigned long long)term);
    }
}

static void check_acknowledged(struct cluster *cluster, const struct node *node, uint64_t index)
{
    uint64_t start = raft_start_index(node->raft);
    uint64_t term = index <= start ? 0 : raft_entry_at(node->raft, index)->term;
    if (node->disk.saved_term < raft_term(node->raft) &&
        node->disk.checkpoint.term < raft_term(node->raft)) {
        check_fail(cluster, "node %d answers in term %llu, which is not on its disk", node->id,
                   (unsigned long long)raft_term(node->raft));
    }
    if (index > start && !disk_has(&node->disk, index, term)) {
        check_fail(cluster, "node %d acknowledges %llu@%llu, which is not on its disk", node->id,
                   (unsigned long long)index, (unsigned long long)term);
    }
}

void check_sent(struct cluster *cluster, const struct node *node,
                const struct raft_message *message)
{
    bool votes = (message->kind == RAFT_VOTE_REPLY || message->kind == RAFT_PRE_VOTE_REPLY) &&
                 message->accepted;
    bool campaigns = message->kind == RAFT_VOTE || message->kind == RAFT_PRE_VOTE;
    if (node->withdrawn && (votes || campaigns)) {
        check_fail(cluster, "node %d votes although it is withdrawn", node->id);
    }
    if (message->kind == RAFT_VOTE) {
        check_vote(cluster, node, message->term, node->id);
    } else if (message->kind == RAFT_VOTE_REPLY && message->accepted) {
        check_vote(cluster, node, message->term, message->to);
    } else if (message->kind == RAFT_APPEND_REPLY && message->accepted) {
        check_acknowledged(cluster, node, message->index);
    }
}

/* ---- Steps and reads ---- */

void check_step(struct cluster *cluster, struct node *node)
{
    uint64_t term = raft_term(node->raft);
    uint64_t commit = raft_commit_index(node->raft);
    if (term < node->term_seen || commit < node->commit_seen) {
        check_fail(cluster, "node %d goes back: term %llu, commit %llu", node->id,
                   (unsigned long long)term, (unsigned long long)commit);
    }
    if (commit != node->applied.index) {
        check_fail(cluster, "node %d applied %llu of %llu", node->id,
                   (unsigned long long)node->applied.index, (unsigned long long)commit);
    }
    node->term_seen = term;
    node->commit_seen = commit;
}

void check_read(struct cluster *cluster, const struct node *node, uint64_t context, uint64_t index)
{
    assert(context < cluster->history.read_count);
    struct read *read = &cluster->history.reads[context];
    if (!read->open || read->node != node->id || index < read->committed) {
        check_fail(cluster, "node %d confirms read %llu at %llu, but %llu was committed before",
                   node->id, (unsigned long long)context, (unsigned long long)index,
                   (unsigned long long)read->committed);
    }
    read->open = false;
    cluster->reads_served++;
}

/* Whether a majority of the members with this flag was in reach lately. */
static bool in_reach(const struct node *node, const struct raft_member *members, size_t count,
                     uint8_t flag)
{
    uint32_t voters = 0;
    uint32_t reached = 0;
    for (size_t i = 0; i < count; i++) {
        if ((members[i].flags & flag) != 0) {
            voters++;
            reached += node->silent_ticks[members[i].id - 1] < SILENT_TICKS ? 1 : 0;
        }
    }
    return voters == 0 || reached > voters / 2;
}

/* A leader that rested without a member brings it up to date when it is back. */
static void check_returned(const struct cluster *cluster, const struct node *node,
                           const struct raft_member *members, size_t count)
{
    uint64_t last = raft_last_index(node->raft);
    for (size_t i = 0; i < count; i++) {
        const struct node *member = &cluster->nodes[members[i].id - 1];
        if (node->back_ticks[members[i].id - 1] > LATE_TICKS &&
            raft_commit_index(member->raft) < last) {
            check_fail(cluster, "node %d rests although node %d, which is back, lacks entries",
                       node->id, member->id);
        }
    }
}

void check_contact(const struct cluster *cluster, struct node *node)
{
    size_t count;
    const struct raft_member *members = raft_members(node->raft, &count);
    int32_t leader = raft_leader(node->raft);
    bool alone = leader == node->id && !in_reach(node, members, count, RAFT_VOTER);
    node->alone_ticks = alone ? node->alone_ticks + 1 : 0;
    if (node->alone_ticks > 2 * LATE_TICKS) {
        check_fail(cluster, "node %d leads without a majority", node->id);
    }
    if (leader == node->id && !raft_needs_ticks(node->raft)) {
        check_returned(cluster, node, members, count);
    }
    if (leader != node->id && leader != RAFT_NO_NODE && !raft_needs_ticks(node->raft) &&
               node->silent_ticks[leader - 1] > LATE_TICKS + SILENT_TICKS) {
        check_fail(cluster, "node %d rests although its leader %d is lost", node->id, leader);
    }
}

void check_free(struct history *history)
{
    free(history->cells);
    history->cells = NULL;
}
