/* Small files that are read and replaced whole: checkpoints, properties, metadata. Built on
 * io/file.h, so the simulated disk serves them too. */
#ifndef OTTLA_IO_FILE_WHOLE_H
#define OTTLA_IO_FILE_WHOLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/view.h"

enum { FILE_PATH_MAX = 4096 };

/* Appends the file's bytes to the buffer. STATUS_LIMIT when it is longer than `limit_bytes`. */
MUST_USE enum status file_read_whole(const char *path, size_t limit_bytes, struct buffer *content);

/* Puts `content` in place of the file so that after a crash there is the old or the new content,
 * never a mix: written beside it as PATH.tmp, renamed over it. With `durable`, synced before the
 * rename, and the directory after it. */
MUST_USE enum status file_replace(const char *path, struct view content, bool durable);

/* Removes the directory and everything in it; ok when it is not there. Blocks for as long as that
 * takes; never call it on an event loop. */
MUST_USE enum status file_remove_tree(const char *path);

/* Makes the directory and its missing parents, and makes their names durable. */
MUST_USE enum status file_make_path(const char *path);

/* Syncs the directory that holds `path`. */
MUST_USE enum status file_sync_parent(const char *path);

#endif
