/* Forked processes that take the next number from shared memory until there is none. */
#include "tests/sim/cluster/workers.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MOST = 64 };

struct shared {
    _Atomic uint64_t next;
    struct tally tally;
};

int workers_usable(void)
{
    cpu_set_t processors;
    int failed = sched_getaffinity(0, sizeof processors, &processors);
    int count = failed ? 1 : CPU_COUNT(&processors);
    return count < WORKERS_MOST ? count : WORKERS_MOST;
}

static void work(struct shared *shared, uint64_t count,
                 void (*run)(uint64_t number, struct tally *tally))
{
    uint64_t number;
    while ((number = shared->next++) < count) {
        run(number, &shared->tally);
    }
}

static pid_t start(struct shared *shared, uint64_t count,
                   void (*run)(uint64_t number, struct tally *tally))
{
    pid_t parent = getpid();
    pid_t made = fork();
    if (made < 0) {
        perror("sim_cluster: fork");
        exit(2);
    }
    if (made == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            work(shared, count, run);
        }
        exit(0); /* a sanitizer looks for leaks then */
    }
    return made;
}

/* Ends as the worker did that failed. */
static void fail(const pid_t *made, int workers, int how)
{
    for (int i = 0; i < workers; i++) {
        kill(made[i], SIGKILL);
    }
    if (WIFEXITED(how)) {
        exit(WEXITSTATUS(how));
    }
    abort();
}

static void wait_for(pid_t *made, int workers)
{
    for (int left = workers; left > 0; left--) {
        int how = 0;
        pid_t ended = wait(&how);
        assert(ended > 0);
        for (int i = 0; i < workers; i++) {
            if (made[i] == ended) {
                made[i] = made[left - 1];
                break;
            }
        }
        if (how != 0) {
            fail(made, left - 1, how);
        }
    }
}

struct tally workers_run(int workers, uint64_t count,
                         void (*run)(uint64_t number, struct tally *tally))
{
    assert(workers > 0 && workers <= WORKERS_MOST);
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("sim_cluster: mmap");
        exit(2);
    }
    if (workers == 1) {
        work(shared, count, run);
    } else {
        pid_t made[WORKERS_MOST];
        fflush(stdout);
        for (int i = 0; i < workers; i++) {
            made[i] = start(shared, count, run);
        }
        wait_for(made, workers);
    }
    struct tally tally = {shared->tally.acked, shared->tally.virtual_ns, shared->tally.trace};
    munmap(shared, sizeof *shared);
    return tally;
}
