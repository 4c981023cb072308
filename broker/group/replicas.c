/* The groups and topics of one shard: two indexes over immutable images, one hash of groups, and
 * the periodic work on them. */
#include "broker/group/replicas.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/config/topic_name.h"
#include "broker/controller/topic_image.h"
#include "broker/group/offsets_group.h"
#include "broker/group/awaited.h"
#include "broker/group/boot.h"
#include "broker/group/directory.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_move.h"
#include "broker/group/partition.h"
#include "broker/group/topic_logs.h"
#include "broker/group/unread.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "io/clock.h"

enum { CHECKPOINTS_PER_TICK = 64, AHEAD_AT_ONCE = 4 };
enum { ELECTION_TICKS = 10, HEARTBEAT_TICKS = 2, HIBERNATE_TICKS = 40 };

/* On the writer's thread: some of the shard's jobs have ended. */
struct drain_mail {
    struct mail mail;
    struct shard *shard;
};

static void drain_jobs(struct shard *shard, struct mail *mail)
{
    free(container_of(mail, struct drain_mail, mail));
    log_shard_drain(shard->replicas->logs);
}

static void wake_for_jobs(void *context)
{
    struct drain_mail *drain = memory_new_zero(1, sizeof *drain);
    drain->mail.run = drain_jobs;
    shard_post(context, &drain->mail);
}

/* What is uncommitted is bounded by the requests that wait for it (queued.max.request.bytes); a
 * bound here would only turn waiting into errors. */
static struct raft_limits group_limits(void)
{
    struct raft_limits limits = raft_limits_default; /* in ticks of SHARD_TICK_MS */
    limits.election_ticks = ELECTION_TICKS;
    limits.heartbeat_ticks = HEARTBEAT_TICKS;
    limits.hibernate_ticks = HIBERNATE_TICKS;
    limits.uncommitted_bytes = UINT32_MAX;
    return limits;
}

/* Every node wants to know at once what is committed there, and whether somebody leads. */
static struct raft_limits metadata_limits(void)
{
    struct raft_limits limits = group_limits();
    limits.eager_commit = true;
    limits.hibernate_ticks = 0;
    return limits;
}

void replicas_open(struct replicas *replicas, struct shard *shard, struct log_writer *writer,
                   struct journal *journal)
{
    const struct config *config = shard->broker->config;
    *replicas = (struct replicas){.shard = shard, .writer = writer, .journal = journal};
    topic_index_init(&replicas->topics_by_name, TOPIC_INDEX_NAME);
    topic_index_init(&replicas->topics_by_id, TOPIC_INDEX_ID);
    replicas->cluster = cluster_image_new(NULL, &shard->broker->self);
    replicas->raft_limits = group_limits();
    replicas->metadata_limits = metadata_limits();
    list_init(&replicas->ticking);
    list_init(&replicas->moving);
    list_init(&replicas->unread);
    list_init(&replicas->paused);
    early_init(&replicas->early);
    elections_init(&replicas->elections, (int)config_long(config, CONFIG_OTTLA_ELECTIONS_MAX));
    list_init(&replicas->writes);
    replicas->submit.run = group_journal_submit;
    list_init(&replicas->dirty);
    list_init(&replicas->offsets_groups);
    for (int i = 0; i < REPLICAS_STEP_DEPTH; i++) {
        raft_actions_init(&replicas->actions[i]);
    }
    struct log_shard_settings settings = {
        .tail_budget_bytes = (size_t)config_long(config, CONFIG_OTTLA_FETCH_TAIL_BYTES) /
                             (size_t)shard->broker->shard_count,
        .open_file_limit = (size_t)config_int(config, CONFIG_OTTLA_LOG_OPEN_FILES) /
                               (size_t)shard->broker->shard_count + 1,
        .wake = wake_for_jobs,
        .context = shard,
    };
    replicas->logs = log_shard_new(writer, &settings);
    offsets_groups_open(shard);
    replicas->next_retention_ms =
        clock_monotonic_ms() + (uint64_t)config_long(config, CONFIG_LOG_INITIAL_TASK_DELAY_MS);
    replicas->lag_ms = (uint64_t)config_long(config, CONFIG_REPLICA_LAG_TIME_MAX_MS);
    replicas->checkpoint_interval_ms =
        (uint64_t)config_long(config, CONFIG_CHECKPOINT_INTERVAL_MS);
}

void replicas_close_groups(struct replicas *replicas)
{
    awaited_end_all(replicas);
    struct group *group;
    struct group *next;
    HASH_ITER(by_id, replicas->groups, group, next) {
        group_close(group, false);
    }
    log_shard_drain(replicas->logs);
}

void replicas_close(struct replicas *replicas)
{
    assert(replicas->groups == NULL);
    offsets_groups_close(replicas->shard);
    topic_index_free(&replicas->topics_by_name);
    topic_index_free(&replicas->topics_by_id);
    cluster_image_unref(replicas->cluster);
    log_shard_drain(replicas->logs);
    log_shard_free(replicas->logs);
    early_free(&replicas->early);
    elections_end(&replicas->elections);
    for (int i = 0; i < REPLICAS_STEP_DEPTH; i++) {
        raft_actions_free(&replicas->actions[i]);
    }
}

void replicas_set_cluster(struct replicas *replicas, struct cluster_image *cluster)
{
    struct cluster_image *before = replicas->cluster;
    assert(cluster_image_find(cluster, replicas->shard->broker->node_id) != NULL);
    replicas->cluster = cluster_image_ref(cluster);
    replicas->is_struck_off =
        !cluster->is_registered && (replicas->is_struck_off || before->is_registered);
    cluster_image_unref(before);
}

/* Ids are dense, and those of one shard are alike modulo the number of shards. */
static unsigned hash_of(uint64_t id)
{
    return (unsigned)((id * 0x9e3779b97f4a7c15u) >> 32);
}

struct group *replicas_group(const struct replicas *replicas, uint64_t id)
{
    struct group *group = NULL;
    HASH_FIND_BYHASHVALUE(by_id, replicas->groups, &id, sizeof id, hash_of(id), group);
    return group;
}

struct partition *replicas_partition(const struct replicas *replicas, uint64_t group_id,
                                     int32_t partition)
{
    struct group *group = replicas_group(replicas, group_id);
    return group == NULL ? NULL : group_partition(group, partition);
}

struct topic_image *replicas_topic(const struct replicas *replicas, struct view name)
{
    return name.data == NULL ? NULL : topic_index_find(&replicas->topics_by_name, name);
}

struct topic_image *replicas_topic_by_id(const struct replicas *replicas, struct uuid id)
{
    return topic_index_find_id(&replicas->topics_by_id, id);
}

static int by_topic_name(const void *a, const void *b)
{
    return view_compare((*(struct topic_image *const *)a)->name,
                        (*(struct topic_image *const *)b)->name);
}

void replicas_each_topic(struct replicas *replicas,
                         void (*each)(void *context, struct topic_image *topic), void *context)
{
    size_t count = replicas->topics_by_name.count;
    struct topic_image **sorted = memory_new_zero(count, sizeof(struct topic_image *));
    uint32_t cursor = 0;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = topic_index_next(&replicas->topics_by_name, &cursor);
    }
    qsort(sorted, count, sizeof(struct topic_image *), by_topic_name);
    for (size_t i = 0; i < count; i++) {
        each(context, sorted[i]);
    }
    free(sorted);
}

void replicas_add_group(struct replicas *replicas, struct group *group)
{
    HASH_ADD_BYHASHVALUE(by_id, replicas->groups, id, sizeof group->id, hash_of(group->id), group);
}

void replicas_drop_group(struct replicas *replicas, struct group *group)
{
    HASH_DELETE(by_id, replicas->groups, group);
    if (list_contains(&group->dirty)) {
        list_remove(&group->dirty);
    }
}

void replicas_group_started(struct replicas *replicas)
{
    assert(replicas->groups_starting > 0);
    replicas->groups_starting--;
    if (replicas->groups_starting == 0) {
        metadata_log_groups_started(replicas->shard);
    }
}

static bool is_mine(const struct replicas *replicas, uint64_t group_id)
{
    unsigned shard_count = (unsigned)replicas->shard->broker->shard_count;
    return group_id % shard_count == (unsigned)replicas->shard->number;
}

static void open_from(struct replicas *replicas, struct topic_image *topic,
                      const struct group_start *from)
{
    struct group_start start = *from;
    if (view_is(topic->name, TOPIC_CONSUMER_OFFSETS)) {
        offsets_group_prepare(replicas->shard, &start);
    }
    struct group *group;
    enum status status = group_open(replicas->shard, &start, &group);
    assert(status == STATUS_OK);
    (void)status;
}

static void open_group(struct replicas *replicas, struct topic_image *topic, uint64_t id)
{
    struct group_start start = {
        .id = id,
        .topic = topic,
        /* What comes later comes anew: the journal has at most something of an earlier stay. */
        .boot = replicas->has_image ? NULL : boot_find(&replicas->shard->broker->boot, id),
        .existed = !replicas->has_image && id < replicas->shard->broker->groups_before,
    };
    open_from(replicas, topic, &start);
}

/* The group has moved away: who asks for it here is told who leads it there. */
static void leave_group(struct replicas *replicas, struct group *group)
{
    log_info("group", "group %" PRIu64 " of %s has moved to other nodes; its data here is removed",
             group->id, topic_log_name(group));
    assert(replicas_group(replicas, group->id) == group);
    group_close(group, true);
}

static void put_topic(struct replicas *replicas, struct topic_image *topic)
{
    for (uint32_t i = 0; i < topic->group_count; i++) {
        uint64_t id = topic->groups[i].id;
        if (!is_mine(replicas, id)) {
            continue;
        }
        struct group *group = replicas_group(replicas, id);
        bool is_here = partition_group_has(&topic->groups[i], replicas->shard->broker->node_id);
        if (group != NULL && is_here) {
            group_update_topic(group, topic);
        } else if (group != NULL) {
            leave_group(replicas, group);
        } else if (is_here) {
            open_group(replicas, topic, id);
        } else {
            directory_add(&replicas->shard->broker->directory, id);
            awaited_add(replicas, &topic->groups[i]);
        }
    }
}

static void remove_topic(struct replicas *replicas, struct topic_image *topic)
{
    for (uint32_t i = 0; i < topic->group_count; i++) {
        struct group *group = replicas_group(replicas, topic->groups[i].id);
        awaited_end(replicas, topic->groups[i].id);
        if (group != NULL) {
            group_close(group, true);
        }
    }
    offsets_groups_topic_deleted(replicas->shard, topic);
}

void replicas_change(struct replicas *replicas, const struct image_changes *changes)
{
    image_changes_apply(changes, &replicas->topics_by_name);
    image_changes_apply(changes, &replicas->topics_by_id);
    for (size_t i = 0; i < changes->count; i++) {
        const struct image_change *change = &changes->items[i];
        if (change->after != NULL) {
            put_topic(replicas, change->after);
        } else {
            remove_topic(replicas, change->before);
        }
    }
    replicas->has_image = true;
}

static void run_retention(struct replicas *replicas, uint64_t now_ms)
{
    if (now_ms < replicas->next_retention_ms) {
        return;
    }
    const struct config *config = replicas->shard->broker->config;
    int64_t every_ms = config_long(config, CONFIG_LOG_RETENTION_CHECK_INTERVAL_MS);
    replicas->next_retention_ms = now_ms + (uint64_t)every_ms;
    int64_t wall_ms = clock_wall_ms();
    for (struct group *group = replicas->groups; group != NULL; group = group->by_id.next) {
        for (int32_t i = 0; i < group->partition_count && group->storage == STATUS_OK; i++) {
            partition_log_retention(group->partitions[i]->log, wall_ms);
        }
    }
}

/* While the journal fills, the groups that were dirty for longest are checkpointed a few at a time,
 * so that it does not run full and all of them are due at once. */
static void checkpoint_ahead(struct replicas *replicas)
{
    struct journal_stats stats;
    struct list_link *link;
    uint64_t limit =
        (uint64_t)config_long(replicas->shard->broker->config, CONFIG_JOURNAL_SIZE_BYTES);
    if (list_is_empty(&replicas->dirty) || replicas->journal == NULL) {
        return;
    }
    journal_read_stats(replicas->journal, &stats);
    if (stats.used_bytes < limit / 4) {
        return;
    }
    unsigned most = stats.used_bytes < limit / 2 ? AHEAD_AT_ONCE : AHEAD_AT_ONCE * 4;
    while (replicas->checkpoints_pending < most &&
           (link = list_first(&replicas->dirty)) != NULL) {
        group_checkpoint(container_of(link, struct group, dirty));
    }
}

static void checkpoint_due(struct replicas *replicas, uint64_t now_ms)
{
    for (int i = 0; i < CHECKPOINTS_PER_TICK; i++) {
        struct list_link *link = list_first(&replicas->dirty);
        if (link == NULL) {
            return;
        }
        struct group *group = container_of(link, struct group, dirty);
        if (now_ms - group->dirty_since_ms < replicas->checkpoint_interval_ms) {
            return;
        }
        group_checkpoint(group);
    }
}

void replicas_tick(struct replicas *replicas, uint64_t now_ms)
{
    replicas_raft_tick(replicas, now_ms);
    awaited_tick(replicas, now_ms);
    group_balance_tick(replicas, now_ms);
    group_leave_tick(replicas, now_ms);
    log_shard_tick(replicas->logs, clock_wall_ms());
    checkpoint_due(replicas, now_ms);
    checkpoint_ahead(replicas);
    run_retention(replicas, now_ms);
    unread_tick(replicas, now_ms, open_from);
}

void replicas_checkpoint_all(struct replicas *replicas)
{
    struct list_link *link;
    while ((link = list_first(&replicas->dirty)) != NULL) {
        group_checkpoint(container_of(link, struct group, dirty));
    }
}

void replicas_checkpoint(struct replicas *replicas, const uint64_t *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct group *group = replicas_group(replicas, groups[i]);
        if (group != NULL) {
            group_checkpoint(group);
        }
    }
}

void replicas_fail(struct replicas *replicas, enum status status)
{
    for (struct group *group = replicas->groups; group != NULL; group = group->by_id.next) {
        group_fail(group, status);
    }
}
