/* The order in which a group's files go. Each step is durable before the next one begins, so that a
 * power cut at any point leaves something that the group can come back to:
 * - The journal forgets it. What is left is a group that was stopped at its checkpoint.
 * - The checkpoint goes. What is left are logs that hold a beginning of what was committed.
 * - The logs go. Nothing claims any more to have what they held.
 * A step that fails is the last one. */
#include "broker/group/group_removal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/group/group_journal.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "storage/checkpoint.h"

struct removal {
    struct log_job job;
    struct replicas *replicas;
    uint64_t group_id;
    const char *groups_path;
    size_t log_count;
    struct log_deletion *logs[];
};

static void removed(struct removal *removal, enum status status)
{
    assert(removal->replicas->groups_starting > removal->log_count);
    for (size_t i = 0; i < removal->log_count; i++) {
        log_deletion_begin(removal->logs[i], status);
    }
    if (status != STATUS_OK && status != STATUS_CLOSED) {
        log_warn("group", "the files of group %" PRIu64 ", which is gone, were not removed: %s",
                 removal->group_id, status_text(status));
    }
    replicas_group_started(removal->replicas);
    free(removal);
}

/* On the log writer's thread. */
static enum status remove_checkpoint(struct log_job *job)
{
    struct removal *removal = container_of(job, struct removal, job);
    return checkpoint_remove(removal->groups_path, removal->group_id);
}

static void checkpoint_removed(struct log_job *job, enum status status)
{
    removed(container_of(job, struct removal, job), status);
}

static void forgotten(void *context, enum status status)
{
    struct removal *removal = context;
    struct replicas *replicas = removal->replicas;
    if (status != STATUS_OK) {
        removed(removal, status);
        return;
    }
    removal->job = (struct log_job){.run = remove_checkpoint, .done = checkpoint_removed};
    log_writer_submit(replicas->writer, replicas->logs, &removal->job);
}

void group_removal_begin(struct group *group)
{
    size_t most = (size_t)group->partition_count;
    assert(group->closed && replicas_group(group->shard->replicas, group->id) != group);
    struct removal *removal =
        memory_new_zero(1, sizeof *removal + most * sizeof removal->logs[0]);
    removal->replicas = group->shard->replicas;
    removal->group_id = group->id;
    removal->groups_path = log_dir_groups_path(group->shard->broker->log_dir);
    removal->replicas->groups_starting++;
    for (int32_t i = 0; i < group->partition_count; i++) {
        struct log_deletion *log = partition_remove(group->partitions[i]);
        if (log != NULL) {
            removal->logs[removal->log_count++] = log;
        }
    }
    assert(removal->log_count <= most);
    group_journal_forget(group, forgotten, removal);
}
