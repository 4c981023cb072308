/* PeerRaft: Raft messages of many groups come from another node. They are brought to the shards of
 * their groups, one mail for each shard; entries stay where they are in the request's frame, which
 * the mail holds, unless they are a small part of it. There is no answer. What is not for a group
 * here is dropped there. */
#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/group/replicas.h"
#include "broker/peer/frames.h"
#include "broker/peer/liveness.h"
#include "broker/server/broker.h"

struct raft_item {
    uint64_t group;
    struct raft_message message;
    struct block *own;           /* of the entries' payloads; null: they lie in the frame */
};

/* The messages for one shard. */
struct raft_leg {
    struct mail mail;
    struct block *frame;
    struct raft_entry *entries;  /* behind the items */
    size_t count;
    size_t entry_count;
    struct raft_item items[];
};

_Static_assert(alignof(struct raft_entry) <= alignof(struct raft_item), "one block for both");

static void arrived(struct shard *shard, struct mail *mail)
{
    struct raft_leg *leg = container_of(mail, struct raft_leg, mail);
    assert(leg->count > 0);
    assert(shard->replicas != NULL);
    for (size_t i = 0; i < leg->count; i++) {
        replicas_raft_message(shard->replicas, leg->items[i].group, &leg->items[i].message);
        block_unref(leg->items[i].own);
    }
    block_unref(leg->frame);
    free(leg);
}

static unsigned shard_of(const struct broker *broker, const struct peer_raft_request_message *wire)
{
    return (unsigned)((uint64_t)wire->group % (unsigned)broker->shard_count);
}

static struct raft_leg *new_leg(struct block *frame, size_t items, size_t entries)
{
    struct raft_leg *leg =
        memory_new(sizeof *leg + items * sizeof leg->items[0] + entries * sizeof *leg->entries);
    *leg = (struct raft_leg){.mail.run = arrived, .frame = block_ref(frame),
                             .entries = (struct raft_entry *)(void *)&leg->items[items]};
    return leg;
}

static void make_legs(const struct broker *broker, const struct request *request,
                      struct raft_leg **legs)
{
    const struct peer_raft_request *wire = request->message;
    size_t counts[SHARDS_MAX];
    size_t entry_counts[SHARDS_MAX];
    for (int i = 0; i < broker->shard_count; i++) {
        counts[i] = 0;
        entry_counts[i] = 0;
    }
    for (int32_t i = 0; i < wire->messages_count; i++) {
        unsigned shard = shard_of(broker, &wire->messages[i]);
        counts[shard]++;
        entry_counts[shard] += (size_t)wire->messages[i].entries_count;
    }
    for (int i = 0; i < broker->shard_count; i++) {
        legs[i] = counts[i] > 0 ? new_leg(request->frame, counts[i], entry_counts[i]) : NULL;
    }
}

static void fill_legs(const struct broker *broker, const struct request *request,
                      struct raft_leg **legs)
{
    const struct peer_raft_request *wire = request->message;
    int32_t from = liveness_id(request->connection->peer);
    for (int32_t i = 0; i < wire->messages_count; i++) {
        const struct peer_raft_request_message *one = &wire->messages[i];
        struct raft_leg *leg = legs[shard_of(broker, one)];
        struct raft_item *item = &leg->items[leg->count++];
        item->group = (uint64_t)one->group;
        struct raft_entry *entries = leg->entries + leg->entry_count;
        item->message = raft_message_of(one, request->frame, entries);
        item->own = raft_message_detach(entries, item->message.entry_count, request->frame_length);
        item->message.from = from;
        item->message.to = broker->node_id;
        leg->entry_count += item->message.entry_count;
    }
}

void peer_raft_handle(struct request *request)
{
    struct shard *home = request->home;
    struct broker *broker = home->broker;
    const struct peer_raft_request *wire = request->message;
    struct raft_leg *legs[SHARDS_MAX];
    assert(request->connection->peer != NULL);
    assert(broker->shard_count <= SHARDS_MAX);
    if (wire->messages_count == 0) {
        request_finish_silently(request, home, false);
        return;
    }
    make_legs(broker, request, legs);
    fill_legs(broker, request, legs);
    home->work++;
    request_finish_silently(request, home, false); /* the request is gone now */
    for (int i = 0; i < broker->shard_count; i++) {
        if (legs[i] != NULL && &broker->shards[i] != home) {
            shard_post(&broker->shards[i], &legs[i]->mail);
        }
    }
    if (legs[home->number] != NULL) {
        arrived(home, &legs[home->number]->mail);
    }
}
