/* An event loop: mail from other threads wakes it through an eventfd, deferred tasks run at the end
 * of each batch of callbacks. Fails only when the system has no descriptors or threads left. */
#include "broker/net/shard.h"

#include <assert.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"

static void run_deferred(struct shard *shard)
{
    struct list_link *link;
    while ((link = list_pop_front(&shard->after)) != NULL) {
        struct shard_task *task = container_of(link, struct shard_task, link);
        task->run(task);
    }
}

/* One step of each long task. */
static void run_background(struct shard *shard)
{
    struct list steps;
    struct list_link *link;
    list_init(&steps);
    while ((link = list_pop_front(&shard->background)) != NULL) {
        list_push_back(&steps, link);
    }
    while ((link = list_pop_front(&steps)) != NULL) {
        struct shard_task *task = container_of(link, struct shard_task, link);
        task->run(task);
    }
}

static bool run_mail(struct shard *shard)
{
    struct mail *mail = mailbox_drain(&shard->mailbox);
    bool any = mail != NULL;
    while (mail != NULL) {
        struct mail *next = mail->next;
        shard->work++;
        mail->run(shard, mail);
        mail = next;
    }
    return any;
}

/* Edge triggered: each write wakes once, and nobody has to read the counter. */
static void woken(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    (void)argument;
}

static void arm_tick(struct shard *shard, bool slow)
{
    struct timeval every = {.tv_usec = (slow ? SHARD_IDLE_MS : SHARD_TICK_MS) * 1000};
    shard->slow_ticks = slow;
    event_add(shard->tick_event, &every);
}

static void tick_due(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    struct shard *shard = argument;
    bool idle = shard->work == shard->work_at_tick && !shard->keeps_time;
    shard->work_at_tick = shard->work;
    shard->tick(shard);
    idle = idle && !shard->keeps_time; /* the tick may have woken somebody */
    if (idle != shard->slow_ticks) {
        arm_tick(shard, idle);
    }
}

enum status shard_open(struct shard *shard, int number, struct broker *broker,
                       void (*tick)(struct shard *shard))
{
    assert(tick != NULL);
    *shard = (struct shard){.number = number, .broker = broker, .tick = tick, .wake_fd = -1};
    list_init(&shard->after);
    list_init(&shard->background);
    shard->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (shard->wake_fd < 0) {
        return STATUS_IO;
    }
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    shard->base = event_base_new_with_config(config);
    event_config_free(config);
    if (shard->base == NULL) {
        close(shard->wake_fd);
        return STATUS_IO;
    }
    shard->wake_event = event_new(shard->base, shard->wake_fd, EV_READ | EV_PERSIST | EV_ET,
                                  woken, shard);
    shard->tick_event = event_new(shard->base, -1, EV_PERSIST, tick_due, shard);
    event_add(shard->wake_event, NULL);
    arm_tick(shard, false);
    return STATUS_OK;
}

/* Waits for events, unless there is something to do already. `asleep` is set before the mailbox is
 * looked at, and a sender looks at `asleep` after its mail is in: one of the two sees the other. */
static void wait_for_events(struct shard *shard)
{
    bool busy = !list_is_empty(&shard->background);
    atomic_store(&shard->asleep, true);
    bool mail = atomic_load(&shard->mailbox.newest) != NULL;
    event_base_loop(shard->base, busy || mail ? EVLOOP_NONBLOCK : EVLOOP_ONCE);
    atomic_store(&shard->asleep, false);
}

static void *shard_main(void *argument)
{
    struct shard *shard = argument;
    while (!shard->stopping) {
        wait_for_events(shard);
        run_mail(shard);
        run_deferred(shard);
        if (shard->slow_ticks && shard->work != shard->work_at_tick) {
            arm_tick(shard, false);
        }
        if (!list_is_empty(&shard->background)) {
            run_background(shard);
            run_deferred(shard);
        }
    }
    return NULL;
}

enum status shard_start(struct shard *shard)
{
    assert(!shard->started);
    shard->started = true;
    if (pthread_create(&shard->thread, NULL, shard_main, shard) != 0) {
        shard->started = false;
        return STATUS_IO;
    }
    char name[16];
    snprintf(name, sizeof name, "shard-%d", shard->number);
    pthread_setname_np(shard->thread, name);
    return STATUS_OK;
}

void shard_post(struct shard *shard, struct mail *mail)
{
    mailbox_push(&shard->mailbox, mail);
    if (atomic_exchange(&shard->asleep, false)) {
        uint64_t one = 1;
        ssize_t written = write(shard->wake_fd, &one, sizeof one);
        assert(written == (ssize_t)sizeof one);
    }
}

void shard_defer(struct shard *shard, struct shard_task *task)
{
    assert(task->run != NULL);
    if (!list_contains(&task->link)) {
        list_push_back(&shard->after, &task->link);
    }
}

void shard_background(struct shard *shard, struct shard_task *task)
{
    assert(task->run != NULL);
    if (!list_contains(&task->link)) {
        list_push_back(&shard->background, &task->link);
    }
}

void shard_keep_time(struct shard *shard, bool on)
{
    shard->keeps_time = on;
    if (on && shard->slow_ticks) {
        arm_tick(shard, false);
    }
}

static void timer_due(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    struct shard_timer *timer = argument;
    assert(timer->set);
    timer->set = false;
    timer->run(timer);
}

void shard_timer_set(struct shard *shard, struct shard_timer *timer, uint64_t wait_ms)
{
    assert(timer->run != NULL);
    shard_timer_stop(timer);
    timer->shard = shard;
    timer->set = true;
    struct timeval wait = {.tv_sec = (time_t)(wait_ms / 1000),
                           .tv_usec = (suseconds_t)(wait_ms % 1000 * 1000)};
    event_assign(&timer->event, shard->base, -1, 0, timer_due, timer);
    event_add(&timer->event, &wait);
}

void shard_timer_stop(struct shard_timer *timer)
{
    assert(!timer->set || timer->shard != NULL);
    if (timer->set) {
        timer->set = false;
        event_del(&timer->event);
    }
}

void shard_stop(struct shard *shard)
{
    shard->stopping = true;
    event_base_loopbreak(shard->base);
}

void shard_join(struct shard *shard)
{
    if (shard->started) {
        pthread_join(shard->thread, NULL);
        shard->started = false;
    }
}

bool shard_run_pending(struct shard *shard)
{
    assert(!shard->started);
    bool any = shard->base != NULL && (run_mail(shard) || !list_is_empty(&shard->after));
    if (any) {
        run_deferred(shard);
    }
    return any;
}

void shard_close(struct shard *shard)
{
    assert(!shard->started);
    event_free(shard->wake_event);
    event_free(shard->tick_event);
    event_base_free(shard->base);
    close(shard->wake_fd);
}
