/* Writing what nobody reads soon: past the page cache, so that it takes no memory from what is read
 * and the kernel need not find pages for it. For jobs of partition logs, on the writer's thread. */
#ifndef OTTLA_STORAGE_LOG_DIRECT_H
#define OTTLA_STORAGE_LOG_DIRECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/status.h"
#include "io/file.h"

/* So much goes in one write: what `pages` has to hold, aligned to FILE_ALIGNMENT. */
enum { LOG_DIRECT_BYTES = 1024 * 1024 };

/* As file_write, to the end of the file under `path`, which is open in `file` too: what makes whole
 * pages of the file goes directly, the ends on either side through the page cache. Where it
 * cannot be opened for direct writes everything goes through `file`. `pages` is overwritten.
 * Errors: as io/file.h. */
MUST_USE enum status log_direct_write(const char *path, struct file *file, uint64_t position,
    const struct iovec *parts, int part_count, uint8_t *pages);

#endif
