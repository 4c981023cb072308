/* The kernel's files behind io/file.h. A handle owns one descriptor and remembers its path for
 * log lines. Short writes and interrupts are continued; every other failure becomes a status and
 * one line in the log, but for "not found", which is an answer. */
#include "io/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

struct file {
    atomic_uint references;
    int descriptor;
    size_t direct_unit;
    char path[];
};

static enum status status_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return STATUS_NOT_FOUND;
    case ENOSPC:
    case EDQUOT:
        return STATUS_NO_SPACE;
    case EROFS:
        return STATUS_READ_ONLY;
    case EMFILE:
    case ENFILE:
        return STATUS_LIMIT;
    case EWOULDBLOCK:
        return STATUS_BUSY;
    default:
        return STATUS_IO;
    }
}

/* Turns errno into a status, with a line in the log for what is not an ordinary answer. */
static enum status failure(const char *action, const char *path)
{
    int error = errno;
    enum status status = status_of_errno(error);
    if (status != STATUS_NOT_FOUND && status != STATUS_BUSY) {
        log_error("file", "cannot %s %s: %s", action, path, strerror(error));
    }
    assert(status != STATUS_OK);
    return status;
}

static int open_flags(unsigned flags)
{
    int result = O_CLOEXEC;
    result |= (flags & FILE_WRITE) != 0 ? O_RDWR : O_RDONLY;
    result |= (flags & FILE_CREATE) != 0 ? O_CREAT : 0;
    result |= (flags & FILE_EMPTY) != 0 ? O_TRUNC : 0;
    result |= (flags & FILE_DIRECT) != 0 ? O_DIRECT : 0;
    result |= (flags & FILE_DURABLE) != 0 ? O_DSYNC : 0;
    return result;
}

/* Since Linux 6.1. */
static size_t ask_direct_unit(int descriptor)
{
    struct statx info;
    unsigned unit = FILE_ALIGNMENT;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0
        && (info.stx_mask & STATX_DIOALIGN) != 0 && info.stx_dio_mem_align > 0) {
        unit = info.stx_dio_mem_align > info.stx_dio_offset_align ? info.stx_dio_mem_align
                                                                  : info.stx_dio_offset_align;
    }
    bool is_usable = unit < FILE_ALIGNMENT && (unit & (unit - 1)) == 0;
    return is_usable ? unit : FILE_ALIGNMENT;
}

enum status file_open(const char *path, unsigned flags, struct file **file)
{
    assert(path != NULL);
    assert((flags & FILE_WRITE) != 0 || (flags & (FILE_CREATE | FILE_EMPTY)) == 0);
    *file = NULL;
    int descriptor = open(path, open_flags(flags), 0644);
    if (descriptor < 0 && errno == EINVAL && (flags & FILE_DIRECT) != 0) {
        return STATUS_UNSUPPORTED;
    }
    if (descriptor < 0) {
        return failure("open", path);
    }
    size_t length = strlen(path) + 1;
    *file = memory_new(sizeof **file + length);
    atomic_init(&(*file)->references, 1);
    (*file)->descriptor = descriptor;
    (*file)->direct_unit = (flags & FILE_DIRECT) != 0 ? ask_direct_unit(descriptor) : 1;
    memcpy((*file)->path, path, length);
    return STATUS_OK;
}

struct file *file_ref(struct file *file)
{
    assert(file != NULL);
    unsigned before = atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
    assert(before > 0);
    return file;
}

void file_unref(struct file *file)
{
    if (file == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        close(file->descriptor);
        free(file);
    }
}

const char *file_path(const struct file *file)
{
    assert(file->path[0] != '\0');
    return file->path;
}

int file_descriptor(const struct file *file)
{
    assert(file->descriptor >= 0);
    return file->descriptor;
}

size_t file_direct_unit(const struct file *file)
{
    assert(file->direct_unit > 0 && file->direct_unit <= FILE_ALIGNMENT);
    return file->direct_unit;
}

enum status file_read(struct file *file, uint64_t position, void *bytes, size_t length,
    size_t *got)
{
    assert(position <= INT64_MAX - length);
    *got = 0;
    while (*got < length) {
        ssize_t n = pread(file->descriptor, (char *)bytes + *got, length - *got,
            (off_t)(position + *got));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return failure("read", file->path);
        }
        if (n == 0) {
            break;
        }
        *got += (size_t)n;
    }
    assert(*got <= length);
    return STATUS_OK;
}

/* Drops the first `done` bytes of the parts. */
static void skip_parts(struct iovec *parts, int *first, int count, size_t done)
{
    while (*first < count && done >= parts[*first].iov_len) {
        done -= parts[*first].iov_len;
        (*first)++;
    }
    if (done > 0) {
        assert(*first < count);
        parts[*first].iov_base = (char *)parts[*first].iov_base + done;
        parts[*first].iov_len -= done;
    }
}

enum { PARTS_AT_ONCE = 256 };

/* Writes up to PARTS_AT_ONCE parts whole; `*position` moves past them. */
static enum status write_some(struct file *file, uint64_t *position, const struct iovec *parts,
    int count)
{
    assert(count > 0 && count <= PARTS_AT_ONCE);
    struct iovec left[PARTS_AT_ONCE];
    memcpy(left, parts, (size_t)count * sizeof *parts);
    int first = 0;
    skip_parts(left, &first, count, 0);
    while (first < count) {
        ssize_t n = pwritev(file->descriptor, left + first, count - first, (off_t)*position);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return failure("write", file->path);
        }
        *position += (uint64_t)n;
        skip_parts(left, &first, count, (size_t)n);
    }
    return STATUS_OK;
}

enum status file_write(struct file *file, uint64_t position, const struct iovec *parts,
    int part_count)
{
    assert(part_count >= 0);
    while (part_count > 0) {
        int count = part_count < PARTS_AT_ONCE ? part_count : PARTS_AT_ONCE;
        enum status status = write_some(file, &position, parts, count);
        if (status != STATUS_OK) {
            return status;
        }
        parts += count;
        part_count -= count;
    }
    return STATUS_OK;
}

enum status file_sync(struct file *file)
{
    if (fdatasync(file->descriptor) != 0) {
        return failure("sync", file->path);
    }
    return STATUS_OK;
}

enum status file_size(struct file *file, uint64_t *size_bytes)
{
    struct stat info;
    if (fstat(file->descriptor, &info) != 0) {
        return failure("stat", file->path);
    }
    assert(info.st_size >= 0);
    *size_bytes = (uint64_t)info.st_size;
    return STATUS_OK;
}

enum status file_truncate(struct file *file, uint64_t size_bytes)
{
    assert(size_bytes <= INT64_MAX);
    if (ftruncate(file->descriptor, (off_t)size_bytes) != 0) {
        return failure("truncate", file->path);
    }
    return STATUS_OK;
}

enum status file_reserve(struct file *file, uint64_t size_bytes)
{
    assert(size_bytes <= INT64_MAX);
    if (fallocate(file->descriptor, 0, 0, (off_t)size_bytes) == 0) {
        return STATUS_OK;
    }
    if (errno == EOPNOTSUPP || errno == ENOSYS) {
        return file_truncate(file, size_bytes);
    }
    return failure("reserve space for", file->path);
}

bool file_exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

enum status file_make_directory(const char *path)
{
    if (mkdir(path, 0755) == 0) {
        return STATUS_OK;
    }
    int error = errno;
    struct stat info;
    if (error == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return STATUS_OK;
    }
    errno = error;
    return failure("make directory", path);
}

/* Whether the entry is a directory; asks the file system when the listing does not say. */
static bool entry_is_directory(int directory, const struct dirent *entry)
{
    if (entry->d_type != DT_UNKNOWN) {
        return entry->d_type == DT_DIR;
    }
    struct stat info;
    return fstatat(directory, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0
        && S_ISDIR(info.st_mode);
}

enum status file_list(const char *path,
    bool (*each)(void *context, const char *name, bool is_directory), void *context)
{
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return failure("list", path);
    }
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (!each(context, entry->d_name, entry_is_directory(dirfd(directory), entry))) {
            break;
        }
    }
    closedir(directory);
    return STATUS_OK;
}

enum status file_rename(const char *from, const char *to)
{
    return rename(from, to) == 0 ? STATUS_OK : failure("rename", from);
}

enum status file_remove(const char *path)
{
    return remove(path) == 0 ? STATUS_OK : failure("remove", path);
}

/* Opens a directory, runs one call on it, closes it. */
static enum status on_directory(const char *path, int (*call)(int), const char *action)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return failure("open", path);
    }
    enum status status = call(descriptor) == 0 ? STATUS_OK : failure(action, path);
    close(descriptor);
    return status;
}

enum status file_sync_directory(const char *path)
{
    return on_directory(path, fsync, "sync");
}

enum status file_sync_all(const char *path)
{
    return on_directory(path, syncfs, "sync the file system of");
}

enum status file_lock(const char *path, struct file **file)
{
    enum status status = file_open(path, FILE_WRITE | FILE_CREATE, file);
    if (status != STATUS_OK) {
        return status;
    }
    if (flock((*file)->descriptor, LOCK_EX | LOCK_NB) == 0) {
        return STATUS_OK;
    }
    status = failure("lock", path);
    file_unref(*file);
    *file = NULL;
    return status;
}

enum status file_space(const char *path, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct statvfs info;
    if (statvfs(path, &info) != 0) {
        return failure("ask for the space of", path);
    }
    *free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    *total_bytes = (uint64_t)info.f_blocks * info.f_frsize;
    return STATUS_OK;
}
