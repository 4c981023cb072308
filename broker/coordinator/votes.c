/* The table of supported protocols and the vote. A protocol that as many members list as there are
 * is a candidate; each member votes for its first candidate. Equal votes are decided as the
 * reference does, by the order of its hash map, so that a mixed group picks the same assignor. */
#include "broker/coordinator/votes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/coordinator/texts.h"

struct protocol_support {
    UT_hash_handle hh;
    struct view name; /* owned */
    size_t members;
    size_t votes; /* scratch of the vote */
};

static struct protocol_support *support_find(const struct consumer_group *group, struct view name)
{
    struct protocol_support *support;
    HASH_FIND(hh, group->support, name.data, name.length, support);
    return support;
}

static void support_add(struct consumer_group *group, struct view name)
{
    struct protocol_support *support = support_find(group, name);
    if (support == NULL) {
        support = memory_new_zero(1, sizeof(*support));
        support->name = coordinator_text_copy(name);
        HASH_ADD_KEYPTR(hh, group->support, support->name.data, support->name.length, support);
    }
    support->members++;
}

static void support_subtract(struct consumer_group *group, struct view name)
{
    struct protocol_support *support = support_find(group, name);
    assert(support != NULL && support->members > 0);
    assert(view_equal(support->name, name));
    if (--support->members == 0) {
        HASH_DEL(group->support, support);
        coordinator_text_free(&support->name);
        free(support);
    }
}

/* Whether the list names this protocol earlier already. */
static bool is_repeated(const struct consumer_member *member, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (view_equal(member->protocols[i].name, member->protocols[index].name)) {
            return true;
        }
    }
    return false;
}

void consumer_group_count_support(struct consumer_group *group,
                                  const struct consumer_member *member, bool add)
{
    for (size_t i = 0; i < member->protocol_count; i++) {
        if (is_repeated(member, i)) {
            continue;
        }
        if (add) {
            support_add(group, member->protocols[i].name);
        } else {
            support_subtract(group, member->protocols[i].name);
        }
    }
}

/* Of no members (all have left, and one that was given its id is still waited for) all do. */
static bool all_support(const struct consumer_group *group, struct view name)
{
    const struct protocol_support *support = support_find(group, name);
    return (support == NULL ? 0 : support->members) == group->member_count;
}

bool consumer_group_supports(const struct consumer_group *group, struct view protocol_type,
                             const struct join_group_request_join_group_request_protocol *protocols,
                             size_t count)
{
    if (group->state == GROUP_EMPTY) {
        return protocol_type.length > 0 && count > 0;
    }
    if (!view_equal(group->protocol_type, protocol_type)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (all_support(group, protocols[i].name)) {
            return true;
        }
    }
    return false;
}

/* Where Java's HashMap with 16 buckets would keep the string. */
static uint32_t bucket_of(struct view name)
{
    uint32_t hash = 0;
    for (size_t i = 0; i < name.length; i++) {
        hash = hash * 31 + name.data[i];
    }
    return (hash ^ (hash >> 16)) & 15;
}

static bool beats(const struct protocol_support *a, const struct protocol_support *b)
{
    if (a->votes != b->votes) {
        return a->votes > b->votes;
    }
    return bucket_of(a->name) < bucket_of(b->name);
}

static void vote(const struct consumer_group *group, const struct consumer_member *member)
{
    for (size_t i = 0; i < member->protocol_count; i++) {
        struct protocol_support *support = support_find(group, member->protocols[i].name);
        assert(support != NULL);
        if (support->members == group->member_count) {
            support->votes++;
            return;
        }
    }
}

struct view consumer_group_select_protocol(const struct consumer_group *group)
{
    assert(group->member_count > 0);
    struct protocol_support *support;
    for (support = group->support; support != NULL; support = support->hh.next) {
        support->votes = 0;
    }
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        vote(group, member);
    }
    const struct protocol_support *best = NULL;
    for (support = group->support; support != NULL; support = support->hh.next) {
        if (support->votes > 0 && (best == NULL || beats(support, best))) {
            best = support;
        }
    }
    assert(best != NULL && best->members == group->member_count);
    return best->name;
}
