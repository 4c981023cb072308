/* Memory for answers: everything a response points to is copied into the request's arena, so that
 * it outlives the state it was taken from. An arena that is full leaves lists empty and texts
 * empty; the answer stays well formed. */
#ifndef OTTLA_BROKER_COORDINATOR_ANSWERS_H
#define OTTLA_BROKER_COORDINATOR_ANSWERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/view.h"

/* `count` elements set to `defaults`, and the count; null and 0 when the arena is full. */
void *coordinator_answer_list(struct arena *arena, size_t count, const void *defaults, size_t size,
                              int32_t *count_out);

/* A copy of the text; null stays null; empty when the arena is full. */
struct view coordinator_answer_text(struct arena *arena, struct view text);

#endif
