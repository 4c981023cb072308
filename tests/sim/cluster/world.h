/* The world of a simulated cluster: virtual time, one generator, what is to happen, and the trace.
 *
 * Everything that happens is an event at a time; events of the same time happen in the order in
 * which they were asked for. The same seed gives the same events, and so the same trace hash.
 */
#ifndef OTTLA_TESTS_SIM_CLUSTER_WORLD_H
#define OTTLA_TESTS_SIM_CLUSTER_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MS_NS = 1000000, ALARMS = 8 };

/* What happens at a time. */
struct world_event {
    void (*run)(void *context, uint64_t tag);
    void *context;
    uint64_t tag;
};

/* Where an event stands in the order, and which it is. */
struct world_turn {
    uint64_t order;              /* and in the low bits the event's place */
    uint64_t at_ns;              /* comes first */
};

struct world {
    uint64_t seed;
    uint64_t random;
    uint64_t now_ns;
    uint64_t order;
    uint64_t trace;              /* hash of all that happened */
    uint64_t events_run;
    bool verbose;
    struct world_turn *turns;    /* a heap; behind its end there are turns that never come */
    size_t turn_count;
    struct world_event *events;  /* in any order */
    uint32_t *free_places;       /* among them */
    size_t event_capacity;       /* of all three */
    struct world_turn alarm_turns[ALARMS]; /* one that never comes: it is not set */
    struct world_event alarms[ALARMS];
    size_t first_alarm;
};

extern struct world world;

/* A new world, at its beginning. */
void world_start(uint64_t seed, bool verbose);

/* Forgets what is to happen. */
void world_end(void);

/* Lets `run` happen after `wait_ns`. */
void world_after(uint64_t wait_ns, void (*run)(void *context, uint64_t tag), void *context,
                 uint64_t tag);

/* The same of something that is asked for again and again, and counts as it was asked for last. */
void world_alarm(size_t alarm, uint64_t wait_ns, void (*run)(void *context, uint64_t tag),
                 void *context);

/* The alarm does not come. */
void world_alarm_off(size_t alarm);

/* Runs the next event; false when there is none up to the time, which it is then. */
bool world_next(uint64_t until_ns);

/* A number below the bound. */
uint64_t world_random(uint64_t bound);

/* True once in so many times. */
bool world_chance(uint64_t once_in);

/* Mixes something that happened into the trace. */
void world_note(uint64_t what);

/* A line for people, when they want it. */
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the run when the condition does not hold: says the seed, the time and what is wrong. */
#define world_require(condition, ...) ((condition) ? (void)0 : world_fail(__VA_ARGS__))

_Noreturn void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

#endif
