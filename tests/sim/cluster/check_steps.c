/* Promises that are kept or broken in one place, looked at right there (the linker wraps the
 * functions): what is told to other nodes, proposed, forgotten and taken over. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "broker/controller/image.h"
#include "broker/controller/topic_image.h"
#include "broker/group/group.h"
#include "broker/group/in_sync.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "protocol/records.h"
#include "storage/checkpoint.h"
#include "storage/journal.h"
#include "storage/log_dir.h"
#include "storage/producer_state.h"
#include "tests/sim/cluster/check.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/voters.h"
#include "tests/sim/cluster/world.h"

static const struct group *group_of(const struct sim_node *node, uint64_t id)
{
    const struct broker *broker = node == NULL ? NULL : node->broker;
    return broker == NULL ? NULL
                          : replicas_group(broker->shards[id % (unsigned)broker->shard_count]
                                               .replicas, id);
}

/* ---- What is told -------------------------------------------------------------------------- */

/* A vote is on the disk before it is told. */
static void check_vote(const struct group *group, const struct raft_message *message)
{
    bool is_vote = message->kind == RAFT_VOTE_REPLY && message->accepted;
    world_require(!is_vote || message->term != raft_term(group->raft) || raft_is_saved(group->raft),
                  "group %" PRIu64 ": node %d tells node %d of a vote that is not on its disk",
                  group->id, message->from, message->to);
}

/* What a follower says it has in common with its leader, the leader has. */
static void check_match(const struct group *group, const struct raft_message *message)
{
    bool is_match = message->kind == RAFT_HEARTBEAT_REPLY ||
                    (message->kind == RAFT_APPEND_REPLY && message->accepted);
    const struct group *led = is_match ? group_of(node_find(message->to), group->id) : NULL;
    if (led == NULL || raft_role(led->raft) != RAFT_LEADER ||
        raft_term(led->raft) != message->term) {
        return;
    }
    uint64_t index = message->index;
    bool is_there = index <= raft_last_index(led->raft);
    bool is_seen = is_there && index > raft_start_index(led->raft) &&
                   index > raft_start_index(group->raft) && index <= raft_last_index(group->raft);
    is_there = is_there && (!is_seen || raft_entry_at(led->raft, index)->term ==
                                            raft_entry_at(group->raft, index)->term);
    world_require(is_there, "group %" PRIu64 ": node %d tells its leader %d that it has entry %"
                  PRIu64 ", which that one has not", group->id, message->from, message->to, index);
}

void __real_peers_send(struct shard *shard, uint64_t group, const struct raft_message *message,
                       struct payload_place place);
void __wrap_peers_send(struct shard *shard, uint64_t group, const struct raft_message *message,
                       struct payload_place place);

void __wrap_peers_send(struct shard *shard, uint64_t group, const struct raft_message *message,
                       struct payload_place place)
{
    const struct group *from = replicas_group(shard->replicas, group);
    if (from != NULL) {
        check_vote(from, message);
        check_losses_vote(from, message);
        check_match(from, message);
    }
    __real_peers_send(shard, group, message, place);
}

/* ---- What is proposed ---------------------------------------------------------------------- */

/* The batch of an entry that is for this partition; false when it is something else. */
static bool batch_of(struct view payload, int32_t partition, struct batch_header *header)
{
    uint32_t prefix = payload.length > GROUP_PAYLOAD_PREFIX ? load_be32(payload.data) : 0;
    if (prefix >> 24 != PAYLOAD_BATCH || (int32_t)(prefix & 0xffffff) != partition) {
        return false;
    }
    struct view batch = {payload.data + GROUP_PAYLOAD_PREFIX,
                         payload.length - GROUP_PAYLOAD_PREFIX};
    return batch_read_header(batch, header) == STATUS_OK;
}

/* A leader gives out offsets when it has applied all that it found, and without a gap. */
static void check_proposal(const struct group *group, struct view payload)
{
    uint64_t last = raft_last_index(group->raft);
    uint64_t index = group->applied_index + 1;
    world_require(index > last || raft_entry_at(group->raft, index)->term == raft_term(group->raft),
                  "group %" PRIu64 ": the leader writes though it has not applied entry %" PRIu64
                  " of an earlier term", group->id, index);
    struct batch_header header;
    int32_t number = (int32_t)(load_be32(payload.data) & 0xffffff);
    if (!batch_of(payload, number, &header)) {
        return;
    }
    int64_t offset = header.base_offset;
    int64_t end = partition_log_end(group_partition(group, number)->log);
    for (; index <= last; index++) {
        const struct raft_entry *entry = raft_entry_at(group->raft, index);
        if (entry->kind == RAFT_ENTRY_DATA &&
            batch_of(slice_view(entry->payload), number, &header)) {
            end = batch_last_offset(&header) + 1;
        }
    }
    world_require(offset == end, "group %" PRIu64 ": the leader gives offset %" PRId64
                  " to a batch behind %" PRId64, group->id, offset, end);
}

enum raft_result __real_group_propose(struct group *group, struct slice payload,
                                      struct proposal *proposal);
enum raft_result __wrap_group_propose(struct group *group, struct slice payload,
                                      struct proposal *proposal);

enum raft_result __wrap_group_propose(struct group *group, struct slice payload,
                                      struct proposal *proposal)
{
    if (raft_role(group->raft) == RAFT_LEADER) {
        check_proposal(group, slice_view(payload));
    }
    enum raft_result result = __real_group_propose(group, payload, proposal);
    if (result == RAFT_OK) {
        voters_proposed(group);
    }
    return result;
}

static const struct partition *partition_of(const struct producer_state *state)
{
    const struct broker *broker = node_current()->broker;
    for (int i = 0; i < broker->shard_count; i++) {
        const struct group *group = broker->shards[i].replicas->groups;
        for (; group != NULL; group = group->by_id.next) {
            for (int32_t k = 0; k < group->partition_count; k++) {
                struct partition_log *log = group->partitions[k]->log;
                if (log != NULL && partition_log_producers(log) == state) {
                    return group->partitions[k];
                }
            }
        }
    }
    return NULL;
}

/* A batch that is said to be on its way is among the leader's entries. */
static bool is_proposed(const struct partition *partition, const struct producer_batch *batch)
{
    const struct raft *raft = partition->group->raft;
    struct batch_header header;
    bool found = false;
    uint64_t last = raft_last_index(raft);
    for (uint64_t i = partition->group->applied_index + 1; i <= last && !found; i++) {
        const struct raft_entry *entry = raft_entry_at(raft, i);
        found = entry->kind == RAFT_ENTRY_DATA &&
                batch_of(slice_view(entry->payload), partition->number, &header) &&
                header.producer_id == batch->producer_id &&
                header.base_sequence == batch->base_sequence;
    }
    return found;
}

struct producer_answer __real_producer_state_check(const struct producer_state *state,
                                                   const struct producer_batch *batch);
struct producer_answer __wrap_producer_state_check(const struct producer_state *state,
                                                   const struct producer_batch *batch);

struct producer_answer __wrap_producer_state_check(const struct producer_state *state,
                                                   const struct producer_batch *batch)
{
    struct producer_answer answer = __real_producer_state_check(state, batch);
    if (answer.verdict == PRODUCER_DUPLICATE_PROPOSED) {
        const struct partition *partition = partition_of(state);
        world_require(partition == NULL || is_proposed(partition, batch),
                      "partition %d: a batch of producer %" PRId64 " with sequence %d is said to "
                      "be on its way, and is not", partition->number, batch->producer_id,
                      batch->base_sequence);
    }
    return answer;
}

/* The latest batches that a process proposed of each partition. */
struct proposed {
    uint64_t group;
    int32_t node;
    unsigned life;
    int32_t partition;
    struct producer_batch batch;
};

enum { PROPOSED_KEPT_MOST = 4096 };

static struct proposed proposed[PROPOSED_KEPT_MOST]; /* a ring */
static size_t proposed_count;

void check_steps_forget(void)
{
    proposed_count = 0;
}

void __real_producer_state_propose(struct producer_state *state,
                                   const struct producer_batch *batch);
void __wrap_producer_state_propose(struct producer_state *state,
                                   const struct producer_batch *batch);

void __wrap_producer_state_propose(struct producer_state *state,
                                   const struct producer_batch *batch)
{
    const struct partition *partition = partition_of(state);
    const struct sim_node *node = node_current();
    if (partition != NULL) {
        proposed[proposed_count++ % PROPOSED_KEPT_MOST] = (struct proposed){
            partition->group->id, node->id, node->life, partition->number, *batch};
    }
    __real_producer_state_propose(state, batch);
}

static void check_nothing_proposed(const struct group *group)
{
    const struct sim_node *node = node_current();
    for (size_t i = 0; i < PROPOSED_KEPT_MOST && i < proposed_count; i++) {
        const struct proposed *known = &proposed[i];
        if (known->group == group->id && known->node == node->id && known->life == node->life) {
            const struct partition *partition = group_partition(group, known->partition);
            struct producer_answer answer = __real_producer_state_check(
                partition_log_producers(partition->log), &known->batch);
            world_require(answer.verdict != PRODUCER_DUPLICATE_PROPOSED,
                          "group %" PRIu64 ": node %d begins to lead with a batch of producer %"
                          PRId64 " on its way", group->id, node->id, known->batch.producer_id);
        }
    }
}

void __real_in_sync_begin(struct group *group);
void __wrap_in_sync_begin(struct group *group);

/* Who begins to lead has applied everything and proposed nothing. */
void __wrap_in_sync_begin(struct group *group)
{
    check_nothing_proposed(group);
    for (int32_t i = 0; i < group->partition_count; i++) {
        const struct partition *partition = group->partitions[i];
        world_require(partition->next_offset == partition_log_end(partition->log),
                      "group %" PRIu64 ": node %d begins to lead with offset %" PRId64
                      " behind %" PRId64, group->id, node_current()->id, partition->next_offset,
                      partition_log_end(partition->log));
    }
    __real_in_sync_begin(group);
}

/* ---- What is forgotten --------------------------------------------------------------------- */

void __real_journal_mark(struct journal *journal, uint64_t group, uint64_t index);
void __wrap_journal_mark(struct journal *journal, uint64_t group, uint64_t index);

/* The journal may forget what a checkpoint vouches for. */
void __wrap_journal_mark(struct journal *journal, uint64_t group, uint64_t index)
{
    const struct broker *broker = node_current()->broker;
    struct checkpoint checkpoint;
    enum status status =
        checkpoint_read(log_dir_groups_path(broker->log_dir), group, &checkpoint);
    world_require(status != STATUS_OK || checkpoint.index >= index,
                  "group %" PRIu64 ": the journal of node %d forgets up to entry %" PRIu64
                  ", but the checkpoint is of entry %" PRIu64, group, node_current()->id, index,
                  checkpoint.index);
    world_require(status != STATUS_NOT_FOUND, "group %" PRIu64 ": the journal of node %d forgets "
                  "up to entry %" PRIu64 " without a checkpoint", group, node_current()->id, index);
    checkpoint_free(&checkpoint);
    __real_journal_mark(journal, group, index);
}

/* A directory that was lost counts as complete when what each group had to get is on the disk. */
static void check_caught_up(const struct group *group)
{
    bool is_new = group->topic == NULL && raft_last_index(group->raft) == 0; /* so is the cluster */
    bool is_told = check_losses_ended_here(group->id) && group->catch_up_to != UINT64_MAX;
    if (is_new || !is_told) {
        world_require(is_new || group->loss == NULL, "node %d counts as complete before group %"
                      PRIu64 " has caught up", node_current()->id, group->id);
        return;
    }
    uint64_t wanted =
        group->catch_up_to < group->applied_index ? group->catch_up_to : group->applied_index;
    world_require(raft_durable_index(group->raft) >= wanted,
                  "node %d counts as complete before entry %" PRIu64 " of group %" PRIu64
                  " is on its disk", node_current()->id, wanted, group->id);
}

enum status __real_log_dir_complete(struct log_dir *dir);
enum status __wrap_log_dir_complete(struct log_dir *dir);

enum status __wrap_log_dir_complete(struct log_dir *dir)
{
    const struct broker *broker = node_current()->broker;
    assert(broker->log_dir == dir);
    for (int i = 0; i < broker->shard_count; i++) {
        const struct group *group = broker->shards[i].replicas->groups;
        for (; group != NULL; group = group->by_id.next) {
            check_caught_up(group);
        }
    }
    return __real_log_dir_complete(dir);
}

/* ---- What is taken over -------------------------------------------------------------------- */

static struct view name_of(const struct image_change *change)
{
    return change->before != NULL ? change->before->name : change->after->name;
}

void __real_replicas_change(struct replicas *replicas, const struct image_changes *changes);
void __wrap_replicas_change(struct replicas *replicas, const struct image_changes *changes);

/* What happened to a topic is one change. */
void __wrap_replicas_change(struct replicas *replicas, const struct image_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        for (size_t k = 0; k < i; k++) {
            struct view name = name_of(&changes->items[i]);
            world_require(!view_equal(name, name_of(&changes->items[k])),
                          "node %d changes topic %.*s twice at once", node_current()->id,
                          (int)name.length, (const char *)name.data);
        }
    }
    __real_replicas_change(replicas, changes);
}
