/* Records of __cluster_metadata as bytes: Kafka's wrapping (uvarint frame version 1, record id,
 * version) around a body from protocol/schemas/metadata-records.schema or ottla-records.schema. */
#ifndef OTTLA_BROKER_CONTROLLER_METADATA_RECORD_H
#define OTTLA_BROKER_CONTROLLER_METADATA_RECORD_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/view.h"
#include "protocol/descriptor.h"

/* Encoded records, to be appended to the log together: all or none of them. Start with zeros. */
struct record_list {
    struct buffer bytes; /* one record behind the other */
    size_t *ends;        /* of each record in the bytes */
    size_t count;
    size_t capacity;
};

/* Appends one record. The message must be encodable: its texts are no longer than Kafka's strings
 * may be, its version is one of the type's. */
void record_list_add(struct record_list *list, const struct message_type *type, int16_t version,
                     const void *message);

/* The value of one record; valid until the next change of the list. */
struct view record_list_get(const struct record_list *list, size_t index);

/* Drops the records from `count` on. */
void record_list_cut(struct record_list *list, size_t count);

/* Releases the memory; the list is empty and may be used again. */
void record_list_free(struct record_list *list);

/* Splits a record's value into id, version and body. STATUS_TRUNCATED or STATUS_INVALID when it is
 * none, STATUS_UNSUPPORTED when the frame is of a later kind. */
MUST_USE enum status metadata_record_open(struct view value, int16_t *id, int16_t *version,
                                          struct view *body);

#endif
