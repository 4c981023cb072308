/* Changes of the members by joint consensus (§4.3), and the configuration that is in force.
 *
 * A configuration counts from the moment its entry is in the log (§4.1). If voters change, the
 * first entry holds both sets; once it is committed by both majorities, the leader appends the
 * second one with the new set alone, and if it is not in it, it steps down when that is committed.
 * A leader that finds a committed joint configuration goes on with it. One change at a time: the
 * next waits until the last entry of the one before is committed.
 *
 * A truncation may cut a configuration away again; then the one before it, in the window or kept
 * as `base` from below the window, is in force.
 */
#include <string.h>

#include "base/planted.h"
#include "raft/state.h"

static void tell_members(struct raft *raft)
{
    if (raft->out != NULL) {
        raft_emit(raft, RAFT_ACTION_MEMBERS)->index = raft->active.index;
    }
    if (raft->role != RAFT_FOLLOWER) {
        /* Newcomers are sent the entry that takes them in. */
        assert(raft->active.index == raft_window_last(&raft->window));
        raft_rebuild_peers(raft, raft->active.index);
    }
}

void raft_adopt_configuration(struct raft *raft, const struct raft_entry *entry)
{
    assert(entry->index > raft->active.index || entry->index == 1);
    assert(entry->index > raft->window.start_index);
    if (raft->base_kept) {
        raft_configuration_free(&raft->active);
    } else {
        assert(raft->active.index <= raft->window.start_index);
        raft->base = raft->active;
        raft->base_kept = true;
    }
    raft->active = raft_configuration_of(entry);
    tell_members(raft);
}

/* The latest configuration entry of the window in (after, to], or null. */
static const struct raft_entry *find_configuration(const struct raft *raft, uint64_t to)
{
    for (uint64_t index = to; index > raft->window.start_index; index--) {
        const struct raft_entry *entry = raft_window_at(&raft->window, index);
        if (entry->kind == RAFT_ENTRY_CONFIGURATION) {
            return entry;
        }
    }
    return NULL;
}

static bool votes_in(const struct raft_configuration *configuration, int32_t id)
{
    uint8_t flags = raft_configuration_flags(configuration, id);
    return (flags & (RAFT_VOTER | RAFT_OLD_VOTER)) != 0;
}

/* Whether this node votes in the configuration before the one in force. */
static bool voted_before(const struct raft *raft)
{
    if (raft->active.index <= raft->window.start_index) {
        return false;
    }
    const struct raft_entry *earlier = find_configuration(raft, raft->active.index - 1);
    if (earlier == NULL) {
        return votes_in(&raft->base, raft->id);
    }
    struct raft_configuration before = raft_configuration_of(earlier);
    bool votes = votes_in(&before, raft->id);
    raft_configuration_free(&before);
    return votes;
}

bool raft_may_lead(const struct raft *raft)
{
    if (raft->withdrawn) {
        return false;
    }
    /* Who is being removed may hold the only copy of the entry that removes it, and then nobody
     * else can be elected: it leads, without counting itself, until that is committed (§4.2.2). */
    return votes_in(&raft->active, raft->id) ||
           (raft->active.index > raft->commit && voted_before(raft));
}

void raft_truncate_log(struct raft *raft, uint64_t from)
{
    assert(from > raft->commit && from <= raft_window_last(&raft->window));
    assert(raft->role != RAFT_LEADER); /* a leader only appends (§3.3) */
    if (raft->out != NULL) {
        raft_emit(raft, RAFT_ACTION_TRUNCATE)->index = from;
    }
    raft_window_truncate(&raft->window, from);
    raft->truncated_term = raft->term;
    if (!planted(PLANT_DURABLE_NOT_CUT)) {
        raft->durable = raft->durable < from - 1 ? raft->durable : from - 1;
    }
    raft->matched = raft->matched < from - 1 ? raft->matched : from - 1;
    if (raft->active.index < from || planted(PLANT_MEMBERS_NOT_CUT)) {
        return;
    }
    assert(raft->base_kept);
    raft_configuration_free(&raft->active);
    const struct raft_entry *earlier = find_configuration(raft, from - 1);
    if (earlier != NULL) {
        raft->active = raft_configuration_of(earlier);
    } else {
        raft->active = raft->base;
        raft->base = (struct raft_configuration){0};
        raft->base_kept = false;
    }
    tell_members(raft);
}

void raft_release_log(struct raft *raft, uint64_t to)
{
    assert(to <= raft->commit && to <= raft->durable);
    if (raft->base_kept && raft->active.index <= to) {
        raft_configuration_free(&raft->base);
        raft->base_kept = false;
    } else if (raft->base_kept) {
        const struct raft_entry *passed = find_configuration(raft, to);
        if (passed != NULL) {
            raft_configuration_free(&raft->base);
            raft->base = raft_configuration_of(passed);
        }
    }
    raft_window_release(&raft->window, to);
}

/* ---- The leader's part ---- */

static void append_members(struct raft *raft, const struct raft_member *members, size_t count)
{
    assert(raft_members_valid(members, count));
    struct slice payload = raft_members_encode(members, count);
    uint64_t index = raft_window_last(&raft->window) + 1;
    raft_append_own(raft, RAFT_ENTRY_CONFIGURATION, payload);
    block_unref(payload.block);
    raft_publish(raft, index);
}

static bool is_valid_target(const struct raft_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].flags != RAFT_VOTER && members[i].flags != RAFT_LEARNER) {
            return false;
        }
    }
    return count <= RAFT_MEMBERS_MAX && raft_members_valid(members, count);
}

/* The target with the present voters marked as old ones; `joint` has room for all. Sets whether
 * the voters change at all and whether anything does. */
static size_t join(const struct raft *raft, const struct raft_member *members, size_t count,
                   struct raft_member *joint, bool *voters_change, bool *changes)
{
    *voters_change = false;
    *changes = count != raft->active.count;
    for (size_t i = 0; i < count; i++) {
        uint8_t now = raft_configuration_flags(&raft->active, members[i].id);
        bool votes = (now & RAFT_VOTER) != 0;
        joint[i] = members[i];
        joint[i].flags |= votes ? RAFT_OLD_VOTER : 0;
        *changes = *changes || now != members[i].flags;
        *voters_change = *voters_change || votes != ((members[i].flags & RAFT_VOTER) != 0);
    }
    size_t total = count;
    for (uint32_t i = 0; i < raft->active.count; i++) {
        const struct raft_member *old = &raft->active.members[i];
        if ((old->flags & RAFT_VOTER) != 0 && raft_members_flags(members, count, old->id) == 0) {
            joint[total++] = (struct raft_member){.id = old->id, .flags = RAFT_OLD_VOTER};
            *voters_change = true;
        }
    }
    return total;
}

static void leave_joint(struct raft *raft)
{
    struct raft_member members[RAFT_MEMBERS_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < raft->active.count; i++) {
        struct raft_member member = raft->active.members[i];
        member.flags &= RAFT_VOTER | RAFT_LEARNER;
        if (member.flags != 0) {
            members[count++] = member;
        }
    }
    raft_reason(raft, "the joint configuration is committed");
    append_members(raft, members, count);
}

enum raft_result raft_change_members(struct raft *raft, const struct raft_member *members,
                                     size_t count)
{
    if (raft->role != RAFT_LEADER) {
        return RAFT_NOT_LEADER;
    }
    if (!is_valid_target(members, count)) {
        raft_reason(raft, "malformed members");
        return RAFT_INVALID;
    }
    if (raft->active.index > raft->commit || raft_configuration_is_joint(&raft->active) ||
        raft->transfer_to != RAFT_NO_NODE) {
        raft_reason(raft, "another change is under way");
        return RAFT_BUSY;
    }
    struct raft_member joint[2 * RAFT_MEMBERS_MAX];
    bool voters_change;
    bool changes;
    size_t total = join(raft, members, count, joint, &voters_change, &changes);
    if (total > RAFT_MEMBERS_MAX) {
        raft_reason(raft, "too many members");
        return RAFT_INVALID;
    }
    if (voters_change && !planted(PLANT_JOINT_LEFT_OUT)) {
        append_members(raft, joint, total);
        if (planted(PLANT_JOINT_LEFT_EARLY) && raft_configuration_is_joint(&raft->active)) {
            leave_joint(raft);
        }
    } else if (changes) {
        append_members(raft, members, count);
    }
    return RAFT_OK;
}

void raft_continue_change(struct raft *raft)
{
    assert(raft->role == RAFT_LEADER);
    if (raft->active.index > raft->commit) {
        return;
    }
    if (raft_configuration_is_joint(&raft->active)) {
        leave_joint(raft);
    } else if ((raft_configuration_flags(&raft->active, raft->id) & RAFT_VOTER) == 0 &&
               !planted(PLANT_REMOVED_LEADER_STAYS)) {
        raft_reason(raft, "this node is no voter any more");
        raft_resign(raft);
    }
}
