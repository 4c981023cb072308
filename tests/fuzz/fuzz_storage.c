/* Files as a disk could give them back: a checkpoint, a journal, a partition log, a producer
 * snapshot. The first byte says which. Checksums are put right, or the fuzzer would never get
 * behind them. Whatever is there must open or be refused, and what opens must go on working. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"
#include "protocol/crc32c.h"
#include "protocol/records.h"
#include "storage/checkpoint.h"
#include "storage/journal.h"
#include "storage/journal_format.h"
#include "storage/log_epochs.h"
#include "storage/partition_log.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_file.h"

enum { JOURNAL_FILE_BYTES = 64 * 1024, CRC_AT = 17, CHECKED_AT = 21, READ_BYTES = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_file(const char *path, const uint8_t *bytes, size_t length, size_t size)
{
    struct file *file;
    struct iovec part = {(void *)(uintptr_t)bytes, length};
    enum status status = file_open(path, FILE_WRITE | FILE_CREATE, &file);
    assert(status == STATUS_OK);
    status = file_write(file, 0, &part, 1);
    assert(status == STATUS_OK);
    status = size > length ? file_truncate(file, size) : STATUS_OK;
    assert(status == STATUS_OK);
    file_unref(file);
}

static void make_directory(const char *path)
{
    enum status status = file_make_directory(path);
    assert(status == STATUS_OK);
}

static void try_checkpoint(const uint8_t *data, size_t size)
{
    struct checkpoint checkpoint;
    make_directory("/g");
    make_directory("/g/7");
    put_file("/g/7/checkpoint", data, size, size);
    if (checkpoint_read("/g", 7, &checkpoint) == STATUS_OK) {
        enum status status = checkpoint_write("/g", &checkpoint);
        assert(status == STATUS_OK);
        checkpoint_free(&checkpoint);
    }
}

/* Puts the checksums of a piece right; its extent, at least a step. */
static size_t mend_piece(uint8_t *at, size_t left, uint64_t sequence)
{
    struct journal_piece_header header;
    memcpy(&header, at, sizeof header);
    header.sequence = sequence;
    header.kind = (uint8_t)(1 + header.kind % JOURNAL_ANEW);
    header.length %= 2000;
    header.index = header.index % 100 + 1;
    header.skip = header.skip % 2 == 0 ? 0 : header.skip % 1200;
    size_t padded = sizeof header + journal_piece_padded(header.length + header.skip);
    if (padded > left) {
        return left;
    }
    if (header.skip > 0 && header.length > 0) {
        struct view payload = {at + sizeof header + header.skip, header.length};
        journal_piece_store_apart(header, payload, header.skip, padded, at);
        return padded;
    }
    padded = sizeof header + journal_piece_padded(header.length);
    uint8_t *payload = memory_new(header.length + 1);
    memcpy(payload, at + sizeof header, header.length);
    journal_piece_store(header, (struct view){payload, header.length}, at);
    free(payload);
    return padded;
}

/* Makes each page that asks for it (by an odd first byte) a frame. */
static void mend_journal(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + JOURNAL_PAGE <= size; at += JOURNAL_PAGE) {
        struct journal_frame_header header;
        if (bytes[at] % 2 == 0) {
            continue;
        }
        memcpy(&header, bytes + at, sizeof header);
        header.sequence = header.sequence % 16 + 1;
        header.synced = header.synced % header.sequence;
        header.generation = header.generation % 4 + 1;
        header.oldest = header.oldest % header.generation + 1;
        header.length = sizeof header + header.length % (2 * JOURNAL_PAGE);
        header.length = header.length > size - at ? (uint32_t)(size - at) : header.length;
        header.file_count %= 5;
        for (size_t piece = sizeof header; piece + sizeof(struct journal_piece_header)
            <= header.length;) {
            piece += mend_piece(bytes + at + piece, header.length - piece, header.sequence);
        }
        journal_frame_store(header, bytes + at);
    }
}

static void note_record(void *context, const struct journal_record *record)
{
    *(uint64_t *)context += record->index + record->payload.length;
}

static void note_damage(void *context, const struct journal_damage *damage)
{
    *(uint64_t *)context += damage->position;
}

static void try_journal(const uint8_t *data, size_t size)
{
    uint64_t seen = 0;
    uint8_t *bytes = memory_new(size + 1);
    memcpy(bytes, data, size);
    mend_journal(bytes, size);
    make_directory("/j");
    size_t half = size / 2 / JOURNAL_PAGE * JOURNAL_PAGE;
    put_file("/j/00000000.journal", bytes, half, JOURNAL_FILE_BYTES);
    put_file("/j/00000001.journal", bytes + half, size - half, JOURNAL_FILE_BYTES);
    free(bytes);
    struct journal_settings settings = {.directory = "/j", .file_bytes = JOURNAL_FILE_BYTES};
    struct journal_handler handler = {.context = &seen, .replay = note_record,
        .damage = note_damage};
    struct journal *journal;
    for (int i = 0; i < 2; i++) {
        if (journal_open(&settings, &handler, &journal) == STATUS_OK) {
            journal_mark(journal, 1, 50);
            while (journal_run_once(journal, 1000000)) {
            }
            journal_close(journal);
        }
    }
}

/* Puts the checksums of batches right, one behind the other. */
static void mend_batches(uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at + BATCH_HEADER_BYTES <= size) {
        size_t length = BATCH_PREFIX_BYTES + load_be32(bytes + at + 8) % 512;
        length = length < BATCH_HEADER_BYTES ? BATCH_HEADER_BYTES : length;
        length = length > size - at ? size - at : length;
        store_be32(bytes + at + 8, (uint32_t)(length - BATCH_PREFIX_BYTES));
        bytes[at + 16] = BATCH_MAGIC;
        store_be32(bytes + at + CRC_AT,
            crc32c((struct view){bytes + at + CHECKED_AT, length - CHECKED_AT}));
        at += length;
    }
}

static void use_log(struct partition_log *log)
{
    struct log_read read;
    struct log_time_offset found;
    int64_t offset = partition_log_start(log);
    for (int i = 0; i < 10; i++, offset++) {
        if (partition_log_read(log, offset, READ_BYTES, true, &read) == STATUS_OK) {
            log_read_release(&read);
        }
    }
    enum status status = partition_log_find_time(log, 1000, &found);
    (void)status;
    status = partition_log_cut_damage(log);
    (void)status;
    partition_log_retention(log, INT64_MAX / 2);
}

static void try_log(const uint8_t *data, size_t size)
{
    struct log_writer_settings writer_settings = {0};
    struct log_shard_settings shard_settings = {0};
    struct log_writer *writer = log_writer_new(&writer_settings);
    struct log_shard *shard = log_shard_new(writer, &shard_settings);
    struct log_identity identity = {"/d", "t", 0, {{1}}};
    struct log_settings settings = log_settings_default();
    struct log_recovery recovery = {size > 0 ? (int8_t)data[0] : -1, 0};
    struct partition_log *log;
    struct log_damage damage;
    uint8_t *bytes = memory_new(size + 1);
    memcpy(bytes, data, size);
    mend_batches(bytes, size);
    make_directory("/d");
    make_directory("/d/t-0");
    settings.compact = size % 2 == 0;
    settings.index_interval_bytes = 100;
    put_file("/d/t-0/00000000000000000000.log", bytes, size, size);
    put_file("/d/t-0/00000000000000000000.index", data, size % 200, size % 200);
    free(bytes);
    if (partition_log_open(shard, &identity, &settings, &recovery, &log, &damage) == STATUS_OK) {
        use_log(log);
        while (log_writer_run_once(writer, 1) || log_shard_drain(shard) > 0) {
        }
        partition_log_close(log);
    }
    log_writer_stop(writer);
    log_shard_drain(shard);
    log_shard_free(shard);
    log_writer_free(writer);
}

static void try_small_files(const uint8_t *data, size_t size)
{
    struct producer_state *state = producer_state_new(100);
    struct log_epochs epochs = {0};
    uint8_t *bytes = memory_new(size + 1);
    struct view text = {bytes, size};
    memcpy(bytes, data, size);
    enum status status = log_epochs_load(&epochs, text);
    if (size >= 10) {
        store_be16(bytes, 1);
        store_be32(bytes + 2, crc32c((struct view){bytes + 6, size - 6}));
    }
    status = producer_state_load(state, text);
    (void)status;
    log_epochs_free(&epochs);
    producer_state_free(state);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const targets[])(const uint8_t *, size_t) = {try_checkpoint, try_journal,
        try_log, try_small_files};
    log_set_level(LOG_OFF);
    sim_disk_reset(1);
    sim_clock_reset(1);
    if (size > 0) {
        targets[data[0] % 4](data + 1, size - 1);
    }
    sim_disk_reset(1);
    return 0;
}
