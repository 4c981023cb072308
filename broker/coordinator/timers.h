/* The coordinator's timers: a binary heap of timers that live inside their owners, so that
 * starting, stopping and moving one allocates nothing but the heap's own array. Equal deadlines
 * fire in the order in which they were started, which keeps the machine deterministic. */
#ifndef OTTLA_BROKER_COORDINATOR_TIMERS_H
#define OTTLA_BROKER_COORDINATOR_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the owner of the timer is told by it. */
enum coordinator_timer_kind {
    TIMER_MEMBER_SESSION,  /* a member's heartbeat is overdue */
    TIMER_PENDING_MEMBER,  /* an id was handed out and its owner never joined */
    TIMER_INITIAL_DELAY,   /* the first rebalance of an empty group may be completed */
    TIMER_REBALANCE,       /* the time to join has run out */
    TIMER_SYNC,            /* the time to sync has run out */
    TIMER_RETENTION        /* look for expired offsets */
};

/* Zeroed: not running. */
struct coordinator_timer {
    int64_t deadline_ms;
    uint64_t sequence;
    size_t place; /* index in the heap + 1; 0 = not running */
    enum coordinator_timer_kind kind;
};

struct coordinator_timers {
    struct coordinator_timer **heap;
    size_t count;
    size_t capacity;
    uint64_t sequence; /* of the timer started last */
};

/* Starts the timer, or moves it when it runs. */
void coordinator_timer_start(struct coordinator_timers *timers, struct coordinator_timer *timer,
                             enum coordinator_timer_kind kind, int64_t deadline_ms);

/* Stops the timer; nothing when it does not run. */
void coordinator_timer_stop(struct coordinator_timers *timers, struct coordinator_timer *timer);

/* Whether it runs. */
static inline bool coordinator_timer_runs(const struct coordinator_timer *timer)
{
    return timer->place != 0;
}

/* Takes out the first timer with deadline <= now_ms that was started no later than `sequence`;
 * null when none is due. The bound keeps a timer that restarts itself from looping. */
struct coordinator_timer *coordinator_timers_pop(struct coordinator_timers *timers, int64_t now_ms,
                                                 uint64_t sequence);

/* The earliest deadline, INT64_MAX when none runs. */
int64_t coordinator_timers_next_ms(const struct coordinator_timers *timers);

/* Moves all deadlines by so much; their order stays. */
void coordinator_timers_move(struct coordinator_timers *timers, int64_t by_ms);

/* Releases the heap; no timer may run. */
void coordinator_timers_free(struct coordinator_timers *timers);

#endif
