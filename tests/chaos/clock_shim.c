/* A library to preload into a broker: its wall clock is off by as many milliseconds as the file
 * that CLOCK_OFFSET names says, eight bytes in the machine's order. The file is mapped, so that the
 * clock jumps when somebody writes to it. Where the file has eight bytes more that are not zero,
 * they are the monotonic clock in nanoseconds: it stands still until somebody moves it on. Other
 * clocks are left alone. Built by the tests.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct clocks {
    _Atomic int64_t offset_ms;
    _Atomic int64_t monotonic_ns;
};

static const struct clocks *clocks;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CLOCK_OFFSET");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    real_gettime = (__typeof__(real_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    if (fd < 0) {
        return;
    }
    void *mapped = mmap(NULL, sizeof *clocks, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    clocks = mapped == MAP_FAILED ? NULL : mapped;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    if (real_gettime == NULL) {
        real_gettime = (__typeof__(real_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    }
    int failed = real_gettime(id, time);
    if (failed != 0 || clocks == NULL) {
        return failed;
    }
    int64_t held_ns = atomic_load_explicit(&clocks->monotonic_ns, memory_order_relaxed);
    if (id == CLOCK_REALTIME) {
        time->tv_sec += atomic_load_explicit(&clocks->offset_ms, memory_order_relaxed) / 1000;
    } else if (held_ns != 0 && (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE)) {
        *time = (struct timespec){held_ns / 1000000000, held_ns % 1000000000};
    }
    return 0;
}

/* The kernel knows nothing of a clock that stands still: it waits for as long as is left by that
 * one. All waits of a broker are by the monotonic clock. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                           const struct timespec *until)
{
    struct timespec real = *until;
    struct timespec shown;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &shown);
    real_gettime(CLOCK_MONOTONIC, &now);
    real.tv_sec += now.tv_sec - shown.tv_sec;
    real.tv_nsec += now.tv_nsec - shown.tv_nsec;
    while (real.tv_nsec < 0 || real.tv_nsec >= 1000000000) {
        int seconds = real.tv_nsec < 0 ? -1 : 1;
        real.tv_sec += seconds;
        real.tv_nsec -= seconds * 1000000000L;
    }
    return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &real);
}
