/* The disk, as a seam: file.c asks the kernel, a simulation links a disk in memory that tears
 * writes, forgets what was not synced, flips bits and fills up.
 *
 * A file is a handle with a reference count, so that a read in flight keeps it open while its
 * owner has already let go. Positions and lengths are bytes. No function retries a failed write
 * or sync: after one the caller must treat the file's content as unknown.
 *
 * Errors, everywhere: STATUS_NOT_FOUND (no such file or directory), STATUS_NO_SPACE (disk or quota
 * full), STATUS_READ_ONLY, STATUS_LIMIT (out of descriptors), STATUS_UNSUPPORTED (the file system
 * cannot do this), STATUS_BUSY (locked by another process), STATUS_IO (anything else). The text of
 * the last system error is logged by the implementation, with the path.
 */
#ifndef OTTLA_IO_FILE_H
#define OTTLA_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/status.h"

struct file;

/* How a file is opened; or them together. */
enum file_flag {
    FILE_READ = 0,        /* reading is always possible */
    FILE_WRITE = 1 << 0,  /* and writing */
    FILE_CREATE = 1 << 1, /* made empty when it is not there */
    FILE_EMPTY = 1 << 2,  /* cut to length 0 when it is there */
    FILE_DIRECT = 1 << 3, /* past the page cache; position and length are multiples of
                             FILE_ALIGNMENT, memory and length of each part of file_direct_unit.
                             STATUS_UNSUPPORTED where the file system refuses */
    FILE_DURABLE = 1 << 4 /* a write returns when it is on the disk (O_DSYNC) */
};

enum { FILE_ALIGNMENT = 4096 };

/* Opens the file with one reference, to be given back with file_unref. */
MUST_USE enum status file_open(const char *path, unsigned flags, struct file **file);

/* One more reference; returns the file. From any thread. */
struct file *file_ref(struct file *file);

/* One reference less; the last one closes. Null is allowed. From any thread. */
void file_unref(struct file *file);

/* Where it was opened; lives as long as the file. */
const char *file_path(const struct file *file);

/* The descriptor for sendfile, owned by the file; -1 in a simulation. */
int file_descriptor(const struct file *file);

/* What each part of a direct write is aligned to, in memory and in length: a power of two, at most
 * FILE_ALIGNMENT, and that where the kernel does not tell; 1 for files that are not direct. */
size_t file_direct_unit(const struct file *file);

/* Reads up to `length` bytes at `position`; `*got` is smaller only at the end of the file. */
MUST_USE enum status file_read(struct file *file, uint64_t position, void *bytes, size_t length,
    size_t *got);

/* Writes all parts one after another, starting at `position`. */
MUST_USE enum status file_write(struct file *file, uint64_t position, const struct iovec *parts,
    int part_count);

/* Returns when everything written so far, and the length, is on the disk (fdatasync). */
MUST_USE enum status file_sync(struct file *file);

/* The current length. */
MUST_USE enum status file_size(struct file *file, uint64_t *size_bytes);

/* Cuts or extends (with zeroes) to this length. */
MUST_USE enum status file_truncate(struct file *file, uint64_t size_bytes);

/* Reserves space for [0, size) and makes the file that long. The content reads as zeroes. Where
 * the file system cannot reserve, only the length is set. */
MUST_USE enum status file_reserve(struct file *file, uint64_t size_bytes);

/* Whether there is something under this path. */
bool file_exists(const char *path);

/* Makes the directory; ok when it is already there. The parent must exist. */
MUST_USE enum status file_make_directory(const char *path);

/* Calls `each` for every entry but . and .., in no order; stops early when it returns false.
 * Entries may be renamed or removed while listing. */
MUST_USE enum status file_list(const char *path,
    bool (*each)(void *context, const char *name, bool is_directory), void *context);

/* Renames, replacing a file under the new path. Durable after file_sync_directory of the parent. */
MUST_USE enum status file_rename(const char *from, const char *to);

/* Removes a file or an empty directory. STATUS_NOT_FOUND when there is none. */
MUST_USE enum status file_remove(const char *path);

/* Makes creations, renames and removals inside the directory durable. */
MUST_USE enum status file_sync_directory(const char *path);

/* Makes everything written so far on the file system that holds `path` durable (syncfs). */
MUST_USE enum status file_sync_all(const char *path);

/* Opens (making it when needed) and locks the file for this process; the lock goes with the last
 * reference. STATUS_BUSY when another process has it. */
MUST_USE enum status file_lock(const char *path, struct file **file);

/* Bytes that can still be written, and in total, on the file system that holds `path`. */
MUST_USE enum status file_space(const char *path, uint64_t *free_bytes, uint64_t *total_bytes);

#endif
