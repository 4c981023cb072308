/* Copies between three notions of a member: the topic image's replica, Raft's, the checkpoint's.
 * Fails only where a payload that Raft took is malformed, which is a bug. */
#include "broker/group/group_members.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/planted.h"
#include "broker/controller/topic_image.h"
#include "broker/server/broker.h"

void group_members_set(struct group *group, const struct raft_member *members, size_t count,
                       uint64_t index)
{
    assert(count > 0);
    bool alone = count == 1 && members[0].id == group->shard->broker->node_id &&
                 members[0].flags == RAFT_VOTER;
    struct raft_member *copy = NULL;
    if (!alone) {
        copy = memory_new(count * sizeof *copy);
        memcpy(copy, members, count * sizeof *copy);
    }
    free(group->members);
    group->members = copy;
    group->member_count = alone ? 0 : (uint32_t)count;
    group->members_index = index;
}

static void take_checkpoint(struct group *group, const struct checkpoint *checkpoint)
{
    struct raft_member *members = memory_new(checkpoint->member_count * sizeof *members);
    for (size_t i = 0; i < checkpoint->member_count; i++) {
        members[i] = (struct raft_member){.id = checkpoint->members[i].id,
                                          .flags = checkpoint->members[i].flags};
    }
    group_members_set(group, members, checkpoint->member_count, checkpoint->members_index);
    free(members);
}

static void take_replicas(struct group *group, const struct partition_group *replicas)
{
    int32_t original_count;
    const int32_t *original = partition_group_original(replicas, &original_count);
    size_t count = (size_t)original_count;
    assert(original_count > 0);
    struct raft_member *members = memory_new(count * sizeof *members);
    for (size_t i = 0; i < count; i++) {
        members[i] = (struct raft_member){.id = original[i], .flags = RAFT_VOTER};
    }
    group_members_set(group, members, count, 0);
    free(members);
}

void group_members_begin(struct group *group, const struct group_start *start,
                         const struct checkpoint *checkpoint)
{
    if (checkpoint->member_count > 0) {
        take_checkpoint(group, checkpoint);
        return;
    }
    if (start->member_count > 0) {
        group_members_set(group, start->members, start->member_count, 0);
        return;
    }
    for (uint32_t i = 0; start->topic != NULL && i < start->topic->group_count; i++) {
        if (start->topic->groups[i].id == group->id) {
            take_replicas(group, &start->topic->groups[i]);
            return;
        }
    }
}

void group_members_apply(struct group *group, const struct raft_entry *entry)
{
    assert(entry->kind == RAFT_ENTRY_CONFIGURATION);
    struct raft_member members[RAFT_MEMBERS_MAX];
    size_t count;
    enum status status = raft_members_decode(slice_view(entry->payload), members,
                                             RAFT_MEMBERS_MAX, &count);
    assert(status == STATUS_OK);
    (void)status;
    group_members_set(group, members, count, entry->index);
}

void group_members_save(const struct group *group, struct checkpoint *checkpoint)
{
    assert(checkpoint->members == NULL);
    bool is_first = group->member_count == 0 && group->members_index == 0;
    if (is_first || planted(PLANT_MEMBERS_NOT_SAVED)) {
        return;
    }
    struct raft_member alone = {.id = group->shard->broker->node_id, .flags = RAFT_VOTER};
    const struct raft_member *members = group->member_count > 0 ? group->members : &alone;
    checkpoint->member_count = group->member_count > 0 ? group->member_count : 1;
    checkpoint->members_index = group->members_index;
    checkpoint->members =
        memory_new(checkpoint->member_count * sizeof *checkpoint->members);
    for (size_t i = 0; i < checkpoint->member_count; i++) {
        checkpoint->members[i] =
            (struct checkpoint_member){.id = members[i].id, .flags = members[i].flags};
    }
}

bool group_is_replicated(const struct group *group)
{
    size_t count;
    const struct raft_member *members = raft_members(group->raft, &count);
    assert(count > 0);
    return count > 1 || (count == 1 && members[0].id != raft_id(group->raft));
}

bool group_has_member(const struct group *group, int32_t node)
{
    size_t count;
    const struct raft_member *members = raft_members(group->raft, &count);
    for (size_t i = 0; i < count; i++) {
        if (members[i].id == node) {
            return true;
        }
    }
    return false;
}
