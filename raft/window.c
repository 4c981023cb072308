/* The log's window as a ring. It doubles when it is full, halves when a quarter is enough and is
 * given back when it is empty, so that thousands of idle groups hold no entries' memory.
 *
 * Every entry holds one reference on its payload's block, taken when it enters and given back when
 * it leaves. Nothing here can fail; wrong indexes are bugs.
 */
#include "raft/window.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

enum { CAPACITY_MIN = 8 };

static struct raft_slot *slot_at(const struct raft_window *window, uint32_t position)
{
    assert(position < window->count);
    return &window->slots[(window->head + position) & (window->capacity - 1)];
}

/* Moves the slots into a new ring; capacity 0 frees it. */
static void resize(struct raft_window *window, uint32_t capacity)
{
    assert(capacity >= window->count);
    assert((capacity & (capacity - 1)) == 0);
    struct raft_slot *slots = capacity == 0 ? NULL : memory_new(capacity * sizeof *slots);
    for (uint32_t i = 0; i < window->count; i++) {
        slots[i] = *slot_at(window, i);
    }
    free(window->slots);
    window->slots = slots;
    window->capacity = capacity;
    window->head = 0;
}

static void shrink(struct raft_window *window)
{
    if (window->count == 0) {
        resize(window, 0);
    } else if (window->capacity > CAPACITY_MIN && window->count < window->capacity / 4) {
        resize(window, window->capacity / 2);
    }
}

void raft_window_init(struct raft_window *window, uint64_t start_index, uint64_t start_term)
{
    assert((start_index == 0) == (start_term == 0));
    *window = (struct raft_window){.start_index = start_index, .start_term = start_term};
}

void raft_window_free(struct raft_window *window)
{
    raft_window_truncate(window, window->start_index + 1);
    assert(window->slots == NULL && window->count == 0);
}

void raft_window_append(struct raft_window *window, const struct raft_entry *entry)
{
    assert(entry->index == raft_window_last(window) + 1);
    assert(entry->term >= raft_window_last_term(window) && entry->term > 0);
    assert(entry->payload.length == 0 || entry->payload.block != NULL);
    uint64_t before = window->count == 0 ? window->start_bytes
                                         : slot_at(window, window->count - 1)->end_bytes;
    if (window->count == window->capacity) {
        resize(window, window->capacity == 0 ? CAPACITY_MIN : window->capacity * 2);
    }
    if (entry->payload.block != NULL) {
        block_ref(entry->payload.block);
    }
    window->count++;
    struct raft_slot *slot = slot_at(window, window->count - 1);
    slot->entry = *entry;
    slot->end_bytes = before + raft_entry_bytes(entry);
}

void raft_window_truncate(struct raft_window *window, uint64_t from)
{
    assert(from > window->start_index && from <= raft_window_last(window) + 1);
    while (raft_window_last(window) >= from) {
        block_unref(slot_at(window, window->count - 1)->entry.payload.block);
        window->count--;
    }
    shrink(window);
}

void raft_window_release(struct raft_window *window, uint64_t to)
{
    assert(to >= window->start_index && to <= raft_window_last(window));
    while (window->start_index < to) {
        struct raft_slot *slot = slot_at(window, 0);
        assert(slot->entry.index == window->start_index + 1);
        block_unref(slot->entry.payload.block);
        window->start_index++;
        window->start_term = slot->entry.term;
        window->start_bytes = slot->end_bytes;
        window->head = (window->head + 1) & (window->capacity - 1);
        window->count--;
    }
    shrink(window);
}

void raft_window_reset(struct raft_window *window, uint64_t index, uint64_t term)
{
    assert(index > window->start_index && term >= window->start_term);
    uint64_t bytes = window->start_bytes;
    raft_window_free(window);
    raft_window_init(window, index, term);
    window->start_bytes = bytes;
}

const struct raft_entry *raft_window_at(const struct raft_window *window, uint64_t index)
{
    assert(index > window->start_index && index <= raft_window_last(window));
    const struct raft_slot *slot = slot_at(window, (uint32_t)(index - window->start_index - 1));
    assert(slot->entry.index == index);
    return &slot->entry;
}

bool raft_window_term(const struct raft_window *window, uint64_t index, uint64_t *term)
{
    if (index < window->start_index || index > raft_window_last(window)) {
        return false;
    }
    *term = index == window->start_index ? window->start_term
                                         : raft_window_at(window, index)->term;
    return true;
}

uint64_t raft_window_last_term(const struct raft_window *window)
{
    return window->count == 0 ? window->start_term
                              : slot_at(window, window->count - 1)->entry.term;
}

static uint64_t bytes_up_to(const struct raft_window *window, uint64_t index)
{
    if (index <= window->start_index) {
        return window->start_bytes;
    }
    assert(index <= raft_window_last(window));
    return slot_at(window, (uint32_t)(index - window->start_index - 1))->end_bytes;
}

uint64_t raft_window_bytes(const struct raft_window *window, uint64_t after, uint64_t to)
{
    assert(after <= to);
    return bytes_up_to(window, to) - bytes_up_to(window, after);
}

uint64_t raft_window_find_term(const struct raft_window *window, uint64_t from, uint64_t term)
{
    assert(from >= window->start_index && from <= raft_window_last(window));
    /* Terms never fall along the log, so the last entry of a term is found by halving. */
    uint64_t low = window->start_index;
    uint64_t high = from;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (raft_window_at(window, middle)->term <= term) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}
