/* A partition log on the simulated disk, with a log writer and a shard that are run by hand. */
#ifndef OTTLA_TESTS_UNIT_STORAGE_SIM_LOG_H
#define OTTLA_TESTS_UNIT_STORAGE_SIM_LOG_H

#include <stdlib.h>
#include <string.h>

#include "io/clock.h"
#include "io/file.h"
#include "protocol/records.h"
#include "storage/partition_log.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"
#include "tests/unit/runner.h"

struct sim_log {
    struct log_writer *writer;
    struct log_shard *shard;
    struct log_settings settings;
    struct partition_log *log;
    struct log_damage damage;
    int64_t synced;              /* by the flush that ended last */
};

/* Who appends what: a batch of one record. */
struct sim_log_batch {
    int32_t epoch;
    int64_t producer_id;         /* -1: none */
    int32_t sequence;
    size_t value_bytes;
};

/* An empty disk with a data directory; no log is open yet. */
static inline void sim_log_start(struct sim_log *f, uint64_t seed)
{
    *f = (struct sim_log){.settings = log_settings_default()};
    sim_disk_reset(seed);
    sim_clock_reset(seed);
    ck_assert_int_eq(file_make_directory("/data"), STATUS_OK);
    ck_assert_int_eq(file_sync_directory("/"), STATUS_OK);
}

static inline void sim_log_open_shard(struct sim_log *f, const struct log_shard_settings *settings)
{
    struct log_writer_settings writer = {.group_min = 1};
    f->writer = log_writer_new(&writer);
    f->shard = log_shard_new(f->writer, settings);
}

static inline enum status sim_log_open(struct sim_log *f, int64_t next_offset, int64_t log_start)
{
    struct log_identity identity = {"/data", "t", 0, {{1}}};
    struct log_recovery recovery = {next_offset, log_start};
    return partition_log_open(f->shard, &identity, &f->settings, &recovery, &f->log, &f->damage);
}

static inline void sim_log_settle(struct sim_log *f)
{
    while (log_writer_run_once(f->writer, clock_wall_ms()) || log_shard_drain(f->shard) > 0) {
    }
}

/* The log with it. */
static inline void sim_log_close_shard(struct sim_log *f)
{
    partition_log_close(f->log);
    log_writer_stop(f->writer);
    log_shard_drain(f->shard);
    log_shard_free(f->shard);
    log_writer_free(f->writer);
}

static inline void sim_log_append(struct sim_log *f, const struct sim_log_batch *batch)
{
    struct batch_builder builder;
    struct buffer output = {0};
    uint8_t *value = malloc(batch->value_bytes);
    memset(value, 'v', batch->value_bytes);
    batch_builder_start(&builder);
    builder.header.base_offset = partition_log_end(f->log);
    builder.header.leader_epoch = batch->epoch;
    builder.header.producer_id = batch->producer_id;
    builder.header.producer_epoch = batch->producer_id < 0 ? -1 : 0;
    builder.header.base_sequence = batch->sequence;
    batch_builder_add(&builder, 5, VIEW_NULL, (struct view){value, batch->value_bytes}, NULL, 0);
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &output);
    struct block *block = block_copy(buffer_view(&output));
    buffer_free(&output);
    free(value);
    ck_assert_int_eq(partition_log_append(f->log, slice_of(block, 0, block->capacity),
        clock_wall_ms()), STATUS_OK);
    block_unref(block);
}

static inline void sim_log_flushed(void *context, enum status status, int64_t synced_offset)
{
    ck_assert_int_eq(status, STATUS_OK);
    ((struct sim_log *)context)->synced = synced_offset;
}

/* Writes and syncs all that was appended. */
static inline void sim_log_flush(struct sim_log *f)
{
    partition_log_flush(f->log, sim_log_flushed, f);
    sim_log_settle(f);
}

#endif
