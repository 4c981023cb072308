/* A partition's appends and reads' wake-ups. Offsets are given at the proposal, in order; what is
 * proposed and not committed is known to the producer state, so that a batch sent again while the
 * first is under way is recognised. */
#include "broker/group/partition.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/group/group_members.h"
#include "broker/group/in_sync.h"
#include "broker/group/proposals.h"
#include "broker/group/replicas.h"
#include "broker/group/topic_logs.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/errors.h"
#include "protocol/records.h"

struct partition *partition_new(struct group *group, int32_t number)
{
    assert(number >= 0 && number < 1 << 24);
    struct partition *partition = memory_new_zero(1, sizeof *partition);
    partition->group = group;
    partition->number = number;
    list_init(&partition->watches);
    return partition;
}

void partition_wake(struct partition *partition)
{
    struct list woken;
    struct list_link *link;
    list_init(&woken);
    /* A woken watcher may watch again: only those that are here now are run. */
    while ((link = list_pop_front(&partition->watches)) != NULL) {
        list_push_back(&woken, link);
    }
    while ((link = list_pop_front(&woken)) != NULL) {
        struct watch *watch = container_of(link, struct watch, link);
        watch->wake(watch);
    }
}

/* The directory of a deleted partition is out of the way: a topic of the same name may come. */
static void renamed(void *context, enum status status)
{
    (void)status; /* logged by the storage; a later topic of the name meets it again */
    replicas_group_started(context);
}

void partition_end(struct partition *partition)
{
    if (partition->log != NULL) {
        partition_log_close(partition->log);
    }
    partition->log = NULL;
    partition_wake(partition);
}

struct log_deletion *partition_remove(struct partition *partition)
{
    struct replicas *replicas = partition->group->shard->replicas;
    struct log_identity identity = topic_log_identity(partition);
    replicas->groups_starting++;
    partition_end(partition);
    return log_deletion_new(replicas->logs, &identity,
                            partition->group->log_settings.file_delete_delay_ms, renamed,
                            replicas);
}

void partition_free(struct partition *partition)
{
    assert(list_is_empty(&partition->watches));
    if (partition->log != NULL) {
        partition_log_close(partition->log);
    }
    refused_free(&partition->refused);
    free(partition);
}

int32_t partition_epoch(const struct partition *partition)
{
    return (int32_t)raft_term(partition->group->raft);
}

int16_t partition_epoch_error(const struct partition *partition, int32_t epoch)
{
    int32_t current = partition_epoch(partition);
    if (epoch < 0 || epoch == current || planted(PLANT_EPOCH_IGNORED)) {
        return KAFKA_NONE;
    }
    return epoch < current ? KAFKA_FENCED_LEADER_EPOCH : KAFKA_UNKNOWN_LEADER_EPOCH;
}

int16_t partition_error(const struct partition *partition)
{
    if (partition->log == NULL || partition->damaged) {
        return partition->group->closed ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                                        : KAFKA_KAFKA_STORAGE_ERROR;
    }
    return group_error(partition->group);
}

int16_t partition_follower_error(const struct partition *partition)
{
    int16_t error = partition_error(partition);
    const struct group *group = partition->group;
    if (error != KAFKA_NOT_LEADER_OR_FOLLOWER || group->closed) {
        return error;
    }
    const struct broker *broker = group->shard->broker;
    int32_t leader = raft_leader(group->raft);
    bool follows = leader != RAFT_NO_NODE && leader != broker->node_id &&
                   peers_is_alive(broker, leader);
    return follows ? KAFKA_NONE : error;
}

bool partition_lags(const struct partition *partition)
{
    const struct group *group = partition->group;
    bool knows = group->loss == NULL && raft_leader(group->raft) != RAFT_NO_NODE;
    return !knows || group->applied_index < raft_last_index(group->raft);
}

static int16_t error_of_result(enum raft_result result)
{
    switch (result) {
    case RAFT_OK:
        return KAFKA_NONE;
    case RAFT_NOT_LEADER:
        return KAFKA_NOT_LEADER_OR_FOLLOWER;
    case RAFT_BUSY:
    case RAFT_FULL:
        /* Retriable, and clients wait before they send again. */
        return KAFKA_NOT_ENOUGH_REPLICAS;
    case RAFT_INVALID:
        break;
    }
    return KAFKA_UNKNOWN_SERVER_ERROR;
}

static int16_t error_of_status(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return KAFKA_NONE;
    case STATUS_CLOSED:
        return KAFKA_NOT_LEADER_OR_FOLLOWER;
    case STATUS_TIMEOUT:
        return KAFKA_REQUEST_TIMED_OUT;
    default:
        return KAFKA_KAFKA_STORAGE_ERROR;
    }
}

static struct producer_batch producer_batch_of(const struct batch_header *header,
                                               int64_t base_offset)
{
    return (struct producer_batch){
        .producer_id = header->producer_id,
        .epoch = header->producer_epoch,
        .base_sequence = header->base_sequence,
        .record_count = header->last_offset_delta + 1,
        .base_offset = base_offset,
        .last_offset = base_offset + header->last_offset_delta,
        .timestamp_ms = header->max_timestamp,
        .is_transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0,
    };
}

static struct batch_header header_of(const struct append *append)
{
    struct batch_header header;
    assert(append->payload.length > GROUP_PAYLOAD_PREFIX);
    struct view batch = {append->payload.data + GROUP_PAYLOAD_PREFIX,
                         append->payload.length - GROUP_PAYLOAD_PREFIX};
    enum status status = batch_read_header(batch, &header);
    assert(status == STATUS_OK);
    (void)status;
    return header;
}

/* The producer will send it again. What comes behind it until then is not to be told of a gap. */
static void expect_again(struct append *append, int16_t error)
{
    struct partition *partition = append->partition;
    if (!append->is_client || partition->log == NULL || partition->group->closed) {
        return;
    }
    struct batch_header header = header_of(append);
    if (header.producer_id < 0) {
        return;
    }
    struct producer_batch batch = producer_batch_of(&header, partition->next_offset);
    struct producer_answer answer =
        producer_state_check(partition_log_producers(partition->log), &batch);
    bool is_here = answer.verdict == PRODUCER_DUPLICATE ||
                   answer.verdict == PRODUCER_DUPLICATE_PROPOSED;
    if (!is_here) {
        refused_note(&partition->refused, &batch, error, clock_monotonic_ms());
    }
}

/* What a leader that is none any more has proposed may still commit. Producers take
 * NOT_LEADER_OR_FOLLOWER for a promise that it was not written, and make other batches of the same
 * sequence numbers; this error says that it may be there, so that they send it again as it was. */
static void append_ended(struct proposal *proposal, enum status status)
{
    struct append *append = container_of(proposal, struct append, proposal);
    const struct group *group = append->partition->group;
    bool may_commit = status == STATUS_CLOSED && !group->closed && group_is_replicated(group);
    append->error = may_commit ? KAFKA_NOT_ENOUGH_REPLICAS_AFTER_APPEND : error_of_status(status);
    if (status != STATUS_OK && status != STATUS_TIMEOUT) {
        expect_again(append, error_of_status(status)); /* of what comes behind nothing is here */
    }
    append->done(append);
}

static void refuse_append(struct append *append, int16_t error)
{
    assert(error != KAFKA_NONE);
    append->error = error;
    append->base_offset = -1;
    append->done(append);
}

/* A batch that is already here: answered with where the first copy is. */
static void answer_duplicate(struct append *append, const struct producer_answer *answer)
{
    struct group *group = append->partition->group;
    assert(answer->base_offset >= 0);
    append->base_offset = answer->base_offset;
    append->append_time_ms = answer->timestamp_ms;
    uint64_t last = raft_last_index(group->raft);
    if (answer->verdict == PRODUCER_DUPLICATE || last <= group->applied_index ||
        planted(PLANT_DUPLICATE_ANSWERED_EARLY)) {
        append->error = KAFKA_NONE;
        append->done(append);
        return;
    }
    /* Its first copy is among those under way: wait for the last of them. */
    append->proposal.done = append_ended;
    proposals_add(group, &append->proposal, last);
}

static void still_leads(struct confirm *confirm, bool leads)
{
    struct append *append = container_of(confirm, struct append, confirm);
    append->is_confirmed = true;
    if (leads) {
        partition_append(append->partition, append); /* looked at again, with all that came */
    } else {
        refuse_append(append, KAFKA_NOT_LEADER_OR_FOLLOWER);
    }
}

/* A producer gives up on such an answer. A leader that is none any more knows too little of what
 * the producer did to give it. */
static void refuse_producer(struct append *append, int16_t error)
{
    if (append->is_confirmed) {
        refuse_append(append, error);
        return;
    }
    append->confirm.done = still_leads;
    group_confirm(append->partition->group, &append->confirm);
}

/* What the producer sent before may be on its way to the leader before this one, and has come to
 * nobody yet: it is expected here, once. Where nobody else can lead, a gap is one. */
static void expect_missing(struct partition *partition, const struct producer_batch *batch,
                           const struct producer_answer *answer)
{
    bool is_first = answer->missing_sequence >= 0 &&
                    answer->last_offset < partition->lead_offset &&
                    group_is_replicated(partition->group);
    if (is_first && !refused_knows(partition->refused, batch)) {
        struct producer_batch missing = *batch;
        missing.base_sequence = answer->missing_sequence;
        refused_note(&partition->refused, &missing, KAFKA_NOT_ENOUGH_REPLICAS,
                     clock_monotonic_ms());
    }
}

static bool check_producer(struct append *append, const struct producer_batch *batch)
{
    struct partition *partition = append->partition;
    struct producer_state *producers = partition_log_producers(partition->log);
    struct producer_answer answer = producer_state_check(producers, batch);
    if (answer.verdict == PRODUCER_DUPLICATE || answer.verdict == PRODUCER_DUPLICATE_PROPOSED) {
        answer_duplicate(append, &answer);
        return false;
    }
    if (answer.verdict == PRODUCER_FENCED) {
        refuse_producer(append, KAFKA_INVALID_PRODUCER_EPOCH);
        return false;
    }
    expect_missing(partition, batch, &answer);
    int16_t behind = refused_error(partition->refused, batch, clock_monotonic_ms());
    if (behind != KAFKA_NONE) {
        refuse_append(append, behind);
        return false;
    }
    if (answer.verdict == PRODUCER_OUT_OF_ORDER) {
        refuse_producer(append, KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER);
        return false;
    }
    return true;
}

static int16_t append_error(const struct partition *partition, const struct append *append)
{
    int16_t error = partition_error(partition);
    if (error == KAFKA_NONE && append->least_in_sync > 1 &&
        !in_sync_has(partition->group, append->least_in_sync)) {
        error = KAFKA_NOT_ENOUGH_REPLICAS;
    }
    return error;
}

void partition_append(struct partition *partition, struct append *append)
{
    assert(append->done != NULL);
    assert(append->payload.length > GROUP_PAYLOAD_PREFIX);
    int16_t error = append_error(partition, append);
    append->partition = partition;
    append->append_time_ms = -1;
    if (error != KAFKA_NONE) {
        expect_again(append, error);
        refuse_append(append, error);
        return;
    }
    uint8_t *payload = append->payload.block->bytes +
                       (append->payload.data - append->payload.block->bytes);
    struct batch_header header = header_of(append);
    struct producer_batch producer = producer_batch_of(&header, partition->next_offset);
    bool is_idempotent = append->is_client && header.producer_id >= 0;
    bool checks = is_idempotent && !planted(PLANT_DUPLICATES_TAKEN);
    if (checks && !check_producer(append, &producer)) {
        return;
    }
    store_be32(payload, (uint32_t)partition->number | (uint32_t)PAYLOAD_BATCH << 24);
    batch_set_offset_and_epoch(payload + GROUP_PAYLOAD_PREFIX, partition->next_offset,
                               partition_epoch(partition));
    assert(partition->next_offset >= partition_log_end(partition->log));
    append->base_offset = partition->next_offset;
    append->proposal.done = append_ended;
    enum raft_result result = group_propose(partition->group, append->payload, &append->proposal);
    if (result != RAFT_OK) {
        expect_again(append, error_of_result(result));
        refuse_append(append, error_of_result(result));
        return;
    }
    partition->next_offset += header.last_offset_delta + 1;
    if (checks) {
        refused_taken(&partition->refused, &producer);
        producer_state_propose(partition_log_producers(partition->log), &producer);
    }
}

int16_t partition_delete_records(struct partition *partition, int64_t offset,
                                 struct proposal *proposal)
{
    int16_t error = partition_error(partition);
    if (error != KAFKA_NONE) {
        return error;
    }
    int64_t end = partition_log_end(partition->log);
    offset = offset == -1 ? end : offset;
    if (offset < 0 || offset > end) {
        return KAFKA_OFFSET_OUT_OF_RANGE;
    }
    struct block *block = block_new(GROUP_PAYLOAD_PREFIX + sizeof(uint64_t));
    store_be32(block->bytes, (uint32_t)partition->number | (uint32_t)PAYLOAD_LOG_START << 24);
    store_be64(block->bytes + GROUP_PAYLOAD_PREFIX, (uint64_t)offset);
    struct slice payload = slice_of(block, 0, block->capacity);
    enum raft_result result = group_propose(partition->group, payload, proposal);
    block_unref(block);
    return error_of_result(result);
}

/* The batch is in the log, by whichever leader. */
static void end_refusal(struct partition *partition, struct view batch)
{
    struct batch_header header;
    enum status status = batch_read_header(batch, &header);
    assert(status == STATUS_OK);
    (void)status;
    if (header.producer_id >= 0) {
        struct producer_batch producer = producer_batch_of(&header, header.base_offset);
        refused_taken(&partition->refused, &producer);
    }
}

static enum status append_to_log(struct partition *partition, struct slice batch, int64_t now_ms)
{
    const struct group *group = partition->group;
    int64_t end = partition_log_end(partition->log);
    /* A machine reads its log when it begins to lead. */
    partition_log_expect_readers(partition->log, raft_role(group->raft) == RAFT_LEADER ||
                                                     group->machine != NULL);
    enum status status = partition_log_append(partition->log, batch, now_ms);
    if (status != STATUS_OK) {
        return status;
    }
    if (planted(PLANT_PRODUCERS_NOT_FOLLOWED) && !group->leads) {
        producer_state_forget_from(partition_log_producers(partition->log), end);
    }
    if (partition->refused != NULL) {
        end_refusal(partition, slice_view(batch));
    }
    const struct group_machine *machine = group->machine;
    if (machine != NULL) {
        machine->applied(partition->group, partition, slice_view(batch));
    }
    partition_wake(partition);
    return STATUS_OK;
}

enum status partition_take(struct partition *partition, struct slice batch)
{
    assert(partition->log != NULL && partition->group->installing);
    return append_to_log(partition, batch, clock_wall_ms());
}

enum status partition_restart(struct partition *partition, int64_t offset)
{
    const struct group_machine *machine = partition->group->machine;
    assert(offset > partition_log_end(partition->log));
    enum status status = partition_log_reset(partition->log, offset);
    if (status == STATUS_OK && machine != NULL && machine->restarted != NULL) {
        machine->restarted(partition->group, partition);
    }
    return status;
}

static enum status apply_batch(struct partition *partition, struct slice batch, int64_t now_ms)
{
    struct batch_header header;
    enum status status = batch_read_header(slice_view(batch), &header);
    if (status != STATUS_OK) {
        return STATUS_CORRUPT;
    }
    bool is_there = header.base_offset < partition_log_end(partition->log);
    if (is_there && !planted(PLANT_APPLIED_TWICE)) {
        return STATUS_OK; /* it was in the log before */
    }
    /* A copy of a compacted log may end before the offsets that were given out. */
    if (header.base_offset > partition_log_end(partition->log) &&
        !partition->group->log_settings.compact) {
        log_error("group", "%s-%d: what is committed goes on at %" PRId64 ", the log ends at "
                  "%" PRId64, topic_log_name(partition->group), partition->number,
                  header.base_offset, partition_log_end(partition->log));
        return STATUS_CORRUPT;
    }
    return append_to_log(partition, batch, now_ms);
}

enum status partition_apply(struct partition *partition, enum payload_kind kind,
                            struct slice body, int64_t now_ms)
{
    if (partition->log == NULL) {
        return STATUS_CLOSED;
    }
    switch (kind) {
    case PAYLOAD_BATCH:
        return apply_batch(partition, body, now_ms);
    case PAYLOAD_LOG_START: {
        if (body.length != sizeof(uint64_t)) {
            return STATUS_CORRUPT;
        }
        int64_t offset = (int64_t)load_be64(body.data);
        if (planted(PLANT_DELETION_NOT_FOLLOWED) && !partition->group->leads) {
            return STATUS_OK;
        }
        enum status status = partition_log_delete_records(partition->log, offset);
        partition_wake(partition);
        /* After a restart the log may end below a start that its checkpoint does not know yet. */
        return status == STATUS_OUT_OF_RANGE ? STATUS_OK : status;
    }
    }
    return STATUS_CORRUPT;
}
