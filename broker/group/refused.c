/* A small array, the one that was refused longest ago first. Nothing here can fail. */
#include "broker/group/refused.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/planted.h"
#include "messages/errors.h"

struct refused_batch {
    int64_t producer_id;
    int32_t sequence; /* its first */
    int16_t epoch;
    int16_t error;
    uint64_t at_ms;
};

struct refused {
    size_t count;
    struct refused_batch items[REFUSED_MOST];
};

static const struct refused_batch *find(const struct refused *refused, int64_t producer_id)
{
    for (size_t i = 0; refused != NULL && i < refused->count; i++) {
        if (refused->items[i].producer_id == producer_id) {
            return &refused->items[i];
        }
    }
    return NULL;
}

static void drop(struct refused **refused, const struct refused_batch *item)
{
    struct refused *all = *refused;
    size_t at = (size_t)(item - all->items);
    assert(at < all->count);
    all->count--;
    memmove(&all->items[at], &all->items[at + 1], (all->count - at) * sizeof *item);
    if (all->count == 0) {
        refused_free(refused);
    }
}

void refused_note(struct refused **refused, const struct producer_batch *batch, int16_t error,
                  uint64_t now_ms)
{
    assert(error != KAFKA_NONE && batch->producer_id >= 0);
    const struct refused_batch *known = find(*refused, batch->producer_id);
    if (known != NULL) {
        bool is_current = known->epoch == batch->epoch && now_ms - known->at_ms < REFUSED_MS;
        if (known->epoch > batch->epoch ||
            (is_current && sequence_is_later(batch->base_sequence, known->sequence))) {
            return;
        }
        drop(refused, known);
    }
    if (*refused == NULL) {
        *refused = memory_new_zero(1, sizeof **refused);
    } else if ((*refused)->count == REFUSED_MOST) {
        drop(refused, &(*refused)->items[0]);
    }
    (*refused)->items[(*refused)->count++] =
        (struct refused_batch){.producer_id = batch->producer_id,
                               .sequence = batch->base_sequence,
                               .epoch = batch->epoch,
                               .error = error,
                               .at_ms = now_ms};
}

int16_t refused_error(const struct refused *refused, const struct producer_batch *batch,
                      uint64_t now_ms)
{
    const struct refused_batch *known = find(refused, batch->producer_id);
    if (known == NULL || planted(PLANT_REFUSED_FORGOTTEN)) {
        return KAFKA_NONE;
    }
    bool is_behind = known->epoch == batch->epoch && now_ms - known->at_ms < REFUSED_MS &&
                     sequence_is_later(batch->base_sequence, known->sequence);
    return is_behind ? known->error : KAFKA_NONE;
}

bool refused_knows(const struct refused *refused, const struct producer_batch *batch)
{
    const struct refused_batch *known = find(refused, batch->producer_id);
    return known != NULL && known->epoch == batch->epoch;
}

void refused_taken(struct refused **refused, const struct producer_batch *batch)
{
    const struct refused_batch *known = find(*refused, batch->producer_id);
    if (known == NULL || known->epoch > batch->epoch) {
        return;
    }
    int32_t last = (int32_t)(((int64_t)batch->base_sequence + batch->record_count - 1) & INT32_MAX);
    if (known->epoch < batch->epoch || !sequence_is_later(known->sequence, last)) {
        drop(refused, known);
    }
}

void refused_free(struct refused **refused)
{
    free(*refused);
    *refused = NULL;
}
