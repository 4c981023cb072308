/* A small hash of ids with deadlines; empty but for the moments after topics were made. */
#include "broker/group/awaited.h"

#include <assert.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/memory.h"
#include "broker/group/directory.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "io/clock.h"

enum { AWAITED_MS = 1000 };

struct awaited {
    UT_hash_handle hh;
    uint64_t id;
    uint64_t deadline_ms;
};

static bool has_living_replica(const struct broker *broker, const struct partition_group *group)
{
    for (int32_t i = 0; i < group->replica_count; i++) {
        if (peers_is_alive(broker, group->replicas[i])) {
            return true;
        }
    }
    return false;
}

void awaited_add(struct replicas *replicas, const struct partition_group *group)
{
    struct broker *broker = replicas->shard->broker;
    struct awaited *awaited = NULL;
    HASH_FIND(hh, replicas->awaited, &group->id, sizeof group->id, awaited);
    if (awaited != NULL || directory_get(&broker->directory, group->id).leader >= 0 ||
        !has_living_replica(broker, group)) {
        return;
    }
    awaited = memory_new_zero(1, sizeof *awaited);
    awaited->id = group->id;
    awaited->deadline_ms = clock_monotonic_ms() + AWAITED_MS;
    HASH_ADD(hh, replicas->awaited, id, sizeof awaited->id, awaited);
    replicas->groups_starting++;
}

static void end(struct replicas *replicas, struct awaited *awaited)
{
    assert(replicas->groups_starting > 0);
    HASH_DELETE(hh, replicas->awaited, awaited);
    free(awaited);
    replicas_group_started(replicas);
}

void awaited_end(struct replicas *replicas, uint64_t group_id)
{
    struct awaited *awaited = NULL;
    HASH_FIND(hh, replicas->awaited, &group_id, sizeof group_id, awaited);
    if (awaited != NULL) {
        end(replicas, awaited);
    }
}

void awaited_tick(struct replicas *replicas, uint64_t now_ms)
{
    struct awaited *awaited;
    struct awaited *next;
    HASH_ITER(hh, replicas->awaited, awaited, next) {
        if (now_ms >= awaited->deadline_ms) {
            end(replicas, awaited);
        }
    }
}

void awaited_end_all(struct replicas *replicas)
{
    awaited_tick(replicas, UINT64_MAX);
    assert(replicas->awaited == NULL);
}
