/* The guard's process. It looks a few times a second whether the one that it guards is stopped;
 * when that one has been so for long enough it takes a descriptor of each of its sockets
 * (pidfd_getfd) and shuts that down. Nothing of the other is held open meanwhile. The kernel kills
 * the guard when the other ends, however that ends. */
#include "broker/server/guard.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

enum { LOOKS = 5, LOOK_MS_MIN = 10, LOOK_MS_MAX = 100, STAT_BYTES = 256, PATH_BYTES = 64 };

struct guarded {
    pid_t pid;
    int handle; /* pidfd_open */
    int stat;   /* /proc/PID/stat */
    char descriptors[PATH_BYTES];
};

static bool open_guarded(struct guarded *guarded)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)guarded->pid);
    snprintf(guarded->descriptors, PATH_BYTES, "/proc/%d/fd", (int)guarded->pid);
    guarded->stat = open(path, O_RDONLY | O_CLOEXEC);
    guarded->handle = pidfd_open(guarded->pid, 0);
    return guarded->stat >= 0 && guarded->handle >= 0;
}

/* Whether descriptors of the other process can be taken from here: its standard error is tried. */
static bool may_take(const struct guarded *guarded)
{
    int taken = pidfd_getfd(guarded->handle, STDERR_FILENO, 0);
    if (taken < 0) {
        return errno == EBADF; /* it has none */
    }
    close(taken);
    return true;
}

/* A stream socket of the Internet's families: a connection or a listener, of clients or nodes. */
static bool is_connection(int descriptor)
{
    int domain = 0;
    int type = 0;
    socklen_t length = sizeof domain;
    if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0) {
        return false;
    }
    length = sizeof type;
    return (domain == AF_INET || domain == AF_INET6) &&
           getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

/* The process may go on meanwhile; then one more connection may end, and its client comes again.
 * Returns how many sockets there were. */
static unsigned end_connections(const struct guarded *guarded)
{
    unsigned ended = 0;
    DIR *descriptors = opendir(guarded->descriptors);
    if (descriptors == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(descriptors); entry != NULL;
         entry = readdir(descriptors)) {
        int taken = entry->d_name[0] == '.'
                        ? -1
                        : pidfd_getfd(guarded->handle, (int)strtol(entry->d_name, NULL, 10), 0);
        if (taken >= 0) {
            ended += is_connection(taken) && shutdown(taken, SHUT_RDWR) == 0 ? 1 : 0;
            close(taken);
        }
    }
    closedir(descriptors);
    return ended;
}

/* Whether it is stopped by a signal: state T, not the t of a process that a debugger holds
 * (proc(5)). The state follows the name, which is in brackets and may have brackets in it. */
static bool is_stopped(const struct guarded *guarded)
{
    char text[STAT_BYTES];
    ssize_t length = pread(guarded->stat, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && strncmp(name_end, ") T", 3) == 0;
}

/* Until the other process ends. */
static void look_after(const struct guarded *guarded, uint32_t patience_ms)
{
    uint32_t look_ms = patience_ms / LOOKS;
    look_ms = look_ms < LOOK_MS_MIN ? LOOK_MS_MIN : look_ms > LOOK_MS_MAX ? LOOK_MS_MAX : look_ms;
    uint32_t due = (patience_ms + look_ms - 1) / look_ms + 1;
    struct pollfd end = {.fd = guarded->handle, .events = POLLIN};
    uint32_t looks = 0; /* in a row that found it stopped */
    while (poll(&end, 1, (int)look_ms) <= 0) {
        looks = is_stopped(guarded) ? looks + (looks <= due ? 1 : 0) : 0;
        if (looks == due) {
            unsigned ended = end_connections(guarded);
            log_warn("server", "process %d is stopped by a signal: ended its %u connections and "
                     "listeners, so that clients go to other nodes; kill -CONT %d lets it go on",
                     (int)guarded->pid, ended, (int)guarded->pid);
        }
    }
}

/* What ps and pgrep show: its words, one behind the other from argv[0] on (proc(5)), would be those
 * of the broker. */
static void take_name(const char *name)
{
    char piece[PATH_BYTES];
    size_t room = 0;
    ssize_t got;
    int words = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    while (words >= 0 && (got = read(words, piece, sizeof piece)) > 0) {
        room += (size_t)got;
    }
    close(words);
    if (room > 0) {
        memset(program_invocation_name, 0, room);
        snprintf(program_invocation_name, room, "%s", name);
    }
    prctl(PR_SET_NAME, name);
}

/* The life of the guard; `allowed` ends when it may do its work. Signals to the whole group, as a
 * terminal sends them, are not for it. */
static void guard_run(pid_t pid, uint32_t patience_ms, int allowed)
{
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        signal(ignored[i], SIG_IGN);
    }
    take_name("ottla-guard");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct guarded guarded = {.pid = pid};
    char none;
    ssize_t end = read(allowed, &none, sizeof none);
    close(allowed);
    if (end != 0 || getppid() != pid || !open_guarded(&guarded)) {
        return; /* it has ended */
    }
    if (!may_take(&guarded)) {
        log_info("server", "a process may not take another's sockets here (pidfd_getfd: %s): while "
                 "this one is stopped by a signal, clients wait for their own timeouts",
                 strerror(errno));
        return;
    }
    look_after(&guarded, patience_ms);
}

pid_t guard_start(uint32_t patience_ms)
{
    assert(patience_ms > 0);
    pid_t guarded = getpid();
    int allowed[2];
    signal(SIGCHLD, SIG_IGN); /* one that ends by itself leaves nothing behind */
    pid_t guard = pipe2(allowed, O_CLOEXEC) == 0 ? fork() : -1;
    if (guard == 0) {
        close(allowed[1]);
        guard_run(guarded, patience_ms, allowed[0]);
        _exit(0);
    }
    if (guard < 0) {
        log_warn("server", "no second process can be started (%s): while this one is stopped by a "
                 "signal, clients wait for their own timeouts", strerror(errno));
        return 0;
    }
    prctl(PR_SET_PTRACER, guard); /* where a process gives only what it says (Yama) */
    close(allowed[0]);
    close(allowed[1]);
    return guard;
}

void guard_end(pid_t guard)
{
    if (guard > 0) {
        kill(guard, SIGKILL);
        waitpid(guard, NULL, 0);
    }
}
