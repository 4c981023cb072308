/* Copies into the request's arena. Happy path: there is room. */
#include "broker/coordinator/answers.h"

#include <assert.h>

#include "protocol/codec.h"

void *coordinator_answer_list(struct arena *arena, size_t count, const void *defaults, size_t size,
                              int32_t *count_out)
{
    assert(count <= INT32_MAX && size > 0);
    void *list = count == 0 ? NULL : message_elements(arena, count, defaults, size);
    *count_out = list == NULL ? 0 : (int32_t)count;
    return list;
}

struct view coordinator_answer_text(struct arena *arena, struct view text)
{
    if (text.data == NULL) {
        return VIEW_NULL;
    }
    struct view copy = arena_copy(arena, text);
    return copy.data == NULL ? VIEW_EMPTY : copy;
}
