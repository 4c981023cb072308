/* The invariants. Batches are seen on their way into a partition's log (the linker wraps
 * partition_log_append): the first node that appends one says what is committed there. Groups are
 * seen at the end of each of their steps (group_window_release). */
#include "tests/sim/cluster/check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "broker/config/topic_name.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_image.h"
#include "broker/group/directory.h"
#include "broker/group/group.h"
#include "broker/group/group_move.h"
#include "broker/group/lag.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/group/topic_logs.h"
#include "protocol/crc32c.h"
#include "protocol/records.h"
#include "tests/sim/cluster/clients.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/voters.h"
#include "tests/sim/cluster/world.h"

enum { MEMBERS_MAX = 2 * NODES_MAX };

/* Who led a group in a term. */
struct term_leader {
    struct {
        uint64_t group;
        uint64_t term;
    } key;
    int32_t node;
    uint64_t commit;             /* when it was last seen, */
    uint64_t members_index;      /* and who were the members then */
    struct raft_member members[MEMBERS_MAX];
    size_t member_count;
    UT_hash_handle hh;
};

/* A batch that is committed. */
struct committed {
    int64_t base_offset;
    uint32_t crc;
    uint32_t length;
    int32_t node;
};

/* All of a partition, by rising offset. */
struct history {
    struct {
        struct uuid topic;
        int64_t partition;
    } key;
    struct committed *batches;
    size_t count;
    size_t capacity;
    UT_hash_handle hh;
};

/* What a producer has written to a partition, without a gap and nothing twice. */
struct written {
    struct {
        int64_t producer_id;
        int64_t partition;
    } key;
    int32_t next_sequence;
    UT_hash_handle hh;
};

static struct written *producers;
static struct term_leader *leaders;
static struct term_leader **last_seen; /* that was seen of each group, whose ids are dense */
static size_t last_seen_count;
static struct history *histories;
static int64_t committed_ends[MODEL_PARTITIONS];

void check_start(void)
{
    leaders = NULL;
    producers = NULL;
    histories = NULL;
    memset(committed_ends, 0, sizeof committed_ends);
}

int64_t check_committed_end(int partition)
{
    return committed_ends[partition];
}

void check_end(void)
{
    check_members_forget();
    check_strays_forget();
    check_steps_forget();
    check_losses_forget();
    struct term_leader *leader;
    struct term_leader *next_leader;
    HASH_ITER(hh, leaders, leader, next_leader) {
        HASH_DEL(leaders, leader);
        free(leader);
    }
    free(last_seen);
    last_seen = NULL;
    last_seen_count = 0;
    struct written *producer;
    struct written *next_producer;
    HASH_ITER(hh, producers, producer, next_producer) {
        HASH_DEL(producers, producer);
        free(producer);
    }
    struct history *history;
    struct history *next_history;
    HASH_ITER(hh, histories, history, next_history) {
        HASH_DEL(histories, history);
        free(history->batches);
        free(history);
    }
}

static const struct group *group_on(const struct sim_node *node, uint64_t id)
{
    const struct broker *broker = node->broker;
    return broker == NULL ? NULL
                          : replicas_group(broker->shards[id % (unsigned)broker->shard_count]
                                               .replicas, id);
}

/* Whether a member may have the entry on its disk: it has, or cannot be asked, or lost its part. */
static bool may_have(int32_t id, uint64_t group, uint64_t index)
{
    const struct sim_node *node = node_find(id);
    const struct group *here = node == NULL ? NULL : group_on(node, group);
    return here == NULL || here->storage != STATUS_OK || here->loss != NULL || node->lost_disk ||
           raft_durable_index(here->raft) >= index;
}

static bool majority_may_have(const struct term_leader *leader, uint8_t flag, uint64_t index)
{
    size_t voters = 0;
    size_t have = 0;
    for (size_t i = 0; i < leader->member_count; i++) {
        if ((leader->members[i].flags & flag) != 0) {
            voters++;
            have += may_have(leader->members[i].id, leader->key.group, index);
        }
    }
    return voters == 0 || have > voters / 2;
}

/* What is committed is on the disks of a majority of the voters; during a change of members, of the
 * old ones and of the new ones. A change ends with the commit of its entry, and then others count
 * for what is behind that. */
static void check_majorities(const struct group *group, const struct term_leader *leader)
{
    bool has_changed = raft_members_index(group->raft) != leader->members_index;
    uint64_t index = has_changed ? leader->members_index : raft_commit_index(group->raft);
    world_require(majority_may_have(leader, RAFT_VOTER, index) &&
                      majority_may_have(leader, RAFT_OLD_VOTER, index),
                  "group %" PRIu64 ": the leader of term %" PRIu64 " commits entry %" PRIu64
                  " without a majority", group->id, leader->key.term, index);
}

/* What a leader commits by counting is of its own term; what is before it comes with it. */
static void check_commit(const struct group *group, struct term_leader *leader)
{
    uint64_t commit = raft_commit_index(group->raft);
    if (commit > leader->commit && commit > raft_start_index(group->raft)) {
        world_require(raft_entry_at(group->raft, commit)->term == leader->key.term,
                      "group %" PRIu64 ": the leader of term %" PRIu64 " commits an entry of term "
                      "%" PRIu64, group->id, leader->key.term,
                      raft_entry_at(group->raft, commit)->term);
    }
    if (commit > leader->commit) {
        check_majorities(group, leader);
    }
    leader->commit = commit;
}

static uint8_t flags_in(const struct raft_member *members, size_t count, int32_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].id == id) {
            return members[i].flags;
        }
    }
    return 0;
}

static bool all_vote_in(const struct raft_member *members, size_t count,
                        const struct raft_member *others, size_t other_count)
{
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        bool votes = (members[i].flags & RAFT_VOTER) != 0;
        all = all && (!votes || (flags_in(others, other_count, members[i].id) & RAFT_VOTER) != 0);
    }
    return all;
}

static bool is_joint(const struct raft_member *members, size_t count)
{
    uint8_t flags = 0;
    for (size_t i = 0; i < count; i++) {
        flags |= members[i].flags;
    }
    return (flags & RAFT_OLD_VOTER) != 0;
}

/* Voters are exchanged by way of a joint configuration (§4.3). */
static void check_exchange(const struct group *group, const struct term_leader *leader)
{
    size_t count;
    const struct raft_member *members = raft_members(group->raft, &count);
    bool is_allowed = is_joint(members, count) || is_joint(leader->members, leader->member_count) ||
                      (all_vote_in(members, count, leader->members, leader->member_count) &&
                       all_vote_in(leader->members, leader->member_count, members, count));
    world_require(is_allowed, "group %" PRIu64 ": node %d exchanges voters in one step, at entry %"
                  PRIu64, group->id, leader->node, raft_members_index(group->raft));
    for (size_t i = 0; i < count; i++) {
        uint8_t before = flags_in(leader->members, leader->member_count, members[i].id);
        if ((members[i].flags & RAFT_VOTER) != 0 && (before & RAFT_VOTER) == 0) {
            check_losses_voter(group, members[i].id);
        }
    }
}

static void note_members(const struct group *group, struct term_leader *leader)
{
    const struct raft_member *members = raft_members(group->raft, &leader->member_count);
    assert(leader->member_count <= MEMBERS_MAX);
    memcpy(leader->members, members, leader->member_count * sizeof *members);
    leader->members_index = raft_members_index(group->raft);
}

/* A leader changes the members when the change before is committed, and not earlier. */
static void check_changes(const struct group *group, struct term_leader *leader)
{
    uint64_t latest = raft_members_index(group->raft);
    uint64_t index = raft_commit_index(group->raft) + 1;
    for (; latest > leader->members_index && index < latest; index++) {
        world_require(raft_entry_at(group->raft, index)->kind != RAFT_ENTRY_CONFIGURATION,
                      "group %" PRIu64 ": node %d changes the members at entry %" PRIu64
                      " though entry %" PRIu64 " is not committed", group->id, leader->node, latest,
                      index);
    }
    if (latest != leader->members_index) {
        check_exchange(group, leader);
        note_members(group, leader);
    }
}

static struct term_leader *new_leader(const struct sim_node *node, const struct group *group)
{
    struct term_leader *leader = memory_new_zero(1, sizeof *leader);
    leader->key.group = group->id;
    leader->key.term = raft_term(group->raft);
    leader->node = node->id;
    leader->commit = raft_commit_index(group->raft);
    note_members(group, leader);
    HASH_ADD(hh, leaders, key, sizeof leader->key, leader);
    world_say("group %" PRIu64 ": node %d leads term %" PRIu64, group->id, node->id,
              leader->key.term);
    world_note(group->id * 64 + leader->key.term);
    return leader;
}

/* Who was seen to lead the group in its term; null: nobody yet. */
static struct term_leader *find_leader(const struct group *group)
{
    uint64_t term = raft_term(group->raft);
    if (group->id >= last_seen_count) {
        size_t count = (size_t)group->id * 2 + 16;
        last_seen = memory_resize(last_seen, count, sizeof *last_seen);
        memset(last_seen + last_seen_count, 0, (count - last_seen_count) * sizeof *last_seen);
        last_seen_count = count;
    }
    struct term_leader *known = last_seen[group->id];
    if (known == NULL || known->key.term != term) {
        struct term_leader probe;
        memset(&probe, 0, sizeof probe);
        probe.key.group = group->id;
        probe.key.term = term;
        HASH_FIND(hh, leaders, &probe.key, sizeof probe.key, known);
    }
    return known;
}

static void note_leader(const struct sim_node *node, const struct group *group)
{
    struct term_leader *known = find_leader(group);
    if (known == NULL) {
        known = new_leader(node, group);
    }
    last_seen[group->id] = known;
    world_require(known->node == node->id, "group %" PRIu64 " has two leaders in term %" PRIu64
                  ": nodes %d and %d", group->id, known->key.term, known->node, node->id);
    check_commit(group, known);
    check_changes(group, known);
}

void __real_group_window_release(struct group *group);
void __wrap_group_window_release(struct group *group);

/* The end of each step of a group: nothing but a step changes who leads and what is committed. */
void __wrap_group_window_release(struct group *group)
{
    const struct sim_node *node = node_current();
    if (raft_role(group->raft) == RAFT_LEADER) {
        note_leader(node, group);
    }
    world_require(group->applied_index <= raft_commit_index(group->raft),
                  "node %d applies more of group %" PRIu64 " than is committed", node->id,
                  group->id);
    check_members(group);
    check_voters(group);
    __real_group_window_release(group);
}

/* The partition that owns the log, in the node that is run. */
static const struct partition *owner_of(const struct partition_log *log)
{
    const struct sim_node *node = node_current();
    for (int i = 0; node != NULL && node->broker != NULL && i < node->broker->shard_count; i++) {
        const struct replicas *replicas = node->broker->shards[i].replicas;
        const struct group *group = replicas == NULL ? NULL : replicas->groups;
        for (; group != NULL; group = group->by_id.next) {
            for (int32_t k = 0; k < group->partition_count; k++) {
                if (group->partitions[k]->log == log) {
                    return group->partitions[k];
                }
            }
        }
    }
    return NULL;
}

/* A batch that nobody had before, of a producer that begins with sequence 0. */
static void note_sequence(const struct batch_header *header, int32_t partition)
{
    struct written probe;
    struct written *known = NULL;
    memset(&probe, 0, sizeof probe);
    probe.key.producer_id = header->producer_id;
    probe.key.partition = partition;
    HASH_FIND(hh, producers, &probe.key, sizeof probe.key, known);
    if (known == NULL) {
        known = memory_new_zero(1, sizeof *known);
        known->key = probe.key;
        HASH_ADD(hh, producers, key, sizeof known->key, known);
    }
    world_require(header->base_sequence == known->next_sequence,
                  "partition %d: the batch at offset %" PRId64 " has sequence %d, not %d",
                  partition, header->base_offset, header->base_sequence, known->next_sequence);
    known->next_sequence += header->last_offset_delta + 1;
}

static struct history *history_of(const struct partition *partition)
{
    struct history *history = NULL;
    struct history probe;
    memset(&probe, 0, sizeof probe);
    probe.key.topic = topic_log_id(partition->group);
    probe.key.partition = partition->number;
    HASH_FIND(hh, histories, &probe.key, sizeof probe.key, history);
    if (history == NULL) {
        history = memory_new_zero(1, sizeof *history);
        history->key = probe.key;
        HASH_ADD(hh, histories, key, sizeof history->key, history);
    }
    return history;
}

/* The place of the first batch that does not begin before the offset: near the end mostly. */
static size_t batch_place(const struct history *history, int64_t base_offset)
{
    size_t to = history->count;
    size_t step = 1;
    for (; step <= to && history->batches[to - step].base_offset >= base_offset; step *= 2) {
        to -= step;
    }
    size_t from = step <= to ? to - step + 1 : 0;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        bool is_before = history->batches[middle].base_offset < base_offset;
        from = is_before ? middle + 1 : from;
        to = is_before ? to : middle;
    }
    return to;
}

static struct committed *new_batch(struct history *history, size_t place)
{
    if (history->count == history->capacity) {
        history->capacity = history->capacity * 2 + 16;
        history->batches =
            memory_resize(history->batches, history->capacity, sizeof *history->batches);
    }
    struct committed *made = &history->batches[place];
    memmove(made + 1, made, (history->count - place) * sizeof *made);
    history->count++;
    return made;
}

static void note_batch(const struct partition *partition, struct view batch)
{
    struct batch_header header;
    enum status status = batch_read_header(batch, &header);
    assert(status == STATUS_OK);
    (void)status;
    struct history *history = history_of(partition);
    size_t place = batch_place(history, header.base_offset);
    bool is_new = place == history->count ||
                  history->batches[place].base_offset != header.base_offset;
    bool is_work = strcmp(topic_log_name(partition->group), WORK_TOPIC) == 0;
    if (is_work && is_new && header.producer_id >= 0) {
        note_sequence(&header, partition->number);
    }
    if (is_work) {
        int64_t *end = &committed_ends[partition->number];
        int64_t here = batch_last_offset(&header) + 1;
        *end = here > *end ? here : *end;
    }
    uint32_t crc = crc32c(batch);
    int32_t node = node_current()->id;
    world_note(crc);
    if (is_new) {
        *new_batch(history, place) = (struct committed){header.base_offset, crc,
                                                        (uint32_t)batch.length, node};
    }
    const struct committed *known = &history->batches[place];
    world_require(known->crc == crc && known->length == batch.length,
                  "%s-%d offset %" PRId64 " on node %d differs from what node %d committed",
                  topic_log_name(partition->group), partition->number, header.base_offset, node,
                  known->node);
}

enum status __real_partition_log_append(struct partition_log *log, struct slice batch,
                                        int64_t now_ms);
enum status __wrap_partition_log_append(struct partition_log *log, struct slice batch,
                                        int64_t now_ms);

enum status __wrap_partition_log_append(struct partition_log *log, struct slice batch,
                                        int64_t now_ms)
{
    const struct partition *partition = owner_of(log);
    if (partition != NULL) {
        note_batch(partition, slice_view(batch));
    }
    return __real_partition_log_append(log, batch, now_ms);
}

/* ---- At the end ---------------------------------------------------------------------------- */

struct roll_call {
    bool tell;
    bool whole;
};

static void miss(struct roll_call *call, const struct group *group, const struct sim_node *node,
                 const char *what)
{
    call->whole = false;
    if (!call->tell) {
        return;
    }
    world_say("group %" PRIu64 " of %s on node %d: %s", group->id, topic_log_name(group),
              node->id, what);
    for (int i = 0; i < cluster.count; i++) {
        const struct group *other = group_on(&cluster.nodes[i], group->id);
        if (other != NULL) {
            char state[200];
            raft_state_text(other->raft, state, sizeof state);
            world_say("  node %d: %s", cluster.nodes[i].id, state);
        }
    }
}

/* Every node knows by the leader's word that all replicas keep up. */
static void check_in_sync(struct roll_call *call, const struct group *group,
                          const struct sim_node *node)
{
    const struct partition_group *place = group_place(group);
    for (int n = 0; n < cluster.count && place != NULL; n++) {
        const struct broker *broker = cluster.nodes[n].broker;
        uint64_t lag = broker == NULL ? 0 : directory_lag(&broker->directory, group->id);
        for (int32_t i = 0; i < place->replica_count; i++) {
            if (lag_has(lag_of(lag, place), i)) {
                miss(call, group, node, "a replica is told to lag");
            }
        }
    }
}

static void check_group(struct roll_call *call, const struct group *group,
                        const struct sim_node *node)
{
    int32_t leader = raft_leader(group->raft);
    const struct sim_node *leading = node_find(leader);
    if (group->storage != STATUS_OK) {
        miss(call, group, node, "its storage is offline");
        return;
    }
    const struct group *led = leading == NULL ? NULL : group_on(leading, group->id);
    if (led == NULL || !led->leads) {
        miss(call, group, node, "it has no leader");
    } else if (led->applied_index != group->applied_index ||
               raft_last_index(led->raft) != led->applied_index) {
        miss(call, group, node, "it is behind");
    } else if (leading != node) {
        struct raft_peer_info peer;
        bool known = raft_peer_info(led->raft, node->id, &peer);
        if (!known || peer.match_index < led->applied_index) {
            miss(call, group, node, "its leader does not know what it has");
        }
    } else {
        check_in_sync(call, group, node);
    }
}

bool check_is_known(int32_t id, bool fenced)
{
    for (int n = 0; n < cluster.count; n++) {
        const struct broker *broker = cluster.nodes[n].broker;
        for (int i = 0; broker != NULL && i < broker->shard_count; i++) {
            const struct cluster_broker *known =
                cluster_image_find(broker->shards[i].replicas->cluster, id);
            if (known == NULL || known->is_fenced != fenced) {
                return false;
            }
        }
    }
    return true;
}

/* Whether the group is where its topic says, all of them voters, and nowhere else. */
static void check_place(struct roll_call *call, const struct partition_group *place)
{
    for (int n = 0; n < cluster.count; n++) {
        const struct sim_node *node = &cluster.nodes[n];
        const struct group *group = group_on(node, place->id);
        bool is_fit = partition_group_has(place, node->id) == (group != NULL);
        size_t members = (size_t)place->replica_count;
        if (group != NULL) {
            const struct raft_member *list = raft_members(group->raft, &members);
            for (size_t i = 0; i < members; i++) {
                is_fit = is_fit && list[i].flags == RAFT_VOTER &&
                         partition_group_has(place, list[i].id);
            }
        }
        if (partition_group_moves(place) || !is_fit || members != (size_t)place->replica_count) {
            call->whole = false;
            char state[200] = "it is not here";
            if (group != NULL) {
                raft_state_text(group->raft, state, sizeof state);
            }
            world_say("group %" PRIu64 " is not where it should be, by node %d: %s%s", place->id,
                      node->id, state, partition_group_moves(place) ? ", and moves" : "");
        }
    }
}

static void check_places(struct roll_call *call, const struct sim_node *node)
{
    const struct topic_image *topic =
        replicas_topic(node->broker->shards[0].replicas, VIEW_LITERAL(WORK_TOPIC));
    for (uint32_t i = 0; topic != NULL && i < topic->group_count; i++) {
        check_place(call, &topic->groups[i]);
    }
}

struct inventory {
    struct roll_call *call;
    const struct sim_node *node;
};

static void check_directory(void *context, const struct log_dir_partition *found)
{
    const struct inventory *inventory = context;
    const struct sim_node *node = inventory->node;
    struct view name = view_text(found->topic);
    const struct topic_image *topic = replicas_topic(node->broker->shards[0].replicas, name);
    bool is_wanted = view_is(name, TOPIC_CLUSTER_METADATA) ||
                     (topic != NULL && topic_image_has(topic, found->partition) &&
                      partition_group_has(topic_image_group(topic, found->partition), node->id));
    if (!is_wanted) {
        inventory->call->whole = false;
        world_say("node %d still has a directory of %s-%d", node->id, found->topic,
                  found->partition);
    }
}

/* Whether the node's disk holds nothing of partitions that it has not. */
static void check_inventory(struct roll_call *call, const struct sim_node *node)
{
    struct inventory inventory = {call, node};
    node_enter_place(node->id);
    enum status status =
        log_dir_each_partition(node->broker->log_dir, check_directory, &inventory);
    node_leave_place(node->id);
    world_require(status == STATUS_OK, "node %d: %s", node->id, status_text(status));
}

bool check_is_whole(bool tell)
{
    struct roll_call call = {.tell = tell, .whole = true};
    for (int n = 0; n < cluster.count; n++) {
        const struct sim_node *node = &cluster.nodes[n];
        if (node->broker == NULL) {
            return false;
        }
        for (int i = 0; i < node->broker->shard_count; i++) {
            const struct group *group = node->broker->shards[i].replicas->groups;
            for (; group != NULL; group = group->by_id.next) {
                check_group(&call, group, node);
            }
        }
        check_places(&call, node);
    }
    for (int n = 0; n < cluster.count && call.whole; n++) {
        check_inventory(&call, &cluster.nodes[n]);
    }
    return call.whole;
}

struct epoch_list {
    const struct log_epoch *epochs;
    size_t count;
};

/* Without those that ended where the log begins or before: when they go differs. */
static struct epoch_list epochs_of(const struct partition_log *log)
{
    struct epoch_list list;
    list.epochs = partition_log_epochs(log, &list.count);
    while (list.count > 1 && list.epochs[1].start_offset <= partition_log_start(log)) {
        list.epochs++;
        list.count--;
    }
    return list;
}

static void tell_epochs(const struct partition *partition, const struct epoch_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        world_say("%s-%d, from %" PRId64 " to %" PRId64 ": epoch %d begins at %" PRId64,
                  topic_log_name(partition->group), partition->number,
                  partition_log_start(partition->log), partition_log_end(partition->log),
                  list->epochs[i].epoch, list->epochs[i].start_offset);
    }
}

static void compare_logs(const struct partition *a, const struct partition *b)
{
    int64_t end = partition_log_end(a->log);
    world_require(end == partition_log_end(b->log), "%s-%d ends at %" PRId64 " and %" PRId64,
                  topic_log_name(a->group), a->number, end, partition_log_end(b->log));
    world_require(partition_log_start(a->log) == partition_log_start(b->log),
                  "%s-%d begins at %" PRId64 " and %" PRId64, topic_log_name(a->group), a->number,
                  partition_log_start(a->log), partition_log_start(b->log));
    struct epoch_list lists[2] = {epochs_of(a->log), epochs_of(b->log)};
    bool same = lists[0].count == lists[1].count;
    for (size_t i = 0; same && i < lists[0].count; i++) {
        same = lists[0].epochs[i].epoch == lists[1].epochs[i].epoch &&
               (i == 0 || lists[0].epochs[i].start_offset == lists[1].epochs[i].start_offset);
    }
    if (!same) {
        tell_epochs(a, &lists[0]);
        tell_epochs(b, &lists[1]);
    }
    world_require(same, "%s-%d: the leader epochs differ", topic_log_name(a->group), a->number);
}

/* Another node that has it, of those before this one; or null. */
static const struct group *group_before(int node, uint64_t id)
{
    const struct group *group = NULL;
    for (int n = 0; n < node && group == NULL; n++) {
        group = group_on(&cluster.nodes[n], id);
    }
    return group;
}

void check_replicas(void)
{
    for (int n = 1; n < cluster.count; n++) {
        const struct sim_node *node = &cluster.nodes[n];
        for (int i = 0; i < node->broker->shard_count; i++) {
            const struct group *group = node->broker->shards[i].replicas->groups;
            for (; group != NULL; group = group->by_id.next) {
                const struct group *first = group_before(n, group->id);
                for (int32_t k = 0; first != NULL && k < group->partition_count; k++) {
                    compare_logs(first->partitions[k], group->partitions[k]);
                }
            }
        }
    }
}
