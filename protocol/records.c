/* Records inside a batch: unpacking, reading one after another, and building batches. The
 * iterator trusts neither count nor lengths: a record must lie inside what is left and be used up
 * exactly. */
#include "protocol/records.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "protocol/crc32c.h"
#include "protocol/varint.h"

enum status batch_unpack(struct view batch, const struct batch_header *header, size_t limit_bytes,
    struct buffer *scratch, struct view *records)
{
    assert(batch.length == batch_size_bytes(header));
    struct view packed =
        view_slice(batch, BATCH_HEADER_BYTES, batch.length - BATCH_HEADER_BYTES);
    enum compression compression = batch_compression(header);
    scratch->length = 0;
    if (compression == COMPRESSION_NONE || header->record_count == 0) {
        *records = packed;
        return packed.length <= limit_bytes ? STATUS_OK : STATUS_LIMIT;
    }
    enum status status = compress_unpack(compression, packed, limit_bytes, scratch);
    *records = buffer_view(scratch);
    return status;
}

struct record_iterator record_iterator_start(const struct batch_header *header,
    struct view records)
{
    assert(header->record_count >= 0);
    return (struct record_iterator){
        .header = *header, .left = records, .left_count = header->record_count};
}

/* `length` bytes off the front, or the null view for -1. */
static enum status take_bytes(struct view *from, int32_t length, struct view *bytes)
{
    if (length < 0) {
        *bytes = VIEW_NULL;
        return length == -1 ? STATUS_OK : STATUS_INVALID;
    }
    if ((size_t)length > from->length) {
        return STATUS_TRUNCATED;
    }
    *bytes = view_slice(*from, 0, (size_t)length);
    *from = view_slice(*from, (size_t)length, from->length - (size_t)length);
    return STATUS_OK;
}

/* A varint length and that many bytes. */
static enum status take_field(struct view *from, struct view *bytes)
{
    int32_t length = 0;
    enum status status = varint_take_32(from, &length);
    return status == STATUS_OK ? take_bytes(from, length, bytes) : status;
}

enum status record_next_header(struct view *headers, struct record_header *header)
{
    enum status status = take_field(headers, &header->key);
    if (status == STATUS_OK && header->key.data == NULL) {
        return STATUS_INVALID;
    }
    return status == STATUS_OK ? take_field(headers, &header->value) : status;
}

/* The headers must fill what is left of the record. */
static enum status take_headers(struct view *body, struct record *record)
{
    enum status status = varint_take_32(body, &record->header_count);
    if (status != STATUS_OK) {
        return status;
    }
    if (record->header_count < 0) {
        return STATUS_INVALID;
    }
    record->headers = *body;
    for (int32_t i = 0; i < record->header_count; i++) {
        struct record_header header;
        status = record_next_header(body, &header);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return body->length == 0 ? STATUS_OK : STATUS_INVALID;
}

static enum status take_body(const struct batch_header *header, struct view *body,
    struct record *record)
{
    int64_t timestamp_delta = 0;
    int32_t offset_delta = 0;
    if (body->length == 0) {
        return STATUS_TRUNCATED;
    }
    *body = view_slice(*body, 1, body->length - 1);  /* attributes: none are defined */
    enum status status = varint_take_64(body, &timestamp_delta);
    if (status == STATUS_OK) {
        status = varint_take_32(body, &offset_delta);
    }
    if (status == STATUS_OK) {
        status = take_field(body, &record->key);
    }
    if (status == STATUS_OK) {
        status = take_field(body, &record->value);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (offset_delta < 0 || offset_delta > header->last_offset_delta) {
        return STATUS_INVALID;
    }
    record->offset = header->base_offset + offset_delta;
    record->timestamp = batch_has(header, BATCH_LOG_APPEND_TIME)
        ? header->max_timestamp
        : (int64_t)((uint64_t)header->base_timestamp + (uint64_t)timestamp_delta);
    return take_headers(body, record);
}

enum status record_next(struct record_iterator *iterator, struct record *record)
{
    if (iterator->left_count == 0) {
        return iterator->left.length == 0 ? STATUS_NOT_FOUND : STATUS_INVALID;
    }
    struct view body;
    enum status status = take_field(&iterator->left, &body);
    if (status != STATUS_OK) {
        return status;
    }
    if (body.data == NULL) {
        return STATUS_INVALID;
    }
    iterator->left_count--;
    status = take_body(&iterator->header, &body, record);
    /* What does not fit into the record may well fit into the batch: the record lies. */
    return status == STATUS_TRUNCATED ? STATUS_INVALID : status;
}

void batch_builder_start(struct batch_builder *builder)
{
    *builder = (struct batch_builder){
        .header = {
            .leader_epoch = -1,
            .magic = BATCH_MAGIC,
            .last_offset_delta = -1,
            .base_timestamp = -1,
            .max_timestamp = -1,
            .producer_id = -1,
            .producer_epoch = -1,
            .base_sequence = -1,
        },
    };
}

static size_t field_size(struct view bytes)
{
    return bytes.data == NULL ? varint_size(-1)
                              : varint_size((int64_t)bytes.length) + bytes.length;
}

static uint8_t *store_field(uint8_t *at, struct view bytes)
{
    if (bytes.data == NULL) {
        return at + varint_store(at, -1);
    }
    at += varint_store(at, (int64_t)bytes.length);
    memcpy(at, bytes.data, bytes.length);
    return at + bytes.length;
}

/* Keeps what the header says of all records. */
static void count_record(struct batch_header *header, int32_t offset_delta, int64_t timestamp_ms)
{
    assert(offset_delta > header->last_offset_delta || header->record_count == 0);
    assert(offset_delta >= 0);
    if (header->record_count == 0 && !batch_has(header, BATCH_DELETE_HORIZON)) {
        header->base_timestamp = timestamp_ms;
    }
    if (timestamp_ms > header->max_timestamp) {
        header->max_timestamp = timestamp_ms;
    }
    header->last_offset_delta = offset_delta;
    header->record_count++;
}

void batch_builder_add_at(struct batch_builder *builder, int32_t offset_delta,
    int64_t timestamp_ms, struct view key, struct view value,
    const struct record_header *headers, int32_t header_count)
{
    assert(header_count >= 0);
    count_record(&builder->header, offset_delta, timestamp_ms);
    /* Times are a client's word and may lie any distance apart; reading wraps the same way. */
    int64_t timestamp_delta =
        (int64_t)((uint64_t)timestamp_ms - (uint64_t)builder->header.base_timestamp);
    size_t size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) +
        field_size(key) + field_size(value) + varint_size(header_count);
    for (int32_t i = 0; i < header_count; i++) {
        assert(headers[i].key.data != NULL);
        size += field_size(headers[i].key) + field_size(headers[i].value);
    }
    assert(size <= INT32_MAX);
    uint8_t *at = buffer_extend(&builder->records, varint_size((int64_t)size) + size);
    at += varint_store(at, (int64_t)size);
    *at++ = 0;
    at += varint_store(at, timestamp_delta);
    at += varint_store(at, offset_delta);
    at = store_field(at, key);
    at = store_field(at, value);
    at += varint_store(at, header_count);
    for (int32_t i = 0; i < header_count; i++) {
        at = store_field(at, headers[i].key);
        at = store_field(at, headers[i].value);
    }
    assert(at == builder->records.data + builder->records.length);
}

void batch_builder_add(struct batch_builder *builder, int64_t timestamp_ms, struct view key,
    struct view value, const struct record_header *headers, int32_t header_count)
{
    batch_builder_add_at(builder, builder->header.last_offset_delta + 1, timestamp_ms, key, value,
        headers, header_count);
}

static void store_fields(struct batch_layout *layout, const struct batch_header *header)
{
    store_be64(layout->base_offset, (uint64_t)header->base_offset);
    store_be32(layout->batch_length, (uint32_t)header->batch_length);
    store_be32(layout->leader_epoch, (uint32_t)header->leader_epoch);
    layout->magic[0] = (uint8_t)header->magic;
    store_be32(layout->crc, header->crc);
    store_be16(layout->attributes, (uint16_t)header->attributes);
    store_be32(layout->last_offset_delta, (uint32_t)header->last_offset_delta);
    store_be64(layout->base_timestamp, (uint64_t)header->base_timestamp);
    store_be64(layout->max_timestamp, (uint64_t)header->max_timestamp);
    store_be64(layout->producer_id, (uint64_t)header->producer_id);
    store_be16(layout->producer_epoch, (uint16_t)header->producer_epoch);
    store_be32(layout->base_sequence, (uint32_t)header->base_sequence);
    store_be32(layout->record_count, (uint32_t)header->record_count);
}

void batch_builder_finish(struct batch_builder *builder, int32_t level, struct buffer *output)
{
    struct batch_header *header = &builder->header;
    assert(header->last_offset_delta >= 0);
    size_t start = output->length;
    buffer_extend(output, BATCH_HEADER_BYTES);
    compress_pack(batch_compression(header), level, buffer_view(&builder->records), output);
    size_t size = output->length - start;
    assert(size <= INT32_MAX);
    header->batch_length = (int32_t)(size - BATCH_PREFIX_BYTES);
    struct batch_layout *layout = (void *)(output->data + start);
    header->crc = 0;
    store_fields(layout, header);
    size_t checked = offsetof(struct batch_layout, attributes);
    header->crc = crc32c((struct view){(uint8_t *)layout + checked, size - checked});
    store_be32(layout->crc, header->crc);
    buffer_free(&builder->records);
}
