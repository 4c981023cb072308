/* The log writer: one thread per data directory that does everything slow to files of partition
 * logs: writing gathered batches, syncing, rolling, deleting, replacing small files.
 *
 * It runs jobs one after another in the order they were submitted. A job is made by a shard (an
 * event loop thread); when it has run, it goes to that shard's list of finished jobs, and the shard
 * is woken when the list was empty; `done` then runs on the shard, inside log_shard_drain. So a
 * shard never waits for the disk, and a job's memory needs no lock: it belongs to the shard, then
 * to the writer, then to the shard again.
 *
 * Jobs that end with a sync are grouped when many wait (a checkpoint of thousands of logs): all of
 * them write, then one sync of the file system serves them all.
 *
 * A failed write or sync in a job of a partition log takes the whole writer offline: that job and
 * all later ones end with the status, nothing more touches the disk.
 */
#ifndef OTTLA_STORAGE_LOG_WRITER_H
#define OTTLA_STORAGE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/status.h"

struct log_writer;
struct log_shard;

/* Something slow to do. Memory is the submitter's, untouched from submit to done. */
struct log_job {
    struct list_link link; /* the writer's; start it zeroed */
    struct log_shard *shard; /* the writer's */
    enum status status;      /* the writer's: on its way to done */
    /* Runs on the writer thread; must not touch what the shard owns. */
    enum status (*run)(struct log_job *job);
    /* Makes durable what run wrote; on the writer thread, after run. Null when nothing is to be. */
    enum status (*sync)(struct log_job *job);
    const char *sync_path; /* with sync: a path on the file system; valid until done */
    bool grouped;          /* the writer's, during run: one sync of the file system follows, so
                              that run and sync need not */
    /* Runs on the shard. STATUS_CLOSED or the writer's failure when run was skipped. May free the
     * job. */
    void (*done)(struct log_job *job, enum status status);
    bool fatal;      /* a failure of run takes the writer offline */
    bool even_offline; /* run also when the writer is offline (probing, cleaning up) */
    int64_t not_before_ms; /* waits in the writer until then; 0 means now (delayed deletion) */
};

struct log_writer_settings {
    bool threaded; /* false: the owner calls log_writer_run_once (simulation) */
    int group_min; /* so many waiting jobs that sync share one sync; 0 means 8 */
    /* Called once, on the writer thread, when a fatal job failed. May be null. */
    void (*failed)(void *context, enum status status);
    void *context;
};

/* Starts the writer. */
struct log_writer *log_writer_new(const struct log_writer_settings *settings);

/* Runs what is queued (delayed jobs are dropped: a restart finds the files again), then ends the
 * thread. All shards must drain afterwards and before they are freed. */
void log_writer_stop(struct log_writer *writer);

/* Releases a stopped writer. */
void log_writer_free(struct log_writer *writer);

/* Adds a job. From the thread of `shard`. */
void log_writer_submit(struct log_writer *writer, struct log_shard *shard, struct log_job *job);

/* Runs one job that is due; returns whether there was one. For threaded = false only. */
bool log_writer_run_once(struct log_writer *writer, int64_t now_ms);

/* STATUS_OK, or the failure that took the writer offline. From any thread. */
enum status log_writer_status(struct log_writer *writer);

/* Memory for direct writes of the job that runs: LOG_DIRECT_BYTES, aligned; the writer's, which has
 * it from the first call on. On the writer's thread. */
uint8_t *log_writer_pages(struct log_writer *writer);

/* Takes the writer offline from outside: another part of the directory failed. */
void log_writer_fail(struct log_writer *writer, enum status status);

struct log_shard_settings {
    size_t tail_budget_bytes;  /* batches kept in memory for readers, all logs of the shard
                                  together; 0 means 32 MiB */
    size_t open_file_limit;    /* cached descriptors of the shard's logs; 0 means 512 */
    uint32_t write_after_ms;   /* a batch waits at most this long for company; 0 means 200 */
    size_t write_after_bytes;  /* or until the log has this much; 0 means 256 KiB */
    size_t sync_after_bytes;   /* a file is synced when this much of it is not; 0 means 4 MiB */
    size_t direct_from_bytes;  /* of a log without readers, a write of this much goes past the page
                                  cache; 0 means 256 KiB */
    uint32_t read_lately_ms;   /* a log that was read so lately has readers; 0 means 60000 */
    uint32_t idle_tail_ms;     /* written batches of a log that was silent so long leave memory;
                                  0 means 10000 */
    /* Wakes the shard's thread, from the writer's thread: it shall call log_shard_drain. May be
     * null in a simulation. */
    void (*wake)(void *context);
    void *context;
};

/* What the logs of one event loop share: memory budget, open files, dirty logs, finished jobs.
 * Owned and used by that loop's thread alone. */
struct log_shard *log_shard_new(struct log_writer *writer,
    const struct log_shard_settings *settings);

/* All logs of the shard are closed and the writer has stopped or has no job of it. */
void log_shard_free(struct log_shard *shard);

/* Runs `done` of the finished jobs. Call it when woken. Returns how many there were. */
size_t log_shard_drain(struct log_shard *shard);

/* Hands dirty logs that are due to the writer and trims memory. Call it every 50 ms or so. */
void log_shard_tick(struct log_shard *shard, int64_t now_ms);

/* How many jobs of the shard are not done yet (not counting delayed ones). */
size_t log_shard_jobs(const struct log_shard *shard);

struct log_shard_stats {
    size_t tail_bytes;
    size_t open_files;
    uint64_t written_bytes;
    uint64_t writes;
    uint64_t syncs;
};

/* A snapshot of the counters. */
void log_shard_read_stats(const struct log_shard *shard, struct log_shard_stats *stats);

#endif
