/* The data directory: its lock, its identity (meta.properties, in Kafka's format) and where things
 * lie in it.
 *
 *   .lock                          held while a broker uses the directory
 *   .incomplete                    see log_dir_is_incomplete
 *   meta.properties                version, cluster.id, node.id, directory.id
 *   journal/                       see storage/journal.h
 *   groups/GROUP/checkpoint        see storage/checkpoint.h
 *   TOPIC-PARTITION/               see storage/partition_log.h
 *   TOPIC-PARTITION.ID-delete/     a deleted partition, on its way out; removed at the next start
 *                                  when a crash came between
 */
#ifndef OTTLA_STORAGE_LOG_DIR_H
#define OTTLA_STORAGE_LOG_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/uuid.h"

enum { LOG_DIR_CLUSTER_ID_MAX = 64 };

struct log_dir;

struct log_dir_identity {
    char cluster_id[LOG_DIR_CLUSTER_ID_MAX + 1]; /* base64 of a uuid as Kafka's, or any text */
    int32_t node_id;
    struct uuid directory_id;
};

struct log_dir_settings {
    const char *path;       /* made with its parents when missing */
    int32_t node_id;        /* must be that of an existing directory */
    const char *cluster_id; /* must be that of an existing directory; null or empty: take what is
                               there, or a new one */
    bool has_peers;         /* a new directory is incomplete until log_dir_complete */
};

/* Makes or opens the directory, takes its lock, and reads or writes meta.properties. Says in the
 * log what is wrong and what to do. STATUS_BUSY: another process uses it. STATUS_INVALID: it
 * belongs to another node or cluster, or meta.properties cannot be read. Else as io/file.h. */
MUST_USE enum status log_dir_open(const struct log_dir_settings *settings, struct log_dir **dir);

/* Whether the path is a directory with meta.properties. */
bool log_dir_is_formatted(const char *path);

/* Lets go of the lock. */
void log_dir_close(struct log_dir *dir);

/* Paths and identity live as long as the directory is open. */
const char *log_dir_path(const struct log_dir *dir);
const char *log_dir_journal_path(const struct log_dir *dir);
const char *log_dir_groups_path(const struct log_dir *dir);
const struct log_dir_identity *log_dir_identity(const struct log_dir *dir);

/* Whether the directory was empty at open (a first start). */
bool log_dir_is_new(const struct log_dir *dir);

/* Whether others may have more of what this node promised than it has itself: the directory was
 * made anew, now or at an earlier start, and log_dir_complete was not called yet. */
bool log_dir_is_incomplete(const struct log_dir *dir);

/* The directory has what it should have. Durable; writes only the first time. A failure leaves it
 * incomplete. */
MUST_USE enum status log_dir_complete(struct log_dir *dir);

/* A partition directory found on the disk. */
struct log_dir_partition {
    const char *topic; /* valid during the call */
    int32_t partition;
    struct uuid topic_id; /* from partition.metadata; zero when it has none */
};

/* The topic id in the partition.metadata of a partition's directory; zero when there is none, or it
 * cannot be read. */
struct uuid log_dir_topic_id(const char *directory);

/* Calls `each` for every partition directory that is not being deleted. */
MUST_USE enum status log_dir_each_partition(struct log_dir *dir,
    void (*each)(void *context, const struct log_dir_partition *partition), void *context);

/* Removes what deletions left behind (directories ending in -delete). Blocks: run it as a job of
 * the log writer some time after the start. */
MUST_USE enum status log_dir_remove_leftovers(struct log_dir *dir);

/* Marks a partition directory that belongs to no topic any more as deleted (renames it). */
MUST_USE enum status log_dir_discard_partition(struct log_dir *dir, const char *topic,
    int32_t partition);

/* Whether the directory takes writes again: writes, syncs and removes a small file and looks for
 * `free_bytes` of space. After STATUS_OK a directory that went offline may be opened again:
 * abandon the journal, close the logs, and do what a start does. Blocks. */
MUST_USE enum status log_dir_probe(struct log_dir *dir, uint64_t free_bytes);

/* Bytes that can be written, and in total, on the directory's file system. */
MUST_USE enum status log_dir_space(struct log_dir *dir, uint64_t *free_bytes,
    uint64_t *total_bytes);

#endif
