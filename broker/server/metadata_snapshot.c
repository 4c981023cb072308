/* Snapshots in the log: when the log has grown well beyond what the image takes, the image is
 * appended as records with a key of their own and the log start is raised to them, so that a start
 * reads little however long the history is. The leader alone does it; what fails is tried again
 * with a later command. */
#include "broker/server/metadata_state.h"

#include "base/log.h"
#include "messages/errors.h"

enum {
    SNAPSHOT_LEAST_BYTES = 1024 * 1024, /* a log below this is read fast enough, by default */
    SNAPSHOT_FACTOR = 4,                /* the log may grow to this many times the last snapshot */
};

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
    log->snapshotting = error == KAFKA_NONE && log->group != NULL;
}

static uint64_t least_bytes(const struct metadata_log *log)
{
    int64_t bytes = config_long(log->broker->config,
                                CONFIG_METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS);
    return bytes < SNAPSHOT_LEAST_BYTES ? (uint64_t)bytes : SNAPSHOT_LEAST_BYTES;
}

void metadata_snapshot_consider(struct metadata_log *log)
{
    if (log->snapshotting || log->group == NULL || group_error(log->group) != KAFKA_NONE) {
        return;
    }
    struct partition_log *records = log->group->partitions[0]->log;
    uint64_t bytes = partition_log_bytes_from(records, partition_log_start(records));
    if (bytes < least_bytes(log) || bytes < SNAPSHOT_FACTOR * log->snapshot_bytes) {
        return;
    }
    log->snapshotting = true;
    log->snapshot = (struct metadata_command){.run = run_snapshot, .done = snapshot_ended};
    metadata_commands_add(log, &log->broker->shards[0], &log->snapshot);
}
