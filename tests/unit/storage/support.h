/* What the storage tests share: a directory of their own, batches, and a shard driven by hand. */
#ifndef OTTLA_TESTS_UNIT_STORAGE_SUPPORT_H
#define OTTLA_TESTS_UNIT_STORAGE_SUPPORT_H

#include <stdint.h>

#include "base/block.h"
#include "base/buffer.h"
#include "storage/log_writer.h"
#include "storage/partition_log.h"

/* A new empty directory; its path lives as long as the process. Removed by support_clean. */
const char *support_directory(void);
void support_clean(const char *directory);

/* PATH/NAME in a buffer that the next call but three overwrites. */
const char *support_path(const char *directory, const char *name);

/* The whole file; fails the test when it cannot be read. */
struct buffer support_read(const char *path);

/* Changes bits of one byte of a file. */
void support_flip(const char *path, uint64_t position);
void support_flip_bits(const char *path, uint64_t position, uint8_t mask);

uint64_t support_size(const char *path);

/* Who sends a batch; zero fields: nobody. */
struct support_producer {
    int64_t id;       /* -1: none */
    int16_t epoch;
    int32_t sequence;
};

/* A batch of `count` records with values of `value_bytes`, timestamps time_ms, time_ms + 1, .. */
struct slice support_batch(int64_t base_offset, int32_t epoch, int32_t count, size_t value_bytes,
    int64_t time_ms);
struct slice support_batch_of(int64_t base_offset, int32_t epoch, int32_t count,
    size_t value_bytes, int64_t time_ms, const struct support_producer *producer,
    int compression);

/* A log writer and a shard without threads. */
struct support_shard {
    struct log_writer *writer;
    struct log_shard *shard;
    int64_t now_ms;
};

void support_shard_open(struct support_shard *support, const struct log_shard_settings *settings);

/* Runs jobs and their ends until there are none. */
void support_settle(struct support_shard *support);

/* Lets time pass: dirty logs are written. */
void support_pass(struct support_shard *support, int64_t ms);

void support_shard_close(struct support_shard *support);

/* Flushes and runs until that is done; the status of the flush. */
enum status support_flush(struct support_shard *support, struct partition_log *log);

/* All bytes of a read result, from memory or files. */
struct buffer support_bytes(const struct log_read *read);

#endif
