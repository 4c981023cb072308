/* What the journal held when the process started, sorted by group, until each group takes its part.
 *
 * Filled by the journal's replay before any shard runs; then a group's part is used once, by its
 * own shard. Entries below a mark are dropped while reading, so that memory is bounded by what the
 * checkpoints do not cover yet.
 */
#ifndef OTTLA_BROKER_GROUP_BOOT_H
#define OTTLA_BROKER_GROUP_BOOT_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "raft/raft.h"
#include "storage/journal.h"

/* What the group's vote says of promises that were lost (the journal's tag; group_loss.h). */
enum boot_loss {
    BOOT_NOTHING_LOST = 0,
    BOOT_LOST = 1,              /* no leader was confirmed since */
    BOOT_TOLD = 2,              /* the vote's term is that leader's or a later one; its index is
                                 * where that leader's log ended */
};

/* One group's records. */
struct journal_boot {
    UT_hash_handle hh;
    uint64_t group;
    uint64_t mark;              /* entries up to here are covered by a checkpoint */
    uint64_t vote_term;
    int32_t voted_for;
    uint32_t loss;              /* enum boot_loss */
    uint64_t catch_up_to;       /* BOOT_TOLD only */
    bool damaged;               /* records of this group are lost */
    bool used;                  /* its group was opened */
    struct journal_record *records; /* entries and truncations above the mark, in order */
    size_t count;
    size_t capacity;
};

/* All groups. */
struct boot {
    struct journal_boot *groups;
    bool all_damaged;           /* records were lost and nobody knows whose */
};

/* The journal's handlers; context is the struct boot. */
void boot_replay(void *context, const struct journal_record *record);
void boot_damage(void *context, const struct journal_damage *damage);

/* The group's part; null when the journal has nothing of it. */
struct journal_boot *boot_find(const struct boot *boot, uint64_t group);

/* Whether the part holds every entry that its group ever had. Null: no. */
bool boot_is_whole(const struct journal_boot *part);

/* Whether there were other entries before or between these, which a checkpoint covered. */
bool boot_lacks_entries(const struct journal_boot *part);

/* Feeds entries, truncations and the vote into Raft. STATUS_CORRUPT when they do not fit. */
MUST_USE enum status boot_restore(const struct journal_boot *part, struct raft *raft);

/* Lets go of a part's entries; the part itself stays until boot_free. */
void boot_release(struct journal_boot *part);

/* Drops the group's part, if there is one. While no group but that of the metadata is open. */
void boot_forget(struct boot *boot, uint64_t group);

/* Releases everything. */
void boot_free(struct boot *boot);

#endif
