/* PeerLeaders: another node says which groups it leads, and which of their replicas lag, or that it
 * leads one no more. Each shard takes over what concerns its groups, as it alone may write their
 * entries in the directory. There is no answer. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/group/awaited.h"
#include "broker/group/directory.h"
#include "broker/peer/liveness.h"
#include "broker/server/broker.h"
#include "messages/peer.h"

struct told_leader {
    uint64_t group;
    int32_t epoch;
    uint64_t lag;
    bool leads;
};

struct leaders_leg {
    struct mail mail;
    int32_t leader;
    size_t count;
    struct told_leader told[];
};

static void arrived(struct shard *shard, struct mail *mail)
{
    struct leaders_leg *leg = container_of(mail, struct leaders_leg, mail);
    assert(leg->leader != shard->broker->node_id);
    struct directory *directory = &shard->broker->directory;
    for (size_t i = 0; i < leg->count; i++) {
        const struct told_leader *told = &leg->told[i];
        if (told->leads) {
            directory_set_told(directory, told->group, leg->leader, told->epoch, told->lag);
            awaited_end(shard->replicas, told->group);
        } else {
            directory_set_ended(directory, told->group, leg->leader, told->epoch);
        }
    }
    free(leg);
}

static bool is_possible(const struct peer_leaders_request_leader *wire)
{
    return wire->group >= 0 && wire->epoch >= 0 &&
           wire->group / DIRECTORY_PAGE_GROUPS < DIRECTORY_PAGES;
}

static bool belongs_to(const struct peer_leaders_request_leader *wire, const struct shard *shard)
{
    unsigned shard_count = (unsigned)shard->broker->shard_count;
    return is_possible(wire) && (uint64_t)wire->group % shard_count == (unsigned)shard->number;
}

static void post_leg(const struct request *request, struct shard *shard)
{
    const struct peer_leaders_request *wire = request->message;
    size_t count = 0;
    for (int32_t i = 0; i < wire->leaders_count; i++) {
        count += belongs_to(&wire->leaders[i], shard);
    }
    if (count == 0) {
        return;
    }
    struct leaders_leg *leg = memory_new(sizeof *leg + count * sizeof leg->told[0]);
    *leg = (struct leaders_leg){
        .mail.run = arrived,
        .leader = liveness_id(request->connection->peer),
    };
    for (int32_t i = 0; i < wire->leaders_count; i++) {
        if (belongs_to(&wire->leaders[i], shard)) {
            leg->told[leg->count++] =
                (struct told_leader){.group = (uint64_t)wire->leaders[i].group,
                                     .epoch = wire->leaders[i].epoch,
                                     .lag = (uint64_t)wire->leaders[i].lag,
                                     .leads = wire->leaders[i].leads};
        }
    }
    shard_post(shard, &leg->mail);
}

void peer_leaders_handle(struct request *request)
{
    struct broker *broker = request->home->broker;
    assert(request->connection->peer != NULL);
    for (int i = 0; i < broker->shard_count; i++) {
        post_leg(request, &broker->shards[i]);
    }
    request->home->work++;
    request_finish_silently(request, request->home, false);
}
