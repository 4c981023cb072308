/* The order in which a group's files go. Each step is durable before the next one begins, so that a
 * power cut at any point leaves something that the group can come back to:
 * - The journal forgets it. What is left is a group that was stopped at its checkpoint.
 * - The checkpoint goes. What is left are logs that hold a beginning of what was committed.
 * - The logs go. Nothing claims any more to have what they held.
 * A step that fails is the last one: what is left goes at the next start (leftovers.h). When the
 * directory takes no writes then, it is offline as after every other write that fails, and that
 * start comes by itself. When it does, these files alone are bad: to try again and again would hold
 * up the rounds, or let the group that comes back lose what it has by then. */
#include "broker/group/group_removal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/group/group_journal.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "storage/checkpoint.h"

struct steps {
    struct log_job job;
    struct replicas *replicas;
    struct log_dir *dir;
    void (*ended)(void *context, enum status status);
    void *context;
    size_t count;
    uint64_t ids[];
};

static void steps_ended(struct steps *steps, enum status status)
{
    if (status != STATUS_OK && status != STATUS_CLOSED) {
        log_warn("group", "the files of group %" PRIu64 " and perhaps others, which are gone, were "
                 "not removed: %s. They go at the next start", steps->ids[0], status_text(status));
    }
    steps->ended(steps->context, status);
    free(steps);
}

/* On the log writer's thread. */
static enum status remove_checkpoints(struct log_job *job)
{
    struct steps *steps = container_of(job, struct steps, job);
    const char *groups_path = log_dir_groups_path(steps->dir);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < steps->count && status == STATUS_OK; i++) {
        status = checkpoint_remove(groups_path, steps->ids[i]);
    }
    job->fatal = status != STATUS_OK && log_dir_probe(steps->dir, 0) != STATUS_OK;
    return status;
}

static void checkpoints_removed(struct log_job *job, enum status status)
{
    steps_ended(container_of(job, struct steps, job), status);
}

static void forgotten(void *context, enum status status)
{
    struct steps *steps = context;
    struct replicas *replicas = steps->replicas;
    if (status != STATUS_OK) {
        steps_ended(steps, status);
        return;
    }
    steps->job = (struct log_job){.run = remove_checkpoints, .done = checkpoints_removed};
    log_writer_submit(replicas->writer, replicas->logs, &steps->job);
}

void group_removal_steps(struct group *carrier, const uint64_t *ids, size_t count,
                         void (*ended)(void *context, enum status status), void *context)
{
    assert(count > 0 && ended != NULL);
    struct steps *steps = memory_new_zero(1, sizeof *steps + count * sizeof steps->ids[0]);
    steps->replicas = carrier->shard->replicas;
    steps->dir = carrier->shard->broker->log_dir;
    steps->ended = ended;
    steps->context = context;
    steps->count = count;
    memcpy(steps->ids, ids, count * sizeof ids[0]);
    group_journal_forget(carrier, steps->ids, count, forgotten, steps);
}

struct removal {
    struct replicas *replicas;
    size_t log_count;
    struct log_deletion *logs[];
};

static void remove_logs(void *context, enum status status)
{
    struct removal *removal = context;
    assert(removal->replicas->groups_starting > removal->log_count);
    for (size_t i = 0; i < removal->log_count; i++) {
        log_deletion_begin(removal->logs[i], status);
    }
    replicas_group_started(removal->replicas);
    free(removal);
}

void group_removal_begin(struct group *group)
{
    size_t most = (size_t)group->partition_count;
    assert(group->closed && replicas_group(group->shard->replicas, group->id) != group);
    struct removal *removal =
        memory_new_zero(1, sizeof *removal + most * sizeof removal->logs[0]);
    removal->replicas = group->shard->replicas;
    removal->replicas->groups_starting++;
    for (int32_t i = 0; i < group->partition_count; i++) {
        removal->logs[removal->log_count++] = partition_remove(group->partitions[i]);
    }
    assert(removal->log_count == most);
    group_removal_steps(group, &group->id, 1, remove_logs, removal);
}
