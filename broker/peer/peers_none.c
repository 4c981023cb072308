/* No links yet: a node stands alone. Each of these gives way to the real one. */
#include "broker/peer/peers.h"

#include "raft/raft.h"

__attribute__((weak)) void peers_send(struct shard *shard, uint64_t group,
                                      const struct raft_message *message)
{
    (void)shard;
    (void)group;
    (void)message;
}

__attribute__((weak)) void peers_tell_leader(struct shard *shard, uint64_t group, int32_t epoch)
{
    (void)shard;
    (void)group;
    (void)epoch;
}

__attribute__((weak)) bool peers_is_alive(const struct broker *broker, int32_t node)
{
    (void)broker;
    return node >= 0;
}
