/* What the journal knows about each group: its latest vote and where it lies, and in which
 * generations of the ring it has entries that are still needed. Not locked: the journal guards it.
 * Bounded by the number of groups that ever wrote, and per group by the files of the ring.
 */
#ifndef OTTLA_STORAGE_JOURNAL_GROUPS_H
#define OTTLA_STORAGE_JOURNAL_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/journal.h"

struct journal_groups;

/* An empty table. */
struct journal_groups *journal_groups_new(void);

/* Releases it. */
void journal_groups_free(struct journal_groups *groups);

/* A record went (or, in replay, was found) into the file of this generation. Generations never
 * fall. */
void journal_groups_note(struct journal_groups *groups, const struct journal_record *record,
    uint64_t generation);

/* Entries up to and with the index are not needed; with `record_it`, a MARK is to be written. */
void journal_groups_mark(struct journal_groups *groups, uint64_t group, uint64_t index,
    bool record_it);

/* Everything of the group up to now is not needed. */
void journal_groups_forget(struct journal_groups *groups, uint64_t group);

/* The oldest generation that holds an entry some group needs; UINT64_MAX when there is none. */
uint64_t journal_groups_oldest_entry(struct journal_groups *groups);

/* The oldest generation that holds some group's latest vote; UINT64_MAX when there is none. */
uint64_t journal_groups_oldest_vote(struct journal_groups *groups);

/* Takes a vote that lies in a generation below `limit`, as a record to write again. False when
 * there is none. The caller notes it when written. */
bool journal_groups_old_vote(struct journal_groups *groups, uint64_t limit,
    struct journal_record *record);

/* Takes a mark that was not written yet. False when there is none. */
bool journal_groups_take_mark(struct journal_groups *groups, struct journal_record *record);

/* Whether marks wait to be written. */
bool journal_groups_have_marks(const struct journal_groups *groups);

/* How many groups have a vote. */
size_t journal_groups_vote_count(const struct journal_groups *groups);

/* Ids of up to `capacity` groups that need an entry in a generation <= `generation`. */
size_t journal_groups_holding(const struct journal_groups *groups, uint64_t generation,
    uint64_t *ids, size_t capacity);

/* How many groups are known. */
size_t journal_groups_count(const struct journal_groups *groups);

#endif
