/* Groups by id in a hash table. Each has spans: one for each generation that holds needed entries,
 * with the last index in it; a mark takes spans off the front. Counts of spans by generation tell
 * in constant time which files are free; votes are kept in a list by age, since a vote always moves
 * to the newest generation. Memory only; cannot fail. */
#include "storage/journal_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#define HASH_FUNCTION HASH_FNV /* the usual one falls through cases without saying so */
#include <uthash.h>

#include "base/list.h"
#include "base/memory.h"

struct span {
    uint64_t generation;
    uint64_t last_index;
};

struct group {
    uint64_t id;
    uint64_t marked;          /* entries up to and with it are not needed */
    uint64_t term;            /* latest vote */
    uint64_t vote_generation; /* 0: no vote */
    uint64_t vote_index;
    uint32_t vote_tag;
    int32_t voted_for;
    uint32_t span_count;
    uint32_t span_capacity;
    struct span *spans;       /* by rising generation and index */
    struct list_link by_vote;
    struct list_link unwritten_mark;
    UT_hash_handle hh;
};

/* How many spans lie in each generation from `first` on. */
struct counts {
    uint64_t first;
    uint32_t *values;
    size_t length;
    size_t capacity;
};

struct journal_groups {
    struct group *by_id;
    struct counts spans;
    struct list votes; /* oldest first */
    struct list marks;
    size_t vote_count;
};

struct journal_groups *journal_groups_new(void)
{
    struct journal_groups *groups = memory_new_zero(1, sizeof *groups);
    list_init(&groups->votes);
    list_init(&groups->marks);
    return groups;
}

static void counts_add(struct counts *counts, uint64_t generation)
{
    if (counts->length == 0) {
        counts->first = generation;
    }
    assert(generation >= counts->first);
    size_t at = (size_t)(generation - counts->first);
    while (counts->length <= at) {
        if (counts->length == counts->capacity) {
            counts->capacity = counts->capacity == 0 ? 16 : counts->capacity * 2;
            counts->values = memory_resize(counts->values, counts->capacity, sizeof(uint32_t));
        }
        counts->values[counts->length++] = 0;
    }
    counts->values[at]++;
}

static void counts_drop(struct counts *counts, uint64_t generation)
{
    assert(generation >= counts->first);
    size_t at = (size_t)(generation - counts->first);
    assert(at < counts->length && counts->values[at] > 0);
    counts->values[at]--;
    size_t empty = 0;
    while (empty < counts->length && counts->values[empty] == 0) {
        empty++;
    }
    if (empty > 0) {
        counts->length -= empty;
        counts->first += empty;
        memmove(counts->values, counts->values + empty, counts->length * sizeof(uint32_t));
    }
}

static struct group *find(const struct journal_groups *groups, uint64_t id)
{
    struct group *group;
    HASH_FIND(hh, groups->by_id, &id, sizeof id, group);
    return group;
}

static struct group *find_or_add(struct journal_groups *groups, uint64_t id)
{
    struct group *group = find(groups, id);
    if (group == NULL) {
        group = memory_new_zero(1, sizeof *group);
        group->id = id;
        group->voted_for = -1;
        HASH_ADD(hh, groups->by_id, id, sizeof group->id, group);
    }
    return group;
}

static void drop_front_spans(struct journal_groups *groups, struct group *group, uint32_t count)
{
    assert(count <= group->span_count);
    for (uint32_t i = 0; i < count; i++) {
        counts_drop(&groups->spans, group->spans[i].generation);
    }
    group->span_count -= count;
    if (count > 0) {
        memmove(group->spans, group->spans + count, group->span_count * sizeof(struct span));
    }
}

static void drop_vote(struct journal_groups *groups, struct group *group)
{
    if (group->vote_generation != 0) {
        list_remove(&group->by_vote);
        group->vote_generation = 0;
        groups->vote_count--;
    }
}

static void remove_group(struct journal_groups *groups, struct group *group)
{
    drop_front_spans(groups, group, group->span_count);
    drop_vote(groups, group);
    if (list_contains(&group->unwritten_mark)) {
        list_remove(&group->unwritten_mark);
    }
    HASH_DEL(groups->by_id, group);
    free(group->spans);
    free(group);
}

void journal_groups_free(struct journal_groups *groups)
{
    struct group *group;
    struct group *next;
    HASH_ITER(hh, groups->by_id, group, next) {
        remove_group(groups, group);
    }
    assert(groups->spans.length == 0 && groups->vote_count == 0);
    free(groups->spans.values);
    free(groups);
}

static void note_entry(struct journal_groups *groups, struct group *group, uint64_t index,
    uint64_t generation)
{
    if (index <= group->marked) {
        return;
    }
    struct span *last = group->span_count == 0 ? NULL : &group->spans[group->span_count - 1];
    if (last != NULL && last->generation == generation) {
        last->last_index = index > last->last_index ? index : last->last_index;
        return;
    }
    assert(last == NULL || last->generation < generation);
    if (group->span_count == group->span_capacity) {
        group->span_capacity = group->span_capacity == 0 ? 2 : group->span_capacity * 2;
        group->spans = memory_resize(group->spans, group->span_capacity, sizeof(struct span));
    }
    group->spans[group->span_count++] = (struct span){generation, index};
    counts_add(&groups->spans, generation);
}

/* Entries from the index on are void. A span of none but void entries stays until the mark passes
 * the index before: its file goes with those in front of it anyway. */
static void note_truncate(struct group *group, uint64_t index)
{
    assert(index > 0);
    for (uint32_t i = 0; i < group->span_count; i++) {
        if (group->spans[i].last_index >= index) {
            group->spans[i].last_index = index - 1;
        }
    }
}

static void note_vote(struct journal_groups *groups, struct group *group,
    const struct journal_record *record, uint64_t generation)
{
    drop_vote(groups, group);
    group->term = record->term;
    group->voted_for = record->voted_for;
    group->vote_tag = record->tag;
    group->vote_index = record->index;
    group->vote_generation = generation;
    list_push_back(&groups->votes, &group->by_vote);
    groups->vote_count++;
}

void journal_groups_note(struct journal_groups *groups, const struct journal_record *record,
    uint64_t generation)
{
    assert(generation > 0);
    assert(record->kind >= JOURNAL_ENTRY && record->kind <= JOURNAL_ANEW);
    switch (record->kind) {
    case JOURNAL_ENTRY:
        note_entry(groups, find_or_add(groups, record->group), record->index, generation);
        return;
    case JOURNAL_VOTE:
        note_vote(groups, find_or_add(groups, record->group), record, generation);
        return;
    case JOURNAL_TRUNCATE:
        note_truncate(find_or_add(groups, record->group), record->index);
        return;
    case JOURNAL_MARK:
        journal_groups_mark(groups, record->group, record->index, false);
        return;
    case JOURNAL_FORGET:
        journal_groups_forget(groups, record->group);
        return;
    case JOURNAL_ANEW:
        journal_groups_forget(groups, record->group);
        note_vote(groups, find_or_add(groups, record->group), record, generation);
        return;
    }
}

void journal_groups_mark(struct journal_groups *groups, uint64_t id, uint64_t index,
    bool record_it)
{
    struct group *group = find(groups, id);
    if (group == NULL || index <= group->marked) {
        return;
    }
    group->marked = index;
    uint32_t done = 0;
    while (done < group->span_count && group->spans[done].last_index <= index) {
        done++;
    }
    drop_front_spans(groups, group, done);
    if (record_it && !list_contains(&group->unwritten_mark)) {
        list_push_back(&groups->marks, &group->unwritten_mark);
    }
}

void journal_groups_forget(struct journal_groups *groups, uint64_t id)
{
    struct group *group = find(groups, id);
    if (group != NULL) {
        remove_group(groups, group);
    }
}

uint64_t journal_groups_oldest_entry(struct journal_groups *groups)
{
    assert(groups->spans.length == 0 || groups->spans.values[0] > 0);
    return groups->spans.length == 0 ? UINT64_MAX : groups->spans.first;
}

uint64_t journal_groups_oldest_vote(struct journal_groups *groups)
{
    struct list_link *link = list_first(&groups->votes);
    return link == NULL ? UINT64_MAX : container_of(link, struct group, by_vote)->vote_generation;
}

bool journal_groups_old_vote(struct journal_groups *groups, uint64_t limit,
    struct journal_record *record)
{
    if (journal_groups_oldest_vote(groups) >= limit) {
        return false;
    }
    struct group *group = container_of(list_first(&groups->votes), struct group, by_vote);
    *record = (struct journal_record){.kind = JOURNAL_VOTE, .group = group->id,
        .term = group->term, .voted_for = group->voted_for, .tag = group->vote_tag,
        .index = group->vote_index};
    return true;
}

bool journal_groups_take_mark(struct journal_groups *groups, struct journal_record *record)
{
    struct list_link *link = list_pop_front(&groups->marks);
    if (link == NULL) {
        return false;
    }
    struct group *group = container_of(link, struct group, unwritten_mark);
    *record = (struct journal_record){.kind = JOURNAL_MARK, .group = group->id,
        .index = group->marked};
    return true;
}

bool journal_groups_have_marks(const struct journal_groups *groups)
{
    return !list_is_empty(&groups->marks);
}

size_t journal_groups_vote_count(const struct journal_groups *groups)
{
    return groups->vote_count;
}

size_t journal_groups_holding(const struct journal_groups *groups, uint64_t generation,
    uint64_t *ids, size_t capacity)
{
    size_t count = 0;
    struct group *group;
    struct group *next;
    HASH_ITER(hh, groups->by_id, group, next) {
        if (count == capacity) {
            break;
        }
        if (group->span_count > 0 && group->spans[0].generation <= generation) {
            ids[count++] = group->id;
        }
    }
    return count;
}

size_t journal_groups_count(const struct journal_groups *groups)
{
    return HASH_COUNT(groups->by_id);
}
