/* One list for each shard, looked through every few milliseconds while it is not empty. A request
 * leaves it when it is answered or when its client goes; an answer may end a connection, and with
 * it others that wait. */
#include "broker/api/leader_wait.h"

#include <assert.h>

#include "broker/group/directory.h"
#include "broker/net/connection.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "io/clock.h"

enum { LOOK_EVERY_MS = 4 };

static bool is_there(const struct request *request, int32_t node)
{
    return peers_is_alive(request->home->broker, node) &&
           !peers_is_doubtful(request->home, node);
}

bool leader_is_coming(const struct request *request, const struct partition_group *group)
{
    struct group_leader leader = directory_get(&request->home->broker->directory, group->id);
    if (leader.leader >= 0 && is_there(request, leader.leader)) {
        return false;
    }
    int32_t there = 0;
    for (int32_t i = 0; i < group->replica_count; i++) {
        there += is_there(request, group->replicas[i]) ? 1 : 0;
    }
    return there > group->replica_count / 2;
}

static void look(struct shard_timer *timer);

static void look_again(struct shard *shard)
{
    struct connections *connections = shard->connections;
    connections->leader_timer.run = look;
    if (list_is_empty(&connections->leaderless)) {
        shard_timer_stop(&connections->leader_timer);
    } else {
        shard_timer_set(shard, &connections->leader_timer, LOOK_EVERY_MS);
    }
}

static size_t count(const struct list *list)
{
    size_t found = 0;
    for (struct list_link *at = list_first(list); at != NULL; at = list_next(list, at)) {
        found++;
    }
    return found;
}

static void look(struct shard_timer *timer)
{
    struct connections *connections = container_of(timer, struct connections, leader_timer);
    struct shard *shard = timer->shard;
    uint64_t now_ms = clock_monotonic_ms();
    struct list_link *at;
    size_t left = count(&connections->leaderless);
    while (left > 0 && (at = list_pop_front(&connections->leaderless)) != NULL) {
        struct leader_wait *wait = container_of(at, struct leader_wait, link);
        left--;
        if (now_ms >= wait->deadline_ms || !wait->lacks_leader(wait->request)) {
            wait->request->cancel = NULL;
            wait->go(wait->request); /* others may leave the list */
        } else {
            list_push_back(&connections->leaderless, at);
        }
    }
    look_again(shard);
}

static void client_gone(struct request *request)
{
    struct list_link *at = list_first(&request->home->connections->leaderless);
    while (at != NULL && container_of(at, struct leader_wait, link)->request != request) {
        at = list_next(&request->home->connections->leaderless, at);
    }
    assert(at != NULL);
    list_remove(at);
    look_again(request->home);
    request_finish_silently(request, request->home, false);
}

void leader_wait_begin(struct leader_wait *wait)
{
    struct request *request = wait->request;
    struct shard *shard = request->home;
    assert(request->cancel == NULL);
    bool is_gone = request->connection->closed; /* nobody would end the waiting */
    if (is_gone || !peers_any(shard->broker) || !wait->lacks_leader(request)) {
        wait->go(request);
        return;
    }
    bool is_first = list_is_empty(&shard->connections->leaderless);
    wait->deadline_ms = clock_monotonic_ms() + LEADER_WAIT_MS;
    request->cancel = client_gone;
    list_push_back(&shard->connections->leaderless, &wait->link);
    if (is_first) {
        look_again(shard);
    }
}
