/* The link between a topic's image and the logs of a group. */
#include "broker/group/topic_logs.h"

#include <assert.h>

#include "base/memory.h"
#include "broker/config/topic_name.h"
#include "broker/controller/topic_image.h"
#include "broker/group/replicas.h"
#include "broker/server/broker.h"
#include "storage/log_dir.h"

/* Small, so that what a snapshot replaces leaves the disk. */
enum { METADATA_SEGMENT_BYTES = 1024 * 1024 };

static void resolve_settings(struct group *group)
{
    struct log_settings *logs = &group->log_settings;
    *logs = log_settings_default();
    if (group->topic == NULL) {
        logs->delete_old = false; /* metadata is kept; snapshots say what may go */
        logs->segment_bytes = METADATA_SEGMENT_BYTES;
        return;
    }
    const struct topic_settings *settings = topic_image_settings(group->topic);
    logs->producer_expire_ms = settings->producer_expire_ms;
    logs->segment_bytes = settings->segment_bytes;
    logs->segment_ms = settings->segment_ms;
    logs->segment_index_bytes = settings->segment_index_bytes;
    logs->index_interval_bytes = settings->index_interval_bytes;
    logs->retention_ms = settings->retention_ms;
    logs->retention_bytes = settings->retention_bytes;
    logs->file_delete_delay_ms = settings->file_delete_delay_ms;
    logs->flush_messages = settings->flush_messages;
    logs->flush_ms = settings->flush_ms;
    logs->delete_old = settings->deletes;
    logs->compact = settings->compacts;
}

void topic_log_adopt(struct group *group, struct topic_image *topic)
{
    assert(group->topic == NULL || topic != NULL);
    struct topic_image *before = group->topic;
    group->topic = topic == NULL ? NULL : topic_image_ref(topic);
    topic_image_unref(before);
    if (group->topic_name == NULL) {
        group->topic_name = topic == NULL ? memory_copy_text(TOPIC_CLUSTER_METADATA)
                                          : view_copy_text(topic->name);
    }
    resolve_settings(group);
}

int32_t topic_log_next_partition(const struct group *group, int32_t from)
{
    if (group->topic == NULL) {
        return from == 0 ? 0 : -1;
    }
    for (int32_t i = from; i < group->topic->partition_count; i++) {
        if (topic_image_group(group->topic, i)->id == group->id) {
            return i;
        }
    }
    return -1;
}

const char *topic_log_name(const struct group *group)
{
    return group->topic_name;
}

struct uuid topic_log_id(const struct group *group)
{
    /* Kafka's fixed id of the metadata topic: fifteen zero bytes and a one. */
    return group->topic == NULL ? (struct uuid){.bytes = {[UUID_BYTES - 1] = 1}}
                                : group->topic->id;
}

struct log_identity topic_log_identity(const struct partition *partition)
{
    const struct group *group = partition->group;
    return (struct log_identity){
        .data_path = log_dir_path(group->shard->broker->log_dir),
        .topic = topic_log_name(group),
        .partition = partition->number,
        .topic_id = topic_log_id(group),
    };
}

enum status topic_log_open(struct partition *partition, const struct checkpoint *checkpoint,
                           bool comes_again, struct log_damage *damage)
{
    struct group *group = partition->group;
    struct log_identity identity = topic_log_identity(partition);
    const struct checkpoint_partition *known =
        checkpoint_find(checkpoint, identity.topic_id, partition->number);
    /* A checkpoint lists every partition that had been written: of others nothing is vouched for,
     * and all of it comes from the journal. Without a checkpoint, unless all of it comes again,
     * everything in the log has to be whole. */
    int64_t unlisted = checkpoint->index > 0 || comes_again ? 0 : -1;
    struct log_recovery recovery = {
        .next_offset = known == NULL ? unlisted : known->next_offset,
        .log_start = known == NULL ? unlisted : known->log_start,
    };
    *damage = (struct log_damage){.file = ""};
    struct log_shard *logs = group->shard->replicas->logs;
    enum status status = partition_log_open(logs, &identity, &group->log_settings, &recovery,
                                            &partition->log, damage);
    if (status == STATUS_INVALID) {
        /* The directory is that of an earlier topic of this name: a crash cut its deletion off. */
        status = log_dir_discard_partition(group->shard->broker->log_dir, identity.topic,
                                           identity.partition);
    } else {
        return status;
    }
    return status != STATUS_OK ? status
                               : partition_log_open(logs, &identity, &group->log_settings,
                                                    &recovery, &partition->log, damage);
}

size_t topic_log_checkpoint_partitions(const struct group *group,
                                       struct checkpoint_partition **partitions)
{
    size_t count = 0;
    struct checkpoint_partition *made =
        memory_new_zero((size_t)group->partition_count, sizeof *made);
    for (int32_t i = 0; i < group->partition_count; i++) {
        const struct partition *partition = group->partitions[i];
        if (partition_log_segment_count(partition->log) == 0) {
            continue; /* never written: nothing to vouch for */
        }
        int64_t synced = partition_log_synced(partition->log);
        int64_t start = partition_log_start(partition->log);
        assert(synced <= partition_log_end(partition->log));
        made[count++] = (struct checkpoint_partition){
            .topic_id = topic_log_id(group),
            .partition = partition->number,
            .next_offset = synced,
            /* It may have been raised since the sync, by an entry that comes again. */
            .log_start = start < synced ? start : synced,
        };
    }
    *partitions = made;
    return count;
}
