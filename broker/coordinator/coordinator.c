/* The machine's entry points: each is one event. Happy path: replay, loaded, then requests, ticks
 * and the fate of batches in any order. Time never runs backwards inside; an event with an older
 * time is taken as happening now. Calling back from the host, or out of turn, is a bug and
 * asserted. */
#include "broker/coordinator/coordinator.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/coordinator/machine.h"

void coordinator_config_init(struct coordinator_config *config)
{
    *config = (struct coordinator_config){
        .min_session_timeout_ms = 6000,
        .max_session_timeout_ms = 1800000,
        .initial_rebalance_delay_ms = 3000,
        .group_max_size = INT32_MAX,
        .offset_metadata_max_bytes = 4096,
        .offsets_retention_ms = 10080LL * 60 * 1000,
        .offsets_retention_check_interval_ms = 600000,
    };
}

struct coordinator *coordinator_new(const struct coordinator_config *config,
                                    const struct coordinator_host *host)
{
    assert(host->append != NULL && host->answer != NULL);
    assert(host->find_topic != NULL && host->new_uuid != NULL);
    struct coordinator *coordinator = memory_new_zero(1, sizeof(*coordinator));
    coordinator->host = *host;
    list_init(&coordinator->batches);
    coordinator_configure(coordinator, config);
    return coordinator;
}

void coordinator_free(struct coordinator *coordinator)
{
    if (coordinator == NULL) {
        return;
    }
    assert(!coordinator->active && coordinator->groups == NULL);
    offset_store_free(&coordinator->store);
    coordinator_timers_free(&coordinator->timers);
    free(coordinator);
}

void coordinator_configure(struct coordinator *coordinator, const struct coordinator_config *config)
{
    assert(config->group_max_size > 0 && config->offset_metadata_max_bytes >= 0);
    assert(config->offsets_retention_check_interval_ms > 0);
    coordinator->config = *config;
}

/* Every event starts here. */
static void begin(struct coordinator *coordinator, int64_t now_ms)
{
    assert(!coordinator->in_host);
    if (now_ms > coordinator->now_ms) {
        coordinator->now_ms = now_ms;
    }
}

void coordinator_replay(struct coordinator *coordinator, struct view key, struct view value)
{
    assert(!coordinator->active);
    offset_store_apply(&coordinator->store, key, value);
}

void coordinator_replay_transactional(struct coordinator *coordinator, int64_t producer_id,
                                      struct view key, struct view value)
{
    assert(!coordinator->active && producer_id >= 0);
    offset_store_apply_open(&coordinator->store, producer_id, key, value);
}

/* A simple group comes with the offsets a marker brought in, or goes with those it took away. */
static void settle_group(void *owner, struct view id)
{
    struct coordinator *coordinator = owner;
    struct consumer_group *group = coordinator_group_revive(coordinator, id);
    if (group != NULL) {
        coordinator_group_drop_if_void(coordinator, group);
    }
}

void coordinator_replay_marker(struct coordinator *coordinator, int64_t producer_id, bool commit)
{
    assert(!coordinator->in_host);
    offset_store_end_transaction(&coordinator->store, producer_id, commit,
                                 coordinator->active ? settle_group : NULL, coordinator);
}

void coordinator_loaded(struct coordinator *coordinator, int64_t now_ms)
{
    assert(!coordinator->active && coordinator->groups == NULL);
    coordinator->now_ms = now_ms;
    coordinator->active = true;
    const struct stored_group *stored;
    for (stored = coordinator->store.groups; stored != NULL; stored = stored->hh.next) {
        coordinator_group_load(coordinator, stored);
    }
    coordinator_timer_start(&coordinator->timers, &coordinator->retention, TIMER_RETENTION,
                            now_ms + coordinator->config.offsets_retention_check_interval_ms);
}

static void refuse_group(struct coordinator *coordinator, struct consumer_group *group)
{
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        coordinator_fail_join(coordinator, member, member->id, KAFKA_NOT_COORDINATOR);
        coordinator_finish_sync(coordinator, member, KAFKA_NOT_COORDINATOR);
    }
}

void coordinator_resign(struct coordinator *coordinator)
{
    assert(!coordinator->in_host);
    if (!coordinator->active) {
        return;
    }
    for (struct list_link *link = list_pop_front(&coordinator->batches); link != NULL;
         link = list_pop_front(&coordinator->batches)) {
        struct batch *batch = container_of(link, struct batch, link);
        coordinator_refuse_batch(coordinator, batch);
        coordinator_batch_free(batch);
    }
    while (coordinator->groups != NULL) {
        refuse_group(coordinator, coordinator->groups);
        coordinator_group_drop(coordinator, coordinator->groups);
    }
    coordinator_timer_stop(&coordinator->timers, &coordinator->retention);
    assert(coordinator->timers.count == 0);
    coordinator->active = false;
}

bool coordinator_is_active(const struct coordinator *coordinator)
{
    return coordinator->active;
}

typedef void request_handler(const struct request_context *request, const void *message);

static request_handler *handler_of(enum api_key api)
{
    switch (api) {
    case API_JOIN_GROUP:
        return coordinator_handle_join;
    case API_SYNC_GROUP:
        return coordinator_handle_sync;
    case API_HEARTBEAT:
        return coordinator_handle_heartbeat;
    case API_LEAVE_GROUP:
        return coordinator_handle_leave;
    case API_OFFSET_COMMIT:
        return coordinator_handle_commit;
    case API_TXN_OFFSET_COMMIT:
        return coordinator_handle_txn_commit;
    case API_OFFSET_FETCH:
        return coordinator_handle_fetch;
    case API_OFFSET_DELETE:
        return coordinator_handle_delete_offsets;
    case API_LIST_GROUPS:
        return coordinator_handle_list;
    case API_DESCRIBE_GROUPS:
        return coordinator_handle_describe;
    case API_DELETE_GROUPS:
        return coordinator_handle_delete_groups;
    default:
        return NULL;
    }
}

bool coordinator_serves(enum api_key api)
{
    return handler_of(api) != NULL;
}

void coordinator_request(struct coordinator *coordinator, const struct coordinator_context *context,
                         enum api_key api, const void *request)
{
    assert(coordinator->active && coordinator_serves(api));
    assert(context->arena != NULL && request != NULL);
    begin(coordinator, context->now_ms);
    struct request_context in_work = {coordinator, context, api};
    handler_of(api)(&in_work, request);
}

/* Takes the batch out of the queue; commits come in order, failures in any. */
static struct batch *take_batch(struct coordinator *coordinator, uint64_t batch_id)
{
    for (struct list_link *link = list_first(&coordinator->batches); link != NULL;
         link = list_next(&coordinator->batches, link)) {
        struct batch *batch = container_of(link, struct batch, link);
        if (batch->id == batch_id) {
            list_remove(link);
            return batch;
        }
    }
    return NULL;
}

void coordinator_committed(struct coordinator *coordinator, uint64_t batch_id, int64_t now_ms)
{
    assert(coordinator->active);
    begin(coordinator, now_ms);
    struct list_link *first = list_first(&coordinator->batches);
    assert(first != NULL && container_of(first, struct batch, link)->id == batch_id);
    list_remove(first);
    struct batch *batch = container_of(first, struct batch, link);
    coordinator_batch_committed(coordinator, batch);
    coordinator_batch_free(batch);
}

void coordinator_failed(struct coordinator *coordinator, uint64_t batch_id, enum kafka_error error,
                        int64_t now_ms)
{
    assert(coordinator->active && error != KAFKA_NONE);
    begin(coordinator, now_ms);
    struct batch *batch = take_batch(coordinator, batch_id);
    assert(batch != NULL);
    coordinator_batch_failed(coordinator, batch, error);
    coordinator_batch_free(batch);
}

void coordinator_topic_deleted(struct coordinator *coordinator, struct view name, struct uuid id,
                               int64_t now_ms)
{
    begin(coordinator, now_ms);
    if (coordinator->active) {
        coordinator_drop_topic(coordinator, name, id);
    }
}

static void fire(struct coordinator *coordinator, struct coordinator_timer *timer)
{
    switch (timer->kind) {
    case TIMER_MEMBER_SESSION:
        coordinator_session_expired(coordinator,
                                    container_of(timer, struct consumer_member, session));
        break;
    case TIMER_PENDING_MEMBER:
        coordinator_pending_expired(coordinator,
                                    container_of(timer, struct pending_member, session));
        break;
    case TIMER_INITIAL_DELAY:
        coordinator_initial_delay_over(coordinator,
                                       container_of(timer, struct consumer_group, join));
        break;
    case TIMER_REBALANCE:
        coordinator_rebalance_timed_out(coordinator,
                                        container_of(timer, struct consumer_group, join));
        break;
    case TIMER_SYNC:
        coordinator_sync_timed_out(coordinator, container_of(timer, struct consumer_group, sync));
        break;
    case TIMER_RETENTION:
        assert(timer == &coordinator->retention);
        coordinator_expire(coordinator);
        break;
    }
}

void coordinator_tick(struct coordinator *coordinator, int64_t now_ms)
{
    begin(coordinator, now_ms);
    uint64_t sequence = coordinator->timers.sequence;
    for (;;) {
        struct coordinator_timer *timer =
            coordinator_timers_pop(&coordinator->timers, coordinator->now_ms, sequence);
        if (timer == NULL) {
            return;
        }
        fire(coordinator, timer);
    }
}

void coordinator_clock_set(struct coordinator *coordinator, int64_t by_ms)
{
    assert(!coordinator->in_host);
    coordinator->now_ms += by_ms;
    coordinator_timers_move(&coordinator->timers, by_ms);
}

int64_t coordinator_next_deadline_ms(const struct coordinator *coordinator)
{
    return coordinator_timers_next_ms(&coordinator->timers);
}

static void count_group(struct coordinator_counts *counts, const struct consumer_group *group)
{
    size_t *const by_state[GROUP_STATE_COUNT] = {
        [GROUP_EMPTY] = &counts->empty,
        [GROUP_PREPARING_REBALANCE] = &counts->preparing_rebalance,
        [GROUP_COMPLETING_REBALANCE] = &counts->completing_rebalance,
        [GROUP_STABLE] = &counts->stable,
    };
    assert(group->state < GROUP_STATE_COUNT);
    (*by_state[group->state])++;
    counts->members += group->member_count;
}

void coordinator_count(const struct coordinator *coordinator, struct coordinator_counts *counts)
{
    *counts = (struct coordinator_counts){
        .groups = HASH_COUNT(coordinator->store.groups),
        .offsets = coordinator->store.offset_count,
        .rebalances = coordinator->rebalances,
        .expired_offsets = coordinator->expired_offsets,
    };
    const struct consumer_group *group;
    for (group = coordinator->groups; group != NULL; group = group->hh.next) {
        count_group(counts, group);
    }
}
