/* Fetch: reads committed batches, waits until there is enough of them (sessions of KIP-227).
 *
 * A read round visits the groups' shards and takes what there is. When that is too little, a watch
 * round leaves a watch at every partition that has not moved since; a partition that moves, or the
 * deadline, starts the next read round, which also takes the watches away. So nothing is watched
 * when the answer is given, and nobody polls.
 */
#include <assert.h>

#include "broker/api/fetch_replica.h"
#include "base/planted.h"
#include "broker/api/fetch_state.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"
#include "broker/group/unread.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/errors.h"

static void read_round(struct fetch *fetch);

static void release_read(struct fetch_part *part)
{
    if (part->has_read) {
        log_read_release(&part->read);
        part->has_read = false;
    }
}

/* KIP-595: a reader whose last batch is of an epoch that ended earlier here is told where. */
static bool diverges(struct fetch_part *part, const struct partition *partition)
{
    int32_t last_epoch = part->asked.last_fetched_epoch;
    if (last_epoch < 0) {
        return false;
    }
    struct log_epoch_end end = partition_log_epoch_end(partition->log, last_epoch);
    if (end.epoch < last_epoch || end.end_offset < part->asked.fetch_offset) {
        part->diverging = end;
        return true;
    }
    return false;
}

/* A limit as the client gives it; below zero it means nothing at all. */
static size_t bytes_of(int32_t limit)
{
    return limit > 0 ? (size_t)limit : 0;
}

static int16_t read_log(struct fetch_part *part, struct partition *partition,
                        struct fetch_leg *leg)
{
    const struct fetch_request *message = part->fetch->request->message;
    size_t limit = bytes_of(part->asked.partition_max_bytes);
    const struct config *config = part->fetch->request->home->broker->config;
    size_t bound = (size_t)config_int(config, CONFIG_FETCH_MAX_BYTES);
    size_t most = bytes_of(message->max_bytes);
    most = most < bound ? most : bound;
    size_t left = most > leg->bytes ? most - leg->bytes : 0;
    bool whole_first = leg->bytes == 0;
    if (left == 0 && !whole_first) {
        return KAFKA_NONE;
    }
    enum status status = partition_log_read(partition->log, part->asked.fetch_offset,
                                            limit < left ? limit : left, whole_first, &part->read);
    switch (status) {
    case STATUS_OK:
        part->has_read = true;
        leg->bytes += part->read.total_bytes;
        return KAFKA_NONE;
    case STATUS_OUT_OF_RANGE:
        return fetch_replica_out_of_range(part, partition);
    default:
        unread_log(partition->group, status);
        return KAFKA_KAFKA_STORAGE_ERROR;
    }
}

static void unwatch(struct fetch_part *part)
{
    if (list_contains(&part->watch.link)) {
        list_remove(&part->watch.link);
    }
}

static void read_part(struct shard *shard, struct part *base);

static void still_leads(struct confirm *confirm, bool leads)
{
    struct fetch_part *part = container_of(confirm, struct fetch_part, confirm);
    part->part.error = KAFKA_NONE;
    part->is_confirmed = leads;
    if (leads) {
        read_part(part->confirm_shard, &part->part);
    } else {
        part->part.error = KAFKA_NOT_LEADER_OR_FOLLOWER;
        part_done(part->confirm_shard, &part->part);
    }
}

/* A reader would begin anew somewhere else on such an answer: only who leads for certain gives it;
 * a follower, which knows less, sends the reader there. Whether it has to be confirmed first. */
static bool wants_confirming(struct shard *shard, struct fetch_part *part,
                             struct partition *partition)
{
    bool moves_reader = part->part.error == KAFKA_OFFSET_OUT_OF_RANGE ||
                        part->diverging.epoch >= 0;
    if (!moves_reader || part->is_confirmed) {
        return false;
    }
    part->diverging.epoch = -1;
    if (!partition->group->leads) {
        part->part.error = KAFKA_NOT_LEADER_OR_FOLLOWER;
        return false;
    }
    part->confirm_shard = shard;
    part->confirm.done = still_leads;
    group_confirm(partition->group, &part->confirm);
    return true;
}

static void read_part(struct shard *shard, struct part *base)
{
    struct fetch_part *part = container_of(base, struct fetch_part, part);
    struct partition *partition = part_partition(shard, base);
    unwatch(part);
    part->high_watermark = -1;
    part->log_start = -1;
    part->preferred_replica = -1;
    if (partition != NULL) {
        base->error = fetch_replica_error(part->fetch, partition);
    }
    if (base->error == KAFKA_NONE) {
        base->error = partition_epoch_error(partition, part->asked.current_leader_epoch);
    }
    if (base->error == KAFKA_NONE) {
        part->seen_end = partition_log_end(partition->log);
        part->preferred_replica = fetch_replica_nearer(part, partition);
        if (part->preferred_replica < 0 && !diverges(part, partition)) {
            base->error = read_log(part, partition, &part->fetch->legs[shard->number]);
        }
    }
    if (partition != NULL && wants_confirming(shard, part, partition)) {
        return;
    }
    if (base->error == KAFKA_NONE) {
        part->high_watermark = planted(PLANT_END_BEYOND_COMMIT) ? partition->next_offset
                                                                : part->seen_end;
        part->log_start = partition_log_start(partition->log);
    }
    part_done(shard, base);
}

static void wake_up(struct fetch *fetch)
{
    fetch->woken = true;
    if (fetch->waiting) {
        read_round(fetch);
    }
}

static void wake_deferred(struct shard_task *task)
{
    wake_up(container_of(task, struct fetch, wake));
}

/* At home: a partition on another shard moved. This mail is never under way when the answer is
 * given, since the leg that takes the watches away comes home behind it. */
static void woken(struct shard *shard, struct mail *mail)
{
    struct fetch_leg *leg = container_of(mail, struct fetch_leg, mail);
    struct fetch *fetch = leg->fetch;
    assert(shard == fetch->request->home);
    (void)shard;
    atomic_store(&leg->posted, false);
    wake_up(fetch);
}

/* On the partition's shard. */
static void partition_moved(struct watch *watch)
{
    struct fetch_part *part = container_of(watch, struct fetch_part, watch);
    struct fetch *fetch = part->fetch;
    struct shard *home = fetch->request->home;
    struct shard *here = broker_shard_of(home->broker, part->part.group_id);
    struct fetch_leg *leg = &fetch->legs[here->number];
    if (here == home) {
        shard_defer(home, &fetch->wake);
        return;
    }
    if (!atomic_exchange(&leg->posted, true)) {
        leg->mail.run = woken;
        shard_post(home, &leg->mail);
    }
}

static void watch_part(struct shard *shard, struct part *base)
{
    struct fetch_part *part = container_of(base, struct fetch_part, part);
    struct partition *partition =
        replicas_partition(shard->replicas, base->group_id, base->partition);
    assert(!list_contains(&part->watch.link));
    assert(!part->has_read || part->read.total_bytes < INT32_MAX);
    part->watch.wake = partition_moved;
    if (partition == NULL || fetch_replica_error(part->fetch, partition) != KAFKA_NONE ||
        partition_log_end(partition->log) != part->seen_end) {
        partition_moved(&part->watch);
    } else {
        list_push_back(&partition->watches, &part->watch.link);
    }
    part_done(shard, base);
}

static void give_up_waiting(struct fetch *fetch)
{
    fetch->timed_out = true;
    if (fetch->waiting) {
        read_round(fetch);
    }
}

static void deadline_passed(struct shard_timer *timer)
{
    give_up_waiting(container_of(timer, struct fetch, timer));
}

/* The client is gone. */
static void cancelled(struct request *request)
{
    give_up_waiting(request->state);
}

static void add_parts(struct fetch *fetch)
{
    for (int32_t i = 0; i < fetch->part_count; i++) {
        struct fetch_part *part = &fetch->parts[i];
        if (part->topic != NULL) {
            fan_out_add(fetch->fan, &part->part, part->topic, part->asked.partition);
        }
    }
}

static struct fetch *fetch_of(struct request *request)
{
    return request->state;
}

static void watch_done(struct request *request)
{
    struct fetch *fetch = fetch_of(request);
    assert(!fetch->waiting);
    fetch->waiting = true;
    if (fetch->woken || fetch->timed_out) {
        read_round(fetch);
    }
}

static void watch_round(struct fetch *fetch)
{
    fetch->woken = false;
    fan_out_reset(fetch->fan, watch_part, watch_done);
    add_parts(fetch);
    fan_out_go(fetch->fan);
}

static bool is_satisfied(const struct fetch *fetch)
{
    const struct fetch_request *message = fetch->request->message;
    size_t bytes = 0;
    for (int32_t i = 0; i < fetch->part_count; i++) {
        const struct fetch_part *part = &fetch->parts[i];
        if (part->part.error != KAFKA_NONE || part->diverging.epoch >= 0 ||
            part->preferred_replica >= 0) {
            return true;
        }
        bytes += part->has_read ? part->read.total_bytes : 0;
    }
    return fetch->part_count == 0 || message->min_bytes <= 0 || message->max_wait_ms <= 0 ||
           bytes >= (size_t)message->min_bytes;
}

static void read_done(struct request *request)
{
    struct fetch *fetch = fetch_of(request);
    if (is_satisfied(fetch) || fetch->timed_out || request->connection->closed) {
        shard_timer_stop(&fetch->timer);
        if (list_contains(&fetch->wake.link)) {
            list_remove(&fetch->wake.link);
        }
        fetch_answer(fetch);
        return;
    }
    if (fetch->timer.run == NULL) {
        const struct fetch_request *message = request->message;
        fetch->timer.run = deadline_passed;
        shard_timer_set(request->home, &fetch->timer, (uint64_t)message->max_wait_ms);
    }
    watch_round(fetch);
}

static void read_round(struct fetch *fetch)
{
    assert(!fetch->request->answered);
    fetch->waiting = false;
    for (int i = 0; i < fetch->request->home->broker->shard_count; i++) {
        fetch->legs[i].bytes = 0;
    }
    for (int32_t i = 0; i < fetch->part_count; i++) {
        release_read(&fetch->parts[i]);
        fetch->parts[i].diverging.epoch = -1;
    }
    fan_out_reset(fetch->fan, read_part, read_done);
    add_parts(fetch);
    fan_out_go(fetch->fan);
}

static void find_topic(struct fetch *fetch, struct fetch_part *part, bool by_id)
{
    struct replicas *replicas = fetch->request->home->replicas;
    struct topic_image *topic = by_id ? replicas_topic_by_id(replicas, part->topic_id)
                                      : replicas_topic(replicas, part->topic_name);
    if (topic == NULL) {
        part->part.error = by_id ? KAFKA_UNKNOWN_TOPIC_ID : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    } else if (part->asked.partition < 0 ||
               part->asked.partition >= topic->partition_count) {
        part->part.error = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    } else {
        part->topic = topic_image_ref(topic);
    }
}

static struct fetch_part *next_part(struct fetch *fetch,
                                    const struct fetch_request_fetch_partition *asked)
{
    assert(fetch->parts != NULL);
    struct fetch_part *part = &fetch->parts[fetch->part_count++];
    part->fetch = fetch;
    part->asked = *asked;
    part->part.partition = asked->partition;
    part->high_watermark = -1;
    part->log_start = -1;
    part->preferred_replica = -1;
    return part;
}

static void take_parts_of_request(struct fetch *fetch)
{
    const struct fetch_request *message = fetch->request->message;
    size_t count = 0;
    for (int32_t t = 0; t < message->topics_count; t++) {
        count += (size_t)message->topics[t].partitions_count;
    }
    fetch->parts = request_take(fetch->request, count, sizeof *fetch->parts);
    for (int32_t t = 0; t < message->topics_count; t++) {
        const struct fetch_request_fetch_topic *topic = &message->topics[t];
        for (int32_t p = 0; p < topic->partitions_count; p++) {
            struct fetch_part *part = next_part(fetch, &topic->partitions[p]);
            part->topic_name = topic->topic;
            part->topic_id = topic->topic_id;
            find_topic(fetch, part, fetch->request->api_version >= 13);
        }
    }
}

static void take_parts_of_session(struct fetch *fetch)
{
    struct fetch_session *session = fetch->session;
    size_t count = HASH_COUNT(session->partitions);
    fetch->parts = request_take(fetch->request, count, sizeof *fetch->parts);
    for (struct session_partition *partition = session->partitions; partition != NULL;
         partition = partition->hh.next) {
        struct fetch_part *part = next_part(fetch, &partition->asked);
        part->remembered = partition;
        part->topic_id = partition->key.topic_id;
        /* The session may change before the answer is written: the name is copied. */
        part->topic_name = arena_copy(&fetch->request->arena, view_text(partition->topic));
        find_topic(fetch, part, session->uses_ids);
    }
}

static void fetch_release(struct request *request)
{
    struct fetch *fetch = fetch_of(request);
    for (int32_t i = 0; i < fetch->part_count; i++) {
        release_read(&fetch->parts[i]);
        topic_image_unref(fetch->parts[i].topic);
    }
    if (fetch->session != NULL) {
        fetch->session->busy = false;
    }
}

/* Finds or begins the session; a Kafka error when the client's view of it is out of date. */
static int16_t begin_session(struct fetch *fetch)
{
    const struct fetch_request *message = fetch->request->message;
    struct fetch_sessions *sessions = fetch->request->home->sessions;
    bool uses_ids = fetch->request->api_version >= 13;
    struct fetch_session *session = message->session_id == FETCH_SESSION_NONE
                                        ? NULL
                                        : fetch_session_find(sessions, message->session_id);
    if (message->session_epoch == FETCH_EPOCH_FULL || message->session_epoch == FETCH_EPOCH_FINAL) {
        if (session != NULL && !session->busy) {
            fetch_session_end(sessions, session);
        }
        fetch->new_session = message->session_epoch == FETCH_EPOCH_FULL;
        return KAFKA_NONE;
    }
    if (session == NULL) {
        return KAFKA_FETCH_SESSION_ID_NOT_FOUND;
    }
    if (session->busy || session->epoch != message->session_epoch) {
        return KAFKA_INVALID_FETCH_SESSION_EPOCH;
    }
    if (session->uses_ids != uses_ids) {
        return KAFKA_FETCH_SESSION_TOPIC_ID_ERROR;
    }
    session->epoch = fetch_session_next_epoch(session->epoch);
    session->busy = true;
    fetch->session = session;
    return KAFKA_NONE;
}

static void begin_new_session(struct fetch *fetch)
{
    struct fetch_sessions *sessions = fetch->request->home->sessions;
    fetch->session = fetch_session_new(sessions, fetch->request->api_version >= 13);
    if (fetch->session != NULL) {
        fetch->session->busy = true;
    }
}

/* The shard that all of it is for; the one it came to when there is no such shard. */
static struct shard *shard_of_all(const struct fetch *fetch)
{
    struct shard *home = fetch->request->home;
    struct shard *all = NULL;
    for (int32_t i = 0; i < fetch->part_count; i++) {
        const struct fetch_part *part = &fetch->parts[i];
        if (part->topic == NULL) {
            return home;
        }
        uint64_t group = topic_image_group(part->topic, part->asked.partition)->id;
        struct shard *shard = broker_shard_of(home->broker, group);
        if (all != NULL && shard != all) {
            return home;
        }
        all = shard;
    }
    return all != NULL ? all : home;
}

static void tell_connection(const struct fetch *fetch)
{
    struct connection *connection = fetch->request->connection;
    if (connection == NULL) {
        return;
    }
    if (fetch->session != NULL) {
        connection->session_id = fetch->session->id;
    }
    connection_works_for(connection, shard_of_all(fetch));
}

void fetch_handle(struct request *request)
{
    const struct fetch_request *message = request->message;
    int shard_count = request->home->broker->shard_count;
    struct fetch *fetch = request_take(request, 1, sizeof *fetch);
    assert(request->message != NULL);
    fetch->request = request;
    fetch->wake.run = wake_deferred;
    request->state = fetch;
    request->release = fetch_release;
    request->cancel = cancelled;
    fetch_replica_begin(fetch);
    int16_t error = begin_session(fetch);
    if (error != KAFKA_NONE) {
        fetch_answer_error(request, error);
        return;
    }
    if (fetch->new_session && message->topics_count > 0) {
        begin_new_session(fetch);
    }
    if (fetch->session != NULL) {
        fetch_session_update(request->home->sessions, fetch->session, message);
        take_parts_of_session(fetch);
    } else {
        take_parts_of_request(fetch);
    }
    fetch->legs = request_take(request, (size_t)shard_count, sizeof *fetch->legs);
    for (int i = 0; i < shard_count; i++) {
        fetch->legs[i].fetch = fetch;
    }
    fetch->fan = fan_out_begin(request, read_part, read_done);
    tell_connection(fetch);
    read_round(fetch);
}
