/* The things that happen: submits, turns of the writers, commits, checkpoints, reads. */
#include "tests/sim/storage/world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/clock.h"
#include "protocol/records.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"

uint64_t world_random(struct world *world, uint64_t bound)
{
    world->random += 0x9e3779b97f4a7c15u;
    uint64_t z = world->random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

void world_require(const struct world *world, bool condition, const char *format, ...)
{
    if (condition) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "seed %llu failed after %u restarts: ", (unsigned long long)world->seed,
        world->restarts);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

uint64_t world_frames(const struct world *world)
{
    struct journal_stats stats;
    journal_read_stats(world->journal, &stats);
    return world->frames_before + stats.frames;
}

/* Submitting -------------------------------------------------------------------------------- */

struct submission {
    struct journal_op op;
    struct world *world;
    uint64_t first_serial;
    size_t count;
    struct journal_record records[];
};

static uint64_t new_record(struct world *world, struct model_record record)
{
    if (world->record_count == world->record_capacity) {
        world->record_capacity = world->record_capacity * 2 + 64;
        world->records = memory_resize(world->records, world->record_capacity,
            sizeof *world->records);
    }
    world->records[world->record_count] = record;
    return world->record_count++;
}

/* The payload of an entry follows from its serial. */
static void fill_payload(uint64_t serial, uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(serial * 131 + i * 7 + (i >> 8));
    }
}

/* In a block of its own, or with other bytes around in one that has its pages for itself: then the
 * journal may write it from there. */
static struct slice make_payload(struct world *world, uint64_t serial, size_t length)
{
    bool has_pages = world_random(world, 2) == 0;
    size_t before = has_pages ? world_random(world, 3000) : 0;
    size_t after = has_pages ? world_random(world, 3000) : 0;
    size_t whole = before + length + after;
    struct block *block = has_pages ? block_new_pages(whole) : block_new(whole);
    memset(block->bytes, 0xee, whole);
    fill_payload(serial, block->bytes + before, length);
    return slice_of(block, before, length);
}

static size_t payload_size(struct world *world)
{
    switch (world_random(world, 12)) {
    case 0:
        return 0;
    case 1:
        return world_random(world, 60000);
    case 2:
        return 100000 + world_random(world, 300000); /* longer than a file of the ring */
    default:
        return world_random(world, 900);
    }
}

static void add_live(struct model_group *group, uint64_t serial)
{
    if (group->live_count == group->live_capacity) {
        group->live_capacity = group->live_capacity * 2 + 16;
        group->live = memory_resize(group->live, group->live_capacity, sizeof *group->live);
    }
    group->live[group->live_count++] = serial;
}

static void note_acked(struct world *world, uint64_t serial)
{
    struct model_record *record = &world->records[serial];
    struct model_group *group = &world->groups[record->group];
    record->acked = true;
    record->frame = world_frames(world);
    if (record->kind == JOURNAL_VOTE) {
        group->acked_vote = serial;
    } else if (record->kind == JOURNAL_ENTRY && record->index <= group->live_count
        && group->live[record->index - 1] == serial) {
        group->acked_index = record->index;
    }
}

static void submission_done(struct journal_op *op, enum status status)
{
    struct submission *submission = container_of(op, struct submission, op);
    struct world *world = submission->world;
    if (status == STATUS_OK) {
        world_require(world, !world->failed, "acknowledged after a failure");
        for (size_t i = 0; i < submission->count; i++) {
            note_acked(world, submission->first_serial + i);
        }
    }
    free(submission);
}

/* A journal record for what is submitted, and the model's idea of it. */
static struct journal_record make_record(struct world *world, unsigned number)
{
    struct model_group *group = &world->groups[number];
    struct model_record record = {.group = number};
    uint64_t choice = world_random(world, 20);
    uint64_t above = group->committed > group->marked ? group->committed : group->marked;
    if (choice == 0) {
        record.kind = JOURNAL_VOTE;
    } else if (choice == 1 && group->live_count > above) {
        record.kind = JOURNAL_TRUNCATE;
        record.index = above + 1 + world_random(world, group->live_count - above);
    } else {
        record.kind = JOURNAL_ENTRY;
        record.index = group->live_count + 1;
        record.tag = (uint32_t)world_random(world, PARTITIONS);
        record.payload_bytes = (uint32_t)payload_size(world);
    }
    uint64_t serial = new_record(world, record);
    struct journal_record result = {.kind = record.kind, .group = number + 1, .term = serial,
        .index = record.index, .tag = record.tag, .entry_kind = (uint8_t)(serial % 7)};
    if (record.kind == JOURNAL_VOTE) {
        result.voted_for = (int32_t)(serial % 1000) - 1;
        result.entry_kind = 0;
        result.tag = (uint32_t)(serial % 5);
        result.index = serial % 11;
        group->last_vote = serial;
    } else if (record.kind == JOURNAL_TRUNCATE) {
        result.entry_kind = 0;
        group->live_count = record.index - 1;
        group->acked_index = group->acked_index < group->live_count ? group->acked_index
                                                                    : group->live_count;
    } else {
        add_live(group, serial);
        result.payload = make_payload(world, serial, record.payload_bytes);
    }
    return result;
}

static void submit(struct world *world)
{
    size_t count = 1 + world_random(world, 4);
    struct submission *submission =
        memory_new_zero(1, sizeof *submission + count * sizeof(struct journal_record));
    submission->world = world;
    submission->count = count;
    submission->first_serial = world->record_count;
    for (size_t i = 0; i < count; i++) {
        submission->records[i] = make_record(world, (unsigned)world_random(world, GROUPS));
    }
    submission->op.records = submission->records;
    submission->op.record_count = count;
    submission->op.done = submission_done;
    journal_submit(world->journal, &submission->op);
    for (size_t i = 0; i < count; i++) {
        block_unref(submission->records[i].payload.block); /* the journal has its own */
    }
}

/* Committing -------------------------------------------------------------------------------- */

/* The batch of a committed entry: one record with the serial as key, by an idempotent producer. */
static struct slice make_batch(const struct world *world, unsigned group, uint64_t serial,
    uint64_t offset)
{
    struct batch_builder builder;
    struct buffer output = {0};
    const struct model_record *record = &world->records[serial];
    size_t length = record->payload_bytes < 3000 ? record->payload_bytes : 3000;
    uint8_t value[3000];
    fill_payload(serial, value, length);
    batch_builder_start(&builder);
    builder.header.base_offset = (int64_t)offset;
    builder.header.leader_epoch = (int32_t)(offset / 50);
    builder.header.producer_id = FIRST_PRODUCER + group;
    builder.header.producer_epoch = 0;
    builder.header.base_sequence = (int32_t)offset;
    batch_builder_add(&builder, (int64_t)(1000 + offset),
        (struct view){(const uint8_t *)&serial, sizeof serial}, (struct view){value, length}, NULL,
        0);
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &output);
    struct block *block = block_copy(buffer_view(&output));
    buffer_free(&output);
    return slice_of(block, 0, block->capacity);
}

void world_apply(struct world *world, unsigned group, uint64_t serial, uint64_t offset)
{
    struct model_partition *partition =
        &world->groups[group].partitions[world->records[serial].tag];
    struct slice batch = make_batch(world, group, serial, offset);
    partition_log_expect_readers(partition->log, offset / 16 % 2 == 0);
    enum status status = partition_log_append(partition->log, batch, clock_wall_ms());
    world_require(world, status == STATUS_OK || world->failed || sim_disk_crashed()
        || log_writer_status(world->writer) != STATUS_OK, "append ended with %s",
        status_text(status));
    block_unref(batch.block);
}

void world_commit(struct world *world, unsigned number, uint64_t index)
{
    struct model_group *group = &world->groups[number];
    while (group->committed < index) {
        uint64_t serial = group->live[group->committed];
        struct model_partition *partition = &group->partitions[world->records[serial].tag];
        world_require(world, world->records[serial].acked, "committed what is not acknowledged");
        if (partition->count == partition->capacity) {
            partition->capacity = partition->capacity * 2 + 16;
            partition->serials = memory_resize(partition->serials, partition->capacity,
                sizeof *partition->serials);
        }
        partition->serials[partition->count] = serial;
        world_apply(world, number, serial, partition->count);
        partition->count++;
        group->committed++;
    }
}

static void commit_some(struct world *world)
{
    unsigned number = (unsigned)world_random(world, GROUPS);
    struct model_group *group = &world->groups[number];
    if (group->acked_index > group->committed) {
        world_commit(world, number, group->committed + 1
            + world_random(world, group->acked_index - group->committed));
    }
}

/* Checkpoints ------------------------------------------------------------------------------- */

struct flush {
    struct world *world;
    unsigned group;
};

static void write_checkpoint(struct world *world, unsigned number, uint64_t index)
{
    struct model_group *group = &world->groups[number];
    struct checkpoint_partition partitions[PARTITIONS];
    for (unsigned i = 0; i < PARTITIONS; i++) {
        struct partition_log *log = group->partitions[i].log;
        partitions[i] = (struct checkpoint_partition){.topic_id = {{(uint8_t)(number + 1)}},
            .partition = (int32_t)i, .next_offset = partition_log_synced(log),
            .log_start = partition_log_start(log)};
        if (partitions[i].log_start > partitions[i].next_offset) {
            partitions[i].log_start = partitions[i].next_offset;
        }
    }
    struct checkpoint checkpoint = {.group = number + 1, .index = index, .term = 1,
        .partitions = partitions, .partition_count = PARTITIONS};
    if (checkpoint_write(log_dir_groups_path(world->dir), &checkpoint) == STATUS_OK) {
        journal_mark(world->journal, number + 1, index);
        group->marked = index > group->marked ? index : group->marked;
    }
}

static void flushed(void *context, enum status status, int64_t synced_offset)
{
    struct flush *flush = context;
    struct world *world = flush->world;
    struct model_group *group = &world->groups[flush->group];
    (void)synced_offset;
    group->flush_failed = group->flush_failed || status != STATUS_OK;
    assert(group->flushes_left > 0);
    if (--group->flushes_left == 0) {
        uint64_t index = group->checkpointed;
        group->checkpointed = 0;
        if (!group->flush_failed && index > 0 && world->open) {
            write_checkpoint(world, flush->group, index);
        }
    }
    free(flush);
}

static void checkpoint(struct world *world, unsigned number)
{
    struct model_group *group = &world->groups[number];
    if (group->flushes_left > 0 || group->committed == 0) {
        return;
    }
    group->checkpointed = group->committed;
    group->flush_failed = false;
    group->flushes_left = PARTITIONS;
    for (unsigned i = 0; i < PARTITIONS; i++) {
        struct flush *flush = memory_new(sizeof *flush);
        *flush = (struct flush){world, number};
        partition_log_flush(group->partitions[i].log, flushed, flush);
    }
}

/* Everything -------------------------------------------------------------------------------- */

static void delete_records(struct world *world)
{
    struct model_partition *partition = &world->groups[world_random(world, GROUPS)]
        .partitions[world_random(world, PARTITIONS)];
    int64_t start = partition_log_start(partition->log);
    int64_t end = partition_log_end(partition->log);
    int64_t offset = start + (int64_t)world_random(world, (uint64_t)(end - start) + 1);
    enum status status = partition_log_delete_records(partition->log, offset);
    world_require(world, status == STATUS_OK, "delete_records ended with %s", status_text(status));
    partition->start = partition_log_start(partition->log);
}

static void pass_time(struct world *world)
{
    sim_clock_pass(world_random(world, 300));
    log_shard_tick(world->shard, clock_wall_ms());
}

void world_step(struct world *world)
{
    switch (world_random(world, 16)) {
    case 0:
    case 1:
    case 2:
        submit(world);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        journal_run_once(world->journal, clock_monotonic_ms());
        break;
    case 7:
    case 8:
        log_writer_run_once(world->writer, clock_wall_ms());
        break;
    case 9:
        log_shard_drain(world->shard);
        break;
    case 10:
    case 11:
        commit_some(world);
        break;
    case 12:
        checkpoint(world, (unsigned)world_random(world, GROUPS));
        break;
    case 13:
        pass_time(world);
        break;
    case 14:
        if (world_random(world, 8) == 0) {
            delete_records(world);
        }
        break;
    default:
        if (world_random(world, 8) == 0) {
            world_check_logs(world);
        }
        break;
    }
}
