/* Record batches of magic 2: Kafka's unit of producing, storing and fetching.
 *
 * A broker mostly looks at the 61 bytes in front: it checks length and checksum, writes offset
 * and leader epoch (outside the checksum) and passes the rest on. Records are unpacked only where
 * somebody asks for them: looking up timestamps, compaction, internal topics. Batches of magic 0
 * and 1 are STATUS_UNSUPPORTED; no 4.x client writes them. All views point into the batch.
 */
#ifndef OTTLA_PROTOCOL_RECORDS_H
#define OTTLA_PROTOCOL_RECORDS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/view.h"
#include "protocol/compress.h"

/* The header as it lies on the wire and on disk, big endian. [wire] [disk] */
struct batch_layout {
    uint8_t base_offset[8];
    uint8_t batch_length[4];      /* bytes after this field */
    uint8_t leader_epoch[4];
    uint8_t magic[1];
    uint8_t crc[4];               /* CRC-32C of everything after this field */
    uint8_t attributes[2];
    uint8_t last_offset_delta[4];
    uint8_t base_timestamp[8];
    uint8_t max_timestamp[8];
    uint8_t producer_id[8];
    uint8_t producer_epoch[2];
    uint8_t base_sequence[4];
    uint8_t record_count[4];
};

_Static_assert(sizeof(struct batch_layout) == 61, "header of magic 2");
_Static_assert(offsetof(struct batch_layout, magic) == 16, "magic lies where it always lay");
_Static_assert(offsetof(struct batch_layout, crc) == 17, "crc");
_Static_assert(offsetof(struct batch_layout, attributes) == 21, "start of the checked bytes");
_Static_assert(offsetof(struct batch_layout, record_count) == 57, "record count");

enum {
    BATCH_HEADER_BYTES = 61,
    BATCH_PREFIX_BYTES = 12,      /* base offset and length, which the length does not count */
    BATCH_MAGIC = 2
};

/* Bits of the attributes; bits 0-2 are the compression. */
enum batch_attribute {
    BATCH_COMPRESSION_MASK = 7,
    BATCH_LOG_APPEND_TIME = 8,
    BATCH_TRANSACTIONAL = 16,
    BATCH_CONTROL = 32,
    BATCH_DELETE_HORIZON = 64
};

struct batch_header {
    int64_t base_offset;
    int32_t batch_length;         /* bytes after the first 12 */
    int32_t leader_epoch;         /* -1: not known */
    int8_t magic;
    uint32_t crc;
    int16_t attributes;           /* enum batch_attribute */
    int32_t last_offset_delta;
    int64_t base_timestamp;       /* ms; the delete horizon when that attribute is set */
    int64_t max_timestamp;        /* ms; -1: none */
    int64_t producer_id;          /* -1: none */
    int16_t producer_epoch;       /* -1: none */
    int32_t base_sequence;        /* -1: none */
    int32_t record_count;
};

/* Bytes of the whole batch. */
static inline size_t batch_size_bytes(const struct batch_header *header)
{
    return (size_t)header->batch_length + BATCH_PREFIX_BYTES;
}

static inline int64_t batch_last_offset(const struct batch_header *header)
{
    return header->base_offset + header->last_offset_delta;
}

static inline enum compression batch_compression(const struct batch_header *header)
{
    return (enum compression)(header->attributes & BATCH_COMPRESSION_MASK);
}

static inline bool batch_has(const struct batch_header *header, enum batch_attribute attribute)
{
    return (header->attributes & attribute) != 0;
}

/* Sequence of the last record; -1 when the batch has none. Sequences wrap from 2^31 - 1 to 0. */
int32_t batch_last_sequence(const struct batch_header *header);

/* Reads the header in front of the bytes; what follows may be cut short. STATUS_TRUNCATED: fewer
 * than 61 bytes. STATUS_UNSUPPORTED: another magic. STATUS_INVALID: a length below the header's, or
 * a negative count or offset delta. */
MUST_USE enum status batch_read_header(struct view bytes, struct batch_header *header);

/* Takes the next whole batch off the front of `batches`. STATUS_NOT_FOUND: nothing is left.
 * STATUS_TRUNCATED: the last batch is cut short, as the end of a fetch may be. Else as
 * batch_read_header. The checksum is not looked at. */
MUST_USE enum status batch_next(struct view *batches, struct view *batch,
    struct batch_header *header);

/* Reads the header of exactly one batch and checks length, magic, compression, count and checksum.
 * Records are not looked at. STATUS_CORRUPT: the checksum differs. STATUS_TRUNCATED: shorter than
 * its length says. STATUS_INVALID: bytes behind the batch, a compression that does not exist, or
 * more uncompressed records than bytes for them. Else as batch_read_header. */
MUST_USE enum status batch_validate(struct view batch, struct batch_header *header);

/* The Kafka error (KAFKA_NONE, KAFKA_INVALID_RECORD) of a batch that a producer sent: it must hold
 * at least one record and as many as its offsets say, be no control batch, and have a sequence when
 * it has a producer id. */
int batch_produced_error(const struct batch_header *header);

/* Writes base offset and leader epoch into a batch; both lie outside the checksum. */
void batch_set_offset_and_epoch(uint8_t *batch, int64_t base_offset, int32_t leader_epoch);

/* Turns a valid batch into one of LogAppendTime: sets the attribute and the time of all its
 * records, and makes the checksum again. `batch` has batch_size_bytes(header) bytes. */
void batch_set_append_time(uint8_t *batch, struct batch_header *header, int64_t append_time_ms);

/* The records' bytes, unpacked into `scratch` when they are compressed, else inside the batch; at
 * most `limit_bytes`. `scratch` is emptied first. Errors are those of compress_unpack. */
MUST_USE enum status batch_unpack(struct view batch, const struct batch_header *header,
    size_t limit_bytes, struct buffer *scratch, struct view *records);

/* A header of a record; keys may repeat. */
struct record_header {
    struct view key;              /* never null */
    struct view value;
};

struct record {
    int64_t offset;
    int64_t timestamp;            /* ms; with LogAppendTime the batch's */
    struct view key;
    struct view value;
    int32_t header_count;
    struct view headers;          /* as on the wire; record_next_header reads them */
};

/* Where reading the records of one batch stands. */
struct record_iterator {
    struct batch_header header;
    struct view left;
    int32_t left_count;
};

/* Starts with what batch_unpack gave. */
struct record_iterator record_iterator_start(const struct batch_header *header,
    struct view records);

/* The next record. STATUS_NOT_FOUND: that was the last, and no bytes are left. STATUS_TRUNCATED,
 * STATUS_INVALID: the batch is not what it says it is. */
MUST_USE enum status record_next(struct record_iterator *iterator, struct record *record);

/* Takes the next header off the front of `headers` (start with record.headers, read header_count of
 * them). Same errors as record_next, which has already seen that the headers' bytes are whole. */
MUST_USE enum status record_next_header(struct view *headers, struct record_header *header);

/* Makes a batch, for internal topics, compaction and tests. */
struct batch_builder {
    struct batch_header header;   /* offset, epoch, producer and attributes are the caller's to set;
                                     times, delta and count are kept by batch_builder_add.
                                     With BATCH_DELETE_HORIZON base_timestamp too is the caller's */
    struct buffer records;
};

/* Starts a batch at offset 0, epoch -1, without producer, uncompressed. */
void batch_builder_start(struct batch_builder *builder);

/* Adds a record one offset behind the last. */
void batch_builder_add(struct batch_builder *builder, int64_t timestamp_ms, struct view key,
    struct view value, const struct record_header *headers, int32_t header_count);

/* Adds a record at an offset delta above those before (compaction leaves gaps). */
void batch_builder_add_at(struct batch_builder *builder, int32_t offset_delta,
    int64_t timestamp_ms, struct view key, struct view value,
    const struct record_header *headers, int32_t header_count);

/* Appends the batch, packed as the attributes' compression says, and releases the builder's
 * memory; builder->header is that of the batch written. */
void batch_builder_finish(struct batch_builder *builder, int32_t level, struct buffer *output);

#endif
