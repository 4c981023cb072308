/* Encoding and decoding of __consumer_offsets records through the schema tables. Happy path: a key
 * of type 1 or 2. What cannot be read is reported as "other", never as an error: a log may hold
 * records of newer protocols. */
#include "broker/coordinator/records.h"

#include <assert.h>

#include "base/bytes.h"
#include "protocol/codec.h"

enum {
    KEY_LEGACY_OFFSET = 0,
    KEY_OFFSET = 1,
    KEY_GROUP = 2,
    GROUP_VALUE_VERSION = 3,
    OFFSET_VALUE_VERSION = 4,
    OFFSET_VALUE_VERSION_WITH_EXPIRY = 1,
    FLAT_DECODE_LIMIT_BYTES = 4096 /* messages without arrays take nothing from the arena */
};

static void write_message(struct buffer *buffer, int16_t prefix, const struct message_type *type,
                          int16_t version, const void *message)
{
    buffer_append_be16(buffer, (uint16_t)prefix);
    assert(message_has_version(type, version));
    enum status status = message_encode_to(type, version, message, buffer);
    assert(status == STATUS_OK);
}

void coordinator_write_group_key(struct buffer *buffer, struct view group)
{
    struct group_metadata_key key = {.group = group};
    write_message(buffer, KEY_GROUP, &group_metadata_key_type, 0, &key);
}

void coordinator_write_offset_key(struct buffer *buffer, struct view group, struct view topic,
                                  int32_t partition)
{
    struct offset_commit_key key = {.group = group, .topic = topic, .partition = partition};
    write_message(buffer, KEY_OFFSET, &offset_commit_key_type, 0, &key);
}

void coordinator_write_group_value(struct buffer *buffer, const struct group_metadata_value *value)
{
    write_message(buffer, GROUP_VALUE_VERSION, &group_metadata_value_type, GROUP_VALUE_VERSION,
                  value);
}

void coordinator_write_offset_value(struct buffer *buffer, const struct coordinator_offset *offset)
{
    struct offset_commit_value value = {
        .offset = offset->offset,
        .leader_epoch = offset->leader_epoch,
        .metadata = offset->metadata,
        .commit_timestamp = offset->commit_timestamp_ms,
        .expire_timestamp = offset->expire_timestamp_ms,
        .topic_id = offset->topic_id,
    };
    int16_t version = offset->expire_timestamp_ms == -1 ? OFFSET_VALUE_VERSION
                                                        : OFFSET_VALUE_VERSION_WITH_EXPIRY;
    write_message(buffer, version, &offset_commit_value_type, version, &value);
}

static bool read_body(const struct message_type *type, int16_t version, struct view bytes,
                      void *message)
{
    struct arena arena;
    arena_init(&arena, FLAT_DECODE_LIMIT_BYTES);
    enum status status = message_decode(type, version, &bytes, &arena, message);
    arena_free(&arena);
    return status == STATUS_OK;
}

struct coordinator_key coordinator_read_key(struct view key)
{
    struct coordinator_key result = {.kind = COORDINATOR_KEY_OTHER};
    if (key.length < 2) {
        return result;
    }
    int16_t type = (int16_t)load_be16(key.data);
    struct view body = view_slice(key, 2, key.length - 2);
    struct offset_commit_key offset;
    struct group_metadata_key group;
    if ((type == KEY_OFFSET || type == KEY_LEGACY_OFFSET) &&
        read_body(&offset_commit_key_type, 0, body, &offset)) {
        result.kind = COORDINATOR_KEY_OFFSET;
        result.group = offset.group;
        result.topic = offset.topic;
        result.partition = offset.partition;
    } else if (type == KEY_GROUP && read_body(&group_metadata_key_type, 0, body, &group)) {
        result.kind = COORDINATOR_KEY_GROUP;
        result.group = group.group;
    }
    return result;
}

/* The version in front of a value, -1 when there is none that the type has. */
static int16_t value_version(const struct message_type *type, struct view value)
{
    if (value.length < 2) {
        return -1;
    }
    int16_t version = (int16_t)load_be16(value.data);
    return message_has_version(type, version) ? version : -1;
}

bool coordinator_read_offset_value(struct view value, struct coordinator_offset *offset)
{
    int16_t version = value_version(&offset_commit_value_type, value);
    struct offset_commit_value read;
    if (version < 0 || !read_body(&offset_commit_value_type, version,
                                  view_slice(value, 2, value.length - 2), &read)) {
        return false;
    }
    *offset = (struct coordinator_offset){
        .offset = read.offset,
        .commit_timestamp_ms = read.commit_timestamp,
        .expire_timestamp_ms = read.expire_timestamp,
        .leader_epoch = read.leader_epoch,
        .topic_id = read.topic_id,
        .metadata = read.metadata,
    };
    return true;
}

bool coordinator_read_group_value(struct view value, struct arena *arena,
                                  struct group_metadata_value *group)
{
    int16_t version = value_version(&group_metadata_value_type, value);
    if (version < 0) {
        return false;
    }
    struct view body = view_slice(value, 2, value.length - 2);
    return message_decode(&group_metadata_value_type, version, &body, arena, group) == STATUS_OK;
}
