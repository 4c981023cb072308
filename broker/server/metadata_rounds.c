/* Rounds: what the image has changed, taken over by every shard, one round at a time. Changes that
 * are applied meanwhile go with the next one, and those that have to wait for others in it with the
 * one after that (change_set.h). Happy path: a mail to each shard, which opens and
 * ends groups; the last one that has no group starting any more sends the round home; who waited
 * for what was in it is told. Nothing here can fail: a group that cannot be opened is there,
 * offline. A round is shared by all shards and freed on shard 0. */
#include "broker/server/metadata_state.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "broker/controller/change_set.h"
#include "broker/group/replicas.h"
#include "broker/server/leftovers.h"
#include "broker/server/metadata_members.h"
#include "messages/errors.h"

struct metadata_update {
    struct list_link link;               /* among those to come */
    struct metadata_log *log;
    struct change_set set;
    bool brokers_changed;
    struct cluster_image *cluster;       /* null: the brokers are as they were */
    int64_t offset;                      /* of the log: what is below is in the changes */
    struct mail home;                    /* back on shard 0 when all are through */
    atomic_int shards_left;
    struct update_visit {
        struct mail mail;
        struct metadata_update *update;
    } visits[SHARDS_MAX];
};

static void wait_home(struct shard *shard, struct mail *mail)
{
    struct metadata_wait *wait = container_of(mail, struct metadata_wait, mail);
    assert(shard == wait->from);
    (void)shard;
    wait->done(wait, wait->error);
}

void metadata_wait_end(struct metadata_wait *wait, int16_t error)
{
    assert(!list_contains(&wait->link));
    wait->error = error;
    wait->mail.run = wait_home;
    shard_post(wait->from, &wait->mail);
}

/* Ends those that `is_due` names. */
static void end_waits(struct metadata_log *log, int16_t error,
                      bool (*is_due)(const struct metadata_wait *wait, int64_t limit),
                      int64_t limit)
{
    struct list_link *link = list_first(&log->waits);
    while (link != NULL) {
        struct list_link *next = list_next(&log->waits, link);
        struct metadata_wait *wait = container_of(link, struct metadata_wait, link);
        if (is_due(wait, limit)) {
            list_remove(link);
            metadata_wait_end(wait, error);
        }
        link = next;
    }
}

static bool is_below(const struct metadata_wait *wait, int64_t delivered)
{
    return wait->offset <= delivered;
}

static bool is_late(const struct metadata_wait *wait, int64_t now_ms)
{
    return wait->deadline_ms != 0 && wait->deadline_ms <= (uint64_t)now_ms;
}

static bool is_any(const struct metadata_wait *wait, int64_t none)
{
    (void)wait;
    (void)none;
    return true;
}

void metadata_rounds_fail_waits(struct metadata_log *log, int16_t error)
{
    end_waits(log, error, is_any, 0);
}

void metadata_rounds_tick(struct metadata_log *log, uint64_t now_ms)
{
    end_waits(log, KAFKA_REQUEST_TIMED_OUT, is_late, (int64_t)now_ms);
}

void metadata_rounds_wait(struct metadata_log *log, struct metadata_wait *wait)
{
    if (wait->offset <= atomic_load_explicit(&log->delivered, memory_order_relaxed)) {
        metadata_wait_end(wait, KAFKA_NONE);
    } else if (log->closed) {
        metadata_wait_end(wait, KAFKA_REQUEST_TIMED_OUT);
    } else {
        list_push_back(&log->waits, &wait->link);
    }
}

static void deliver(struct metadata_log *log, int64_t offset)
{
    assert(offset >= atomic_load(&log->delivered));
    atomic_store_explicit(&log->delivered, offset, memory_order_release);
    end_waits(log, KAFKA_NONE, is_below, offset);
}

static void update_free(struct metadata_update *update)
{
    change_set_free(&update->set);
    cluster_image_unref(update->cluster);
    free(update);
}

static void update_home(struct shard *shard, struct mail *mail)
{
    struct metadata_update *update = container_of(mail, struct metadata_update, home);
    struct metadata_log *log = update->log;
    assert(shard->number == 0);
    assert(log->update == update);
    (void)shard;
    log->update = NULL;
    deliver(log, update->offset);
    update_free(update);
    if (atomic_load(&log->broker->closing)) {
        return; /* what is not in force yet will be at the next start */
    }
    if (!log->announced && !log->closed) {
        log->announced = true;
        leftovers_forget_groups(log->broker);
        broker_opened(log->broker);
    }
    metadata_commands_go(log);
    metadata_rounds_go(log);
}

static void visit_done(struct metadata_update *update)
{
    if (atomic_fetch_sub(&update->shards_left, 1) == 1) {
        update->home.run = update_home;
        shard_post(&update->log->broker->shards[0], &update->home);
    }
}

void metadata_log_groups_started(struct shard *shard)
{
    struct metadata_update *update = shard->replicas->update;
    if (update != NULL) {
        shard->replicas->update = NULL;
        visit_done(update);
    }
}

static void update_visits(struct shard *shard, struct mail *mail)
{
    struct update_visit *visit = container_of(mail, struct update_visit, mail);
    struct metadata_update *update = visit->update;
    assert(shard->replicas->update == NULL);
    /* Set first: the groups may all be started before this returns. */
    shard->replicas->groups_starting++;
    shard->replicas->update = update;
    if (atomic_load(&shard->broker->closing)) {
        /* Journal and files are closed, or soon will be. */
        replicas_group_started(shard->replicas);
        return;
    }
    if (update->cluster != NULL) {
        metadata_members_link(shard, shard->replicas->cluster, update->cluster);
        replicas_set_cluster(shard->replicas, update->cluster);
    }
    replicas_change(shard->replicas, &update->set.changes);
    replicas_group_started(shard->replicas);
}

static struct metadata_update *update_add(struct metadata_log *log)
{
    struct metadata_update *update = memory_new_zero(1, sizeof *update);
    update->log = log;
    update->offset = log->rounds_end;
    list_push_back(&log->updates, &update->link);
    return update;
}

static struct metadata_update *update_of(struct list_link *link)
{
    return container_of(link, struct metadata_update, link);
}

void metadata_rounds_take(struct metadata_log *log)
{
    struct image_changes *changes = &log->changes;
    struct list_link *last = list_last(&log->updates);
    struct metadata_update *update = last == NULL ? NULL : update_of(last);
    if (update == NULL && (changes->count > 0 || changes->brokers_changed)) {
        update = update_add(log);
    }
    for (size_t i = 0; i < changes->count; i++) {
        if (!change_set_add(&update->set, &changes->items[i])) {
            update = update_add(log);
            bool is_taken = change_set_add(&update->set, &changes->items[i]);
            assert(is_taken);
            (void)is_taken;
        }
    }
    log->rounds_end = log->reader.offset;
    if (update != NULL) {
        update->brokers_changed |= changes->brokers_changed;
        update->offset = log->rounds_end;
    }
    image_changes_free(changes);
    metadata_rounds_go(log);
}

static void send_round(struct metadata_log *log, struct metadata_update *update)
{
    struct broker *broker = log->broker;
    log->update = update;
    if (update->brokers_changed) {
        update->cluster = cluster_image_new(log->image, &broker->self);
    }
    atomic_init(&update->shards_left, broker->shard_count);
    for (int i = 0; i < broker->shard_count; i++) {
        update->visits[i].update = update;
        update->visits[i].mail.run = update_visits;
        shard_post(&broker->shards[i], &update->visits[i].mail);
    }
}

/* The first round goes even when there is nothing in it: behind it the broker is open. */
static void round_due(struct shard_task *task)
{
    struct metadata_log *log = container_of(task, struct metadata_log, round);
    if (log->update != NULL || !log->ready || log->clearing || log->closed) {
        return;
    }
    if (list_is_empty(&log->updates) && !log->announced) {
        update_add(log);
    }
    struct list_link *next = list_pop_front(&log->updates);
    if (next != NULL) {
        send_round(log, update_of(next));
    } else {
        deliver(log, log->rounds_end);
    }
}

void metadata_rounds_free(struct metadata_log *log)
{
    struct list_link *link;
    while ((link = list_pop_front(&log->updates)) != NULL) {
        update_free(update_of(link));
    }
}

void metadata_rounds_go(struct metadata_log *log)
{
    shard_defer(&log->broker->shards[0], &log->round);
}

void metadata_rounds_init(struct metadata_log *log)
{
    list_init(&log->waits);
    list_init(&log->updates);
    atomic_init(&log->delivered, 0);
    log->round.run = round_due;
}

static void wait_arrived(struct shard *shard, struct mail *mail)
{
    struct metadata_wait *wait = container_of(mail, struct metadata_wait, mail);
    metadata_rounds_wait(shard->broker->metadata, wait);
}

void metadata_await(struct shard *from, struct metadata_wait *wait)
{
    assert(wait->done != NULL);
    wait->from = from;
    wait->mail.run = wait_arrived;
    shard_post(&from->broker->shards[0], &wait->mail);
}

int64_t metadata_delivered(const struct broker *broker)
{
    const struct metadata_log *log = broker->metadata;
    return log == NULL ? 0 : atomic_load_explicit(&log->delivered, memory_order_acquire);
}
