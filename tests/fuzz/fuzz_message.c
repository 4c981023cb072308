/* Any message: input is a message's name, a zero, a byte of version, and the body. What decodes
 * must encode, and come back equal and to the same bytes; what does not must leave no trace but a
 * status. The arena never goes above its limit. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/codec.h"

enum { ARENA_BYTES = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct message_type *find_type(const char *name)
{
    for (size_t i = 0; i < message_type_count; i++) {
        if (strcmp(message_types[i]->name, name) == 0) {
            return message_types[i];
        }
    }
    return NULL;
}

static void check_again(const struct message_type *type, int16_t version, const void *message)
{
    struct arena arena;
    struct buffer first = {0}, second = {0};
    void *again = malloc(type->body->size_bytes);
    arena_init(&arena, 2 * ARENA_BYTES);
    enum status status = message_encode_to(type, version, message, &first);
    assert(status == STATUS_OK);
    status = message_decode_whole(type, version, buffer_view(&first), &arena, again);
    assert(status == STATUS_OK);
    assert(message_equal(type, version, message, again));
    status = message_encode_to(type, version, again, &second);
    assert(status == STATUS_OK && view_equal(buffer_view(&first), buffer_view(&second)));
    second.length = 0;
    message_print_json(type, version, again, &second);
    buffer_free(&first);
    buffer_free(&second);
    arena_free(&arena);
    free(again);
}

static void check_body(const struct message_type *type, int16_t version, struct view body)
{
    struct arena arena;
    void *message = malloc(type->body->size_bytes);
    arena_init(&arena, ARENA_BYTES);
    enum status status = message_decode(type, version, &body, &arena, message);
    assert(arena.used_bytes <= ARENA_BYTES);
    if (status == STATUS_OK) {
        check_again(type, version, message);
    }
    arena_free(&arena);
    free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = memchr(data, 0, size);
    if (zero == NULL || (size_t)(zero - data) + 2 > size) {
        return -1;
    }
    const struct message_type *type = find_type((const char *)data);
    if (type == NULL || !message_has_version(type, zero[1])) {
        return -1;
    }
    check_body(type, zero[1], (struct view){zero + 2, size - (size_t)(zero - data) - 2});
    return 0;
}
