/* Record batches one after another. Each gets a right checksum first, or the fuzzer would never
 * get behind it; then it is unpacked, read, and built again from its records, which must read the
 * same. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "protocol/crc32c.h"
#include "protocol/records.h"

enum { UNPACK_LIMIT_BYTES = 1 << 20, CRC_AT = 17, CHECKED_AT = 21, HEADERS_LIMIT = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rebuild(struct batch_builder *builder, const struct batch_header *header,
    const struct record *record)
{
    struct record_header headers[HEADERS_LIMIT];
    struct view left = record->headers;
    int32_t count = record->header_count < HEADERS_LIMIT ? record->header_count : HEADERS_LIMIT;
    for (int32_t i = 0; i < count; i++) {
        enum status status = record_next_header(&left, &headers[i]);
        assert(status == STATUS_OK);
    }
    int32_t delta = (int32_t)(record->offset - header->base_offset);
    if (delta > builder->header.last_offset_delta) {
        batch_builder_add_at(builder, delta, record->timestamp, record->key, record->value,
            headers, count);
    }
}

static void check_built(struct batch_builder *builder)
{
    struct buffer built = {0}, scratch = {0};
    struct batch_header header;
    struct view records;
    struct record record;
    int32_t count = builder->header.record_count;
    batch_builder_finish(builder, COMPRESS_LEVEL_DEFAULT, &built);
    enum status status = batch_validate(buffer_view(&built), &header);
    assert(status == STATUS_OK && header.record_count == count);
    status = batch_unpack(buffer_view(&built), &header, SIZE_MAX / 4, &scratch, &records);
    assert(status == STATUS_OK);
    struct record_iterator iterator = record_iterator_start(&header, records);
    while (count-- > 0) {
        status = record_next(&iterator, &record);
        assert(status == STATUS_OK);
    }
    assert(record_next(&iterator, &record) == STATUS_NOT_FOUND);
    buffer_free(&built);
    buffer_free(&scratch);
}

static void check_records(struct view batch, const struct batch_header *header)
{
    struct buffer scratch = {0};
    struct view records;
    struct batch_builder builder;
    batch_builder_start(&builder);
    builder.header.attributes = (int16_t)batch_compression(header);
    if (batch_unpack(batch, header, UNPACK_LIMIT_BYTES, &scratch, &records) == STATUS_OK) {
        struct record_iterator iterator = record_iterator_start(header, records);
        struct record record;
        while (record_next(&iterator, &record) == STATUS_OK) {
            rebuild(&builder, header, &record);
        }
        if (builder.header.record_count > 0) {
            check_built(&builder);
        }
    }
    buffer_free(&builder.records);
    buffer_free(&scratch);
}

static void check_batch(struct view bytes)
{
    struct batch_header header;
    uint8_t *batch = memory_new(bytes.length);
    struct view view = {batch, bytes.length};
    memcpy(batch, bytes.data, bytes.length);
    store_be32(batch + CRC_AT,
        crc32c(view_slice(view, CHECKED_AT, bytes.length - CHECKED_AT)));
    if (batch_validate(view, &header) == STATUS_OK) {
        check_records(view, &header);
        (void)batch_produced_error(&header);
        (void)batch_last_sequence(&header);
        batch_set_append_time(batch, &header, 77);
        enum status status = batch_validate(view, &header);
        assert(status == STATUS_OK);
    }
    free(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view left = {data, size}, batch;
    struct batch_header header;
    while (batch_next(&left, &batch, &header) == STATUS_OK) {
        check_batch(batch);
    }
    return 0;
}
