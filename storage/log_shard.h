/* The inside of struct log_shard (storage/log_writer.h), for the partition logs' own files: open
 * file cache, dirty logs, memory budget. Used on the shard's thread only, but for `finished`. */
#ifndef OTTLA_STORAGE_LOG_SHARD_H
#define OTTLA_STORAGE_LOG_SHARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "io/file.h"
#include "storage/log_writer.h"

struct log_shard {
    struct log_writer *writer;
    struct log_shard_settings settings;
    pthread_mutex_t lock;      /* guards `finished` */
    struct list finished;
    size_t job_count;          /* submitted and not done, without delayed ones */
    struct list open_handles;  /* least recently used first */
    size_t open_count;
    struct list dirty;         /* log_content.dirty, longest waiting first */
    struct list tails;         /* log_content.tail_use, longest silent first */
    size_t tail_bytes;
    int64_t now_ms;            /* of the last tick or append */
    struct log_shard_stats stats;
};

/* A file of a log that may be open; embedded where the path is known. Zeroed to begin with. */
struct log_handle {
    struct list_link use;
    struct file *file;
};

/* The open file of a handle, opening it when needed; borrowed until the next call. */
MUST_USE enum status log_handle_open(struct log_shard *shard, struct log_handle *handle,
    const char *path, unsigned flags, struct file **file);

/* Gives the handle a file that was opened elsewhere (takes the reference), unless it has one. */
void log_handle_put(struct log_shard *shard, struct log_handle *handle, struct file *file);

/* Lets go of the file. */
void log_handle_close(struct log_shard *shard, struct log_handle *handle);

/* Implemented by the partition log: hands out what a dirty log has, or drops memory of one. */
void partition_log_write_due(struct log_shard *shard);
void partition_log_trim(struct log_shard *shard);

#endif
