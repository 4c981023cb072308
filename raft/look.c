/* What a group shows to its caller; nothing here changes it. */
#include "raft/state.h"

int32_t raft_id(const struct raft *raft)
{
    return raft->id;
}

enum raft_role raft_role(const struct raft *raft)
{
    return (enum raft_role)raft->role;
}

uint64_t raft_term(const struct raft *raft)
{
    return raft->term;
}

int32_t raft_leader(const struct raft *raft)
{
    return raft->leader;
}

int32_t raft_voted_for(const struct raft *raft)
{
    return raft->voted_for;
}

uint64_t raft_commit_index(const struct raft *raft)
{
    return raft->commit;
}

uint64_t raft_last_index(const struct raft *raft)
{
    return raft_window_last(&raft->window);
}

uint64_t raft_last_term(const struct raft *raft)
{
    return raft_window_last_term(&raft->window);
}

uint64_t raft_start_index(const struct raft *raft)
{
    return raft->window.start_index;
}

uint64_t raft_start_term(const struct raft *raft)
{
    return raft->window.start_term;
}

bool raft_is_saved(const struct raft *raft)
{
    return raft->saved_term == raft->term && raft->saved_vote == raft->voted_for;
}

uint64_t raft_durable_index(const struct raft *raft)
{
    return raft->durable;
}

const struct raft_entry *raft_entry_at(const struct raft *raft, uint64_t index)
{
    return raft_window_at(&raft->window, index);
}

uint64_t raft_bytes_behind(const struct raft *raft, uint64_t after)
{
    uint64_t last = raft_window_last(&raft->window);
    return after >= last ? 0 : raft_window_bytes(&raft->window, after, last);
}

uint64_t raft_payload_bytes_behind(const struct raft *raft, uint64_t after)
{
    uint64_t start = raft->window.start_index;
    uint64_t from = after > start ? after : start;
    uint64_t last = raft_window_last(&raft->window);
    return from >= last ? 0 : raft_bytes_behind(raft, from)
                                  - (last - from) * sizeof(struct raft_entry);
}

const struct raft_member *raft_members(const struct raft *raft, size_t *count)
{
    *count = raft->active.count;
    return raft->active.members;
}

uint64_t raft_members_index(const struct raft *raft)
{
    return raft->active.index;
}

bool raft_needs_ticks(const struct raft *raft)
{
    return raft->started && !raft->asleep &&
           !(raft->role == RAFT_LEADER && raft->peer_count == 0);
}

bool raft_awaits_election(const struct raft *raft)
{
    return raft->started && !raft->asleep && raft->role == RAFT_FOLLOWER &&
           raft->leader == RAFT_NO_NODE && raft->elapsed >= raft->timeout && raft_may_lead(raft);
}

size_t raft_memory_bytes(const struct raft *raft)
{
    return sizeof *raft + raft->window.capacity * sizeof *raft->window.slots +
           (raft->active.count + raft->base.count) * sizeof *raft->active.members +
           raft->peer_count * sizeof *raft->peers + raft->read_capacity * sizeof *raft->reads;
}

bool raft_peer_info(const struct raft *raft, int32_t node, struct raft_peer_info *info)
{
    const struct raft_peer *peer = raft_find_peer(raft, node);
    if (raft->role != RAFT_LEADER || peer == NULL) {
        return false;
    }
    *info = (struct raft_peer_info){
        .id = peer->id,
        .flags = peer->flags,
        .state = (enum raft_peer_state)peer->state,
        .recently_active = peer->active || peer->was_active,
        .withdrawn = peer->withdrawn,
        .match_index = peer->match,
        .next_index = peer->next,
    };
    return true;
}
