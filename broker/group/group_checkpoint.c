/* Checkpoints: the logs of a group are flushed, then the file that vouches for them is replaced,
 * then the journal is told that it may forget. Each step waits for the one before; all of it runs
 * in the background. A failure takes the group offline; the journal still has everything. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/group/group.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_members.h"
#include "broker/group/partition.h"
#include "broker/group/replicas.h"
#include "broker/group/topic_logs.h"
#include "broker/server/broker.h"
#include "storage/checkpoint.h"

struct checkpoint_run {
    struct log_job job;
    struct group *group;
    const char *groups_path;
    struct checkpoint checkpoint;
    unsigned waiting;
    enum status status;
};

static void run_ended(struct checkpoint_run *run)
{
    struct group *group = run->group;
    struct replicas *replicas = group->shard->replicas;
    if (run->status == STATUS_OK && !group->closed && replicas->journal != NULL) {
        journal_mark(replicas->journal, group->id, run->checkpoint.index);
        group->marked_index = run->checkpoint.index;
    } else if (run->status != STATUS_OK) {
        group_fail(group, run->status);
    }
    bool again = group->checkpoint_again && run->status == STATUS_OK;
    assert(group->checkpointing);
    group->checkpointing = false;
    group->checkpoint_again = false;
    replicas->checkpoints_pending--;
    checkpoint_free(&run->checkpoint);
    free(run);
    if (again && !group->closed) {
        group_checkpoint(group);
    }
    group_io_done(group);
}

/* On the log writer's thread. */
static enum status write_file(struct log_job *job)
{
    struct checkpoint_run *run = container_of(job, struct checkpoint_run, job);
    return checkpoint_write(run->groups_path, &run->checkpoint);
}

static void file_written(struct log_job *job, enum status status)
{
    struct checkpoint_run *run = container_of(job, struct checkpoint_run, job);
    run->status = status;
    run_ended(run);
}

static void all_flushed(struct checkpoint_run *run)
{
    struct group *group = run->group;
    struct replicas *replicas = group->shard->replicas;
    if (run->status != STATUS_OK || group->closed) {
        run_ended(run);
        return;
    }
    run->checkpoint.partition_count =
        topic_log_checkpoint_partitions(group, &run->checkpoint.partitions);
    run->job = (struct log_job){.run = write_file, .done = file_written, .fatal = true};
    log_writer_submit(replicas->writer, replicas->logs, &run->job);
}

static void flushed(void *context, enum status status, int64_t synced_offset)
{
    (void)synced_offset;
    struct checkpoint_run *run = context;
    if (status != STATUS_OK) {
        run->status = status;
    }
    assert(run->waiting > 0);
    if (--run->waiting == 0) {
        all_flushed(run);
    }
}

void group_checkpoint(struct group *group)
{
    struct replicas *replicas = group->shard->replicas;
    if (list_contains(&group->dirty)) {
        list_remove(&group->dirty);
    }
    if (group->checkpointing || group->storage != STATUS_OK || group->closed) {
        group->checkpoint_again = group->checkpointing;
        return;
    }
    struct checkpoint_run *run = memory_new_zero(1, sizeof *run);
    run->group = group;
    assert(group->applied_index >= group->marked_index);
    run->groups_path = log_dir_groups_path(group->shard->broker->log_dir);
    run->checkpoint.group = group->id;
    run->checkpoint.index = group->applied_index;
    if (planted(PLANT_CHECKPOINT_AHEAD)) {
        run->checkpoint.index = raft_last_index(group->raft);
    }
    if (planted(PLANT_MARK_WITHOUT_CHECKPOINT) && replicas->journal != NULL) {
        journal_mark(replicas->journal, group->id, group->applied_index);
    }
    run->checkpoint.term = group->applied_term;
    group_members_save(group, &run->checkpoint);
    group->checkpointing = true;
    group->io_pending++;
    replicas->checkpoints_pending++;
    run->waiting = 1; /* held until every flush is asked for */
    for (int32_t i = 0; i < group->partition_count && !planted(PLANT_CHECKPOINT_WITHOUT_FLUSH);
         i++) {
        run->waiting++;
        partition_log_flush(group->partitions[i]->log, flushed, run);
    }
    flushed(run, STATUS_OK, 0);
}
