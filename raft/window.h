/* The part of the log that is in memory: entries (start_index, last_index] in a growable ring. */
#ifndef OTTLA_RAFT_WINDOW_H
#define OTTLA_RAFT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "raft/raft.h"

/* An entry, and the bytes of all entries ever appended up to and with it; two differences of the
 * latter give the bytes between two indexes without a walk. */
struct raft_slot {
    struct raft_entry entry;
    uint64_t end_bytes;
};

/* Costs nothing but itself while it is empty. */
struct raft_window {
    struct raft_slot *slots; /* capacity of them, a power of two; null when empty */
    uint32_t capacity;
    uint32_t head; /* the slot of start_index + 1 */
    uint32_t count;
    uint64_t start_index;
    uint64_t start_term;
    uint64_t start_bytes;
};

/* An empty window behind (start_index, start_term). */
void raft_window_init(struct raft_window *window, uint64_t start_index, uint64_t start_term);

/* Drops every entry. */
void raft_window_free(struct raft_window *window);

/* Adds the next entry and takes a reference on its payload's block; asserts that index and term
 * continue the log. */
void raft_window_append(struct raft_window *window, const struct raft_entry *entry);

/* Drops the entries at and above `from`, which lies in (start_index, last + 1]. */
void raft_window_truncate(struct raft_window *window, uint64_t from);

/* Drops the entries up to `to`, which lies in [start_index, last]. */
void raft_window_release(struct raft_window *window, uint64_t to);

/* Drops everything; the log goes on after (index, term). */
void raft_window_reset(struct raft_window *window, uint64_t index, uint64_t term);

static inline uint64_t raft_window_last(const struct raft_window *window)
{
    return window->start_index + window->count;
}

/* The entry at an index of (start_index, last]; borrowed until the window changes. */
const struct raft_entry *raft_window_at(const struct raft_window *window, uint64_t index);

/* The term of an entry in [start_index, last]; false outside, where it is not known. */
bool raft_window_term(const struct raft_window *window, uint64_t index, uint64_t *term);

/* The term of the last entry (or of start_index when the window is empty). */
uint64_t raft_window_last_term(const struct raft_window *window);

/* The bytes of the entries in (after, to] that the window has. */
uint64_t raft_window_bytes(const struct raft_window *window, uint64_t after, uint64_t to);

/* The largest index in [start_index, from] whose term is at most `term`; start_index when none is.
 * Skips whole terms when two logs look for their last common entry (§3.5, last paragraph). */
uint64_t raft_window_find_term(const struct raft_window *window, uint64_t from, uint64_t term);

/* What an entry counts as. */
static inline uint64_t raft_entry_bytes(const struct raft_entry *entry)
{
    return entry->payload.length + sizeof *entry;
}

#endif
