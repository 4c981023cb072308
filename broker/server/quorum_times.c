/* A small table, searched from the start: there are few nodes, and ticks are rare. */
#include "broker/server/quorum_times.h"

#include <assert.h>

static struct quorum_time *place_of(struct quorum_times *times, int32_t node)
{
    for (int i = 0; i < times->count; i++) {
        if (times->items[i].node == node) {
            return &times->items[i];
        }
    }
    if (times->count == LIVENESS_NODES) {
        return NULL;
    }
    struct quorum_time *made = &times->items[times->count++];
    *made = (struct quorum_time){.node = node};
    return made;
}

static void look_at(struct quorum_times *times, const struct raft *raft, int32_t node,
                    uint64_t now_ms)
{
    struct raft_peer_info peer;
    bool is_peer = raft_peer_info(raft, node, &peer);
    if (is_peer && peer.recently_active && peer.match_index >= raft_commit_index(raft)) {
        struct quorum_time *time = place_of(times, node);
        if (time != NULL) {
            time->had_ms = now_ms;
        }
    }
}

void quorum_times_tick(struct quorum_times *times, const struct raft *raft, uint64_t now_ms)
{
    size_t count;
    const struct raft_member *members = raft_members(raft, &count);
    assert(times != NULL && times->count >= 0);
    if (times->term != raft_term(raft)) {
        times->term = raft_term(raft);
        times->count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        look_at(times, raft, members[i].id, now_ms);
    }
}

uint64_t quorum_times_had_ms(const struct quorum_times *times, int32_t node)
{
    assert(times != NULL && times->count <= LIVENESS_NODES);
    for (int i = 0; i < times->count; i++) {
        if (times->items[i].node == node) {
            return times->items[i].had_ms;
        }
    }
    return 0;
}
