/* Helpers of the storage tests; see support.h. Failures end the test. */
#include "tests/unit/storage/support.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/file.h"
#include "io/file_whole.h"
#include "protocol/records.h"

const char *support_directory(void)
{
    char path[] = "/tmp/ottla-storage-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    return memory_copy_text(path);
}

void support_clean(const char *directory)
{
    ck_assert_int_eq(file_remove_tree(directory), STATUS_OK);
    free((char *)(uintptr_t)directory);
}

const char *support_path(const char *directory, const char *name)
{
    static char paths[4][FILE_PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, FILE_PATH_MAX, "%s/%s", directory, name);
    return path;
}

struct buffer support_read(const char *path)
{
    struct buffer content = {0};
    ck_assert_int_eq(file_read_whole(path, 1u << 30, &content), STATUS_OK);
    return content;
}

void support_flip(const char *path, uint64_t position)
{
    support_flip_bits(path, position, 0x40);
}

void support_flip_bits(const char *path, uint64_t position, uint8_t mask)
{
    int file = open(path, O_RDWR);
    uint8_t byte = 0;
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(pread(file, &byte, 1, (off_t)position), 1);
    byte ^= mask;
    ck_assert_int_eq(pwrite(file, &byte, 1, (off_t)position), 1);
    close(file);
}

uint64_t support_size(const char *path)
{
    struct file *file;
    uint64_t size = 0;
    ck_assert_int_eq(file_open(path, FILE_READ, &file), STATUS_OK);
    ck_assert_int_eq(file_size(file, &size), STATUS_OK);
    file_unref(file);
    return size;
}

struct slice support_batch_of(int64_t base_offset, int32_t epoch, int32_t count,
    size_t value_bytes, int64_t time_ms, const struct support_producer *producer, int compression)
{
    struct batch_builder builder;
    struct buffer output = {0};
    uint8_t *value = memory_new(value_bytes + 1);
    batch_builder_start(&builder);
    builder.header.attributes = (int16_t)compression;
    builder.header.base_offset = base_offset;
    builder.header.leader_epoch = epoch;
    builder.header.producer_id = producer == NULL ? -1 : producer->id;
    builder.header.producer_epoch = producer == NULL ? -1 : producer->epoch;
    builder.header.base_sequence = producer == NULL ? -1 : producer->sequence;
    for (int32_t i = 0; i < count; i++) {
        memset(value, (int)('a' + (base_offset + i) % 26), value_bytes);
        batch_builder_add(&builder, time_ms + i, VIEW_NULL, (struct view){value, value_bytes},
            NULL, 0);
    }
    batch_builder_finish(&builder, COMPRESS_LEVEL_DEFAULT, &output);
    struct block *block = block_copy(buffer_view(&output));
    buffer_free(&output);
    free(value);
    return slice_of(block, 0, block->capacity);
}

struct slice support_batch(int64_t base_offset, int32_t epoch, int32_t count, size_t value_bytes,
    int64_t time_ms)
{
    return support_batch_of(base_offset, epoch, count, value_bytes, time_ms, NULL, 0);
}

void support_shard_open(struct support_shard *support, const struct log_shard_settings *settings)
{
    struct log_writer_settings writer = {.threaded = false};
    struct log_shard_settings none = {0};
    support->writer = log_writer_new(&writer);
    support->shard = log_shard_new(support->writer, settings == NULL ? &none : settings);
    support->now_ms = 1000000;
}

void support_settle(struct support_shard *support)
{
    bool worked = true;
    while (worked) {
        worked = log_writer_run_once(support->writer, support->now_ms);
        worked = log_shard_drain(support->shard) > 0 || worked;
    }
}

void support_pass(struct support_shard *support, int64_t ms)
{
    support->now_ms += ms;
    log_shard_tick(support->shard, support->now_ms);
    support_settle(support);
}

void support_shard_close(struct support_shard *support)
{
    support_settle(support);
    log_writer_stop(support->writer);
    log_shard_drain(support->shard);
    log_shard_free(support->shard);
    log_writer_free(support->writer);
}

struct flushed {
    bool done;
    enum status status;
};

static void note_flushed(void *context, enum status status, int64_t synced_offset)
{
    struct flushed *flushed = context;
    (void)synced_offset;
    flushed->done = true;
    flushed->status = status;
}

enum status support_flush(struct support_shard *support, struct partition_log *log)
{
    struct flushed flushed = {0};
    partition_log_flush(log, note_flushed, &flushed);
    support_settle(support);
    ck_assert(flushed.done);
    return flushed.status;
}

struct buffer support_bytes(const struct log_read *read)
{
    struct buffer bytes = {0};
    for (size_t i = 0; i < read->part_count; i++) {
        const struct log_part *part = &read->parts[i];
        size_t got = part->length_bytes;
        uint8_t *at = buffer_extend(&bytes, part->length_bytes);
        if (part->slice.block != NULL) {
            memcpy(at, part->slice.data, part->length_bytes);
        } else {
            ck_assert_int_eq(file_read(part->file, part->position, at, part->length_bytes, &got),
                STATUS_OK);
        }
        ck_assert_uint_eq(got, part->length_bytes);
    }
    return bytes;
}
