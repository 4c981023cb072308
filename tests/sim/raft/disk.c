/* A node's journal: one write at a time, taking all that waits; what was not written is lost in a
 * crash, except that a part of the write under way may have reached the disk unheard. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/sim/raft/sim.h"

void disk_add(struct cluster *cluster, struct disk *disk, const struct record *record)
{
    (void)cluster;
    if (disk->count == disk->capacity) {
        disk->capacity = disk->capacity == 0 ? 64 : disk->capacity * 2;
        disk->records = memory_resize(disk->records, disk->capacity, sizeof *disk->records);
    }
    disk->records[disk->count++] = *record;
    if (record->kind == RECORD_ENTRY && record->entry.payload.block != NULL) {
        block_ref(record->entry.payload.block);
    }
}

static void drop_record(struct record *record)
{
    if (record->kind == RECORD_ENTRY) {
        block_unref(record->entry.payload.block);
    }
}

/* Moves the image of the log on with a record that is durable now. */
static void settle(struct disk *disk, const struct record *record)
{
    if (record->kind == RECORD_TRUNCATE) {
        disk->last = record->index <= disk->last ? record->index - 1 : disk->last;
    } else if (record->kind == RECORD_SAVE) {
        disk->saved_term = record->term;
        disk->saved_vote = record->voted_for;
    } else if (record->kind == RECORD_ENTRY) {
        assert(record->entry.index < INDEX_MAX);
        disk->terms[record->entry.index] = record->entry.term;
        disk->last = record->entry.index;
    }
}

bool disk_progress(struct cluster *cluster, struct disk *disk, uint32_t *from, uint32_t *to)
{
    bool complete = false;
    if (disk->writing > disk->durable && cluster->now >= disk->write_due) {
        *from = disk->durable;
        *to = disk->writing;
        for (uint32_t i = *from; i < *to; i++) {
            settle(disk, &disk->records[i]);
        }
        disk->durable = disk->writing;
        complete = true;
    }
    if (disk->writing == disk->durable && disk->count > disk->durable) {
        disk->writing = disk->count;
        disk->write_due = cluster->now + 1 + rng_below(&cluster->rng, cluster->plan.disk_max);
        if (rng_chance(&cluster->rng, cluster->plan.disk_slow)) {
            disk->write_due += rng_below(&cluster->rng, 20 * TICK_UNITS);
        }
    }
    return complete;
}

void disk_crash(struct cluster *cluster, struct disk *disk)
{
    uint32_t under_way = disk->writing - disk->durable;
    if (under_way > 0) {
        uint32_t reached = disk->durable + rng_below(&cluster->rng, under_way + 1);
        while (disk->durable < reached) {
            settle(disk, &disk->records[disk->durable++]);
        }
    }
    while (disk->count > disk->durable) {
        drop_record(&disk->records[--disk->count]);
    }
    disk->writing = disk->durable;
}

void disk_damage(struct disk *disk, uint32_t count)
{
    assert(disk->count == disk->durable);
    for (uint32_t i = disk->count; i > 0 && count > 0; i--) {
        struct record *record = &disk->records[i - 1];
        if (record->kind == RECORD_ENTRY && record->entry.index > disk->checkpoint.index) {
            drop_record(record);
            record->kind = RECORD_NOTHING;
            count--;
        }
    }
    disk->last = 0;
    for (uint32_t i = 0; i < disk->count; i++) {
        settle(disk, &disk->records[i]);
    }
}

/* A mark is a record too: it is durable only after the truncations before it. */
static bool has_pending_truncation(const struct disk *disk)
{
    for (uint32_t i = disk->durable; i < disk->count; i++) {
        if (disk->records[i].kind == RECORD_TRUNCATE) {
            return true;
        }
    }
    return false;
}

void disk_trim(struct disk *disk)
{
    if (has_pending_truncation(disk)) {
        return;
    }
    uint32_t kept = 0;
    uint32_t durable = 0;
    uint32_t writing = 0;
    for (uint32_t i = 0; i < disk->count; i++) {
        struct record *record = &disk->records[i];
        if (i < disk->durable && record->kind == RECORD_ENTRY &&
            record->entry.index <= disk->checkpoint.index) {
            drop_record(record);
            continue;
        }
        disk->records[kept++] = *record;
        durable += i < disk->durable ? 1 : 0;
        writing += i < disk->writing ? 1 : 0;
    }
    disk->count = kept;
    disk->durable = durable;
    disk->writing = writing;
}

bool disk_has(const struct disk *disk, uint64_t index, uint64_t term)
{
    return index <= disk->checkpoint.index || (index <= disk->last && disk->terms[index] == term);
}

void disk_free(struct disk *disk)
{
    for (uint32_t i = 0; i < disk->count; i++) {
        drop_record(&disk->records[i]);
    }
    free(disk->records);
}
