/* A binary min-heap over (deadline, sequence). Each timer knows its place, so that stopping is
 * O(log n). Nothing here can fail. */
#include "broker/coordinator/timers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

static bool fires_before(const struct coordinator_timer *a, const struct coordinator_timer *b)
{
    if (a->deadline_ms != b->deadline_ms) {
        return a->deadline_ms < b->deadline_ms;
    }
    return a->sequence < b->sequence;
}

static void put(struct coordinator_timers *timers, size_t index, struct coordinator_timer *timer)
{
    assert(index < timers->count);
    timers->heap[index] = timer;
    timer->place = index + 1;
}

static void sift_up(struct coordinator_timers *timers, size_t index)
{
    struct coordinator_timer *timer = timers->heap[index];
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (!fires_before(timer, timers->heap[parent])) {
            break;
        }
        put(timers, index, timers->heap[parent]);
        index = parent;
    }
    put(timers, index, timer);
}

static void sift_down(struct coordinator_timers *timers, size_t index)
{
    struct coordinator_timer *timer = timers->heap[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= timers->count) {
            break;
        }
        if (child + 1 < timers->count &&
            fires_before(timers->heap[child + 1], timers->heap[child])) {
            child++;
        }
        if (!fires_before(timers->heap[child], timer)) {
            break;
        }
        put(timers, index, timers->heap[child]);
        index = child;
    }
    put(timers, index, timer);
}

void coordinator_timer_start(struct coordinator_timers *timers, struct coordinator_timer *timer,
                             enum coordinator_timer_kind kind, int64_t deadline_ms)
{
    coordinator_timer_stop(timers, timer);
    timer->kind = kind;
    timer->deadline_ms = deadline_ms;
    timer->sequence = ++timers->sequence;
    if (timers->count == timers->capacity) {
        timers->capacity = timers->capacity == 0 ? 16 : timers->capacity * 2;
        timers->heap = memory_resize(timers->heap, timers->capacity, sizeof(*timers->heap));
    }
    timers->count++;
    put(timers, timers->count - 1, timer);
    sift_up(timers, timers->count - 1);
}

void coordinator_timer_stop(struct coordinator_timers *timers, struct coordinator_timer *timer)
{
    if (timer->place == 0) {
        return;
    }
    size_t index = timer->place - 1;
    assert(index < timers->count && timers->heap[index] == timer);
    timer->place = 0;
    struct coordinator_timer *last = timers->heap[--timers->count];
    if (last == timer) {
        return;
    }
    put(timers, index, last);
    sift_up(timers, index);
    sift_down(timers, last->place - 1);
}

struct coordinator_timer *coordinator_timers_pop(struct coordinator_timers *timers, int64_t now_ms,
                                                 uint64_t sequence)
{
    if (timers->count == 0) {
        return NULL;
    }
    struct coordinator_timer *first = timers->heap[0];
    assert(first->place == 1);
    if (first->deadline_ms > now_ms || first->sequence > sequence) {
        return NULL;
    }
    coordinator_timer_stop(timers, first);
    return first;
}

int64_t coordinator_timers_next_ms(const struct coordinator_timers *timers)
{
    return timers->count == 0 ? INT64_MAX : timers->heap[0]->deadline_ms;
}

void coordinator_timers_move(struct coordinator_timers *timers, int64_t by_ms)
{
    assert(timers != NULL && timers->count <= timers->capacity);
    for (size_t i = 0; i < timers->count; i++) {
        assert(timers->heap[i]->place == i + 1);
        timers->heap[i]->deadline_ms += by_ms;
    }
}

void coordinator_timers_free(struct coordinator_timers *timers)
{
    assert(timers->count == 0);
    free(timers->heap);
    *timers = (struct coordinator_timers){0};
}
