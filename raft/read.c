/* Reads that must not be stale (§6.4): the leader asks a majority whether it still is the leader.
 *
 * A read remembers the commit index and a round of heartbeats that starts after it came. When a
 * quorum has answered that round, the read may be served from state applied up to the index. A
 * new leader's commit index may lag behind what its predecessor acknowledged, so that reads wait
 * for everything it found in its log as well.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/planted.h"
#include "raft/state.h"

static bool answered_round(const struct raft *raft, const struct raft_peer *peer, uint64_t round)
{
    (void)raft;
    return peer == NULL || peer->round_acked >= round || planted(PLANT_READ_WITHOUT_MAJORITY);
}

enum raft_result raft_read(struct raft *raft, uint64_t context)
{
    if (raft->role != RAFT_LEADER) {
        return RAFT_NOT_LEADER;
    }
    if (raft->read_count >= raft->limits->reads) {
        return RAFT_FULL;
    }
    if (raft->read_count == raft->read_capacity) {
        raft->read_capacity = raft->read_capacity == 0 ? 4 : raft->read_capacity * 2;
        raft->reads = memory_resize(raft->reads, raft->read_capacity, sizeof *raft->reads);
    }
    raft_wake(raft);
    raft_send_heartbeats(raft);
    raft->reads[raft->read_count++] = (struct raft_read){
        .context = context,
        .index = raft->commit > raft->floor ? raft->commit : raft->floor,
        .round = raft->round,
    };
    raft_serve_reads(raft);
    return RAFT_OK;
}

static void drop_reads(struct raft *raft, uint32_t count)
{
    assert(count <= raft->read_count);
    for (uint32_t i = count; i < raft->read_count; i++) {
        raft->reads[i - count] = raft->reads[i];
    }
    raft->read_count -= count;
    if (raft->read_count == 0) {
        free(raft->reads);
        raft->reads = NULL;
        raft->read_capacity = 0;
    }
}

void raft_serve_reads(struct raft *raft)
{
    if (raft->role != RAFT_LEADER) {
        return;
    }
    uint32_t served = 0;
    while (served < raft->read_count) {
        const struct raft_read *read = &raft->reads[served];
        if (read->index > raft->commit || !raft_has_quorum(raft, answered_round, read->round)) {
            break;
        }
        struct raft_action *action = raft_emit(raft, RAFT_ACTION_READ_READY);
        action->read.context = read->context;
        action->read.index = read->index;
        served++;
    }
    drop_reads(raft, served);
}

void raft_fail_reads(struct raft *raft)
{
    for (uint32_t i = 0; i < raft->read_count; i++) {
        struct raft_action *action = raft_emit(raft, RAFT_ACTION_READ_FAILED);
        action->read.context = raft->reads[i].context;
    }
    drop_reads(raft, raft->read_count);
}
