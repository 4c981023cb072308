/* Requests to other nodes that get an answer: kept in their link until it comes, the link breaks or
 * the time is over. */
#include <assert.h>

#include "base/log.h"
#include "broker/peer/peer_table.h"
#include "io/clock.h"
#include "messages/header.h"
#include "protocol/api_table.h"

static void end(struct peer_call *call, enum status status, struct slice body)
{
    list_remove(&call->link);
    call->done(call, status, body);
}

void peers_call(struct shard *shard, struct peer_call *call, struct view body)
{
    struct peer_link *link = peers_link(shard, call->node);
    assert(call->done != NULL && call->node != RAFT_NO_NODE);
    assert(call->timeout_ms > 0);
    call->link = (struct list_link){0};
    call->sent = false;
    call->deadline_ms = clock_monotonic_ms() + call->timeout_ms;
    if (link == NULL || link->state != LINK_UP) {
        list_push_back(&shard->peers->failed, &call->link);
        shard_defer(shard, &shard->peers->flush);
        return;
    }
    call->sent = true;
    list_push_back(&link->calls, &call->link);
    call->correlation_id = link_request(link, call->api_key, call->api_version, body);
}

void peers_cancel(struct shard *shard, struct peer_call *call)
{
    assert(shard->peers != NULL);
    (void)shard;
    if (list_contains(&call->link)) {
        list_remove(&call->link);
    }
}

static struct peer_call *find_call(const struct peer_link *link, int32_t correlation_id)
{
    for (struct list_link *at = list_first(&link->calls); at != NULL;
         at = list_next(&link->calls, at)) {
        struct peer_call *call = container_of(at, struct peer_call, link);
        if (call->correlation_id == correlation_id) {
            return call;
        }
    }
    return NULL;
}

void peer_call_answered(struct peer_link *link, struct slice frame)
{
    struct view rest = slice_view(frame);
    struct response_header header;
    struct arena arena;
    arena_init(&arena, 1024); /* nothing is taken from it */
    enum status status = message_decode(&response_header_type, 0, &rest, &arena, &header);
    struct peer_call *call =
        status == STATUS_OK ? find_call(link, header.correlation_id) : NULL;
    if (call == NULL) {
        return; /* it was cancelled, or is too late */
    }
    const struct api *api = api_find(call->api_key);
    int16_t version = api_response_header_version(api, call->api_version);
    if (version > 0) {
        rest = slice_view(frame);
        status = message_decode(&response_header_type, version, &rest, &arena, &header);
    }
    arena_free(&arena);
    if (status != STATUS_OK) {
        log_warn("peer", "the answer of node %d to %s cannot be read: %s", link->node, api->name,
                 status_text(status));
        end(call, STATUS_CLOSED, (struct slice){0});
        return;
    }
    end(call, STATUS_OK, (struct slice){frame.block, rest.data, rest.length});
}

void peer_calls_closed(struct peer_link *link)
{
    struct peers *peers = link->shard->peers;
    struct list_link *at;
    while ((at = list_pop_front(&link->calls)) != NULL) {
        list_push_back(&peers->failed, at);
        shard_defer(link->shard, &peers->flush);
    }
}

void peer_calls_fail(struct peers *peers)
{
    struct list now; /* what is added meanwhile has its turn later */
    struct list_link *at;
    list_init(&now);
    while ((at = list_pop_front(&peers->failed)) != NULL) {
        list_push_back(&now, at);
    }
    while ((at = list_first(&now)) != NULL) {
        end(container_of(at, struct peer_call, link), STATUS_CLOSED, (struct slice){0});
    }
}

/* The list may change with each call that ends: then the search begins anew. */
static bool end_one_late(struct peer_link *link, uint64_t now_ms)
{
    for (struct list_link *at = list_first(&link->calls); at != NULL;
         at = list_next(&link->calls, at)) {
        struct peer_call *call = container_of(at, struct peer_call, link);
        if (now_ms >= call->deadline_ms) {
            end(call, STATUS_TIMEOUT, (struct slice){0});
            return true;
        }
    }
    return false;
}

static bool end_one_late_of_any(struct peers *peers, uint64_t now_ms)
{
    for (struct list_link *at = list_first(&peers->links); at != NULL;
         at = list_next(&peers->links, at)) {
        if (end_one_late(container_of(at, struct peer_link, link), now_ms)) {
            return true;
        }
    }
    return false;
}

void peer_calls_tick(struct peers *peers, uint64_t now_ms)
{
    while (end_one_late_of_any(peers, now_ms)) {
    }
}
