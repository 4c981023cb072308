/* A library to preload into a broker: its writes fail, or take their time, while a trigger file
 * exists.
 *
 * DISK_FAULT names the trigger file. Its first word says how: EIO, ENOSPC or EROFS; a second word
 * "sync" lets writes pass and fails fsync and fdatasync only. "DELAY 500": every write takes so
 * many milliseconds; "STALL": none ends before the file is changed. Sockets and logs are left
 * alone: only calls on files whose path begins with DISK_FAULT_UNDER fail. Built by the tests.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum what { WRITES, SYNCS };

/* The trigger's words; 0 when there is none. */
static int read_trigger(char name[16], char only[16])
{
    const char *path = getenv("DISK_FAULT");
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    name[0] = only[0] = '\0';
    if (file == NULL) {
        return 0;
    }
    int words = fscanf(file, "%15s %15s", name, only);
    fclose(file);
    return words;
}

static int fault_of(enum what what)
{
    char name[16], only[16];
    int words = read_trigger(name, only);
    if (strcmp(name, "DELAY") == 0) {
        usleep((useconds_t)atoi(only) * 1000);
        return 0;
    }
    while (strcmp(name, "STALL") == 0) {
        usleep(5000);
        words = read_trigger(name, only);
    }
    if (words < 1 || (what == WRITES && strcmp(only, "sync") == 0)) {
        return 0;
    }
    return strcmp(name, "ENOSPC") == 0 ? ENOSPC : strcmp(name, "EROFS") == 0 ? EROFS : EIO;
}

static int is_under(const char *path)
{
    const char *under = getenv("DISK_FAULT_UNDER");
    return under != NULL && strncmp(path, under, strlen(under)) == 0;
}

static int fails(int fd, enum what what)
{
    int saved = errno;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    int fault = 0;
    if (length > 0) {
        path[length] = '\0';
        fault = is_under(path) ? fault_of(what) : 0;
    }
    errno = fault != 0 ? fault : saved;
    return fault != 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define SHIM(type, name, what, parameters, arguments) \
    type name parameters { return fails(fd, what) ? -1 : REAL(name) arguments; }

SHIM(ssize_t, write, WRITES, (int fd, const void *data, size_t count), (fd, data, count))
SHIM(ssize_t, pwritev64, WRITES, (int fd, const struct iovec *parts, int count, off64_t at),
     (fd, parts, count, at))
SHIM(int, fsync, SYNCS, (int fd), (fd))
SHIM(int, fdatasync, SYNCS, (int fd), (fd))
SHIM(int, ftruncate64, WRITES, (int fd, off64_t size), (fd, size))
SHIM(int, fallocate64, WRITES, (int fd, int mode, off64_t at, off64_t length),
     (fd, mode, at, length))

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    int fault = (flags & O_CREAT) != 0 && is_under(path) ? fault_of(WRITES) : 0;
    if (fault != 0) {
        errno = fault;
        return -1;
    }
    return REAL(open64)(path, flags, mode);
}
