/* Virtual time and its events; a broken promise aborts with the seed that breaks it. */
#include "tests/sim/cluster/world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/sim/sim_clock.h"

/* The turns are a heap. All turns below one lie in one cache line, and are always four. */
enum {
    BRANCHES = 4,
    LINE_BYTES = BRANCHES * sizeof(struct world_turn),
    PLACE_BITS = 20,
    FIRST_CAPACITY = 256
};

_Static_assert(sizeof(struct world_turn) == 16 && LINE_BYTES == 64, "four turns are a cache line");

static const struct world_turn never = {UINT64_MAX, UINT64_MAX};

struct world world;

/* The first turn is the last of its line, so that those below each other one begin a line. */
static void *lines_of(const struct world_turn *turns)
{
    return turns == NULL ? NULL : (char *)(uintptr_t)turns - (LINE_BYTES - sizeof *turns);
}

void world_end(void)
{
    free(lines_of(world.turns));
    free(world.events);
    free(world.free_places);
    world.turns = NULL;
    world.events = NULL;
    world.free_places = NULL;
    world.turn_count = 0;
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

/* Both words as one number, which is compared without a branch that nobody could predict. */
__extension__ typedef unsigned __int128 both_words;

static inline both_words number_of(const struct world_turn *turn)
{
    return (both_words)turn->at_ns << 64 | turn->order;
}

static inline bool is_before(const struct world_turn *a, const struct world_turn *b)
{
    return number_of(a) < number_of(b);
}

static void grow(void)
{
    size_t capacity = world.event_capacity == 0 ? FIRST_CAPACITY : world.event_capacity * 2;
    size_t room = capacity + (size_t)2 * BRANCHES; /* of whole lines */
    assert(capacity <= (size_t)1 << PLACE_BITS);
    struct world_turn *turns = aligned_alloc(LINE_BYTES, room * sizeof *turns);
    assert(turns != NULL);
    memset(turns, 0xff, room * sizeof *turns);
    turns += BRANCHES - 1;
    if (world.turn_count > 0) {
        memcpy(turns, world.turns, world.turn_count * sizeof *turns);
    }
    free(lines_of(world.turns));
    world.turns = turns;
    world.events = memory_resize(world.events, capacity, sizeof *world.events);
    world.free_places = memory_resize(world.free_places, capacity, sizeof *world.free_places);
    for (size_t i = world.event_capacity; i < capacity; i++) {
        world.free_places[i] = (uint32_t)i;
    }
    world.event_capacity = capacity;
}

void world_start(uint64_t seed, bool verbose)
{
    world = (struct world){.seed = seed, .random = seed, .now_ns = 1000 * (uint64_t)MS_NS,
                           .trace = 0xcbf29ce484222325u, .verbose = verbose};
    grow(); /* so that there is a turn that never comes */
    for (size_t i = 0; i < ALARMS; i++) {
        world.alarm_turns[i] = never;
    }
    sim_clock_reset(seed);
}

static struct world_turn new_turn(uint64_t wait_ns, uint32_t place)
{
    return (struct world_turn){.order = world.order++ << PLACE_BITS | place,
                               .at_ns = world.now_ns + wait_ns};
}

void world_after(uint64_t wait_ns, void (*run)(void *context, uint64_t tag), void *context,
                 uint64_t tag)
{
    if (world.turn_count == world.event_capacity) {
        grow();
    }
    size_t at = world.turn_count++;
    uint32_t place = world.free_places[at];
    world.events[place] = (struct world_event){run, context, tag};
    struct world_turn turn = new_turn(wait_ns, place);
    while (at > 0 && is_before(&turn, &world.turns[(at - 1) / BRANCHES])) {
        world.turns[at] = world.turns[(at - 1) / BRANCHES];
        at = (at - 1) / BRANCHES;
    }
    world.turns[at] = turn;
}

/* The earliest of the turns below one in the heap. */
static inline size_t first_below(size_t at)
{
    size_t child = BRANCHES * at + 1;
    const struct world_turn *below = &world.turns[child];
    size_t left = is_before(&below[1], &below[0]) ? 1 : 0;
    size_t right = is_before(&below[3], &below[2]) ? 3 : 2;
    return child + (is_before(&below[right], &below[left]) ? right : left);
}

/* The turn of the earliest event in the heap, taken out of it. */
static struct world_turn take_first(void)
{
    struct world_turn first = world.turns[0];
    size_t count = --world.turn_count;
    struct world_turn last = world.turns[count];
    world.turns[count] = never;
    size_t at = 0;
    while (BRANCHES * at + 1 < count) {
        size_t child = first_below(at);
        if (!is_before(&world.turns[child], &last)) {
            break;
        }
        world.turns[at] = world.turns[child];
        at = child;
    }
    if (count > 0) {
        world.turns[at] = last;
    }
    return first;
}

static void find_first_alarm(void)
{
    world.first_alarm = 0;
    for (size_t i = 1; i < ALARMS; i++) {
        if (is_before(&world.alarm_turns[i], &world.alarm_turns[world.first_alarm])) {
            world.first_alarm = i;
        }
    }
}

void world_alarm(size_t alarm, uint64_t wait_ns, void (*run)(void *context, uint64_t tag),
                 void *context)
{
    assert(alarm < ALARMS);
    world.alarms[alarm] = (struct world_event){run, context, 0};
    world.alarm_turns[alarm] = new_turn(wait_ns, 0);
    find_first_alarm();
}

void world_alarm_off(size_t alarm)
{
    assert(alarm < ALARMS);
    world.alarm_turns[alarm] = never;
    find_first_alarm();
}

static struct world_event take_alarm(void)
{
    struct world_event event = world.alarms[world.first_alarm];
    world_alarm_off(world.first_alarm);
    return event;
}

static struct world_event take_event(void)
{
    struct world_turn turn = take_first();
    uint32_t place = (uint32_t)(turn.order & ((1u << PLACE_BITS) - 1));
    world.free_places[world.turn_count] = place;
    return world.events[place];
}

bool world_next(uint64_t until_ns)
{
    const struct world_turn *alarm = &world.alarm_turns[world.first_alarm];
    bool is_alarm = is_before(alarm, &world.turns[0]);
    uint64_t at_ns = is_alarm ? alarm->at_ns : world.turns[0].at_ns;
    if (at_ns > until_ns) {
        world.now_ns = until_ns;
        return false;
    }
    assert(at_ns >= world.now_ns);
    struct world_event event = is_alarm ? take_alarm() : take_event();
    world.now_ns = at_ns;
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
