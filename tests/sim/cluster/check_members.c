/* The members of each group as of its entries: whoever applies a change first says what they are
 * from there on (the linker wraps group_members_apply), and every node that has applied as much has
 * the same. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "broker/group/group.h"
#include "broker/group/group_members.h"
#include "tests/sim/cluster/check.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

struct change {
    uint64_t index;
    uint64_t members;            /* a checksum */
};

struct history {
    struct change *changes;      /* by rising index */
    size_t count;
    size_t capacity;
};

static struct history *histories; /* by group, whose ids are dense */
static size_t history_count;

/* Whatever the order in which they are listed. */
static uint64_t checksum(const struct group *group)
{
    struct raft_member alone = {.id = node_current()->id, .flags = RAFT_VOTER};
    const struct raft_member *members = group->member_count > 0 ? group->members : &alone;
    size_t count = group->member_count > 0 ? group->member_count : 1;
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t member = (uint64_t)(uint32_t)members[i].id << 8 | members[i].flags;
        member = (member + 1) * 0x9e3779b97f4a7c15u;
        sum += (member ^ member >> 29) * 0xbf58476d1ce4e5b9u;
    }
    return sum;
}

static struct history *history_of(uint64_t group)
{
    if (group >= history_count) {
        size_t count = (size_t)group * 2 + 16;
        histories = memory_resize(histories, count, sizeof *histories);
        memset(histories + history_count, 0, (count - history_count) * sizeof *histories);
        history_count = count;
    }
    return &histories[group];
}

/* The latest change up to the index; null: none is known. */
static const struct change *change_at(const struct history *history, uint64_t index)
{
    size_t at = history->count;
    while (at > 0 && history->changes[at - 1].index > index) {
        at--;
    }
    return at == 0 ? NULL : &history->changes[at - 1];
}

static void note(uint64_t group, uint64_t index, uint64_t members)
{
    struct history *history = history_of(group);
    const struct change *known = change_at(history, index);
    if (known != NULL && known->index == index) {
        return;
    }
    if (history->count == history->capacity) {
        history->capacity = history->capacity * 2 + 4;
        history->changes =
            memory_resize(history->changes, history->capacity, sizeof *history->changes);
    }
    size_t at = history->count++;
    for (; at > 0 && history->changes[at - 1].index > index; at--) {
        history->changes[at] = history->changes[at - 1];
    }
    history->changes[at] = (struct change){index, members};
}

void __real_group_members_apply(struct group *group, const struct raft_entry *entry);
void __wrap_group_members_apply(struct group *group, const struct raft_entry *entry);

void __wrap_group_members_apply(struct group *group, const struct raft_entry *entry)
{
    __real_group_members_apply(group, entry);
    assert(group->members_index == entry->index);
    note(group->id, entry->index, checksum(group));
}

void check_members(const struct group *group)
{
    if (group->storage != STATUS_OK) {
        return; /* it could not read what it knew, and takes no part */
    }
    const struct change *change = change_at(history_of(group->id), group->applied_index);
    world_require(change == NULL || change->members == checksum(group),
                  "group %" PRIu64 ", entry %" PRIu64 ": node %d does not know the members as of "
                  "entry %" PRIu64, group->id, group->applied_index, node_current()->id,
                  change == NULL ? 0 : change->index);
}

void check_members_forget(void)
{
    for (size_t i = 0; i < history_count; i++) {
        free(histories[i].changes);
    }
    free(histories);
    histories = NULL;
    history_count = 0;
}
