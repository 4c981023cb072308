/* Virtual time and its events; a broken promise aborts with the seed that breaks it. */
#include "tests/sim/cluster/world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/sim/sim_clock.h"

/* The events are a heap, flat so that few cache lines are touched. */
enum { BRANCHES = 4 };

struct world world;

void world_start(uint64_t seed, bool verbose)
{
    world = (struct world){.seed = seed, .random = seed, .now_ns = 1000 * (uint64_t)MS_NS,
                           .trace = 0xcbf29ce484222325u, .verbose = verbose};
    sim_clock_reset(seed);
}

void world_end(void)
{
    free(world.events);
    world.events = NULL;
    world.event_count = 0;
    world.event_capacity = 0;
}

uint64_t world_random(uint64_t bound)
{
    assert(bound > 0);
    world.random += 0x9e3779b97f4a7c15u;
    uint64_t z = world.random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

bool world_chance(uint64_t once_in)
{
    return world_random(once_in) == 0;
}

void world_note(uint64_t what)
{
    world.trace = (world.trace ^ what) * 0x100000001b3u;
    world.trace ^= world.trace >> 29;
}

static bool is_before(const struct world_event *a, const struct world_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void world_after(uint64_t wait_ns, void (*run)(void *context, uint64_t tag), void *context,
                 uint64_t tag)
{
    if (world.event_count == world.event_capacity) {
        world.event_capacity = world.event_capacity * 2 + 256;
        world.events = memory_resize(world.events, world.event_capacity, sizeof *world.events);
    }
    struct world_event event = {world.now_ns + wait_ns, world.order++, run, context, tag};
    size_t at = world.event_count++;
    while (at > 0 && is_before(&event, &world.events[(at - 1) / BRANCHES])) {
        world.events[at] = world.events[(at - 1) / BRANCHES];
        at = (at - 1) / BRANCHES;
    }
    world.events[at] = event;
}

/* The earliest of the events below one in the heap. */
static size_t first_below(size_t at)
{
    size_t child = BRANCHES * at + 1;
    size_t end = child + BRANCHES < world.event_count ? child + BRANCHES : world.event_count;
    size_t first = child;
    while (++child < end) {
        first = is_before(&world.events[child], &world.events[first]) ? child : first;
    }
    return first;
}

static struct world_event take_first(void)
{
    struct world_event first = world.events[0];
    struct world_event last = world.events[--world.event_count];
    size_t at = 0;
    for (;;) {
        size_t child = first_below(at);
        if (child >= world.event_count || !is_before(&world.events[child], &last)) {
            break;
        }
        world.events[at] = world.events[child];
        at = child;
    }
    if (world.event_count > 0) {
        world.events[at] = last;
    }
    return first;
}

bool world_next(uint64_t until_ns)
{
    if (world.event_count == 0 || world.events[0].at_ns > until_ns) {
        world.now_ns = until_ns;
        return false;
    }
    struct world_event event = take_first();
    assert(event.at_ns >= world.now_ns);
    world.now_ns = event.at_ns;
    world.events_run++;
    event.run(event.context, event.tag);
    return true;
}

void world_say(const char *format, ...)
{
    if (!world.verbose) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%9.3f  ", (double)world.now_ns / 1e9);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

void world_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "sim_cluster: seed %" PRIu64 " fails at %.3f s: ", world.seed,
            (double)world.now_ns / 1e9);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n  again, with a story: sim_cluster %" PRIu64 " 1 tell\n", world.seed);
    va_end(arguments);
    abort();
}
