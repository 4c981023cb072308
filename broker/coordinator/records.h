/* The bytes of __consumer_offsets records as Kafka 4.4 writes them: key = int16 type, body of
 * version 0; value = int16 version, body. Written are GroupMetadataValue version 3 and
 * OffsetCommitValue version 4 (1 when the commit carried its own expiry); every version is read. */
#ifndef OTTLA_BROKER_COORDINATOR_RECORDS_H
#define OTTLA_BROKER_COORDINATOR_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/uuid.h"
#include "base/view.h"
#include "messages/coordinator_group.h"

/* A committed offset as stored. */
struct coordinator_offset {
    int64_t offset;
    int64_t commit_timestamp_ms;
    int64_t expire_timestamp_ms; /* -1: by the broker's retention */
    int32_t leader_epoch;        /* -1: none */
    struct uuid topic_id;        /* zero: none */
    struct view metadata;
};

enum coordinator_key_kind { COORDINATOR_KEY_OTHER, COORDINATOR_KEY_OFFSET, COORDINATOR_KEY_GROUP };

/* What a record's key names; views into the key. */
struct coordinator_key {
    enum coordinator_key_kind kind;
    struct view group;
    struct view topic;  /* of an offset */
    int32_t partition;  /* of an offset */
};

/* Append a key or a value to the buffer. The strings come from requests, so they fit. */
void coordinator_write_group_key(struct buffer *buffer, struct view group);
void coordinator_write_offset_key(struct buffer *buffer, struct view group, struct view topic,
                                  int32_t partition);
void coordinator_write_group_value(struct buffer *buffer, const struct group_metadata_value *value);
void coordinator_write_offset_value(struct buffer *buffer, const struct coordinator_offset *offset);

/* What the key names. COORDINATOR_KEY_OTHER for types of other protocols and for bytes that are no
 * key. */
struct coordinator_key coordinator_read_key(struct view key);

/* Reads a value; false when the bytes are none of a known version. Views into `value`; the group
 * value's members lie in the arena. */
bool coordinator_read_offset_value(struct view value, struct coordinator_offset *offset);
bool coordinator_read_group_value(struct view value, struct arena *arena,
                                  struct group_metadata_value *group);

#endif
