/* The metadata group's machine: the image is read from the log once what was there at the start is
 * applied, and follows each committed batch from then on. A leader begins when it leads; a follower
 * when a leader has told it what of its own log is committed. Failures: a record that cannot be
 * applied takes the group offline, since nothing after it could be trusted. */
#include "broker/server/metadata_log.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/group/boot.h"
#include "broker/group/replicas.h"
#include "broker/group/unread.h"
#include "broker/server/cluster.h"
#include "broker/server/fencing.h"
#include "broker/server/first_start.h"
#include "broker/server/leftovers.h"
#include "broker/server/metadata_members.h"
#include "broker/server/metadata_state.h"
#include "broker/server/voter_address.h"
#include "broker/server/voter_wait.h"
#include "messages/errors.h"

enum { READ_STEP_BYTES = 1024 * 1024 };

/* What was there when this process registered may be what a process before it had promised
 * something in; nothing that came later is. */
static void note_registration(struct metadata_log *log)
{
    struct broker *broker = log->broker;
    for (int i = 0; i < image_broker_count(log->image); i++) {
        const struct register_broker_record *record = image_broker(log->image, i);
        if (uuid_equal(record->incarnation_id, broker->self.incarnation)) {
            broker->groups_before = image_next_group_id(log->image);
        }
    }
}

static void apply_record(void *context, const struct batch_header *header,
                         const struct record *record)
{
    struct metadata_log *log = context;
    bool is_snapshot = record->key.data != NULL;
    if (planted(PLANT_BATCH_HALF_FOLLOWED) && log->ready && !log->group->leads &&
        record->offset != header->base_offset) {
        return;
    }
    if (is_snapshot && header->base_offset != log->first_offset) {
        return; /* the image has all of it already */
    }
    enum status status = image_apply(log->image, record->value, &log->changes);
    if (status != STATUS_OK && log->group->storage == STATUS_OK) {
        log_error("metadata", "the record at offset %lld of __cluster_metadata cannot be applied: "
                  "%s. Was it written by a later version?", (long long)record->offset,
                  status_text(status));
        group_fail(log->group, status);
    }
    /* In a snapshot the brokers come before the groups that were there when they registered. */
    bool is_history = !is_snapshot || planted(PLANT_REGISTERED_IN_SNAPSHOT);
    if (!log->ready && is_history && log->broker->groups_before == UINT64_MAX) {
        note_registration(log);
    }
}

/* From where the reader is to the end. */
static void read_on(struct metadata_log *log)
{
    enum status status;
    while ((status = log_reader_step(&log->reader, READ_STEP_BYTES)) == STATUS_OK) {
    }
    if (status != STATUS_NOT_FOUND) {
        log_error("metadata", "__cluster_metadata cannot be read: %s", status_text(status));
        group_fail(log->group, status);
    }
    if (status == STATUS_IO) { /* the process begins anew, until it is read (storage_watch.h) */
        unread_metadata(log->group, status);
    }
    image_finish(log->image, &log->changes);
}

static void read_from_start(struct metadata_log *log)
{
    struct partition_log *records = log->group->partitions[0]->log;
    log_reader_free(&log->reader);
    log_reader_start(&log->reader, records, apply_record, log);
    log->first_offset = log->reader.offset;
    read_on(log);
}

/* The first round brings what there is in the end. Topics that came and went on the way must not be
 * opened again: their records are gone from the journal. */
static void begin_with_image(struct metadata_log *log)
{
    image_changes_free(&log->changes);
    image_difference(NULL, log->image, &log->changes);
}

static void leftovers_gone(void *context)
{
    struct metadata_log *log = context;
    log->clearing = false;
    metadata_rounds_go(log);
}

/* Everything that was in the group's log at the start is applied: makes the image. */
static void begin(struct metadata_log *log)
{
    assert(!log->ready);
    read_from_start(log);
    if (log->group->storage != STATUS_OK) {
        return;
    }
    begin_with_image(log);
    log->ready = true;
    log->clearing = true;
    leftovers_discard_partitions(log->group, log->image, leftovers_gone, log);
    metadata_rounds_take(log);
}

/* Whether a follower has applied whatever of its own log is committed: a leader is there, and has
 * confirmed or replaced all that was here. When the leader wrote to this node, it also has what the
 * leader had then; without that, an empty log says nothing of what there is. */
static bool has_caught_up(const struct metadata_log *log)
{
    const struct group *group = log->group;
    uint64_t last = raft_last_index(group->raft);
    uint64_t wanted = last < log->opened_index ? last : log->opened_index;
    bool is_told = group->catch_up_to != UINT64_MAX;
    if (is_told ? group->applied_index < group->catch_up_to : log->opened_index == 0) {
        return false;
    }
    return raft_leader(group->raft) != RAFT_NO_NODE && group->applied_index >= wanted;
}

static void consider_begin(struct metadata_log *log)
{
    bool is_open = log->group != NULL && log->group->storage == STATUS_OK;
    if (!log->ready && is_open && raft_role(log->group->raft) == RAFT_FOLLOWER &&
        has_caught_up(log)) {
        begin(log);
    }
}

/* The log begins behind what the image has: it was brought up from a snapshot. The image is made
 * anew; what it tells the shards is how it differs. */
static void start_over(struct metadata_log *log)
{
    struct image *before = log->image;
    log->image = image_new(log->broker->config);
    assert(log->changes.count == 0);
    read_from_start(log);
    image_changes_free(&log->changes);
    image_difference(before, log->image, &log->changes);
    image_free(before);
}

static void metadata_applied(struct group *group, struct partition *partition, struct view batch)
{
    struct metadata_log *log = group->machine_state;
    if (!log->ready) {
        return; /* read together with what is in the log already */
    }
    struct batch_header header;
    enum status status = batch_read_header(batch, &header);
    assert(status == STATUS_OK);
    if (partition_log_start(partition->log) > log->reader.offset) {
        start_over(log);
    } else if (header.base_offset == log->reader.offset) {
        status = log_reader_batch(&log->reader, batch);
        log->reader.offset = batch_last_offset(&header) + 1;
        if (status != STATUS_OK) {
            group_fail(group, status);
        }
        image_finish(log->image, &log->changes);
    } else {
        read_on(log); /* batches came that were not told one by one */
    }
    metadata_rounds_take(log);
}

static void metadata_led(struct group *group, bool leads)
{
    struct metadata_log *log = group->machine_state;
    assert(log->group == group);
    if (!leads) {
        metadata_commands_refuse(log);
    } else if (!log->ready) {
        begin(log);
    } else {
        metadata_commands_go(log);
    }
}

static void metadata_closed(struct group *group)
{
    struct metadata_log *log = group->machine_state;
    log->group = NULL;
    log->closed = true;
    metadata_commands_refuse(log);
    metadata_rounds_fail_waits(log, KAFKA_REQUEST_TIMED_OUT); /* it is committed */
    voter_waits_fail(log, KAFKA_REQUEST_TIMED_OUT);
}

static const struct group_machine metadata_machine = {
    .applied = metadata_applied,
    .led = metadata_led,
    .close = metadata_closed,
};

static enum status begin_with_latest(void *machine_state)
{
    const struct metadata_log *log = machine_state;
    return cluster_begin_with_voters(log->broker);
}

static void open_group(struct shard *shard, struct mail *mail)
{
    struct metadata_log *log = container_of(mail, struct metadata_log, start);
    size_t member_count;
    size_t latest_count;
    struct raft_member *members = metadata_members_at_start(log->broker, &member_count);
    struct raft_member *latest = metadata_members_latest(log->broker, &latest_count);
    latest_count = planted(PLANT_FIRST_VOTERS_AGAIN) ? 0 : latest_count;
    struct group_start start = {
        .id = METADATA_GROUP_ID,
        .machine = &metadata_machine,
        .machine_state = log,
        .boot = boot_find(&log->broker->boot, METADATA_GROUP_ID),
        .members = members,
        .member_count = member_count,
        .latest = latest,
        .latest_count = latest_count,
        .begin_with_latest = latest_count > 0 ? begin_with_latest : NULL,
        .existed = true, /* as long as nobody knows better (first_start.h) */
    };
    enum status status = group_open(shard, &start, &log->group);
    assert(status == STATUS_OK);
    (void)status;
    free(members);
    free(latest);
    log->opened_index = raft_last_index(log->group->raft);
    if (log->group->storage != STATUS_OK) {
        log_error("metadata", "without __cluster_metadata nothing can be served: restore the data "
                  "directory from a copy");
    }
}

void metadata_log_start(struct broker *broker)
{
    struct metadata_log *log = memory_new_zero(1, sizeof *log);
    log->broker = broker;
    broker->groups_before = UINT64_MAX;
    log->image = image_new(broker->config);
    list_init(&log->commands);
    list_init(&log->voter_waits);
    metadata_rounds_init(log);
    fencing_init(&log->fencing);
    log->start.run = open_group;
    broker->metadata = log;
    shard_post(&broker->shards[0], &log->start);
}

void metadata_log_tick(struct broker *broker, uint64_t now_ms)
{
    struct metadata_log *log = broker->metadata;
    if (log->group != NULL) {
        first_start_tick(log, now_ms);
        consider_begin(log);
        quorum_times_tick(&log->times, log->group->raft, now_ms);
    }
    metadata_rounds_tick(log, now_ms);
    metadata_members_update(log);
    voter_waits_tick(log, now_ms);
    voter_address_tick(log, now_ms);
    fencing_tick(log, now_ms);
}

uint64_t metadata_log_had_ms(const struct broker *broker, int32_t node)
{
    assert(broker->metadata != NULL);
    return quorum_times_had_ms(&broker->metadata->times, node);
}

void metadata_log_free(struct metadata_log *log)
{
    if (log == NULL) {
        return;
    }
    image_changes_free(&log->changes);
    metadata_rounds_free(log);
    image_free(log->image);
    fencing_free(&log->fencing);
    voter_address_free(log);
    log_reader_free(&log->reader);
    free(log);
}
