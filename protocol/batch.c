/* Batch headers: reading, checking and patching them. Nothing here looks at a record. Every field
 * is read before any is judged, and what cannot be right is a status. */
#include "protocol/records.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "messages/errors.h"
#include "protocol/crc32c.h"

/* An uncompressed record: length, attributes, two deltas, key and value lengths, header count. */
enum { RECORD_MINIMUM_BYTES = 7 };

int32_t batch_last_sequence(const struct batch_header *header)
{
    if (header->base_sequence < 0) {
        return -1;
    }
    uint32_t sum = (uint32_t)header->base_sequence + (uint32_t)header->last_offset_delta;
    return (int32_t)(sum & INT32_MAX);
}

static void read_fields(const struct batch_layout *layout, struct batch_header *header)
{
    *header = (struct batch_header){
        .base_offset = (int64_t)load_be64(layout->base_offset),
        .batch_length = (int32_t)load_be32(layout->batch_length),
        .leader_epoch = (int32_t)load_be32(layout->leader_epoch),
        .magic = (int8_t)layout->magic[0],
        .crc = load_be32(layout->crc),
        .attributes = (int16_t)load_be16(layout->attributes),
        .last_offset_delta = (int32_t)load_be32(layout->last_offset_delta),
        .base_timestamp = (int64_t)load_be64(layout->base_timestamp),
        .max_timestamp = (int64_t)load_be64(layout->max_timestamp),
        .producer_id = (int64_t)load_be64(layout->producer_id),
        .producer_epoch = (int16_t)load_be16(layout->producer_epoch),
        .base_sequence = (int32_t)load_be32(layout->base_sequence),
        .record_count = (int32_t)load_be32(layout->record_count),
    };
}

enum status batch_read_header(struct view bytes, struct batch_header *header)
{
    size_t magic_at = offsetof(struct batch_layout, magic);
    if (bytes.length > magic_at && bytes.data[magic_at] != BATCH_MAGIC) {
        return STATUS_UNSUPPORTED;
    }
    if (bytes.length < BATCH_HEADER_BYTES) {
        return STATUS_TRUNCATED;
    }
    read_fields((const void *)bytes.data, header);
    if (header->batch_length < BATCH_HEADER_BYTES - BATCH_PREFIX_BYTES ||
        header->record_count < 0 || header->last_offset_delta < 0 ||
        header->base_offset > INT64_MAX - header->last_offset_delta) {
        return STATUS_INVALID;
    }
    assert(header->magic == BATCH_MAGIC);
    return STATUS_OK;
}

enum status batch_next(struct view *batches, struct view *batch, struct batch_header *header)
{
    if (batches->length == 0) {
        return STATUS_NOT_FOUND;
    }
    enum status status = batch_read_header(*batches, header);
    if (status != STATUS_OK) {
        return status;
    }
    size_t size = batch_size_bytes(header);
    if (size > batches->length) {
        return STATUS_TRUNCATED;
    }
    *batch = view_slice(*batches, 0, size);
    *batches = view_slice(*batches, size, batches->length - size);
    return STATUS_OK;
}

/* The checksum of everything behind the checksum field. */
static uint32_t checksum(struct view batch)
{
    size_t from = offsetof(struct batch_layout, attributes);
    assert(batch.length >= BATCH_HEADER_BYTES);
    return crc32c(view_slice(batch, from, batch.length - from));
}

enum status batch_validate(struct view batch, struct batch_header *header)
{
    enum status status = batch_read_header(batch, header);
    if (status != STATUS_OK) {
        return status;
    }
    size_t size = batch_size_bytes(header);
    if (size != batch.length) {
        return size > batch.length ? STATUS_TRUNCATED : STATUS_INVALID;
    }
    if (checksum(batch) != header->crc) {
        return STATUS_CORRUPT;
    }
    if (batch_compression(header) >= COMPRESSION_COUNT) {
        return STATUS_INVALID;
    }
    size_t records_bytes = size - BATCH_HEADER_BYTES;
    if (batch_compression(header) == COMPRESSION_NONE &&
        (size_t)header->record_count > records_bytes / RECORD_MINIMUM_BYTES) {
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

int batch_produced_error(const struct batch_header *header)
{
    assert(header->magic == BATCH_MAGIC);
    if (header->record_count < 1 || header->last_offset_delta != header->record_count - 1 ||
        batch_has(header, BATCH_CONTROL)) {
        return KAFKA_INVALID_RECORD;
    }
    if (header->producer_id >= 0 && (header->producer_epoch < 0 || header->base_sequence < 0)) {
        return KAFKA_INVALID_RECORD;
    }
    if (batch_has(header, BATCH_TRANSACTIONAL) && header->producer_id < 0) {
        return KAFKA_INVALID_RECORD;
    }
    return KAFKA_NONE;
}

void batch_set_offset_and_epoch(uint8_t *batch, int64_t base_offset, int32_t leader_epoch)
{
    struct batch_layout *layout = (void *)batch;
    assert(layout->magic[0] == BATCH_MAGIC);
    assert(base_offset >= 0);
    store_be64(layout->base_offset, (uint64_t)base_offset);
    store_be32(layout->leader_epoch, (uint32_t)leader_epoch);
}

void batch_set_append_time(uint8_t *batch, struct batch_header *header, int64_t append_time_ms)
{
    struct batch_layout *layout = (void *)batch;
    assert(layout->magic[0] == BATCH_MAGIC);
    assert(load_be32(layout->crc) == header->crc);
    header->attributes = (int16_t)(header->attributes | BATCH_LOG_APPEND_TIME);
    header->max_timestamp = append_time_ms;
    store_be16(layout->attributes, (uint16_t)header->attributes);
    store_be64(layout->max_timestamp, (uint64_t)append_time_ms);
    header->crc = checksum((struct view){batch, batch_size_bytes(header)});
    store_be32(layout->crc, header->crc);
}
