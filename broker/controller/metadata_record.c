/* The wrapping of metadata records. A list owns its bytes. Happy path: three small varints and the
 * encoded body. A message that cannot be encoded is a bug of the command that made it. */
#include "broker/controller/metadata_record.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "protocol/codec.h"
#include "protocol/varint.h"

enum { FRAME_VERSION = 1, FIRST_CAPACITY = 16 };

static void append_unsigned(struct buffer *buffer, uint32_t value)
{
    uint8_t bytes[VARINT32_LIMIT_BYTES];
    size_t length = 0;
    for (; value >= 0x80; value >>= 7) {
        bytes[length++] = (uint8_t)(value | 0x80);
    }
    bytes[length++] = (uint8_t)value;
    buffer_append(buffer, bytes, length);
}

void record_list_add(struct record_list *list, const struct message_type *type, int16_t version,
                     const void *message)
{
    assert(type->kind == MESSAGE_RECORD && type->id >= 0);
    append_unsigned(&list->bytes, FRAME_VERSION);
    append_unsigned(&list->bytes, (uint32_t)type->id);
    append_unsigned(&list->bytes, (uint32_t)version);
    enum status status = message_encode_to(type, version, message, &list->bytes);
    assert(status == STATUS_OK);
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? FIRST_CAPACITY : list->capacity * 2;
        list->ends = memory_resize(list->ends, list->capacity, sizeof *list->ends);
    }
    list->ends[list->count++] = list->bytes.length;
}

struct view record_list_get(const struct record_list *list, size_t index)
{
    assert(index < list->count);
    size_t from = index == 0 ? 0 : list->ends[index - 1];
    return view_slice(buffer_view(&list->bytes), from, list->ends[index] - from);
}

void record_list_cut(struct record_list *list, size_t count)
{
    assert(count <= list->count);
    list->count = count;
    list->bytes.length = count == 0 ? 0 : list->ends[count - 1];
}

void record_list_free(struct record_list *list)
{
    buffer_free(&list->bytes);
    free(list->ends);
    *list = (struct record_list){0};
}

static enum status take(struct view *from, int16_t *value)
{
    uint64_t number = 0;
    enum status status = varint_take_unsigned(from, VARINT32_LIMIT_BYTES, &number);
    *value = (int16_t)number;
    return status == STATUS_OK && number > INT16_MAX ? STATUS_INVALID : status;
}

enum status metadata_record_open(struct view value, int16_t *id, int16_t *version,
                                 struct view *body)
{
    assert(id != NULL && version != NULL && body != NULL);
    int16_t frame = 0;
    *body = value;
    enum status status = take(body, &frame);
    if (status == STATUS_OK && frame != FRAME_VERSION) {
        return STATUS_UNSUPPORTED;
    }
    if (status == STATUS_OK) {
        status = take(body, id);
    }
    return status == STATUS_OK ? take(body, version) : status;
}
