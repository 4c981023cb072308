/* The links of one shard. What a turn wants to send is collected in the links and leaves in one
 * deferred task; shard 0 also beats and watches for silence. Failures belong to the links. */
#include "broker/peer/peers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "broker/group/directory.h"
#include "broker/group/replicas.h"
#include "broker/peer/peer_table.h"
#include "broker/server/broker.h"
#include "io/clock.h"

/* A check that comes later than this says nothing about the others: this node was stopped. */
enum { LATE_CHECK_MS = 3 * LIVENESS_BEAT_MS };

struct peer_link *peers_link(const struct shard *shard, int32_t node)
{
    const struct peers *peers = shard->peers;
    for (struct list_link *at = list_first(&peers->links); at != NULL;
         at = list_next(&peers->links, at)) {
        struct peer_link *link = container_of(at, struct peer_link, link);
        if (link->node == node) {
            return link;
        }
    }
    return NULL;
}

void peers_due(struct peer_link *link)
{
    struct peers *peers = link->shard->peers;
    if (!list_contains(&link->due)) {
        list_push_back(&peers->due, &link->due);
    }
    shard_defer(link->shard, &peers->flush);
}

static void free_leaving(struct peers *peers)
{
    struct list_link *at;
    while ((at = list_pop_front(&peers->leaving)) != NULL) {
        link_free(container_of(at, struct peer_link, link));
    }
}

static void flush(struct shard_task *task)
{
    struct peers *peers = container_of(task, struct peers, flush);
    struct list_link *at;
    peer_calls_fail(peers);
    while ((at = list_pop_front(&peers->due)) != NULL) {
        link_flush(container_of(at, struct peer_link, due));
    }
    free_leaving(peers);
}

static void beat(struct shard_timer *timer)
{
    struct peers *peers = container_of(timer, struct peers, beat);
    uint64_t now_ms = clock_monotonic_ms();
    for (struct list_link *at = list_first(&peers->links); at != NULL;
         at = list_next(&peers->links, at)) {
        link_beat(container_of(at, struct peer_link, link));
    }
    if (now_ms - peers->beat_ms < LATE_CHECK_MS) {
        liveness_check(peers->shard->broker, now_ms);
    }
    peers->beat_ms = now_ms;
    shard_timer_set(peers->shard, timer, LIVENESS_BEAT_MS);
}

void peers_open(struct shard *shard)
{
    struct peers *peers = memory_new_zero(1, sizeof *peers);
    assert(shard->peers == NULL);
    peers->shard = shard;
    peers->flush.run = flush;
    list_init(&peers->links);
    list_init(&peers->due);
    list_init(&peers->leaving);
    list_init(&peers->failed);
    shard->peers = peers;
}

static void start_beat(struct peers *peers)
{
    if (peers->shard->number != 0 || peers->beat.set) {
        return;
    }
    peers->beat.run = beat;
    shard_timer_set(peers->shard, &peers->beat, LIVENESS_BEAT_MS);
    peers->beat_ms = clock_monotonic_ms();
}

static void add_link(struct shard *shard, int32_t node, const struct places *places)
{
    struct broker *broker = shard->broker;
    assert(node >= 0 && node != broker->node_id);
    atomic_store(&broker->liveness.any, true);
    liveness_add(&broker->liveness, node);
    list_push_back(&shard->peers->links, &link_new(shard, node, places)->link);
    start_beat(shard->peers);
}

void peers_put(struct shard *shard, const struct peer_address *address)
{
    struct places places = {0};
    const struct place place = place_of(address->host, address->port);
    assert(address->node >= 0);
    if (address->node == shard->broker->node_id) {
        return;
    }
    struct peer_link *link = peers_link(shard, address->node);
    if (link == NULL) {
        places_record(&places, &place);
        add_link(shard, address->node, &places);
    } else if (places_record(&link->places, &place)) {
        link_moved(link);
    }
}

void peers_meet(struct shard *shard)
{
    struct places places = {0};
    assert(shard->number == 0);
    if (shard->broker->meeting_places.count > 0) {
        places_next(&places, &shard->broker->meeting_places);
        list_push_back(&shard->peers->links, &link_new(shard, LINK_ANYBODY, &places)->link);
    }
}

bool peers_rests(const struct peer_link *link)
{
    const struct broker *broker = link->shard->broker;
    return link->node == LINK_ANYBODY &&
           directory_get(&broker->directory, METADATA_GROUP_ID).leader >= 0;
}

static void leave(struct peers *peers, struct peer_link *link)
{
    peer_calls_closed(link);
    list_remove(&link->link);
    list_push_back(&peers->leaving, &link->link);
    shard_defer(peers->shard, &peers->flush);
}

void peers_drop(struct shard *shard, int32_t node)
{
    struct peer_link *link = peers_link(shard, node);
    if (link != NULL) {
        leave(shard->peers, link);
    }
}

void peers_close(struct shard *shard)
{
    struct peers *peers = shard->peers;
    struct list_link *at;
    if (peers == NULL) {
        return;
    }
    while ((at = list_first(&peers->links)) != NULL) {
        leave(peers, container_of(at, struct peer_link, link));
    }
    peer_calls_fail(peers);
    free_leaving(peers);
    assert(list_is_empty(&peers->due));
    if (list_contains(&peers->flush.link)) {
        list_remove(&peers->flush.link);
    }
    shard_timer_stop(&peers->beat);
    shard->peers = NULL;
    free(peers);
}

void peers_send(struct shard *shard, uint64_t group, const struct raft_message *message,
                struct payload_place place)
{
    struct peer_link *link = peers_link(shard, message->to);
    assert(message->to != shard->broker->node_id);
    assert(message->from == shard->broker->node_id);
    if (link != NULL) {
        link_send_raft(link, group, message, place);
    }
}

static struct peer_leaders_request_leader leads(uint64_t group, int32_t epoch, uint64_t lag)
{
    return (struct peer_leaders_request_leader){
        .group = (int64_t)group, .epoch = epoch, .lag = (int64_t)lag, .leads = true};
}

static void tell_all(struct shard *shard, const struct peer_leaders_request_leader *leader)
{
    struct peers *peers = shard->peers;
    for (struct list_link *at = list_first(&peers->links); at != NULL;
         at = list_next(&peers->links, at)) {
        link_send_leader(container_of(at, struct peer_link, link), leader);
    }
}

void peers_tell_leader(struct shard *shard, uint64_t group, int32_t epoch, uint64_t lag)
{
    struct peer_leaders_request_leader leader = leads(group, epoch, lag);
    tell_all(shard, &leader);
}

void peers_tell_end(struct shard *shard, uint64_t group, int32_t epoch)
{
    struct peer_leaders_request_leader leader = {.group = (int64_t)group, .epoch = epoch};
    if (shard->peers != NULL) { /* they end before the groups do */
        tell_all(shard, &leader);
    }
}

const struct meeting_places *peers_meeting(const struct peer_link *link)
{
    assert(link->shard->broker != NULL);
    return link->shard->number == 0 ? &link->shard->broker->meeting_places : NULL;
}

void peers_link_broken(struct peer_link *link)
{
    const struct broker *broker = link->shard->broker;
    assert(link->state != LINK_UP);
    if (link->node != LINK_ANYBODY && link->places.recorded.port == 0 &&
        !peers_is_alive(broker, link->node)) {
        leave(link->shard->peers, link);
    }
}

/* A node came in, or was met. */
struct place_mail {
    struct mail mail;
    int32_t node;
    struct place place;
    bool came;
};

static void take_place(struct shard *shard, struct mail *mail)
{
    struct place_mail *told = container_of(mail, struct place_mail, mail);
    struct peer_link *link = shard->peers != NULL ? peers_link(shard, told->node) : NULL;
    struct places places = {0};
    if (link == NULL) {
        if (shard->peers != NULL && places_tell(&places, &told->place)) {
            add_link(shard, told->node, &places);
        }
    } else if ((told->came || link->state != LINK_UP) &&
               places_tell(&link->places, &told->place)) {
        link_moved(link);
    } else if (told->came) {
        link_hurry(link);
    }
    free(told);
}

static void tell_place(struct broker *broker, int i, int32_t node, const struct place *place,
                       bool came)
{
    struct place_mail *mail = memory_new_zero(1, sizeof *mail);
    assert(node != broker->node_id);
    mail->mail.run = take_place;
    mail->node = node;
    mail->place = *place;
    mail->came = came;
    shard_post(&broker->shards[i], &mail->mail);
}

void peers_came(struct broker *broker, int32_t node, int32_t shard, int32_t shard_count,
                const struct place *place)
{
    assert(shard_count > 0);
    for (int i = 0; i < broker->shard_count; i++) {
        if (i % shard_count == shard) {
            tell_place(broker, i, node, place, true);
        }
    }
}

void peers_met(const struct peer_link *link, int32_t node, struct view cluster_id)
{
    struct broker *broker = link->shard->broker;
    bool is_other = view_is(cluster_id, broker->cluster_id) && node != link->node &&
                    node != broker->node_id && node >= 0 && node < INT32_MAX;
    for (int i = 0; i < broker->shard_count && is_other; i++) {
        tell_place(broker, i, node, &link->place, false);
    }
}

static void tell_led(void *context, uint64_t group, int32_t epoch, uint64_t lag)
{
    struct peer_leaders_request_leader leader = leads(group, epoch, lag);
    link_send_leader(context, &leader);
}

void peers_link_up(struct peer_link *link)
{
    assert(link->state == LINK_UP);
    replicas_each_led(link->shard->replicas, tell_led, link);
}

bool peers_is_alive(const struct broker *broker, int32_t node)
{
    return node == broker->node_id ||
           (node >= 0 && liveness_is_alive(liveness_find(&broker->liveness, node),
                                           clock_monotonic_ms()));
}

bool peers_is_doubtful(const struct shard *shard, int32_t node)
{
    char byte;
    const struct peer_link *link = shard->peers != NULL ? peers_link(shard, node) : NULL;
    if (link == NULL) {
        return false;
    }
    if (link->state != LINK_UP) {
        return link->down_ms != 0 && clock_monotonic_ms() - link->down_ms < LIVENESS_SILENT_MS;
    }
    ssize_t got = recv(link->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

bool peers_any(const struct broker *broker)
{
    return atomic_load_explicit(&broker->liveness.any, memory_order_relaxed);
}

void peers_tick(struct shard *shard, uint64_t now_ms)
{
    peer_calls_tick(shard->peers, now_ms);
}
