/* Messages under way: delayed, lost, doubled, reordered, cut off. Kept in a heap by arrival. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/sim/raft/sim.h"

static bool earlier(const struct packet *a, const struct packet *b)
{
    return a->due != b->due ? a->due < b->due : a->sequence < b->sequence;
}

static void swap(struct network *network, uint32_t a, uint32_t b)
{
    struct packet *kept = network->heap[a];
    network->heap[a] = network->heap[b];
    network->heap[b] = kept;
}

static void push(struct network *network, struct packet *packet)
{
    if (network->count == network->capacity) {
        network->capacity = network->capacity == 0 ? 64 : network->capacity * 2;
        network->heap =
            memory_resize(network->heap, network->capacity, sizeof(struct packet *));
    }
    packet->sequence = network->sequence++;
    uint32_t at = network->count++;
    network->heap[at] = packet;
    while (at > 0 && earlier(network->heap[at], network->heap[(at - 1) / 2])) {
        swap(network, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static struct packet *pop(struct network *network)
{
    assert(network->count > 0);
    struct packet *first = network->heap[0];
    network->heap[0] = network->heap[--network->count];
    for (uint32_t at = 0;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++) {
            if (child < network->count && earlier(network->heap[child], network->heap[least])) {
                least = child;
            }
        }
        if (least == at) {
            return first;
        }
        swap(network, at, least);
        at = least;
    }
}

static struct packet *packet_new(enum packet_kind kind, int32_t from, int32_t to)
{
    struct packet *packet = memory_new_zero(1, sizeof *packet);
    packet->kind = kind;
    packet->from = from;
    packet->to = to;
    return packet;
}

static struct packet *packet_of(const struct raft_message *message)
{
    struct packet *packet = packet_new(PACKET_MESSAGE, message->from, message->to);
    packet->message = *message;
    if (message->entry_count > 0) {
        packet->entries = memory_new(message->entry_count * sizeof *packet->entries);
        for (size_t i = 0; i < message->entry_count; i++) {
            packet->entries[i] = message->entries[i];
            if (packet->entries[i].payload.block != NULL) {
                block_ref(packet->entries[i].payload.block);
            }
        }
    }
    packet->message.entries = packet->entries;
    return packet;
}

void network_drop(struct packet *packet)
{
    for (size_t i = 0; packet->entries != NULL && i < packet->message.entry_count; i++) {
        block_unref(packet->entries[i].payload.block);
    }
    free(packet->entries);
    free(packet);
}

/* Gives the packet its time of arrival and sends it off, or loses it. */
static void route(struct cluster *cluster, struct packet *packet)
{
    struct network *network = &cluster->network;
    const struct plan *plan = &cluster->plan;
    uint64_t *latest = &network->latest[packet->from - 1][packet->to - 1];
    if (network->cut[packet->from - 1][packet->to - 1] || rng_chance(&cluster->rng, plan->loss)) {
        network_drop(packet);
        return;
    }
    packet->due = cluster->now + 1 + rng_below(&cluster->rng, plan->delay_max);
    if (rng_chance(&cluster->rng, plan->slow)) {
        packet->due += rng_below(&cluster->rng, 40 * TICK_UNITS);
    }
    if (!rng_chance(&cluster->rng, plan->reorder)) {
        packet->due = packet->due < *latest ? *latest : packet->due;
        *latest = packet->due;
    }
    push(network, packet);
}

void network_send(struct cluster *cluster, const struct raft_message *message)
{
    assert(message->to >= 1 && message->to <= (int32_t)cluster->node_count);
    if (rng_chance(&cluster->rng, cluster->plan.duplicate)) {
        route(cluster, packet_of(message));
    }
    route(cluster, packet_of(message));
}

void network_send_snapshot(struct cluster *cluster, int32_t from, int32_t to,
                           const struct checkpoint *snapshot)
{
    struct packet *packet = packet_new(PACKET_SNAPSHOT, from, to);
    packet->snapshot = *snapshot;
    route(cluster, packet);
}

void network_send_snapshot_done(struct cluster *cluster, int32_t from, int32_t to,
                                const struct checkpoint *snapshot)
{
    struct packet *packet = packet_new(PACKET_SNAPSHOT_DONE, from, to);
    packet->snapshot = *snapshot;
    route(cluster, packet);
}

struct packet *network_next(struct cluster *cluster)
{
    struct network *network = &cluster->network;
    if (network->count == 0 || network->heap[0]->due > cluster->now) {
        return NULL;
    }
    return pop(network);
}

void network_requeue(struct cluster *cluster, struct packet *packet, uint64_t due)
{
    packet->due = due;
    push(&cluster->network, packet);
}

void network_free(struct network *network)
{
    while (network->count > 0) {
        network_drop(pop(network));
    }
    free(network->heap);
    network->heap = NULL;
}
