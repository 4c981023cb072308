/* The metadata group's machine: reading the log at the start, appending commands' records, handing
 * changes to the shards. Lives on shard 0; an update is shared by all shards, freed by the last. */
#include "broker/server/metadata_log.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/group/log_reader.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "broker/server/leftovers.h"
#include "io/clock.h"
#include "messages/errors.h"
#include "protocol/records.h"

enum {
    READ_STEP_BYTES = 1024 * 1024,
    SNAPSHOT_LEAST_BYTES = 1024 * 1024, /* a log below this is read fast enough */
    SNAPSHOT_FACTOR = 4,                /* the log may grow to this many times the last snapshot */
};

/* Records of a snapshot have this key; all others have none. */
#define SNAPSHOT_KEY VIEW_LITERAL("snapshot")

/* Changes on their way through the shards. */
struct metadata_update {
    struct metadata_log *log;
    struct image_changes changes;
    struct cluster_image *cluster;       /* null: the brokers are as they were */
    struct mail home;                    /* back on shard 0 when all are through */
    atomic_int shards_left;
    struct update_visit {
        struct mail mail;
        struct metadata_update *update;
    } visits[SHARDS_MAX];
};

struct metadata_log {
    struct broker *broker;
    struct group *group;
    struct image *image;
    struct list commands;                /* waiting for their turn */
    struct metadata_command *current;
    struct append append;                /* of the current command */
    struct image_changes changes;        /* of the batch being applied */
    struct log_reader reader;
    struct mail start;
    struct metadata_command snapshot;    /* the log's own command */
    struct proposal log_start;           /* follows a snapshot */
    int64_t first_offset;                /* where the image began to be read */
    int64_t snapshot_offset;             /* of the last snapshot's batch */
    uint64_t snapshot_bytes;             /* of the last snapshot; 0: none yet */
    bool snapshotting;
    bool ready;                          /* the image is complete */
    bool announced;                      /* the broker is ready */
};

static void run_next(struct metadata_log *log);

static void command_home(struct shard *shard, struct mail *mail)
{
    struct metadata_command *command = container_of(mail, struct metadata_command, mail);
    assert(shard == command->from);
    (void)shard;
    command->done(command, command->error);
}

static void finish_command(struct metadata_log *log, int16_t error)
{
    struct metadata_command *command = log->current;
    assert(command != NULL);
    log->current = NULL;
    command->error = error;
    command->mail.run = command_home;
    shard_post(command->from, &command->mail);
}

static void end_command(struct metadata_log *log, int16_t error)
{
    finish_command(log, error);
    run_next(log);
}

static void update_home(struct shard *shard, struct mail *mail)
{
    struct metadata_update *update = container_of(mail, struct metadata_update, home);
    struct metadata_log *log = update->log;
    assert(shard->number == 0);
    (void)shard;
    image_changes_free(&update->changes);
    cluster_image_unref(update->cluster);
    free(update);
    if (!log->announced) {
        log->announced = true;
        leftovers_forget_groups(log->broker);
        broker_ready(log->broker);
        run_next(log);
    } else {
        end_command(log, KAFKA_NONE);
    }
}

static void visit_done(struct metadata_update *update)
{
    if (atomic_fetch_sub(&update->shards_left, 1) == 1) {
        update->home.run = update_home;
        shard_post(&update->log->broker->shards[0], &update->home);
    }
}

void metadata_log_groups_started(struct shard *shard)
{
    struct metadata_update *update = shard->replicas->update;
    if (update != NULL) {
        shard->replicas->update = NULL;
        visit_done(update);
    }
}

static void update_visits(struct shard *shard, struct mail *mail)
{
    struct update_visit *visit = container_of(mail, struct update_visit, mail);
    struct metadata_update *update = visit->update;
    assert(shard->replicas->update == NULL);
    /* Set first: the groups may all be started before this returns. */
    shard->replicas->groups_starting++;
    shard->replicas->update = update;
    if (update->cluster != NULL) {
        replicas_set_cluster(shard->replicas, update->cluster);
    }
    replicas_change(shard->replicas, &update->changes);
    replicas_group_started(shard->replicas);
}

/* Takes the changes over and sends them round. */
static void send_round(struct metadata_log *log)
{
    struct broker *broker = log->broker;
    struct metadata_update *update = memory_new_zero(1, sizeof *update);
    update->log = log;
    update->changes = log->changes;
    log->changes = (struct image_changes){0};
    if (update->changes.brokers_changed) {
        update->cluster = cluster_image_new(log->image, &broker->self);
    }
    atomic_init(&update->shards_left, broker->shard_count);
    for (int i = 0; i < broker->shard_count; i++) {
        update->visits[i].update = update;
        update->visits[i].mail.run = update_visits;
        shard_post(&broker->shards[i], &update->visits[i].mail);
    }
}

static void apply_record(void *context, const struct batch_header *header,
                         const struct record *record)
{
    struct metadata_log *log = context;
    bool is_snapshot = record->key.data != NULL;
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
}

static void metadata_applied(struct group *group, struct partition *partition, struct view batch)
{
    struct metadata_log *log = group->machine_state;
    (void)partition;
    if (!log->ready) {
        return; /* read together with what is in the log already */
    }
    log->reader.offset = 0;
    enum status status = log_reader_batch(&log->reader, batch);
    if (status != STATUS_OK) {
        group_fail(group, status);
        return;
    }
    image_finish(log->image, &log->changes);
}

/* The first round brings what there is in the end. Topics that came and went on the way must not be
 * opened again: their records are gone from the journal. */
static void begin_with_image(struct metadata_log *log)
{
    struct image_changes whole = {.brokers_changed = log->changes.brokers_changed};
    image_changes_free(&log->changes);
    whole.capacity = image_topic_count(log->image);
    whole.items = memory_new_zero(whole.capacity, sizeof *whole.items);
    uint32_t cursor = 0;
    struct topic_image *topic;
    while ((topic = image_next_topic(log->image, &cursor)) != NULL) {
        assert(whole.count < whole.capacity);
        whole.items[whole.count++].after = topic_image_ref(topic);
    }
    log->changes = whole;
}

/* Everything committed is in the log: makes the image. */
static void read_log(struct metadata_log *log)
{
    log_reader_start(&log->reader, log->group->partitions[0]->log, apply_record, log);
    log->first_offset = log->reader.offset;
    enum status status;
    while ((status = log_reader_step(&log->reader, READ_STEP_BYTES)) == STATUS_OK) {
    }
    if (status != STATUS_NOT_FOUND) {
        log_error("metadata", "__cluster_metadata cannot be read: %s", status_text(status));
        group_fail(log->group, status);
        return;
    }
    image_finish(log->image, &log->changes);
    begin_with_image(log);
    log->ready = true;
    leftovers_discard_partitions(log->broker, log->image);
    send_round(log);
}

static void metadata_led(struct group *group, bool leads)
{
    struct metadata_log *log = group->machine_state;
    if (leads && !log->ready) {
        log->group = group;
        read_log(log);
    }
}

static void metadata_closed(struct group *group)
{
    struct metadata_log *log = group->machine_state;
    log->group = NULL;
}

static const struct group_machine metadata_machine = {
    .applied = metadata_applied,
    .led = metadata_led,
    .close = metadata_closed,
};

static void appended(struct append *append)
{
    struct metadata_log *log = container_of(append, struct metadata_log, append);
    block_unref(append->payload.block);
    if (log->current == &log->snapshot) {
        log->snapshot_offset = append->base_offset;
    }
    if (append->error != KAFKA_NONE) {
        end_command(log, append->error);
    } else {
        send_round(log);
    }
}

static struct slice build_payload(const struct record_list *records, struct view key)
{
    struct batch_builder builder;
    struct buffer bytes = {0};
    int64_t now_ms = clock_wall_ms();
    batch_builder_start(&builder);
    for (size_t i = 0; i < records->count; i++) {
        batch_builder_add(&builder, now_ms, key, record_list_get(records, i), NULL, 0);
    }
    buffer_extend(&bytes, GROUP_PAYLOAD_PREFIX);
    batch_builder_finish(&builder, 0, &bytes);
    struct block *block = block_copy(buffer_view(&bytes));
    buffer_free(&bytes);
    return slice_of(block, 0, block->capacity);
}

static void run_command(struct metadata_log *log)
{
    struct record_list records = {0};
    log->current->run(log->current, log->image, &records);
    if (records.count == 0) {
        record_list_free(&records);
        finish_command(log, KAFKA_NONE);
        return;
    }
    assert(log->ready);
    bool is_snapshot = log->current == &log->snapshot;
    struct slice payload = build_payload(&records, is_snapshot ? SNAPSHOT_KEY : VIEW_NULL);
    log->append = (struct append){.payload = payload, .done = appended};
    log->snapshot_bytes = is_snapshot ? payload.length : log->snapshot_bytes;
    record_list_free(&records);
    partition_append(log->group->partitions[0], &log->append);
}

static void run_snapshot(struct metadata_command *command, struct image *image,
                         struct record_list *records)
{
    (void)command;
    image_snapshot(image, records);
}

static void log_start_raised(struct proposal *proposal, enum status status)
{
    struct metadata_log *log = container_of(proposal, struct metadata_log, log_start);
    log->snapshotting = false;
    if (status == STATUS_OK) {
        log_info("metadata", "snapshot written: __cluster_metadata begins at offset %lld",
                 (long long)partition_log_start(log->group->partitions[0]->log));
    }
}

/* The snapshot is in the log: what is before it may go. */
static void snapshot_ended(struct metadata_command *command, int16_t error)
{
    struct metadata_log *log = container_of(command, struct metadata_log, snapshot);
    log->log_start.done = log_start_raised;
    if (error == KAFKA_NONE && log->group != NULL) {
        error = partition_delete_records(log->group->partitions[0], log->snapshot_offset,
                                         &log->log_start);
    }
    log->snapshotting = error == KAFKA_NONE;
}

/* A log that has grown well beyond its image gets a snapshot. */
static void consider_snapshot(struct metadata_log *log)
{
    if (log->snapshotting || log->group == NULL || log->group->storage != STATUS_OK) {
        return;
    }
    struct partition_log *records = log->group->partitions[0]->log;
    uint64_t bytes = partition_log_bytes_from(records, partition_log_start(records));
    if (bytes < SNAPSHOT_LEAST_BYTES || bytes < SNAPSHOT_FACTOR * log->snapshot_bytes) {
        return;
    }
    log->snapshotting = true;
    log->snapshot = (struct metadata_command){.run = run_snapshot, .done = snapshot_ended};
    log->snapshot.from = &log->broker->shards[0];
    list_push_back(&log->commands, &log->snapshot.link);
}

static void run_next(struct metadata_log *log)
{
    struct list_link *link;
    if (log->announced) {
        consider_snapshot(log);
    }
    while (log->current == NULL && log->announced &&
           (link = list_pop_front(&log->commands)) != NULL) {
        log->current = container_of(link, struct metadata_command, link);
        int16_t error = log->group == NULL ? KAFKA_NOT_CONTROLLER : group_error(log->group);
        if (error != KAFKA_NONE) {
            finish_command(log, error);
        } else {
            run_command(log);
        }
    }
}

static void command_arrived(struct shard *shard, struct mail *mail)
{
    struct metadata_command *command = container_of(mail, struct metadata_command, mail);
    struct metadata_log *log = shard->broker->metadata;
    list_push_back(&log->commands, &command->link);
    run_next(log);
}

void metadata_submit(struct shard *from, struct metadata_command *command)
{
    assert(command->run != NULL && command->done != NULL);
    command->from = from;
    command->mail.run = command_arrived;
    shard_post(&from->broker->shards[0], &command->mail);
}

static void open_group(struct shard *shard, struct mail *mail)
{
    struct metadata_log *log = container_of(mail, struct metadata_log, start);
    struct group_start start = {
        .id = METADATA_GROUP_ID,
        .machine = &metadata_machine,
        .machine_state = log,
        .boot = boot_find(&log->broker->boot, METADATA_GROUP_ID),
    };
    enum status status = group_open(shard, &start, &log->group);
    assert(status == STATUS_OK);
    (void)status;
    if (log->group->storage != STATUS_OK) {
        log_error("metadata", "without __cluster_metadata nothing can be served: restore the data "
                  "directory from a copy");
    }
}

void metadata_log_start(struct broker *broker)
{
    struct metadata_log *log = memory_new_zero(1, sizeof *log);
    log->broker = broker;
    log->image = image_new(broker->config);
    list_init(&log->commands);
    log->start.run = open_group;
    broker->metadata = log;
    shard_post(&broker->shards[0], &log->start);
}

void metadata_log_free(struct metadata_log *log)
{
    if (log == NULL) {
        return;
    }
    image_changes_free(&log->changes);
    image_free(log->image);
    log_reader_free(&log->reader);
    free(log);
}
