/* Cleaning up after a crash. Nothing here is urgent or can lose data that a topic still has; what
 * fails is logged and tried again at the next start. */
#include "broker/server/leftovers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/config/topic_name.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "storage/checkpoint.h"

struct discard {
    struct broker *broker;
    const struct image *image;
};

/* The group may come back: nothing may vouch then for logs that are gone. */
static enum status discard_moved(const struct broker *broker, const struct partition_group *group)
{
    assert(!partition_group_has(group, broker->node_id));
    return checkpoint_remove(log_dir_groups_path(broker->log_dir), group->id);
}

static void check_partition(void *context, const struct log_dir_partition *found)
{
    const struct discard *discard = context;
    struct view name = view_text(found->topic);
    if (view_is(name, TOPIC_CLUSTER_METADATA)) {
        return;
    }
    struct topic_image *topic = image_topic(discard->image, name);
    /* Without an id nothing was written yet; another id is that of an earlier topic of the name. */
    bool is_of_topic = topic != NULL && (uuid_is_zero(found->topic_id) ||
                                         uuid_equal(found->topic_id, topic->id));
    bool exists = is_of_topic && topic_image_has(topic, found->partition);
    const struct partition_group *group =
        exists ? topic_image_group(topic, found->partition) : NULL;
    if (exists && (!discard->broker->in_cluster ||
                   partition_group_has(group, discard->broker->node_id))) {
        return;
    }
    enum status status = exists ? discard_moved(discard->broker, group) : STATUS_OK;
    if (status == STATUS_OK) {
        status = log_dir_discard_partition(discard->broker->log_dir, found->topic,
                                           found->partition);
    }
    log_info("storage", "%s-%d belongs to no topic of this node any more: %s", found->topic,
             found->partition, status == STATUS_OK ? "it is removed" : status_text(status));
}

void leftovers_discard_partitions(struct broker *broker, const struct image *image)
{
    struct discard discard = {broker, image};
    if (log_dir_is_new(broker->log_dir)) {
        return;
    }
    enum status status = log_dir_each_partition(broker->log_dir, check_partition, &discard);
    if (status != STATUS_OK) {
        log_warn("storage", "the data directory cannot be listed: %s", status_text(status));
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
