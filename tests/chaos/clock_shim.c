/* A library to preload into a broker: its wall clock is off by as many milliseconds as the file
 * that CLOCK_OFFSET names says, eight bytes in the machine's order. The file is mapped, so that the
 * clock jumps when somebody writes to it. Other clocks are left alone. Built by the tests.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *offset_ms;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CLOCK_OFFSET");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    real_gettime = (__typeof__(real_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    if (fd < 0) {
        return;
    }
    void *mapped = mmap(NULL, sizeof *offset_ms, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    offset_ms = mapped == MAP_FAILED ? NULL : mapped;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    if (real_gettime == NULL) {
        real_gettime = (__typeof__(real_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    }
    int failed = real_gettime(id, time);
    if (failed == 0 && id == CLOCK_REALTIME && offset_ms != NULL) {
        time->tv_sec += atomic_load_explicit(offset_ms, memory_order_relaxed) / 1000;
    }
    return failed;
}
