/* A group's life: opened from its checkpoint and the journal, stepped by events, closed.
 *
 * Raft's actions are carried out in their order. An action may lead to another step of this or
 * another group; each depth has an action list of its own, and applying is driven by applied_index,
 * so that nesting cannot apply an entry twice or out of order.
 */
#include "broker/group/group.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/controller/topic_image.h"
#include "broker/group/boot.h"
#include "broker/group/confirm.h"
#include "broker/group/directory.h"
#include "broker/group/elections.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_loss.h"
#include "broker/group/group_members.h"
#include "broker/group/group_move.h"
#include "broker/group/group_removal.h"
#include "broker/group/group_role.h"
#include "broker/group/group_window.h"
#include "broker/group/in_sync.h"
#include "broker/group/install.h"
#include "broker/group/partition.h"
#include "broker/group/proposals.h"
#include "broker/group/replicas.h"
#include "broker/group/topic_logs.h"
#include "broker/group/unread.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/errors.h"

static struct replicas *replicas_of(const struct group *group)
{
    return group->shard->replicas;
}

struct partition *group_partition(const struct group *group, int32_t number)
{
    int32_t low = 0;
    int32_t high = group->partition_count;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (group->partitions[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < group->partition_count && group->partitions[low]->number == number;
    return found ? group->partitions[low] : NULL;
}

int16_t group_error(const struct group *group)
{
    if (group->storage != STATUS_OK) {
        return KAFKA_KAFKA_STORAGE_ERROR;
    }
    if (planted(PLANT_LEADS_BEFORE_APPLIED) && raft_role(group->raft) == RAFT_LEADER) {
        return KAFKA_NONE;
    }
    return group->leads && !group->closed ? KAFKA_NONE : KAFKA_NOT_LEADER_OR_FOLLOWER;
}

static void mark_dirty(struct group *group)
{
    if (!list_contains(&group->dirty)) {
        group->dirty_since_ms = clock_monotonic_ms();
        list_push_back(&replicas_of(group)->dirty, &group->dirty);
    }
}

/* STATUS_BUSY: the entry is for a partition that this node has yet to hear of. Where others write
 * too, they may know of it first. */
static enum status apply_payload(struct group *group, struct slice payload, int64_t now_ms)
{
    assert(payload.length > GROUP_PAYLOAD_PREFIX);
    uint32_t prefix = load_be32(payload.data);
    int32_t number = (int32_t)(prefix & 0xffffff);
    struct partition *partition = group_partition(group, number);
    if (partition == NULL && group_is_replicated(group)) {
        return STATUS_BUSY;
    }
    if (partition == NULL) {
        log_error("group", "group %" PRIu64 " has an entry for partition %d, which it lacks",
                  group->id, number);
        return STATUS_CORRUPT;
    }
    struct slice body = {payload.block, payload.data + GROUP_PAYLOAD_PREFIX,
                         payload.length - GROUP_PAYLOAD_PREFIX};
    return partition_apply(partition, (enum payload_kind)(prefix >> 24), body, now_ms);
}

static void apply_up_to(struct group *group, uint64_t last)
{
    int64_t now_ms = clock_wall_ms();
    if (group->installing) {
        return; /* goes on when its logs are up to date */
    }
    while (group->applied_index < last && group->storage == STATUS_OK) {
        struct raft_entry entry = *raft_entry_at(group->raft, group->applied_index + 1);
        assert(entry.index == group->applied_index + 1);
        if (entry.kind == RAFT_ENTRY_DATA) {
            enum status status = apply_payload(group, entry.payload, now_ms);
            if (status == STATUS_BUSY) {
                break; /* goes on when the topic has it: group_update_topic */
            }
            if (status != STATUS_OK) {
                group_fail(group, status);
                return;
            }
        }
        if (entry.kind == RAFT_ENTRY_CONFIGURATION) {
            group_members_apply(group, &entry);
        }
        group->applied_index = entry.index;
        group->applied_term = entry.term;
    }
    mark_dirty(group);
    proposals_complete(group);
    confirms_applied(group);
}

void group_resume(struct group *group)
{
    apply_up_to(group, raft_commit_index(group->raft));
    group_lead_when_ready(group);
}

/* Time is wanted, or not any more. */
static void keep_time(struct group *group, bool on)
{
    struct replicas *replicas = replicas_of(group);
    assert(!on || !group->closed);
    if (on && group_is_replicated(group) && !list_contains(&group->ticking)) {
        list_push_back(&replicas->ticking, &group->ticking);
    } else if (!on && list_contains(&group->ticking)) {
        list_remove(&group->ticking);
    }
    replicas_keep_time(replicas);
}

/* Where the batches of the message will lie in the segment of the log, if the other node has the
 * same: a guess. */
static struct payload_place expected_place(const struct group *group,
                                           const struct raft_message *message)
{
    struct payload_place place = {.overlap = GROUP_PAYLOAD_PREFIX};
    uint64_t index = message->index;
    if (message->entry_count > 0 && group->partition_count == 1 &&
        group->partitions[0]->log != NULL) {
        uint64_t ahead = raft_payload_bytes_behind(group->raft, group->applied_index) -
                         raft_payload_bytes_behind(group->raft, index);
        place.position = partition_log_position(group->partitions[0]->log) + ahead -
                         (index - group->applied_index + 1) * GROUP_PAYLOAD_PREFIX;
    }
    return place;
}

/* What leaves for the disk and the peers. It goes before everything else of a step: applying may
 * lead to another step, whose entries have to come behind these in the journal. */
static void send_out(struct group *group, struct raft_action *action)
{
    switch ((enum raft_action_kind)action->kind) {
    case RAFT_ACTION_SEND:
        action->message.note = group->move;
        peers_send(group->shard, group->id, &action->message,
                   expected_place(group, &action->message));
        break;
    case RAFT_ACTION_SAVE:
        group_journal_save(group, action->save.term, action->save.voted_for);
        break;
    case RAFT_ACTION_TRUNCATE:
        group_journal_truncate(group, action->index);
        break;
    case RAFT_ACTION_APPEND:
        group_journal_append(group, action->append.first, action->append.last,
                             action->append.term);
        break;
    default:
        break;
    }
}

static void carry_out(struct group *group, const struct raft_action *action)
{
    switch ((enum raft_action_kind)action->kind) {
    case RAFT_ACTION_COMMIT:
        apply_up_to(group, action->commit.last);
        break;
    case RAFT_ACTION_ROLE:
        group_role_changed(group, action->role.role);
        break;
    case RAFT_ACTION_SLEEP:
    case RAFT_ACTION_WAKE:
        keep_time(group, raft_needs_ticks(group->raft));
        break;
    case RAFT_ACTION_SNAPSHOT_NEEDED:
        install_send(group, action->snapshot.node);
        break;
    case RAFT_ACTION_READ_READY:
        confirms_ready(group, action->read.context, action->read.index);
        break;
    case RAFT_ACTION_READ_FAILED:
        confirms_failed(group, action->read.context);
        break;
    default:
        break; /* sent out, or nothing to be done */
    }
}

static enum raft_result step(struct group *group, const struct raft_event *event,
                             uint64_t *proposed_index)
{
    struct replicas *replicas = replicas_of(group);
    assert(replicas->depth < REPLICAS_STEP_DEPTH);
    if (group->is_unread) {
        return RAFT_NOT_LEADER;
    }
    struct raft_actions *actions = &replicas->actions[replicas->depth++];
    group->steps++;
    raft_actions_clear(actions);
    enum raft_result result = raft_step(group->raft, event, actions);
    for (size_t i = 0; i < actions->count; i++) {
        struct raft_action *action = &actions->list[i];
        if (proposed_index != NULL && action->kind == RAFT_ACTION_APPEND) {
            *proposed_index = action->append.last;
        }
        send_out(group, action);
    }
    for (size_t i = 0; i < actions->count; i++) {
        carry_out(group, &actions->list[i]);
    }
    if (result == RAFT_INVALID && event->kind == RAFT_EVENT_MESSAGE) {
        replicas_log_invalid(replicas, group, event->message, actions->reason);
    }
    if (planted(PLANT_APPLIED_BEFORE_COMMIT) && event->kind == RAFT_EVENT_PERSISTED &&
        group->leads) {
        apply_up_to(group, event->persisted.index);
    }
    if (event->kind == RAFT_EVENT_PERSISTED) {
        proposals_complete(group);
    }
    replicas->depth--;
    if (--group->steps == 0) {
        group_window_release(group);
    }
    elections_stepped(group);
    group_lead_when_ready(group);
    if (group_loss_is_over(group)) {
        step(group, &(struct raft_event){.kind = RAFT_EVENT_REJOIN}, NULL);
        group_loss_rejoined(group);
    }
    return result;
}

enum raft_result group_step(struct group *group, const struct raft_event *event)
{
    return step(group, event, NULL);
}

enum raft_result group_propose(struct group *group, struct slice payload,
                               struct proposal *proposal)
{
    struct raft_event event = {.kind = RAFT_EVENT_PROPOSE,
                               .propose = {.payloads = &payload, .count = 1}};
    uint64_t index = 0;
    enum raft_result result = step(group, &event, &index);
    if (result != RAFT_OK) {
        return result;
    }
    assert(index > group->applied_index);
    proposals_add(group, proposal, index);
    return RAFT_OK;
}

void group_fail(struct group *group, enum status status)
{
    assert(status != STATUS_OK);
    if (group->storage != STATUS_OK || group->closed) {
        return; /* of one that is closed, what was under way ends with an error */
    }
    group->storage = status;
    log_error("group", "group %" PRIu64 " is offline: %s. Its partitions answer with "
              "KAFKA_STORAGE_ERROR; nothing acknowledged is lost", group->id, status_text(status));
    group_step(group, &(struct raft_event){.kind = RAFT_EVENT_WITHDRAW});
    group_stop_leading(group);
    for (int32_t i = 0; i < group->partition_count; i++) {
        partition_wake(group->partitions[i]);
    }
    group_started(group);
}

void group_io_done(struct group *group)
{
    assert(group->io_pending > 0);
    if (--group->io_pending == 0 && group->closed) {
        group_free(group);
    }
}

static struct partition *add_partition(struct group *group, int32_t number)
{
    struct partition *partition = partition_new(group, number);
    group->partitions = memory_resize(group->partitions, (size_t)group->partition_count + 1,
                                      sizeof *group->partitions);
    assert(group->partition_count == 0 ||
           group->partitions[group->partition_count - 1]->number < number);
    group->partitions[group->partition_count++] = partition;
    return partition;
}

static void open_partition(struct group *group, int32_t number,
                           const struct checkpoint *checkpoint, bool comes_again)
{
    struct partition *partition = add_partition(group, number);
    struct log_damage damage;
    if (group->storage == STATUS_IO) {
        partition->damaged = true; /* it is looked at again (unread.h) */
        return;
    }
    enum status status = topic_log_open(partition, checkpoint, comes_again, &damage);
    if (status == STATUS_OK && damage.file[0] == '\0') {
        partition->next_offset = partition_log_end(partition->log);
        return;
    }
    if (status == STATUS_OK) {
        log_error("group", "%s-%d: %s is damaged at byte %" PRIu64 ", offset %" PRId64 ": %s",
                  topic_log_name(group), number, damage.file, damage.position, damage.offset,
                  damage.reason);
        status = STATUS_CORRUPT;
    }
    partition->damaged = true;
    group->storage = status;
}

/* Those that the topic gives to this group and that are not open yet: always the highest ones. */
static void open_partitions(struct group *group, const struct checkpoint *checkpoint,
                            bool comes_again)
{
    int32_t from = group->partition_count == 0
                       ? 0
                       : group->partitions[group->partition_count - 1]->number + 1;
    int32_t number;
    while ((number = topic_log_next_partition(group, from)) >= 0) {
        open_partition(group, number, checkpoint, comes_again);
        from = number + 1;
    }
}

/* Where Raft's window starts: at the checkpoint's index and term, exactly: Raft holds the journal's
 * entries against them and voids a tail that does not fit. Only where the journal's mark is beyond
 * the checkpoint (its file was lost; the logs were scanned instead) is the term unknown: then any
 * that lies not above the next entry's will do, as nothing below it is left. */
static void start_window(struct raft_config *config, const struct checkpoint *checkpoint,
                         const struct journal_boot *boot)
{
    config->start_index = checkpoint->index;
    config->start_term = checkpoint->term;
    if (boot == NULL || boot->mark <= checkpoint->index) {
        return;
    }
    config->start_index = boot->mark;
    config->start_term = boot->vote_term;
    for (size_t i = 0; i < boot->count; i++) {
        const struct journal_record *record = &boot->records[i];
        if (record->kind == JOURNAL_ENTRY && record->term < config->start_term) {
            config->start_term = record->term;
        }
    }
}

static void create_raft(struct group *group, const struct checkpoint *checkpoint,
                        struct journal_boot *boot)
{
    struct replicas *replicas = replicas_of(group);
    struct raft_member self = {.id = group->shard->broker->node_id, .flags = RAFT_VOTER};
    bool alone = group->member_count == 0;
    struct raft_config config = {
        .id = self.id,
        .seed = group->id * 1000003u + (uint64_t)self.id,
        .limits = group->topic == NULL ? &replicas->metadata_limits : &replicas->raft_limits,
        .voted_for = RAFT_NO_NODE,
        .members = alone ? &self : group->members,
        .member_count = alone ? 1 : group->member_count,
        .members_index = group->members_index,
        .withdrawn = group->storage != STATUS_OK || group->loss != NULL,
    };
    start_window(&config, checkpoint, boot);
    group->raft = raft_create(&config);
    group->applied_index = config.start_index;
    group->applied_term = config.start_term;
    group->marked_index = config.start_index;
    if (boot != NULL) {
        boot->used = true;
        enum status status = boot->damaged ? STATUS_CORRUPT : boot_restore(boot, group->raft);
        if (status != STATUS_OK && group->storage == STATUS_OK) {
            group->storage = status;
            /* It must not lead: what it would append would void the entries behind the damage. */
            raft_free(group->raft);
            config.withdrawn = true;
            group->raft = raft_create(&config);
        }
        boot_release(boot);
    }
}

/* STATUS_CORRUPT or STATUS_NOT_FOUND: there is none to be used. With other errors the group is
 * offline: what cannot be read now is not lost. */
static enum status read_checkpoint(struct group *group, const struct group_start *start,
                                   struct checkpoint *checkpoint)
{
    const char *groups_path = log_dir_groups_path(group->shard->broker->log_dir);
    bool existed = start->existed || start->topic == NULL;
    enum status status = checkpoint_read(groups_path, group->id, checkpoint);
    if (!existed && (status == STATUS_OK || status == STATUS_CORRUPT)) {
        /* Of an earlier stay of the group on this node, whose end was cut off by a crash. */
        checkpoint_free(checkpoint);
        status = checkpoint_remove(groups_path, group->id);
        status = status == STATUS_OK ? STATUS_NOT_FOUND : status;
    }
    if (status != STATUS_OK) {
        *checkpoint = (struct checkpoint){.group = group->id};
    }
    assert(checkpoint->group == group->id);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND && status != STATUS_CORRUPT) {
        group->storage = status;
    }
    return status;
}

/* Whether this is the first of the members that live. */
static bool is_first(const struct group *group)
{
    uint32_t i = 0;
    while (i < group->member_count &&
           !peers_is_alive(group->shard->broker, group->members[i].id)) {
        i++;
    }
    return i < group->member_count && group->members[i].id == raft_id(group->raft);
}

void group_campaign_first(struct group *group)
{
    if (is_first(group) && group->storage == STATUS_OK && group->loss == NULL) {
        group_step(group, &(struct raft_event){.kind = RAFT_EVENT_CAMPAIGN,
                                               .hold = elections_hold(group)});
    }
}

/* Nobody has voted or written yet: then the first of the members leads, without waiting to see
 * whether another one does. Messages of others may have come before the group. */
static void begin(struct group *group)
{
    struct raft *raft = group->raft;
    struct replicas *replicas = replicas_of(group);
    struct raft_message message;
    bool is_new = raft_last_index(raft) == 0 && raft_term(raft) == 0;
    group_step(group, &(struct raft_event){.kind = RAFT_EVENT_START});
    if (is_new) {
        group_campaign_first(group);
    }
    while (!group->is_unread && early_take(&replicas->early, group->id, &message)) {
        replicas_raft_message(replicas, group->id, &message);
    }
    if (group->storage != STATUS_OK) {
        group_tell_role(group);
        group_started(group);
    }
}

/* One damaged file keeps one group offline. But when the directory takes no writes, it is the disk
 * that fails or is full, and the group is opened again when that is over (storage_watch.h). */
static void could_not_open(struct group *group)
{
    enum status status = group->storage;
    log_error("group", "group %" PRIu64 " of %s %s: %s", group->id, topic_log_name(group),
              group->is_unread ? "cannot be read, which is tried again" : "stays offline",
              status_text(status));
    if (group->is_unread && group->topic == NULL) {
        unread_metadata(group, status);
    } else if (status != STATUS_CORRUPT &&
               log_dir_probe(group->shard->broker->log_dir, 0) != STATUS_OK) {
        log_writer_fail(replicas_of(group)->writer, status);
    }
}

/* Whether what the logs lack without a checkpoint is to be had elsewhere. The journal may have all
 * of the group. And where there are other replicas, logs without a checkpoint or the journal's mark
 * of one are the beginning of a copy that was cut off: nothing in them was ever promised. */
static bool comes_again(const struct group *group, const struct checkpoint *checkpoint,
                        const struct journal_boot *boot)
{
    bool has_others = group->member_count > 0;
    bool is_unpromised = checkpoint->index == 0 && (boot == NULL || boot->mark == 0);
    return boot_is_whole(boot) || (has_others && is_unpromised);
}

static void start_raft(struct group *group, const struct group_start *start,
                       const struct checkpoint *checkpoint, struct journal_boot *boot,
                       bool checkpoint_is_lost)
{
    if (unread_at_opening(group)) {
        create_raft(group, checkpoint, NULL); /* it is never stepped */
        unread_note(group, start);
        return;
    }
    group_loss_begin(group, start, boot, checkpoint_is_lost);
    create_raft(group, checkpoint, boot);
    group_loss_record(group);
}

enum status group_open(struct shard *shard, const struct group_start *start, struct group **out)
{
    struct group *group = memory_new_zero(1, sizeof *group);
    group->id = start->id;
    group->shard = shard;
    group->machine = start->machine;
    group->machine_state = start->machine_state;
    group->start_deadline_ms = clock_monotonic_ms() + GROUP_START_MS;
    proposals_init(group);
    list_init(&group->confirms);
    list_init(&group->writes);
    list_init(&group->installs);
    topic_log_adopt(group, start->topic);
    directory_add(&shard->broker->directory, group->id);
    struct checkpoint checkpoint;
    struct journal_boot *boot = start->boot;
    enum status status = read_checkpoint(group, start, &checkpoint);
    group_members_begin(group, start, &checkpoint);
    bool checkpoint_is_lost = group_loss_of_checkpoint(group, start, status);
    boot = checkpoint_is_lost ? NULL : boot;
    open_partitions(group, &checkpoint, comes_again(group, &checkpoint, boot));
    start_raft(group, start, &checkpoint, boot, checkpoint_is_lost);
    checkpoint_free(&checkpoint);
    if (group->storage != STATUS_OK) {
        could_not_open(group);
    }
    group->starting = true;
    shard->replicas->groups_starting++;
    replicas_add_group(shard->replicas, group);
    *out = group;
    group_move_note(group);
    begin(group);
    return STATUS_OK;
}

void group_update_topic(struct group *group, struct topic_image *topic)
{
    topic_log_adopt(group, topic);
    group_move_note(group);
    in_sync_replicas_changed(group);
    for (int32_t i = 0; i < group->partition_count; i++) {
        if (group->partitions[i]->log != NULL) {
            partition_log_configure(group->partitions[i]->log, &group->log_settings);
        }
    }
    struct checkpoint none = {.group = group->id};
    int32_t before = group->partition_count;
    open_partitions(group, &none, false);
    bool grown = group->partition_count > before;
    if (grown && group->machine != NULL && group->machine->grown != NULL) {
        group->machine->grown(group);
    }
    if (grown && raft_commit_index(group->raft) > group->applied_index) {
        group_resume(group); /* what came for the new ones before they were known */
    }
}

void group_free(struct group *group)
{
    assert(group->io_pending == 0);
    raft_free(group->raft);
    for (int32_t i = 0; i < group->partition_count; i++) {
        partition_free(group->partitions[i]);
    }
    free(group->partitions);
    topic_image_unref(group->topic);
    free(group->topic_name);
    free(group->members);
    free(group);
}

void group_close(struct group *group, bool deleted)
{
    assert(!group->closed);
    group_started(group);
    group_stop_leading(group);
    group_move_end(group);
    group_loss_end(group);
    unread_end(group);
    keep_time(group, false);
    install_cancel(group);
    if (group->machine != NULL) {
        group->machine->close(group);
    }
    group->closed = true;
    elections_leave(group);
    group->io_pending++; /* held: what ends with the logs must not free the group under our hands */
    install_end_pause(group);
    proposals_fail(group, STATUS_CLOSED);
    confirms_end(group);
    group_window_end(group);
    replicas_drop_group(replicas_of(group), group);
    if (deleted) {
        group_removal_begin(group);
    }
    for (int32_t i = 0; i < group->partition_count && !deleted; i++) {
        partition_end(group->partitions[i]);
    }
    group_io_done(group);
}
