/* A library to preload into a broker: its writes or reads fail, or take their time, while a trigger
 * file exists.
 *
 * DISK_FAULT names the trigger file. Its first word says how: EIO, ENOSPC or EROFS; a second word
 * "sync" lets writes pass and fails fsync and fdatasync only, "read" fails reads only, "send" only
 * those by sendfile; then a third word may be a part of the paths that are meant. "DELAY 500":
 * every write takes so many milliseconds; "STALL": none ends before the file is changed. Sockets
 * and logs are left alone: only calls on files whose path begins with DISK_FAULT_UNDER fail. Built
 * by the tests.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum what { WRITES, SYNCS, READS, SENDS };

struct trigger {
    int words;     /* 0: there is none */
    char name[16];
    char only[16];
    char part[64];
};

static struct trigger read_trigger(void)
{
    struct trigger trigger = {0};
    const char *path = getenv("DISK_FAULT");
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    if (file != NULL) {
        trigger.words = fscanf(file, "%15s %15s %63s", trigger.name, trigger.only, trigger.part);
        fclose(file);
    }
    return trigger;
}

/* Reads never wait, and fail only when they are meant. */
static int is_meant(const struct trigger *trigger, enum what what)
{
    int reads = strcmp(trigger->only, "read") == 0;
    int sends = strcmp(trigger->only, "send") == 0;
    switch (what) {
    case READS:
        return reads;
    case SENDS:
        return reads || sends;
    case WRITES:
        return !reads && !sends && strcmp(trigger->only, "sync") != 0;
    case SYNCS:
        return !reads && !sends;
    }
    return 0;
}

static int fault_of(enum what what, const char *path)
{
    struct trigger trigger = read_trigger();
    int waits = what == WRITES || what == SYNCS;
    if (strcmp(trigger.name, "DELAY") == 0) {
        usleep(waits ? (useconds_t)atoi(trigger.only) * 1000 : 0);
        return 0;
    }
    while (waits && strcmp(trigger.name, "STALL") == 0) {
        usleep(5000);
        trigger = read_trigger();
    }
    if (trigger.words < 1 || !is_meant(&trigger, what) || strstr(path, trigger.part) == NULL) {
        return 0;
    }
    return strcmp(trigger.name, "ENOSPC") == 0  ? ENOSPC
           : strcmp(trigger.name, "EROFS") == 0 ? EROFS
                                                : EIO;
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
        fault = is_under(path) ? fault_of(what, path) : 0;
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
SHIM(ssize_t, pread64, READS, (int fd, void *data, size_t count, off64_t at),
     (fd, data, count, at))
SHIM(ssize_t, sendfile, SENDS, (int to, int fd, off_t *at, size_t count), (to, fd, at, count))
SHIM(ssize_t, sendfile64, SENDS, (int to, int fd, off64_t *at, size_t count), (to, fd, at, count))
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
    int fault = (flags & O_CREAT) != 0 && is_under(path) ? fault_of(WRITES, path) : 0;
    if (fault != 0) {
        errno = fault;
        return -1;
    }
    return REAL(open64)(path, flags, mode);
}
