/* Rules for topic names, as org.apache.kafka.common.internals.Topic has them. Owns nothing; the
 * only failure is a wrong name, told in a sentence because tools show it. */
#include "broker/config/topic_name.h"

#include <assert.h>
#include <ctype.h>

static bool is_legal(uint8_t byte)
{
    return byte < 0x80 && (isalnum(byte) || byte == '.' || byte == '_' || byte == '-');
}

static bool all_legal(struct view name)
{
    for (size_t i = 0; i < name.length; i++) {
        if (!is_legal(name.data[i])) {
            return false;
        }
    }
    return true;
}

enum status topic_name_check(struct view name, struct arena *arena, struct view *why)
{
    assert(arena != NULL && why != NULL);
    if (name.length == 0) {
        *why = VIEW_LITERAL("Invalid topic name: it is empty");
        return STATUS_INVALID;
    }
    if (view_is(name, ".") || view_is(name, "..")) {
        *why = arena_format(arena, "Invalid topic name '%.*s': it would be a path",
                            VIEW_PRINT(name));
        return STATUS_INVALID;
    }
    if (name.length > TOPIC_NAME_LONGEST) {
        *why = arena_format(arena,
                            "Invalid topic name '%.*s': it has more than %d characters",
                            VIEW_PRINT(name), TOPIC_NAME_LONGEST);
        return STATUS_INVALID;
    }
    if (!all_legal(name)) {
        *why = arena_format(arena,
                            "Invalid topic name '%.*s': only a-z, A-Z, 0-9, '.', '_' and '-' may "
                            "stand in it",
                            VIEW_PRINT(name));
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

bool topic_names_collide(struct view a, struct view b)
{
    if (a.length != b.length) {
        return false;
    }
    for (size_t i = 0; i < a.length; i++) {
        uint8_t x = a.data[i] == '.' ? '_' : a.data[i];
        uint8_t y = b.data[i] == '.' ? '_' : b.data[i];
        if (x != y) {
            return false;
        }
    }
    return true;
}

bool topic_is_internal(struct view name)
{
    return view_is(name, TOPIC_CONSUMER_OFFSETS) || view_is(name, TOPIC_TRANSACTION_STATE) ||
           view_is(name, TOPIC_SHARE_GROUP_STATE);
}
