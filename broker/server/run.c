/* The process: a broker from its start to the signal that ends it. */
#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "broker/server/broker.h"
#include "broker/server/storage_watch.h"
#include "broker/version.h"

static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Waits for a signal; meanwhile looks after a failed storage. Returns the exit code. */
static int wait_for_stop(struct broker *broker, const sigset_t *signals)
{
    assert(broker != NULL && broker->threaded);
    for (;;) {
        struct timespec second = {.tv_sec = 1};
        int got = sigtimedwait(signals, NULL, &second);
        if (got > 0) {
            log_info("server", "stopping: %s", strsignal(got));
            return 0;
        }
        if (storage_watch_recovered(broker)) {
            return BROKER_RUN_AGAIN;
        }
    }
}

int broker_run(const struct config *config)
{
    sigset_t signals;
    assert(config != NULL);
    struct broker *broker = broker_new(config, true);
    log_info("server", "Ottla " OTTLA_VERSION " starts");
    config_log_notes(config);
    raise_file_limit();
    block_signals(&signals);
    enum status status = broker_open(broker);
    int code = status == STATUS_CLOSED ? 0 : 1; /* told to stop while it looked for others */
    if (status == STATUS_OK) {
        code = wait_for_stop(broker, &signals);
    }
    broker_stop(broker);
    broker_free(broker);
    log_info("server", "stopped");
    return code;
}
