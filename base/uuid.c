/* 16-byte ids and their base64 text. Owns nothing. */
#include "base/uuid.h"

#include <assert.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
_Static_assert(sizeof alphabet == 65, "base64 has 64 digits");

bool uuid_equal(struct uuid a, struct uuid b)
{
    return memcmp(a.bytes, b.bytes, UUID_BYTES) == 0;
}

bool uuid_is_zero(struct uuid uuid)
{
    return uuid_equal(uuid, (struct uuid){{0}});
}

void uuid_text(struct uuid uuid, char text[UUID_TEXT_LENGTH + 1])
{
    for (int i = 0; i < UUID_TEXT_LENGTH; i++) {
        int bit = i * 6;
        unsigned high = uuid.bytes[bit / 8];
        unsigned low = bit / 8 + 1 < UUID_BYTES ? uuid.bytes[bit / 8 + 1] : 0;
        text[i] = alphabet[((high << 8 | low) >> (10 - bit % 8)) & 63];
    }
    text[UUID_TEXT_LENGTH] = '\0';
}

enum status uuid_parse(struct view text, struct uuid *uuid)
{
    assert(uuid != NULL);
    if (text.length != UUID_TEXT_LENGTH) {
        return STATUS_INVALID;
    }
    struct uuid out = {{0}};
    for (int i = 0; i < UUID_TEXT_LENGTH; i++) {
        const char *digit = memchr(alphabet, text.data[i], 64);
        if (digit == NULL) {
            return STATUS_INVALID;
        }
        int bit = i * 6;
        unsigned value = (unsigned)(digit - alphabet) << (10 - bit % 8);
        out.bytes[bit / 8] |= (uint8_t)(value >> 8);
        if (bit / 8 + 1 < UUID_BYTES) {
            out.bytes[bit / 8 + 1] |= (uint8_t)value;
        } else if ((value & 0xff) != 0) {
            return STATUS_INVALID;
        }
    }
    *uuid = out;
    return STATUS_OK;
}
