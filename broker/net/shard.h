/* One event loop with its thread (architecture: threads).
 *
 * A shard owns connections and partition groups; nothing else touches them. Work for another shard
 * is mail. Callbacks run to the end and never block.
 */
#ifndef OTTLA_BROKER_NET_SHARD_H
#define OTTLA_BROKER_NET_SHARD_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/status.h"
#include "broker/net/mailbox.h"

struct broker;

struct shard {
    int number;
    struct broker *broker;       /* the process; not owned */
    struct event_base *base;
    struct mailbox mailbox;
    atomic_bool asleep;          /* or about to be: who sends mail has to wake it */
    int wake_fd;
    struct event *wake_event;
    struct event *tick_event;
    pthread_t thread;
    uint64_t work;               /* counts mail and requests: whether there was any since a tick */
    uint64_t work_at_tick;
    bool slow_ticks;
    bool keeps_time;             /* ticks stay fast though nothing happens */
    bool started;
    bool stopping;
    bool handing_over;           /* others are asked to lead the groups of this shard */
    uint64_t drain_ms;           /* others lead: when clients' connections were first ended */
    bool stop_asked;
    bool stop_begun;             /* what is dirty was handed to be written; then the loop may end */
    struct list after;           /* struct shard_task: run when the current callbacks are done */
    struct list background;      /* struct shard_task: long work, a step at each turn */
    void (*tick)(struct shard *shard);
    struct connections *connections; /* broker/net/connection.h */
    struct replicas *replicas;       /* broker/group/replicas.h: groups and topics of this shard */
    struct fetch_sessions *sessions; /* broker/api/fetch_session.h */
    struct peers *peers;             /* broker/peer/peers.h: links to the other nodes */
    struct controller_calls *controller_calls; /* broker/api/controller_call.h */
    struct producer_ids *producer_ids; /* broker/api/producer_ids.h */
};

/* Something to be done once at the end of this turn of the loop, however often it is asked for:
 * flushing a connection, submitting a group's entries. */
struct shard_task {
    struct list_link link;
    void (*run)(struct shard_task *task);
};

/* Something to be done once after a while. Lives in its owner; zeroed: not set. */
struct shard_timer {
    struct shard *shard;
    void (*run)(struct shard_timer *timer);
    struct event event;
    bool set;
};

/* Makes the loop, without a thread yet. `tick` runs every SHARD_TICK_MS, and every SHARD_IDLE_MS
 * while there is nothing to do. STATUS_IO when the
 * system has no descriptors left. */
MUST_USE enum status shard_open(struct shard *shard, int number, struct broker *broker,
                                void (*tick)(struct shard *shard));

/* Starts the thread. */
MUST_USE enum status shard_start(struct shard *shard);

/* Hands mail to the shard, from any thread; the shard owns it from now on. */
void shard_post(struct shard *shard, struct mail *mail);

/* Runs the task at the end of this turn of the loop. Only from the shard's own thread. */
void shard_defer(struct shard *shard, struct shard_task *task);

/* Runs the task once in the next turn, after what is waiting; the loop does not sleep meanwhile.
 * For long work in steps: a step asks for the next. To cancel, take the task off its list. */
void shard_background(struct shard *shard, struct shard_task *task);

/* From now on somebody needs every tick at its time, or nobody does. Only from the shard's own
 * thread. */
void shard_keep_time(struct shard *shard, bool on);

/* Runs `run` on the shard after `wait_ms`; a timer that is set is set anew. Only from the shard's
 * own thread, or before it runs. */
void shard_timer_set(struct shard *shard, struct shard_timer *timer, uint64_t wait_ms);

/* The timer will not run; nothing when it is not set. */
void shard_timer_stop(struct shard_timer *timer);

/* Ends the loop after the present turn; only from the shard's own thread. */
void shard_stop(struct shard *shard);

/* Waits for the thread to end. */
void shard_join(struct shard *shard);

/* After the thread has ended: runs the mail and tasks that are left. Returns whether there were. */
bool shard_run_pending(struct shard *shard);

/* Releases the loop. Its connections and groups must be gone. */
void shard_close(struct shard *shard);

enum { SHARD_TICK_MS = 50, SHARD_IDLE_MS = 250 };

#endif
