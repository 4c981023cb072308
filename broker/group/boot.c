/* The journal's replay, sorted by group. Failures show as damage flags; the group then opens
 * offline and says so. */
#include "broker/group/boot.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"

static struct journal_boot *part_of(struct boot *boot, uint64_t group)
{
    struct journal_boot *part = boot_find(boot, group);
    if (part == NULL) {
        part = memory_new_zero(1, sizeof *part);
        part->group = group;
        part->voted_for = RAFT_NO_NODE;
        part->damaged = boot->all_damaged;
        HASH_ADD(hh, boot->groups, group, sizeof part->group, part);
    }
    return part;
}

static void keep(struct journal_boot *part, const struct journal_record *record)
{
    if (part->count == part->capacity) {
        part->capacity = part->capacity == 0 ? 8 : part->capacity * 2;
        part->records = memory_resize(part->records, part->capacity, sizeof *part->records);
    }
    assert(part->count < part->capacity);
    part->records[part->count++] = *record;
    if (record->payload.block != NULL) {
        block_ref(record->payload.block);
    }
}

/* Drops what a checkpoint covers. */
static void apply_mark(struct journal_boot *part, uint64_t mark)
{
    if (mark <= part->mark) {
        return;
    }
    assert(mark > part->mark);
    part->mark = mark;
    size_t kept = 0;
    for (size_t i = 0; i < part->count; i++) {
        struct journal_record *record = &part->records[i];
        if (record->index > mark) {
            part->records[kept++] = *record;
        } else {
            block_unref(record->payload.block);
        }
    }
    part->count = kept;
}

void boot_release(struct journal_boot *part)
{
    for (size_t i = 0; i < part->count; i++) {
        block_unref(part->records[i].payload.block);
    }
    free(part->records);
    part->records = NULL;
    part->count = 0;
    part->capacity = 0;
}

void boot_forget(struct boot *boot, uint64_t group)
{
    struct journal_boot *part = boot_find(boot, group);
    if (part != NULL) {
        boot_release(part);
        HASH_DEL(boot->groups, part);
        free(part);
    }
}

static void apply_vote(struct journal_boot *part, const struct journal_record *record)
{
    if (record->term >= part->vote_term) {
        part->vote_term = record->term;
        part->voted_for = record->voted_for;
        part->loss = record->tag;
        part->catch_up_to = record->index;
    }
}

void boot_replay(void *context, const struct journal_record *record)
{
    struct boot *boot = context;
    struct journal_boot *part = part_of(boot, record->group);
    assert(record->kind >= JOURNAL_ENTRY && record->kind <= JOURNAL_ANEW);
    switch (record->kind) {
    case JOURNAL_ENTRY:
        if (record->index > part->mark) {
            keep(part, record);
        }
        break;
    case JOURNAL_TRUNCATE:
        keep(part, record);
        break;
    case JOURNAL_VOTE:
        apply_vote(part, record);
        break;
    case JOURNAL_MARK:
        apply_mark(part, record->index);
        break;
    case JOURNAL_FORGET:
        boot_forget(boot, record->group);
        break;
    case JOURNAL_ANEW:
        boot_forget(boot, record->group);
        apply_vote(part_of(boot, record->group), record);
        break;
    }
}

void boot_damage(void *context, const struct journal_damage *damage)
{
    struct boot *boot = context;
    log_error("journal",
              "%s is damaged at byte %" PRIu64 " (%" PRIu64 " bytes lost). %s stops serving; "
              "restore the file from a copy, or remove the data directory if it can be rebuilt",
              damage->file, damage->position, damage->length_bytes,
              damage->group_known ? "The partition group whose records these are" : "Every group");
    if (damage->group_known) {
        part_of(boot, damage->group)->damaged = true;
        return;
    }
    boot->all_damaged = true;
    for (struct journal_boot *part = boot->groups; part != NULL; part = part->hh.next) {
        part->damaged = true;
    }
}

struct journal_boot *boot_find(const struct boot *boot, uint64_t group)
{
    struct journal_boot *part = NULL;
    HASH_FIND(hh, boot->groups, &group, sizeof group, part);
    return part;
}

bool boot_lacks_entries(const struct journal_boot *part)
{
    uint64_t last = 0;
    bool lacks = part != NULL && part->mark > 0;
    for (size_t i = 0; part != NULL && i < part->count && !lacks; i++) {
        const struct journal_record *record = &part->records[i];
        assert(record->kind == JOURNAL_ENTRY || record->kind == JOURNAL_TRUNCATE);
        if (record->kind == JOURNAL_ENTRY) {
            lacks = record->index > last + 1;
            last = record->index;
        } else if (record->index <= last) {
            last = record->index == 0 ? 0 : record->index - 1;
        }
    }
    return lacks;
}

bool boot_is_whole(const struct journal_boot *part)
{
    return part != NULL && !part->damaged && part->count > 0 && !boot_lacks_entries(part);
}

enum status boot_restore(const struct journal_boot *part, struct raft *raft)
{
    assert(!part->damaged);
    raft_restore_vote(raft, part->vote_term, part->voted_for);
    size_t left_out = planted(PLANT_REPLAY_LACKS_LAST) ? 1 : 0;
    for (size_t i = 0; i + left_out < part->count; i++) {
        const struct journal_record *record = &part->records[i];
        if (record->kind == JOURNAL_TRUNCATE) {
            raft_restore_truncate(raft, record->index);
            continue;
        }
        struct raft_entry entry = {record->index, record->term, record->entry_kind,
                                   record->payload};
        enum status status = raft_restore_entry(raft, &entry);
        if (status != STATUS_OK) {
            log_error("group", "group %" PRIu64 ": entry %" PRIu64 " of the journal does not "
                      "fit: %s", part->group, record->index, status_text(status));
            return status;
        }
    }
    return STATUS_OK;
}

void boot_free(struct boot *boot)
{
    struct journal_boot *part;
    struct journal_boot *next;
    HASH_ITER(hh, boot->groups, part, next) {
        HASH_DEL(boot->groups, part);
        boot_release(part);
        free(part);
    }
}
