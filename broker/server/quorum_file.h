/* Who votes on metadata, kept beside the data so that the next start knows whom to ask: a small
 * text file, in clusters that change their voters (KIP-853).
 *
 *   first=1@host:9093              those that this node began with: the members of its empty log
 *   now=1@host:9093,2@host:9093    those that it knew last, and where they are
 */
#ifndef OTTLA_BROKER_SERVER_QUORUM_FILE_H
#define OTTLA_BROKER_SERVER_QUORUM_FILE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "broker/config/listeners.h"
#include "storage/log_writer.h"

#define QUORUM_FILE "quorum.voters"

struct quorum_list {
    struct quorum_voter *voters;
    int count;
};

/* Whether the data directory has one: the node was formatted as the first, or found others. */
bool quorum_file_exists(const char *directory);

/* Reads both lists into the arena. STATUS_NOT_FOUND without a file, STATUS_CORRUPT when it cannot
 * be read. */
MUST_USE enum status quorum_file_read(const char *directory, struct arena *arena,
                                      struct quorum_list *first, struct quorum_list *now);

/* Writes both lists. Durable; blocks. */
MUST_USE enum status quorum_file_write(const char *directory, struct quorum_list first,
                                       struct quorum_list now);

/* The same, on the thread of the log writer, soon; what goes wrong is said in the log. The lists
 * are copied. From the thread of `shard`. */
void quorum_file_submit(struct log_writer *writer, struct log_shard *shard, const char *directory,
                        struct quorum_list first, struct quorum_list now);

#endif
