/* Peers and majorities.
 *
 * During a change of members a decision needs a majority of the old and of the new voters (§4.3);
 * outside one the old set is empty and agrees to everything. This node counts like any voter, by
 * what is durable here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/planted.h"
#include "raft/state.h"

static bool set_agrees(const struct raft *raft, uint8_t flag, raft_voter_test *test,
                       uint64_t argument)
{
    uint32_t voters = 0;
    uint32_t agree = 0;
    if ((raft_configuration_flags(&raft->active, raft->id) & flag) != 0) {
        voters++;
        agree += test(raft, NULL, argument) ? 1 : 0;
    }
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        if ((raft->peers[i].flags & flag) != 0) {
            voters++;
            agree += test(raft, &raft->peers[i], argument) ? 1 : 0;
        } else if (planted(PLANT_LEARNER_COUNTS) && (raft->peers[i].flags & RAFT_LEARNER) != 0) {
            agree += test(raft, &raft->peers[i], argument) ? 1 : 0;
        }
    }
    if (planted(PLANT_HALF_IS_ENOUGH) && voters > 0) {
        return agree >= voters / 2;
    }
    return voters == 0 ? flag == RAFT_OLD_VOTER : agree > voters / 2;
}

bool raft_has_quorum(const struct raft *raft, raft_voter_test *test, uint64_t argument)
{
    assert(raft->role != RAFT_FOLLOWER);
    if (planted(PLANT_OLD_VOTERS_ALONE) && raft_configuration_is_joint(&raft->active)) {
        return set_agrees(raft, RAFT_OLD_VOTER, test, argument);
    }
    return set_agrees(raft, RAFT_VOTER, test, argument) &&
           (set_agrees(raft, RAFT_OLD_VOTER, test, argument) || planted(PLANT_NEW_VOTERS_ALONE));
}

static uint64_t match_of(const struct raft *raft, const struct raft_peer *peer)
{
    if (planted(PLANT_LEADER_COUNTS_UNSYNCED) && peer == NULL) {
        return raft_window_last(&raft->window);
    }
    return peer == NULL ? raft->durable : peer->match;
}

static bool has_index(const struct raft *raft, const struct raft_peer *peer, uint64_t index)
{
    return match_of(raft, peer) >= index;
}

uint64_t raft_quorum_match(const struct raft *raft)
{
    assert(raft->role == RAFT_LEADER);
    /* The answer is some voter's own index; sets are small, so each is tried. */
    uint64_t best = 0;
    if (raft_has_quorum(raft, has_index, raft->durable)) {
        best = raft->durable;
    }
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        uint64_t match = raft->peers[i].match;
        if (match > best && raft_has_quorum(raft, has_index, match)) {
            best = match;
        }
    }
    return best;
}

bool raft_is_sole_voter(const struct raft *raft)
{
    for (uint32_t i = 0; i < raft->active.count; i++) {
        const struct raft_member *member = &raft->active.members[i];
        if (member->id != raft->id && (member->flags & (RAFT_VOTER | RAFT_OLD_VOTER)) != 0) {
            return false;
        }
    }
    return (raft_configuration_flags(&raft->active, raft->id) & RAFT_VOTER) != 0;
}

struct raft_peer *raft_find_peer(const struct raft *raft, int32_t id)
{
    for (uint32_t i = 0; i < raft->peer_count; i++) {
        if (raft->peers[i].id == id) {
            return &raft->peers[i];
        }
    }
    return NULL;
}

void raft_rebuild_peers(struct raft *raft, uint64_t next)
{
    assert(next > 0);
    struct raft_peer *peers = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < raft->active.count; i++) {
        count += raft->active.members[i].id != raft->id ? 1 : 0;
    }
    if (count > 0) {
        peers = memory_new_zero(count, sizeof *peers);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < raft->active.count; i++) {
        const struct raft_member *member = &raft->active.members[i];
        if (member->id == raft->id) {
            continue;
        }
        const struct raft_peer *known = raft_find_peer(raft, member->id);
        peers[at] = known != NULL
                        ? *known
                        : (struct raft_peer){.id = member->id,
                                             .active = true,
                                             .withdrawn = true,
                                             .next = next};
        peers[at].flags = member->flags;
        at++;
    }
    assert(at == count);
    free(raft->peers);
    raft->peers = peers;
    raft->peer_count = count;
}

void raft_free_peers(struct raft *raft)
{
    free(raft->peers);
    raft->peers = NULL;
    raft->peer_count = 0;
}
