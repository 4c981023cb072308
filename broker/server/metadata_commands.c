/* The queue of commands. One runs at a time: its records are appended as one batch, and when that
 * is committed (and so in the image) the next one has its turn, while the first waits for its
 * round. One that writes nothing is answered when the others have confirmed that this node leads.
 * A node that does not lead, or ceases to, refuses: the client asks the leader. */
#include "broker/server/metadata_state.h"

#include <assert.h>

#include "base/planted.h"
#include "io/clock.h"
#include "messages/errors.h"
#include "protocol/records.h"

static void command_done(struct metadata_wait *wait, int16_t error)
{
    struct metadata_command *command = container_of(wait, struct metadata_command, wait);
    command->done(command, error);
}

/* It is done when what the image has now is in force. */
static void wait_for_round(struct metadata_log *log)
{
    struct metadata_command *command = log->current;
    assert(command != NULL);
    log->current = NULL;
    command->wait.offset = log->reader.offset;
    metadata_rounds_wait(log, &command->wait);
}

/* Its records were proposed, and this node ceased to lead: the next leader may have them or not.
 * Whoever asked must not hear that nothing happened. */
static void leave_current_open(struct metadata_log *log)
{
    struct metadata_command *command = log->current;
    assert(command != NULL);
    assert(command != &log->snapshot || log->snapshotting);
    log->current = NULL;
    metadata_wait_end(&command->wait, KAFKA_REQUEST_TIMED_OUT);
}

/* Another node leads, or is about to: then Raft takes nothing any more. */
static bool is_led_elsewhere(int16_t error)
{
    return error == KAFKA_NOT_LEADER_OR_FOLLOWER || error == KAFKA_NOT_ENOUGH_REPLICAS;
}

static void refuse_current(struct metadata_log *log, int16_t error)
{
    struct metadata_command *command = log->current;
    assert(command != NULL);
    assert(error != KAFKA_NONE);
    log->current = NULL;
    metadata_wait_end(&command->wait, is_led_elsewhere(error) ? KAFKA_NOT_CONTROLLER : error);
}

static void still_leads(struct confirm *confirm, bool leads)
{
    struct metadata_command *command = container_of(confirm, struct metadata_command, confirm);
    if (leads) {
        metadata_rounds_wait(command->wait.from->broker->metadata, &command->wait);
    } else {
        metadata_wait_end(&command->wait, KAFKA_NOT_CONTROLLER);
    }
}

/* Nothing is to be written, which is true only if this node still leads: another one may have
 * changed what the image says. */
static void confirm_current(struct metadata_log *log)
{
    struct metadata_command *command = log->current;
    assert(command != NULL && log->group != NULL);
    log->current = NULL;
    command->wait.offset = log->reader.offset;
    command->confirm.done = still_leads;
    group_confirm(log->group, &command->confirm);
}

static void appended(struct append *append)
{
    struct metadata_log *log = container_of(append, struct metadata_log, append);
    block_unref(append->payload.block);
    if (log->current == &log->snapshot) {
        log->snapshot_offset = append->base_offset;
    }
    if (append->error == KAFKA_NONE) {
        assert(log->reader.offset > append->base_offset ||
               planted(PLANT_COMMAND_BEFORE_COMMIT));
        wait_for_round(log);
    } else if (append->error == KAFKA_NOT_LEADER_OR_FOLLOWER && append->base_offset >= 0) {
        leave_current_open(log);
    } else {
        refuse_current(log, append->error);
    }
    metadata_commands_go(log);
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

static void run_current(struct metadata_log *log)
{
    struct record_list records = {0};
    assert(log->ready);
    log->current->run(log->current, log->image, &records);
    if (records.count == 0) {
        record_list_free(&records);
        confirm_current(log);
        return;
    }
    bool is_snapshot = log->current == &log->snapshot;
    struct slice payload = build_payload(&records, is_snapshot ? SNAPSHOT_KEY : VIEW_NULL);
    log->append = (struct append){.payload = payload, .done = appended};
    log->append.proposal.when_durable = planted(PLANT_COMMAND_BEFORE_COMMIT);
    log->snapshot_bytes = is_snapshot ? payload.length : log->snapshot_bytes;
    record_list_free(&records);
    partition_append(log->group->partitions[0], &log->append);
}

void metadata_commands_go(struct metadata_log *log)
{
    struct list_link *link;
    if (log->current != NULL || (!log->announced && !log->closed)) {
        return;
    }
    metadata_snapshot_consider(log);
    while (log->current == NULL && (link = list_pop_front(&log->commands)) != NULL) {
        log->current = container_of(link, struct metadata_command, wait.link);
        int16_t error = log->group == NULL ? KAFKA_NOT_CONTROLLER : group_error(log->group);
        if (error != KAFKA_NONE) {
            refuse_current(log, error);
        } else {
            run_current(log);
        }
    }
}

void metadata_commands_refuse(struct metadata_log *log)
{
    struct list_link *link;
    while ((link = list_pop_front(&log->commands)) != NULL) {
        metadata_wait_end(container_of(link, struct metadata_wait, link), KAFKA_NOT_CONTROLLER);
    }
}

void metadata_commands_add(struct metadata_log *log, struct shard *from,
                           struct metadata_command *command)
{
    assert(command->run != NULL && command->done != NULL);
    command->wait.from = from;
    command->wait.done = command_done;
    list_push_back(&log->commands, &command->wait.link);
}

static void command_arrived(struct shard *shard, struct mail *mail)
{
    struct metadata_command *command = container_of(mail, struct metadata_command, wait.mail);
    struct metadata_log *log = shard->broker->metadata;
    metadata_commands_add(log, command->wait.from, command);
    metadata_commands_go(log);
}

void metadata_submit(struct shard *from, struct metadata_command *command)
{
    command->wait.from = from;
    command->wait.mail.run = command_arrived;
    shard_post(&from->broker->shards[0], &command->wait.mail);
}

int64_t metadata_next_offset(const struct broker *broker)
{
    const struct metadata_log *log = broker->metadata;
    assert(log->current != NULL && log->group != NULL);
    return log->group->partitions[0]->next_offset;
}
