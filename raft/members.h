/* Sets of members: copies, lookups and majorities. */
#ifndef OTTLA_RAFT_MEMBERS_H
#define OTTLA_RAFT_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "raft/raft.h"

/* The members made by one configuration entry; owns the array. Null when there are none. */
struct raft_configuration {
    struct raft_member *members;
    uint32_t count;
    uint64_t index;
};

/* A copy of the members in force from `index` on. */
struct raft_configuration raft_configuration_new(const struct raft_member *members, size_t count,
                                                 uint64_t index);

/* The members of a configuration entry; asserts that its payload was checked. */
struct raft_configuration raft_configuration_of(const struct raft_entry *entry);

/* Releases the members; the configuration is empty then. */
void raft_configuration_free(struct raft_configuration *configuration);

/* The node's flags (enum raft_member_flag), 0 when it is no member. */
uint8_t raft_members_flags(const struct raft_member *members, size_t count, int32_t id);
uint8_t raft_configuration_flags(const struct raft_configuration *configuration, int32_t id);

/* Whether a change is under way: some member counts in the old majority. */
bool raft_configuration_is_joint(const struct raft_configuration *configuration);

/* Whether the members are well formed: distinct ids, at least one RAFT_VOTER, known flags. */
bool raft_members_valid(const struct raft_member *members, size_t count);

/* Whether an entry from outside can enter the log: known kind, sound payload. */
bool raft_entry_valid(const struct raft_entry *entry);

#endif
