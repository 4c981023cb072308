/* Bounds of the window. Everything that is kept costs memory only as long as it is in a block that
 * nothing else holds; payloads of large batches are shared with the tails of the logs.
 *
 * Each call gives up entries from the front until the rest is within bounds, so that the work is
 * that of the entries that leave. */
#include "broker/group/group_window.h"

#include <assert.h>

#include "broker/group/group_members.h"
#include "broker/group/install.h"
#include "broker/group/replicas.h"
#include "raft/raft.h"

enum {
    TAIL_ENTRIES = 4096,
    TAIL_BYTES = 1024 * 1024,
    LAG_BYTES = 64 * 1024 * 1024,    /* for a peer that answers and lacks it */
    SHARD_BYTES = 256 * 1024 * 1024, /* of all groups; above it no tails are kept */
};

/* What the slowest peer that answers has; applied_index when nobody lacks anything. */
static uint64_t needed_from(const struct group *group)
{
    uint64_t needed = install_needed(group);
    size_t count;
    const struct raft_member *members = raft_members(group->raft, &count);
    needed = needed < group->applied_index ? needed : group->applied_index;
    for (size_t i = 0; i < count; i++) {
        struct raft_peer_info peer;
        if (raft_peer_info(group->raft, members[i].id, &peer) && peer.recently_active &&
            peer.state != RAFT_PEER_SNAPSHOT && peer.match_index < needed) {
            needed = peer.match_index;
        }
    }
    return needed;
}

static bool is_tail(const struct group *group, uint64_t entries, uint64_t bytes)
{
    bool is_full = group->shard->replicas->window_bytes > SHARD_BYTES;
    return !is_full && entries <= TAIL_ENTRIES && bytes <= TAIL_BYTES;
}

static uint64_t release_to(const struct group *group)
{
    const struct raft *raft = group->raft;
    bool is_full = group->shard->replicas->window_bytes > SHARD_BYTES;
    uint64_t applied = group->applied_index;
    uint64_t beyond = raft_bytes_behind(raft, applied); /* not to be released anyway */
    uint64_t to = raft_start_index(raft);
    assert(applied <= raft_commit_index(raft));
    if (to >= applied || is_tail(group, applied - to, raft_bytes_behind(raft, to) - beyond)) {
        return to; /* as nearly always; the peers need not be asked */
    }
    uint64_t needed = needed_from(group);
    assert(needed <= applied);
    while (to < applied) {
        uint64_t bytes = raft_bytes_behind(raft, to) - beyond;
        bool lacked = to >= needed && bytes <= (is_full ? TAIL_BYTES : LAG_BYTES);
        if (lacked || is_tail(group, applied - to, bytes)) {
            break;
        }
        to++;
    }
    return to;
}

static void count_bytes(struct group *group, uint64_t bytes)
{
    struct replicas *replicas = group->shard->replicas;
    assert(replicas->window_bytes >= group->window_bytes);
    replicas->window_bytes += bytes;
    replicas->window_bytes -= group->window_bytes;
    group->window_bytes = bytes;
}

void group_window_release(struct group *group)
{
    if (!group_is_replicated(group)) {
        raft_release(group->raft, group->applied_index);
        count_bytes(group, 0);
        return;
    }
    uint64_t to = raft_needs_ticks(group->raft) ? release_to(group) : group->applied_index;
    uint64_t start = raft_start_index(group->raft);
    if (to > start) {
        start = raft_release(group->raft, to);
    }
    count_bytes(group, raft_bytes_behind(group->raft, start));
}

void group_window_end(struct group *group)
{
    count_bytes(group, 0);
}
