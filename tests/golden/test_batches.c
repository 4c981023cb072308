/* Record batches as the stock Java client builds them, in every compression: headers and records
 * read as it reads them, and our own builder makes the same batch from the records. Batches of
 * magic 0 and 1 are refused as such. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "messages/control_records.h"
#include "protocol/records.h"
#include "tests/golden/golden.h"

enum { UNPACK_LIMIT_BYTES = 1 << 24, HEADER_LIMIT = 16 };

static const char *const compressions[] = {"none", "gzip", "snappy", "lz4", "zstd"};
static const char *const control_types[] = {
    "ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION",
    "KRAFT_VOTERS"};

static json_t *hex_json(struct view bytes)
{
    if (bytes.data == NULL) {
        return json_null();
    }
    char *text = malloc(2 * bytes.length + 1);
    for (size_t i = 0; i < bytes.length; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes.data[i]);
    }
    json_t *json = json_stringn(text, 2 * bytes.length);
    free(text);
    return json;
}

static json_t *record_json(const struct batch_header *header, const struct record *record)
{
    json_t *headers = json_array();
    struct view left = record->headers;
    for (int32_t i = 0; i < record->header_count; i++) {
        struct record_header one;
        if (record_next_header(&left, &one) != STATUS_OK) {
            abort();
        }
        json_array_append_new(headers, json_pack("[oo]", hex_json(one.key), hex_json(one.value)));
    }
    int64_t delta = record->offset - header->base_offset;
    int64_t sequence = header->base_sequence < 0 ? -1
                                                 : (header->base_sequence + delta) & INT32_MAX;
    json_t *json = json_pack("{sI sI sI so so so}", "offset", (json_int_t)record->offset,
        "timestamp", (json_int_t)record->timestamp, "sequence", (json_int_t)sequence,
        "key", hex_json(record->key), "value", hex_json(record->value), "headers", headers);
    if (batch_has(header, BATCH_CONTROL)) {
        json_object_set_new(json, "controlType",
            json_string(control_types[load_be16(record->key.data + 2)]));
    }
    return json;
}

static json_t *batch_json(const struct batch_header *header)
{
    bool has_horizon = batch_has(header, BATCH_DELETE_HORIZON);
    return json_pack("{si sI si sI si ss ss sI sI sI si si sI sI si si si sb sb so si}",
        "magic", header->magic, "baseOffset", (json_int_t)header->base_offset,
        "batchLength", header->batch_length, "crc", (json_int_t)header->crc,
        "attributes", header->attributes,
        "compression", compressions[batch_compression(header)],
        "timestampType", batch_has(header, BATCH_LOG_APPEND_TIME) ? "LogAppendTime" : "CreateTime",
        "lastOffset", (json_int_t)batch_last_offset(header),
        "nextOffset", (json_int_t)batch_last_offset(header) + 1,
        "maxTimestamp", (json_int_t)header->max_timestamp,
        "partitionLeaderEpoch", header->leader_epoch,
        "lastOffsetDelta", header->last_offset_delta,
        "baseTimestamp", (json_int_t)header->base_timestamp,
        "producerId", (json_int_t)header->producer_id,
        "producerEpoch", header->producer_epoch, "baseSequence", header->base_sequence,
        "lastSequence", batch_last_sequence(header),
        "isTransactional", batch_has(header, BATCH_TRANSACTIONAL),
        "isControl", batch_has(header, BATCH_CONTROL),
        "deleteHorizonMs", has_horizon ? json_integer(header->base_timestamp) : json_null(),
        "count", header->record_count);
}

static void add_record(struct batch_builder *builder, const struct batch_header *header,
    const struct record *record)
{
    struct record_header headers[HEADER_LIMIT];
    struct view left = record->headers;
    for (int32_t i = 0; i < record->header_count; i++) {
        if (record_next_header(&left, &headers[i]) != STATUS_OK) {
            abort();
        }
    }
    batch_builder_add_at(builder, (int32_t)(record->offset - header->base_offset),
        record->timestamp, record->key, record->value, headers, record->header_count);
}

/* The builder's batch from the same records: equal bytes without compression, else records. */
static const char *check_rebuilt(struct batch_builder *builder, const struct batch_header *header,
    struct view batch, struct view records)
{
    struct buffer built = {0}, scratch = {0};
    struct view unpacked = VIEW_NULL;
    const char *failure = NULL;
    builder->header.last_offset_delta = header->last_offset_delta;
    builder->header.max_timestamp = header->max_timestamp;
    batch_builder_finish(builder, COMPRESS_LEVEL_DEFAULT, &built);
    struct batch_header again;
    if (batch_validate(buffer_view(&built), &again) != STATUS_OK) {
        failure = "the rebuilt batch is not valid";
    } else if (batch_compression(header) == COMPRESSION_NONE &&
        !view_equal(buffer_view(&built), batch)) {
        failure = "the rebuilt batch differs";
    } else if (batch_unpack(buffer_view(&built), &again, UNPACK_LIMIT_BYTES, &scratch,
        &unpacked) != STATUS_OK || !view_equal(unpacked, records)) {
        failure = "the rebuilt records differ";
    }
    buffer_free(&built);
    buffer_free(&scratch);
    return failure;
}

static void start_like(struct batch_builder *builder, const struct batch_header *header)
{
    batch_builder_start(builder);
    builder->header.base_offset = header->base_offset;
    builder->header.leader_epoch = header->leader_epoch;
    builder->header.attributes = header->attributes;
    builder->header.producer_id = header->producer_id;
    builder->header.producer_epoch = header->producer_epoch;
    builder->header.base_sequence = header->base_sequence;
    if (batch_has(header, BATCH_DELETE_HORIZON)) {
        builder->header.base_timestamp = header->base_timestamp;
    }
}

static const char *check_records(struct view batch, const struct batch_header *header,
    struct view records, json_t *got)
{
    struct record_iterator iterator = record_iterator_start(header, records);
    struct batch_builder builder;
    struct record record;
    enum status status;
    start_like(&builder, header);
    while ((status = record_next(&iterator, &record)) == STATUS_OK) {
        json_array_append_new(got, record_json(header, &record));
        add_record(&builder, header, &record);
    }
    const char *failure = status == STATUS_NOT_FOUND ? NULL : "records cannot be read";
    if (failure == NULL && !batch_has(header, BATCH_LOG_APPEND_TIME)) {
        failure = check_rebuilt(&builder, header, batch, records);
    }
    buffer_free(&builder.records);
    return failure;
}

/* Long runs of zeros are shortened in the vectors. */
static void expand(json_t *record, const char *name)
{
    json_t *value = json_object_get(record, name);
    if (json_is_object(value)) {
        size_t times = (size_t)json_integer_value(json_object_get(value, "times"));
        char *text = malloc(2 * times);
        memset(text, '0', 2 * times);
        json_object_set_new(record, name, json_stringn(text, 2 * times));
        free(text);
    }
}

static const char *check_batch(struct view batch, json_t *want)
{
    struct batch_header header;
    if (batch_validate(batch, &header) != STATUS_OK) {
        return "not valid";
    }
    json_t *got = batch_json(&header), *records = json_array(), *record;
    size_t i;
    json_object_set_new(got, "records", records);
    json_array_foreach(json_object_get(want, "records"), i, record) {
        expand(record, "key");
        expand(record, "value");
    }
    struct buffer scratch = {0};
    struct view unpacked = VIEW_NULL;
    enum status status = batch_unpack(batch, &header, UNPACK_LIMIT_BYTES, &scratch, &unpacked);
    const char *failure = status == STATUS_OK ? check_records(batch, &header, unpacked, records)
                                              : "cannot be unpacked";
    if (failure == NULL && !json_equal(got, want)) {
        char *text = json_dumps(got, 0);
        printf("# got %.1000s\n", text);
        free(text);
        failure = "differs";
    }
    json_decref(got);
    buffer_free(&scratch);
    return failure;
}

static const char *check(struct golden_row *row)
{
    struct view input = golden_hex(row, row->columns[1]), batch;
    struct batch_header header;
    json_error_t error;
    json_t *want = json_loads(row->columns[2], 0, &error), *one;
    const char *failure = NULL;
    size_t i;
    if (row->columns[0][1] != '2') {
        failure = batch_read_header(input, &header) == STATUS_UNSUPPORTED ? NULL
                                                                          : "old magic is taken";
        json_decref(want);
        return failure;
    }
    json_array_foreach(want, i, one) {
        if (failure == NULL) {
            failure = batch_next(&input, &batch, &header) == STATUS_OK ? check_batch(batch, one)
                                                                       : "no batch";
        }
    }
    json_decref(want);
    return failure == NULL && input.length > 0 ? "bytes are left over" : failure;
}

static void label(const struct golden_row *row, char *text, size_t size)
{
    snprintf(text, size, "%s", row->columns[0]);
}

int main(int count, char **arguments)
{
    struct golden golden = {0};
    for (int i = 1; i < count; i++) {
        golden_run(&golden, arguments[i], check, label);
    }
    return golden_end(&golden);
}
