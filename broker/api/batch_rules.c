/* Unpacking a batch costs time, so it is done only where a topic's settings make it necessary; what
 * comes out is bounded by max.decompressed.message.bytes. */
#include "broker/api/batch_rules.h"

#include <assert.h>
#include <string.h>

#include "messages/errors.h"

static bool has_missing_key(const struct batch_header *header, struct view records, bool *broken)
{
    struct record_iterator iterator = record_iterator_start(header, records);
    struct record record;
    enum status status;
    while ((status = record_next(&iterator, &record)) == STATUS_OK) {
        if (record.key.data == NULL) {
            return true;
        }
    }
    *broken = status != STATUS_NOT_FOUND;
    return false;
}

static int32_t level_of(const struct topic_settings *settings)
{
    switch (settings->compression) {
    case TOPIC_COMPRESSION_GZIP:
        return settings->gzip_level;
    case TOPIC_COMPRESSION_LZ4:
        return settings->lz4_level;
    case TOPIC_COMPRESSION_ZSTD:
        return settings->zstd_level;
    default:
        return COMPRESS_LEVEL_DEFAULT;
    }
}

static struct block *pack(const struct topic_settings *settings, struct view records,
                          const struct batch_header *header, size_t prefix_bytes)
{
    struct batch_builder builder = {.header = *header};
    struct buffer bytes = {0};
    builder.header.attributes =
        (int16_t)((header->attributes & ~BATCH_COMPRESSION_MASK) | settings->compression);
    buffer_append(&builder.records, records.data, records.length);
    memset(buffer_extend(&bytes, prefix_bytes), 0, prefix_bytes);
    batch_builder_finish(&builder, level_of(settings), &bytes);
    struct block *block = block_copy(buffer_view(&bytes));
    buffer_free(&bytes);
    return block;
}

int16_t batch_rules_apply(const struct topic_settings *settings, struct view batch,
                          const struct batch_header *header, size_t prefix_bytes,
                          struct block **repacked, const char **why)
{
    bool repacks = settings->compression != TOPIC_COMPRESSION_PRODUCER &&
                   settings->compression != (uint8_t)batch_compression(header);
    assert(settings->compression <= TOPIC_COMPRESSION_PRODUCER);
    *repacked = NULL;
    if (!repacks && !settings->compacts) {
        return KAFKA_NONE;
    }
    struct buffer scratch = {0};
    struct view records;
    int16_t error = KAFKA_NONE;
    bool broken = false;
    if (batch_unpack(batch, header, (size_t)settings->max_decompressed_bytes, &scratch,
                     &records) != STATUS_OK) {
        *why = "The records of the batch cannot be unpacked";
        error = KAFKA_INVALID_RECORD;
    } else if (settings->compacts && has_missing_key(header, records, &broken)) {
        *why = "A compacted topic takes no record without a key";
        error = KAFKA_INVALID_RECORD;
    } else if (broken) {
        *why = "The records of the batch cannot be read";
        error = KAFKA_INVALID_RECORD;
    } else if (repacks) {
        *repacked = pack(settings, records, header, prefix_bytes);
    }
    buffer_free(&scratch);
    return error;
}
