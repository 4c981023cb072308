/* Batches out of memory or files, unpacked and handed over record by record. Reads block, a bounded
 * piece at a time. */
#include "broker/group/log_reader.h"

#include <assert.h>

enum { UNPACKED_BATCH_BYTES = 256 * 1024 * 1024 };

void log_reader_start(struct log_reader *reader, struct partition_log *log,
                      void (*each)(void *context, const struct batch_header *header,
                                   const struct record *record),
                      void *context)
{
    assert(each != NULL);
    *reader = (struct log_reader){
        .log = log, .offset = partition_log_start(log), .each = each, .context = context};
}

enum status log_reader_batch(struct log_reader *reader, struct view batch)
{
    struct batch_header header;
    enum status status = batch_read_header(batch, &header);
    if (status != STATUS_OK) {
        return STATUS_CORRUPT;
    }
    if (batch_has(&header, BATCH_CONTROL)) {
        return STATUS_OK;
    }
    struct view records;
    status = batch_unpack(batch, &header, UNPACKED_BATCH_BYTES, &reader->scratch, &records);
    if (status != STATUS_OK) {
        return STATUS_CORRUPT;
    }
    struct record_iterator iterator = record_iterator_start(&header, records);
    struct record record;
    while ((status = record_next(&iterator, &record)) == STATUS_OK) {
        if (record.offset >= reader->offset) {
            reader->each(reader->context, &header, &record);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : STATUS_CORRUPT;
}

static enum status take_batches(struct log_reader *reader, struct view bytes)
{
    struct view batch;
    struct batch_header header;
    enum status status;
    while ((status = batch_next(&bytes, &batch, &header)) == STATUS_OK) {
        status = log_reader_batch(reader, batch);
        if (status != STATUS_OK) {
            return status;
        }
        reader->offset = batch_last_offset(&header) + 1;
    }
    return status == STATUS_NOT_FOUND || status == STATUS_TRUNCATED ? STATUS_OK : STATUS_CORRUPT;
}

static enum status take_part(struct log_reader *reader, const struct log_part *part)
{
    if (part->slice.block != NULL) {
        return take_batches(reader, slice_view(part->slice));
    }
    reader->bytes.length = 0;
    size_t got;
    uint8_t *bytes = buffer_extend(&reader->bytes, part->length_bytes);
    enum status status = file_read(part->file, part->position, bytes, part->length_bytes, &got);
    if (status != STATUS_OK) {
        return status;
    }
    return got == part->length_bytes ? take_batches(reader, (struct view){bytes, got})
                                     : STATUS_CORRUPT;
}

enum status log_reader_step(struct log_reader *reader, size_t bytes)
{
    if (reader->offset >= partition_log_end(reader->log)) {
        return STATUS_NOT_FOUND;
    }
    assert(bytes > 0);
    struct log_read read;
    int64_t before = reader->offset;
    enum status status = partition_log_read(reader->log, reader->offset, bytes, true, &read);
    if (status != STATUS_OK) {
        return status == STATUS_OUT_OF_RANGE ? STATUS_CORRUPT : status;
    }
    for (size_t i = 0; i < read.part_count && status == STATUS_OK; i++) {
        status = take_part(reader, &read.parts[i]);
    }
    log_read_release(&read);
    if (status == STATUS_OK && reader->offset == before) {
        return STATUS_CORRUPT; /* bytes below the end that hold no batch */
    }
    return status;
}

void log_reader_free(struct log_reader *reader)
{
    buffer_free(&reader->bytes);
    buffer_free(&reader->scratch);
}
