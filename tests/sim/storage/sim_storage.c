/* Storage under power cuts, full disks, failing syncs and flipped bits: many worlds, one seed each.
 *
 *   sim_storage [SEED [COUNT]]
 *
 * Prints the seed of a world that breaks a promise and aborts; the same seed runs the same way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/file.h"
#include "tests/sim/sim_file.h"
#include "tests/sim/storage/world.h"

enum { DEFAULT_COUNT = 500, LIVES_MAX = 6, STEPS_MAX = 700 };

/* With interval syncs an acknowledged record survives the process, but not the power. */
static bool loses_power(const struct world *world)
{
    return world->journal_settings.flush == JOURNAL_FLUSH_DURABLE;
}

static void restart(const struct world *world)
{
    if (!loses_power(world)) {
        sim_disk_fail_sync(-1);
        enum status status = file_sync_all("/");
        world_require(world, status == STATUS_OK, "the kernel keeps what a process wrote");
    }
    sim_disk_restart();
}

/* What goes wrong in one life of the process. */
static void plan_faults(struct world *world)
{
    switch (world_random(world, 8)) {
    case 0:
        sim_disk_set_capacity(400000 + world_random(world, 3000000));
        break;
    case 1:
        sim_disk_fail_sync((int64_t)world_random(world, 40));
        break;
    case 2:
        break; /* only stopped or killed */
    default:
        if (loses_power(world)) {
            sim_disk_crash_after((int64_t)world_random(world, 400));
        }
        break;
    }
}

static void live(struct world *world)
{
    uint64_t steps = 20 + world_random(world, STEPS_MAX);
    for (uint64_t i = 0; i < steps && !sim_disk_crashed(); i++) {
        if (world->failed || log_writer_status(world->writer) != STATUS_OK) {
            return;
        }
        world_step(world);
    }
}

/* Something that no process did to the files. */
static void tamper(struct world *world)
{
    size_t files = 0;
    while (sim_disk_file_name(files) != NULL) {
        files++;
    }
    const char *name = files == 0 ? NULL : sim_disk_file_name(world_random(world, files));
    if (name == NULL || sim_disk_file_size(name) == 0) {
        return;
    }
    world->tampered = true;
    uint64_t choice = world_random(world, 10);
    if (choice == 0) {
        log_info("sim", "%s is lost", name);
        sim_disk_lose_file(name);
    } else {
        uint64_t position = world_random(world, sim_disk_file_size(name));
        log_info("sim", "a bit flips in %s at %llu", name, (unsigned long long)position);
        sim_disk_flip(name, position, (unsigned)world_random(world, 8));
    }
}

/* Opens, through further power cuts, until that works. */
static void open_again(struct world *world)
{
    while (!world_open(world)) {
        if (world->tampered && !sim_disk_crashed()) {
            return; /* refused: the operator is asked */
        }
        world_close(world, false);
        restart(world);
    }
}

static void run(uint64_t seed)
{
    struct world world;
    world_start(&world, seed);
    uint64_t lives = 1 + world_random(&world, LIVES_MAX);
    open_again(&world);
    for (uint64_t i = 0; i < lives; i++) {
        plan_faults(&world);
        live(&world);
        bool clean = !sim_disk_crashed() && !world.failed && world_random(&world, 2) == 0;
        world_close(&world, clean);
        sim_disk_set_capacity(0);
        restart(&world);
        /* With interval syncs, what a flipped bit hits may be what was never synced. */
        if (i + 1 == lives && loses_power(&world) && world_random(&world, 2) == 0) {
            tamper(&world);
        } else if (loses_power(&world) && world_random(&world, 4) == 0) {
            sim_disk_crash_after((int64_t)world_random(&world, 30)); /* while opening */
        }
        open_again(&world);
    }
    world_close(&world, false);
    sim_disk_reset(0);
    world_finish(&world);
}

int main(int argument_count, char **arguments)
{
    uint64_t seed = argument_count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    uint64_t count = argument_count > 2 ? strtoull(arguments[2], NULL, 10) : DEFAULT_COUNT;
    log_set_level(getenv("SIM_LOG") != NULL ? LOG_DEBUG : LOG_OFF);
    for (uint64_t i = 0; i < count; i++) {
        run(seed + i);
    }
    printf("%llu worlds from seed %llu on kept their promises\n", (unsigned long long)count,
        (unsigned long long)seed);
    return 0;
}
