/* Cleaning up after a crash. Nothing here is urgent or can lose data that a topic still has; what
 * fails is logged and tried again at the next start. Groups go by the steps of group_removal.h. */
#include "broker/server/leftovers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/config/topic_name.h"
#include "broker/group/boot.h"
#include "broker/group/group_removal.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"

/* A partition that lives elsewhere now. */
struct stray {
    char *topic;
    int32_t partition;
};

struct discard {
    struct broker *broker;
    const struct image *image;   /* null: it was looked at */
    void (*done)(void *context);
    void *context;
    struct stray *strays;
    uint64_t *groups;            /* of each of them */
    size_t count;
    size_t capacity;
};

static void discard_partition(const struct broker *broker, const char *topic, int32_t partition)
{
    enum status status = log_dir_discard_partition(broker->log_dir, topic, partition);
    log_info("storage", "%s-%d belongs to no topic of this node any more: %s", topic, partition,
             status == STATUS_OK ? "it is removed" : status_text(status));
}

static void add_stray(struct discard *discard, const struct log_dir_partition *found,
                      uint64_t group)
{
    if (discard->count == discard->capacity) {
        discard->capacity = discard->capacity * 2 + 8;
        discard->strays =
            memory_resize(discard->strays, discard->capacity, sizeof *discard->strays);
        discard->groups =
            memory_resize(discard->groups, discard->capacity, sizeof *discard->groups);
    }
    discard->groups[discard->count] = group;
    discard->strays[discard->count++] =
        (struct stray){memory_copy_text(found->topic), found->partition};
}

static void check_partition(void *context, const struct log_dir_partition *found)
{
    struct discard *discard = context;
    struct view name = view_text(found->topic);
    if (view_is(name, TOPIC_CLUSTER_METADATA)) {
        return;
    }
    struct topic_image *topic = image_topic(discard->image, name);
    /* Without an id nothing was written yet; another id is that of an earlier topic of the name. */
    bool is_of_topic = topic != NULL && (uuid_is_zero(found->topic_id) ||
                                         uuid_equal(found->topic_id, topic->id));
    if (!is_of_topic || !topic_image_has(topic, found->partition)) {
        discard_partition(discard->broker, found->topic, found->partition);
        return;
    }
    const struct partition_group *group = topic_image_group(topic, found->partition);
    if (discard->broker->in_cluster && !partition_group_has(group, discard->broker->node_id)) {
        add_stray(discard, found, group->id);
    }
}

static void end(struct discard *discard)
{
    void (*done)(void *context) = discard->done;
    void *context = discard->context;
    for (size_t i = 0; i < discard->count; i++) {
        free(discard->strays[i].topic);
    }
    free(discard->strays);
    free(discard->groups);
    free(discard);
    done(context);
}

/* Journal and checkpoints have nothing of them any more, for good. */
static void discard_strays(void *context, enum status status)
{
    struct discard *discard = context;
    struct broker *broker = discard->broker;
    assert(discard->count > 0 && discard->image == NULL);
    for (size_t i = 0; i < discard->count && status == STATUS_OK; i++) {
        if (!planted(PLANT_STRAYS_FIRST)) {
            boot_forget(&broker->boot, discard->groups[i]);
        }
        discard_partition(broker, discard->strays[i].topic, discard->strays[i].partition);
    }
    end(discard);
}

void leftovers_discard_partitions(struct group *carrier, const struct image *image,
                                  void (*done)(void *context), void *context)
{
    struct broker *broker = carrier->shard->broker;
    assert(carrier->id == METADATA_GROUP_ID && done != NULL);
    struct discard *discard = memory_new_zero(1, sizeof *discard);
    *discard = (struct discard){
        .broker = broker, .image = image, .done = done, .context = context};
    enum status status = STATUS_OK;
    if (!log_dir_is_new(broker->log_dir)) {
        status = log_dir_each_partition(broker->log_dir, check_partition, discard);
    }
    if (status != STATUS_OK) {
        log_warn("storage", "the data directory cannot be listed: %s", status_text(status));
    }
    discard->image = NULL;
    if (discard->count == 0) {
        end(discard);
    } else if (planted(PLANT_STRAYS_FIRST)) {
        discard_strays(discard, STATUS_OK);
    } else {
        group_removal_steps(carrier, discard->groups, discard->count, discard_strays, discard);
    }
}

struct removal {
    struct log_job job;
    struct broker *broker;
};

static enum status remove_renamed(struct log_job *job)
{
    return log_dir_remove_leftovers(container_of(job, struct removal, job)->broker->log_dir);
}

static void removed(struct log_job *job, enum status status)
{
    if (status != STATUS_OK) {
        log_warn("storage", "deleted partitions could not be removed yet: %s", status_text(status));
    }
    free(container_of(job, struct removal, job));
}

void leftovers_forget_groups(struct broker *broker)
{
    for (struct journal_boot *part = broker->boot.groups; part != NULL; part = part->hh.next) {
        if (!part->used) {
            journal_forget(broker->journal, part->group);
        }
    }
    if (log_dir_is_new(broker->log_dir)) {
        return;
    }
    struct replicas *replicas = broker->shards[0].replicas;
    struct removal *removal = memory_new_zero(1, sizeof *removal);
    removal->broker = broker;
    removal->job = (struct log_job){.run = remove_renamed, .done = removed};
    log_writer_submit(replicas->writer, replicas->logs, &removal->job);
}
