/* One cell for each offset. Any contradiction ends the run. */
#include "tests/sim/cluster/model.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/sim/cluster/world.h"

struct cell {
    uint64_t serial;             /* 0: not known */
    bool acked;
    bool read;
};

struct column {
    struct cell *cells;
    int64_t count;
    int64_t capacity;
};

static struct column columns[MODEL_PARTITIONS];
static int64_t *places;          /* by serial: offset * MODEL_PARTITIONS + partition + 1 */
static uint64_t place_count;
static uint64_t acked_count;

void model_start(void)
{
    for (int i = 0; i < MODEL_PARTITIONS; i++) {
        columns[i] = (struct column){0};
    }
    places = NULL;
    place_count = 0;
    acked_count = 0;
}

void model_end(void)
{
    for (int i = 0; i < MODEL_PARTITIONS; i++) {
        free(columns[i].cells);
    }
    free(places);
}

static struct cell *cell_at(int partition, int64_t offset)
{
    struct column *column = &columns[partition];
    world_require(offset >= 0 && offset < 1 << 24, "offset %" PRId64, offset);
    if (offset >= column->capacity) {
        int64_t capacity = offset * 2 + 64;
        column->cells = memory_resize(column->cells, (size_t)capacity, sizeof *column->cells);
        for (int64_t i = column->capacity; i < capacity; i++) {
            column->cells[i] = (struct cell){0};
        }
        column->capacity = capacity;
    }
    column->count = offset >= column->count ? offset + 1 : column->count;
    return &column->cells[offset];
}

/* The record is here and nowhere else; whoever else was here is not. */
static struct cell *place(int partition, int64_t offset, uint64_t serial, const char *how)
{
    struct cell *cell = cell_at(partition, offset);
    world_require(cell->serial == 0 || cell->serial == serial,
                  "partition %d offset %" PRId64 ": record %" PRIu64 " is %s where %" PRIu64
                  " was", partition, offset, serial, how, cell->serial);
    cell->serial = serial;
    if (serial >= place_count) {
        uint64_t count = serial * 2 + 64;
        places = memory_resize(places, count, sizeof *places);
        for (uint64_t i = place_count; i < count; i++) {
            places[i] = 0;
        }
        place_count = count;
    }
    int64_t here = offset * MODEL_PARTITIONS + partition + 1;
    world_require(places[serial] == 0 || places[serial] == here,
                  "record %" PRIu64 " is %s at partition %d offset %" PRId64 " and also elsewhere",
                  serial, how, partition, offset);
    places[serial] = here;
    return cell;
}

void model_acked(int partition, int64_t offset, uint64_t serial)
{
    struct cell *cell = place(partition, offset, serial, "acknowledged");
    acked_count += !cell->acked;
    cell->acked = true;
}

void model_read(int partition, int64_t offset, uint64_t serial)
{
    place(partition, offset, serial, "read")->read = true;
}

void model_check_read(int partition, int64_t end_offset)
{
    const struct column *column = &columns[partition];
    for (int64_t i = 0; i < column->count; i++) {
        world_require(!column->cells[i].acked || (column->cells[i].read && i < end_offset),
                      "partition %d: record %" PRIu64 " at offset %" PRId64
                      " was acknowledged and cannot be read", partition, column->cells[i].serial,
                      i);
    }
}

uint64_t model_acked_count(void)
{
    return acked_count;
}

int64_t model_end_offset(int partition)
{
    return columns[partition].count;
}
