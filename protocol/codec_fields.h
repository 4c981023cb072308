/* Reaching into C structs by the tables; shared by the parts of the codec and by nobody else. */
#ifndef OTTLA_PROTOCOL_CODEC_FIELDS_H
#define OTTLA_PROTOCOL_CODEC_FIELDS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/uuid.h"
#include "protocol/descriptor.h"

/* Longest string that Kafka reads, in bytes: its length is an int16 in plain versions. */
enum { FIELD_STRING_LIMIT_BYTES = INT16_MAX };

struct field_array {
    const uint8_t *elements;
    int32_t count;  /* -1: null */
};

_Static_assert(sizeof(void *) == 8, "tables and structs are laid out for 64-bit pointers");
_Static_assert(sizeof(struct message_field) == 32, "two fields a cache line");

static inline bool field_exists(const struct message_field *field, int16_t version)
{
    return version >= field->first_version && version <= field->last_version;
}

static inline bool field_may_be_null(const struct message_field *field, int16_t version)
{
    return version >= field->first_null_version && version <= field->last_null_version;
}

/* The array whose pointer and count begin at `at`. */
static inline struct field_array field_array(const uint8_t *at)
{
    struct field_array array;
    memcpy(&array.elements, at, sizeof array.elements);
    memcpy(&array.count, at + sizeof array.elements, sizeof array.count);
    assert(array.count <= 0 || array.elements != NULL);
    return array;
}

/* The struct that the pointer at `at` leads to, or null. */
static inline const uint8_t *field_pointer(const uint8_t *at)
{
    const uint8_t *pointer;
    memcpy(&pointer, at, sizeof pointer);
    return pointer;
}

/* Bytes of one value, or of one element of an array, in the C struct. */
static inline size_t field_value_size(const struct message_field *field)
{
    static const uint8_t sizes[] = {
        [FIELD_BOOL] = sizeof(bool), [FIELD_INT8] = 1, [FIELD_INT16] = 2, [FIELD_UINT16] = 2,
        [FIELD_INT32] = 4, [FIELD_UINT32] = 4, [FIELD_INT64] = 8, [FIELD_FLOAT64] = 8,
        [FIELD_UUID] = sizeof(struct uuid), [FIELD_STRING] = sizeof(struct view),
        [FIELD_BYTES] = sizeof(struct view), [FIELD_RECORDS] = sizeof(struct message_records),
    };
    return field->kind == FIELD_STRUCT ? field->structure->size_bytes : sizes[field->kind];
}

/* Whether two fields at these addresses hold the same; arrays and structs deeply, by version. */
bool field_equal(const struct message_field *field, int16_t version, const uint8_t *a,
    const uint8_t *b);

#endif
