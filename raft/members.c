/* Sets of members and their bytes in configuration entries.
 *
 * A payload is checked once, when it enters the core (raft_members_decode and raft_members_valid);
 * after that a malformed one is a bug.
 */
#include "raft/members.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

enum { HEADER_BYTES = 3, MEMBER_BYTES = 5, VERSION = 1 };

struct slice raft_members_encode(const struct raft_member *members, size_t count)
{
    assert(count <= RAFT_MEMBERS_MAX);
    size_t length = HEADER_BYTES + count * MEMBER_BYTES;
    struct block *block = block_new(length);
    block->bytes[0] = VERSION;
    store_be16(block->bytes + 1, (uint16_t)count);
    for (size_t i = 0; i < count; i++) {
        uint8_t *at = block->bytes + HEADER_BYTES + i * MEMBER_BYTES;
        store_be32(at, (uint32_t)members[i].id);
        at[4] = members[i].flags;
    }
    return slice_of(block, 0, length);
}

enum status raft_members_decode(struct view payload, struct raft_member *members, size_t capacity,
                                size_t *count)
{
    *count = 0;
    if (payload.length < HEADER_BYTES || payload.data[0] != VERSION) {
        return STATUS_INVALID;
    }
    size_t found = load_be16(payload.data + 1);
    if (payload.length != HEADER_BYTES + found * MEMBER_BYTES) {
        return STATUS_INVALID;
    }
    if (found > capacity) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < found; i++) {
        const uint8_t *at = payload.data + HEADER_BYTES + i * MEMBER_BYTES;
        members[i] = (struct raft_member){.id = (int32_t)load_be32(at), .flags = at[4]};
    }
    *count = found;
    return STATUS_OK;
}

bool raft_members_valid(const struct raft_member *members, size_t count)
{
    bool has_voter = false;
    for (size_t i = 0; i < count; i++) {
        uint8_t flags = members[i].flags;
        if (members[i].id < 0 || flags == 0 ||
            (flags & ~(RAFT_VOTER | RAFT_OLD_VOTER | RAFT_LEARNER)) != 0 ||
            ((flags & RAFT_VOTER) != 0 && (flags & RAFT_LEARNER) != 0)) {
            return false;
        }
        has_voter = has_voter || (flags & RAFT_VOTER) != 0;
        for (size_t k = 0; k < i; k++) {
            if (members[k].id == members[i].id) {
                return false;
            }
        }
    }
    return has_voter && count <= RAFT_MEMBERS_MAX;
}

bool raft_entry_valid(const struct raft_entry *entry)
{
    if (entry->payload.length > 0 && entry->payload.block == NULL) {
        return false;
    }
    if (entry->kind != RAFT_ENTRY_CONFIGURATION) {
        return entry->kind == RAFT_ENTRY_DATA || entry->kind == RAFT_ENTRY_NOOP;
    }
    struct raft_member members[RAFT_MEMBERS_MAX];
    size_t count;
    return raft_members_decode(slice_view(entry->payload), members, RAFT_MEMBERS_MAX, &count) ==
               STATUS_OK &&
           raft_members_valid(members, count);
}

struct raft_configuration raft_configuration_new(const struct raft_member *members, size_t count,
                                                 uint64_t index)
{
    assert(count <= RAFT_MEMBERS_MAX);
    struct raft_configuration made = {.count = (uint32_t)count, .index = index};
    if (count > 0) {
        made.members = memory_new(count * sizeof *members);
        memcpy(made.members, members, count * sizeof *members);
    }
    return made;
}

struct raft_configuration raft_configuration_of(const struct raft_entry *entry)
{
    assert(entry->kind == RAFT_ENTRY_CONFIGURATION);
    struct raft_member members[RAFT_MEMBERS_MAX];
    size_t count;
    enum status status = raft_members_decode(slice_view(entry->payload), members,
                                             RAFT_MEMBERS_MAX, &count);
    assert(status == STATUS_OK);
    return raft_configuration_new(members, count, entry->index);
}

void raft_configuration_free(struct raft_configuration *configuration)
{
    free(configuration->members);
    *configuration = (struct raft_configuration){0};
}

uint8_t raft_members_flags(const struct raft_member *members, size_t count, int32_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].id == id) {
            return members[i].flags;
        }
    }
    return 0;
}

uint8_t raft_configuration_flags(const struct raft_configuration *configuration, int32_t id)
{
    return raft_members_flags(configuration->members, configuration->count, id);
}

bool raft_configuration_is_joint(const struct raft_configuration *configuration)
{
    for (uint32_t i = 0; i < configuration->count; i++) {
        if ((configuration->members[i].flags & RAFT_OLD_VOTER) != 0) {
            return true;
        }
    }
    return false;
}
