/* How the generated tables describe a message to the interpreter in codec.c.
 *
 * For each message there is one C struct that can hold every version, a template of it with the
 * defaults, and a table of its fields: where a field lies in the struct, what it is on the wire,
 * in which versions it exists, may be null, and under which tag. Only the generator writes such
 * tables.
 */
#ifndef OTTLA_PROTOCOL_DESCRIPTOR_H
#define OTTLA_PROTOCOL_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

/* A `records` field. Either the bytes of the batches (data NULL = null), or only how many bytes
 * somebody else will put on the wire there (see struct message_gap in codec.h). */
struct message_records {
    struct view bytes;
    uint32_t external_length;
};

enum field_kind {
    FIELD_BOOL,
    FIELD_INT8,
    FIELD_INT16,
    FIELD_UINT16,
    FIELD_INT32,
    FIELD_UINT32,
    FIELD_INT64,
    FIELD_FLOAT64,
    FIELD_UUID,
    FIELD_STRING,
    FIELD_BYTES,
    FIELD_RECORDS,
    FIELD_STRUCT
};

enum field_flag {
    FIELD_ARRAY = 1,        /* a pointer to elements, and right behind it their int32_t count */
    FIELD_POINTER = 2,      /* a struct that may be null, reached by a pointer */
    FIELD_IGNORABLE = 4,    /* dropped silently by versions that lack it */
    FIELD_PLAIN_LENGTH = 8  /* int16 length in flexible versions too (RequestHeader.clientId) */
};

struct message_struct;

struct message_field {
    const char *name;                        /* as in Kafka's documents: "topicData" */
    const struct message_struct *structure;  /* of FIELD_STRUCT, else null */
    uint16_t offset;                         /* in the C struct, in bytes */
    uint8_t kind;                            /* enum field_kind; of an array: of each element */
    uint8_t flags;                           /* enum field_flag */
    int8_t first_version;
    int8_t last_version;
    int8_t first_null_version;               /* above last_null_version: never null */
    int8_t last_null_version;
    int8_t tag;                              /* -1: not tagged */
};

struct message_struct {
    const char *name;
    const struct message_field *fields;      /* plain ones in wire order, then tagged ones by tag */
    const void *defaults;                    /* a C struct nobody has touched */
    const uint16_t *minimum_bytes;           /* on the wire, indexed by version */
    uint16_t size_bytes;                     /* of the C struct */
    uint8_t plain_count;
    uint8_t field_count;
};

enum message_kind {
    MESSAGE_REQUEST,
    MESSAGE_RESPONSE,
    MESSAGE_HEADER,
    MESSAGE_DATA,
    MESSAGE_KEY,
    MESSAGE_VALUE,
    MESSAGE_RECORD
};

struct message_type {
    const char *name;                        /* "ProduceRequest" */
    const struct message_struct *body;
    enum message_kind kind;
    int16_t first_version;
    int16_t last_version;
    int16_t flexible_from;                   /* INT16_MAX: no version is flexible */
    int16_t id;                              /* API key; id of key, value or record; or -1 */
};

/* Every message there is; for tests and tools. */
extern const struct message_type *const message_types[];
extern const size_t message_type_count;

#endif
