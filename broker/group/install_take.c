/* The replica's side of an install: one partition after the other is read up to where the order
 * says, then everything is flushed, the checkpoint vouches for it, and Raft goes on behind it.
 *
 * Meanwhile entries are not applied. The attempt ends with an error when the leader cannot be
 * read, the log cannot be written, the group ends, or a checkpoint is being written just when this
 * one wants to write its own (the next attempt has then little left to do). */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_loss.h"
#include "broker/group/group_members.h"
#include "broker/group/install.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/group/throttle.h"
#include "broker/group/topic_logs.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "messages/errors.h"
#include "messages/peer_install.h"
#include "protocol/api_table.h"
#include "protocol/codec.h"
#include "protocol/records.h"

enum {
    READ_BYTES = 1024 * 1024,
    ANSWER_BYTES = 4096,         /* of structs, when the answer is decoded */
    READ_MS = 10 * 1000,
    UNWRITTEN_BYTES_MAX = 16 * 1024 * 1024, /* read ahead of the log writer */
};

struct install {
    struct peer_call call;
    struct log_job job;
    struct shard_timer pause;    /* held to a rate, here or by the leader */
    struct list_link paused;     /* in the shard's installs that pause */
    struct group *group;
    struct install_order *order;
    struct checkpoint checkpoint;
    const char *groups_path;
    size_t at;                   /* the partition under way */
    size_t unwritten_bytes;
    unsigned flushes;            /* under way */
    enum status status;          /* of the flushes */
};

static void advance(struct install *install);

static void end(struct install *install, int16_t error)
{
    struct group *group = install->group;
    struct install_order *order = install->order;
    assert(group->installing && install->flushes == 0);
    group->installing = false;
    checkpoint_free(&install->checkpoint);
    free(install);
    if (error != KAFKA_NONE) {
        log_info("group", "group %" PRIu64 ": what node %d has was not installed: error %d",
                 group->id, order->leader, error);
    }
    order->done(order, error);
    if (!group->closed) {
        group_resume(group);
    }
    group_io_done(group);
}

/* The checkpoint is on the disk: Raft may go on behind it. */
static void restored(struct install *install)
{
    struct group *group = install->group;
    const struct install_order *order = install->order;
    struct raft_event event = {.kind = RAFT_EVENT_RESTORED};
    event.snapshot.index = order->index;
    event.snapshot.term = order->index_term;
    event.snapshot.members = order->members;
    event.snapshot.member_count = order->member_count;
    group_step(group, &event);
    if (raft_commit_index(group->raft) < order->index) {
        end(install, KAFKA_NOT_LEADER_OR_FOLLOWER); /* it leads, or was told so too late */
        return;
    }
    if (order->index > group->applied_index) {
        group->applied_index = order->index;
        group->applied_term = order->index_term;
        group_members_set(group, order->members, order->member_count, order->index);
    }
    log_info("group", "group %" PRIu64 ": brought to entry %" PRIu64 " from node %d", group->id,
             order->index, order->leader);
    end(install, KAFKA_NONE);
}

/* On the log writer's thread. */
static enum status write_checkpoint(struct log_job *job)
{
    struct install *install = container_of(job, struct install, job);
    return checkpoint_write(install->groups_path, &install->checkpoint);
}

static void checkpoint_written(struct log_job *job, enum status status)
{
    struct install *install = container_of(job, struct install, job);
    struct group *group = install->group;
    bool again = group->checkpoint_again;
    assert(group->checkpointing);
    group->checkpointing = false;
    group->checkpoint_again = false;
    if (status != STATUS_OK || group->closed) {
        end(install, KAFKA_KAFKA_STORAGE_ERROR);
        return;
    }
    restored(install);
    if (again && !group->closed) {
        group_checkpoint(group);
    }
}

static void fill_checkpoint(struct install *install)
{
    struct group *group = install->group;
    const struct install_order *order = install->order;
    struct checkpoint *checkpoint = &install->checkpoint;
    *checkpoint = (struct checkpoint){
        .group = group->id, .index = order->index, .term = order->index_term};
    checkpoint->members = memory_new(order->member_count * sizeof *checkpoint->members);
    checkpoint->members_index = order->index;
    for (; checkpoint->member_count < order->member_count; checkpoint->member_count++) {
        const struct raft_member *member = &order->members[checkpoint->member_count];
        checkpoint->members[checkpoint->member_count] =
            (struct checkpoint_member){.id = member->id, .flags = member->flags};
    }
    checkpoint->partition_count =
        topic_log_checkpoint_partitions(group, &checkpoint->partitions);
}

static void all_flushed(struct install *install)
{
    struct group *group = install->group;
    struct replicas *replicas = group->shard->replicas;
    if (install->status != STATUS_OK || group->closed || group->storage != STATUS_OK) {
        end(install, KAFKA_KAFKA_STORAGE_ERROR);
        return;
    }
    if (group->checkpointing) {
        end(install, KAFKA_OPERATION_NOT_ATTEMPTED); /* its index would replace this one's */
        return;
    }
    group->checkpointing = true;
    fill_checkpoint(install);
    install->groups_path = log_dir_groups_path(group->shard->broker->log_dir);
    install->job =
        (struct log_job){.run = write_checkpoint, .done = checkpoint_written, .fatal = true};
    log_writer_submit(replicas->writer, replicas->logs, &install->job);
}

static void flushed(void *context, enum status status, int64_t synced_offset)
{
    struct install *install = context;
    (void)synced_offset;
    assert(install->flushes > 0);
    install->status = status != STATUS_OK ? status : install->status;
    if (--install->flushes == 0) {
        all_flushed(install);
    }
}

static void flush_all(struct install *install)
{
    struct group *group = install->group;
    assert(install->flushes == 0);
    install->flushes = 1; /* held until every flush is asked for */
    for (int32_t i = 0; i < group->partition_count; i++) {
        install->flushes++;
        partition_log_flush(group->partitions[i]->log, flushed, install);
    }
    flushed(install, STATUS_OK, 0);
}

/* What was read is in the file: more may be read. */
static void written(void *context, enum status status, int64_t synced_offset)
{
    struct install *install = context;
    (void)synced_offset;
    assert(install->flushes == 1);
    install->flushes = 0;
    install->unwritten_bytes = 0;
    if (status != STATUS_OK || install->group->closed) {
        end(install, KAFKA_KAFKA_STORAGE_ERROR);
    } else {
        advance(install);
    }
}

/* The log goes on where the leader's begins: with the whole batch, in whose middle that may be. */
static bool begin_anew(struct partition *partition, struct view batches)
{
    struct view batch;
    struct batch_header header;
    int64_t end_offset = partition_log_end(partition->log);
    if (batch_next(&batches, &batch, &header) != STATUS_OK || header.base_offset < end_offset) {
        return false;
    }
    return header.base_offset == end_offset ||
           partition_restart(partition, header.base_offset) == STATUS_OK;
}

/* Appends what the log lacks, up to where the order says. False when the bytes are not good. */
static bool take_batches(struct install *install, struct partition *partition, struct slice batches)
{
    const struct install_partition *wanted = &install->order->partitions[install->at];
    struct view rest = slice_view(batches);
    struct view batch;
    struct batch_header header;
    enum status status;
    while ((status = batch_next(&rest, &batch, &header)) == STATUS_OK) {
        int64_t end_offset = partition_log_end(partition->log);
        if (header.base_offset < end_offset) {
            continue;
        }
        if (header.base_offset >= wanted->end_offset) {
            return true;
        }
        struct slice slice = {batches.block, batch.data, batch.length};
        if (batch_validate(batch, &header) != STATUS_OK ||
            partition_take(partition, slice) != STATUS_OK) {
            return false;
        }
        install->unwritten_bytes += batch.length;
    }
    return status == STATUS_NOT_FOUND || status == STATUS_TRUNCATED;
}

static void pause_over(struct shard_timer *timer)
{
    struct install *install = container_of(timer, struct install, pause);
    assert(install->group->installing && !install->group->closed);
    list_remove(&install->paused);
    advance(install);
}

/* It goes on by itself after that time. */
static void pause_for(struct install *install, uint64_t wait_ms)
{
    struct shard *shard = install->group->shard;
    assert(!list_contains(&install->paused) && !install->pause.set && wait_ms > 0);
    install->pause.run = pause_over;
    list_push_back(&shard->replicas->paused, &install->paused);
    shard_timer_set(shard, &install->pause, wait_ms);
}

static void read_done(struct peer_call *call, enum status status, struct slice body)
{
    struct install *install = container_of(call, struct install, call);
    struct group *group = install->group;
    const struct install_partition *wanted = &install->order->partitions[install->at];
    struct partition *partition = group_partition(group, wanted->number);
    struct peer_read_response response;
    struct arena arena;
    arena_init(&arena, ANSWER_BYTES);
    int16_t error = KAFKA_NETWORK_EXCEPTION;
    if (status == STATUS_OK &&
        message_decode_whole(&peer_read_response_type, 0, slice_view(body), &arena, &response) ==
            STATUS_OK) {
        error = response.error_code;
    }
    arena_free(&arena);
    if (error == KAFKA_NONE && (group->closed || partition == NULL)) {
        error = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
    if (error != KAFKA_NONE) {
        end(install, error);
        return;
    }
    if (response.wait_ms > 0) {
        uint64_t wait_ms = (uint64_t)response.wait_ms;
        pause_for(install, wait_ms < THROTTLE_WAIT_MS_MAX ? wait_ms : THROTTLE_WAIT_MS_MAX);
        return;
    }
    throttle_count(group, wanted->number, THROTTLE_FOLLOWER, response.batches.length);
    int64_t before = partition_log_end(partition->log);
    struct slice batches = {body.block, response.batches.data, response.batches.length};
    bool fits = before >= wanted->log_start || begin_anew(partition, slice_view(batches));
    if (!fits || !take_batches(install, partition, batches) ||
        partition_log_end(partition->log) == before) {
        end(install, KAFKA_CORRUPT_MESSAGE);
    } else if (install->unwritten_bytes >= UNWRITTEN_BYTES_MAX) {
        install->flushes = 1;
        partition_log_flush(partition->log, written, install);
    } else {
        advance(install);
    }
}

void install_end_pause(struct group *group)
{
    struct list *paused = &group->shard->replicas->paused;
    struct list_link *link = list_first(paused);
    while (link != NULL) {
        struct list_link *next = list_next(paused, link);
        struct install *install = container_of(link, struct install, paused);
        if (install->group == group) {
            assert(group->closed);
            list_remove(link);
            shard_timer_stop(&install->pause);
            end(install, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        }
        link = next;
    }
}

static void read_more(struct install *install, const struct partition *partition)
{
    int64_t log_start = install->order->partitions[install->at].log_start;
    int64_t end_offset = partition_log_end(partition->log);
    struct buffer body = {0};
    size_t most =
        throttle_bytes(install->group, partition->number, THROTTLE_FOLLOWER, READ_BYTES);
    struct peer_read_request request = {
        .group = (int64_t)install->group->id,
        .partition_index = partition->number,
        .offset = end_offset < log_start ? log_start : end_offset,
        .max_bytes = (int32_t)most,
    };
    enum status status = message_encode_to(&peer_read_request_type, 0, &request, &body);
    assert(status == STATUS_OK);
    (void)status;
    install->call = (struct peer_call){.node = install->order->leader,
                                       .api_key = API_PEER_READ,
                                       .timeout_ms = READ_MS,
                                       .done = read_done};
    peers_call(install->group->shard, &install->call, buffer_view(&body));
    buffer_free(&body);
}

static void advance(struct install *install)
{
    const struct install_order *order = install->order;
    for (; install->at < order->partition_count; install->at++) {
        const struct install_partition *wanted = &order->partitions[install->at];
        struct partition *partition = group_partition(install->group, wanted->number);
        if (partition == NULL || partition->log == NULL || partition->damaged) {
            end(install, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
            return;
        }
        if (partition_log_end(partition->log) < wanted->log_start &&
            wanted->log_start == wanted->end_offset &&
            partition_restart(partition, wanted->log_start) != STATUS_OK) {
            end(install, KAFKA_KAFKA_STORAGE_ERROR);
            return;
        }
        if (partition_log_end(partition->log) < wanted->end_offset) {
            uint64_t wait_ms =
                throttle_wait_ms(install->group, partition->number, THROTTLE_FOLLOWER);
            if (wait_ms > 0) {
                pause_for(install, wait_ms);
            } else {
                read_more(install, partition);
            }
            return;
        }
        enum status status = partition_log_delete_records(partition->log, wanted->log_start);
        assert(status == STATUS_OK);
        (void)status;
    }
    flush_all(install);
}

static int16_t objection(const struct group *group, const struct install_order *order)
{
    if (group->storage != STATUS_OK) {
        return KAFKA_KAFKA_STORAGE_ERROR;
    }
    if (order->term < raft_term(group->raft) || raft_role(group->raft) == RAFT_LEADER ||
        !group_loss_lets_lead(group, order->term)) {
        return KAFKA_FENCED_LEADER_EPOCH;
    }
    return group->installing ? KAFKA_OPERATION_NOT_ATTEMPTED : KAFKA_NONE;
}

void install_take(struct group *group, struct install_order *order)
{
    int16_t error = objection(group, order);
    assert(!group->closed && order->done != NULL);
    if (error != KAFKA_NONE) {
        order->done(order, error);
        return;
    }
    assert(order->index > 0 && order->member_count > 0);
    struct install *install = memory_new_zero(1, sizeof *install);
    install->group = group;
    install->order = order;
    group->installing = true;
    group->io_pending++;
    log_debug("group", "group %" PRIu64 ": begins to install what node %d has up to entry %" PRIu64,
              group->id, order->leader, order->index);
    advance(install);
}
