/* broker/net/shard.h in virtual time: no thread, no sockets; the node runs the loop when something
 * is due. */
#include "tests/sim/cluster/loop.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/net/shard.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

static struct sim_loop *loop_of(const struct shard *shard)
{
    return (struct sim_loop *)(void *)shard->base;
}

enum status shard_open(struct shard *shard, int number, struct broker *broker,
                       void (*tick)(struct shard *shard))
{
    struct sim_node *node = node_current();
    assert(node != NULL && node->loop_count == number);
    *shard = (struct shard){.number = number, .broker = broker, .tick = tick, .wake_fd = -1};
    list_init(&shard->after);
    list_init(&shard->background);
    struct sim_loop *loop = &node->loops[node->loop_count++];
    *loop = (struct sim_loop){.node = node, .shard = shard};
    loop->tick_ns = world.now_ns + world_random(SHARD_TICK_MS) * MS_NS;
    shard->base = (struct event_base *)(void *)loop;
    return STATUS_OK;
}

enum status shard_start(struct shard *shard)
{
    node_wake(loop_of(shard)->node, 0);
    return STATUS_OK;
}

void shard_post(struct shard *shard, struct mail *mail)
{
    mailbox_push(&shard->mailbox, mail);
    node_wake(loop_of(shard)->node, 0);
}

void shard_defer(struct shard *shard, struct shard_task *task)
{
    if (!list_contains(&task->link)) {
        list_push_back(&shard->after, &task->link);
    }
    node_wake(loop_of(shard)->node, 0);
}

void shard_background(struct shard *shard, struct shard_task *task)
{
    if (!list_contains(&task->link)) {
        list_push_back(&shard->background, &task->link);
    }
    node_wake(loop_of(shard)->node, 0);
}

void shard_keep_time(struct shard *shard, bool on)
{
    shard->keeps_time = on; /* here every tick comes at its time */
}

void shard_timer_set(struct shard *shard, struct shard_timer *timer, uint64_t wait_ms)
{
    struct sim_loop *loop = loop_of(shard);
    assert(timer->run != NULL);
    shard_timer_stop(timer);
    timer->shard = shard;
    timer->set = true;
    if (loop->timer_count == loop->timer_capacity) {
        loop->timer_capacity = loop->timer_capacity * 2 + 16;
        loop->timers = memory_resize(loop->timers, loop->timer_capacity, sizeof *loop->timers);
        loop->due_ns = memory_resize(loop->due_ns, loop->timer_capacity, sizeof *loop->due_ns);
    }
    uint64_t due_ns = world.now_ns + wait_ms * MS_NS;
    loop->timers[loop->timer_count] = timer;
    loop->due_ns[loop->timer_count++] = due_ns;
    loop->next_ns = due_ns < loop->next_ns ? due_ns : loop->next_ns;
    node_wake(loop->node, wait_ms * MS_NS);
}

void shard_timer_stop(struct shard_timer *timer)
{
    if (!timer->set) {
        return;
    }
    struct sim_loop *loop = loop_of(timer->shard);
    timer->set = false;
    for (size_t i = 0; i < loop->timer_count; i++) {
        if (loop->timers[i] == timer) {
            loop->next_ns = loop->due_ns[i] == loop->next_ns ? 0 : loop->next_ns;
            loop->timer_count--;
            loop->timers[i] = loop->timers[loop->timer_count];
            loop->due_ns[i] = loop->due_ns[loop->timer_count];
            return;
        }
    }
    assert(!"a timer that is set is in its loop");
}

/* The timer that was due first, or null. */
static struct shard_timer *due_timer(const struct sim_loop *loop)
{
    struct shard_timer *first = NULL;
    uint64_t first_ns = world.now_ns;
    for (size_t i = 0; i < loop->timer_count; i++) {
        if (loop->due_ns[i] <= first_ns && (first == NULL || loop->due_ns[i] < first_ns)) {
            first = loop->timers[i];
            first_ns = loop->due_ns[i];
        }
    }
    return first;
}

static bool run_timers(struct sim_loop *loop)
{
    struct shard_timer *timer;
    bool any = false;
    while ((timer = due_timer(loop)) != NULL) {
        shard_timer_stop(timer);
        timer->run(timer);
        any = true;
    }
    return any;
}

static bool run_some(struct list *tasks)
{
    struct list now;
    struct list_link *at;
    bool any = false;
    list_init(&now);
    while ((at = list_pop_front(tasks)) != NULL) {
        list_push_back(&now, at);
    }
    while ((at = list_pop_front(&now)) != NULL) {
        struct shard_task *task = container_of(at, struct shard_task, link);
        task->run(task);
        any = true;
    }
    return any;
}

/* There are mostly none. */
static inline bool run_tasks(struct list *tasks)
{
    return !list_is_empty(tasks) && run_some(tasks);
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

/* Timers and the tick. */
static bool run_due(struct sim_loop *loop)
{
    if (world.now_ns < loop->next_ns) {
        return false;
    }
    bool any = run_timers(loop);
    if (world.now_ns >= loop->tick_ns) {
        loop->tick_ns = world.now_ns + (uint64_t)SHARD_TICK_MS * MS_NS;
        loop->next_ns = 0;
        loop->shard->tick(loop->shard);
        loop->node->journal_has_work = true; /* seals, delayed deletions */
        loop->node->writer_has_work = true;
        any = true;
    }
    return any;
}

bool loop_run(struct sim_loop *loop)
{
    struct shard *shard = loop->shard;
    bool any = run_due(loop);
    any |= atomic_load_explicit(&shard->mailbox.newest, memory_order_relaxed) != NULL &&
           run_mail(shard);
    while (run_tasks(&shard->after)) {
        any = true;
    }
    any |= run_tasks(&shard->background);
    while (run_tasks(&shard->after)) {
        any = true;
    }
    return any;
}

uint64_t loop_next_ns(struct sim_loop *loop)
{
    if (loop->next_ns > 0) {
        return loop->next_ns;
    }
    uint64_t next = loop->tick_ns;
    for (size_t i = 0; i < loop->timer_count; i++) {
        next = loop->due_ns[i] < next ? loop->due_ns[i] : next;
    }
    loop->next_ns = next;
    return next;
}

void shard_stop(struct shard *shard)
{
    shard->stopping = true;
}

void shard_join(struct shard *shard)
{
    assert(!shard->started);
    (void)shard;
}

bool shard_run_pending(struct shard *shard)
{
    bool any = shard->base != NULL && (run_mail(shard) || !list_is_empty(&shard->after));
    while (shard->base != NULL && run_tasks(&shard->after)) {
    }
    return any;
}

void shard_close(struct shard *shard)
{
    struct sim_loop *loop = loop_of(shard);
    assert(loop->timer_count == 0);
    free(loop->timers);
    free(loop->due_ns);
    loop->timers = NULL;
    loop->due_ns = NULL;
    shard->base = NULL;
}
