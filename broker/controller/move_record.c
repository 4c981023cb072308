/* A picture of a group as its record. Cannot fail. */
#include "broker/controller/move_record.h"

#include <assert.h>

#include "messages/ottla_records.h"

void move_record_add(struct record_list *records, struct uuid topic_id,
                     const struct partition_group *group)
{
    struct group_replicas_record record = group_replicas_record_default;
    assert(!uuid_is_zero(topic_id) && group->replica_count > 0);
    record.topic_id = topic_id;
    record.group_id = (int64_t)group->id;
    /* The codec takes what it encodes as not const; it only reads. */
    record.replicas =
        (int32_t *)(uintptr_t)partition_group_original(group, &record.replicas_count);
    if (partition_group_moves(group)) {
        record.target = (int32_t *)(uintptr_t)group->replicas;
        record.target_count = group->target_count;
        record.others = record.target + group->target_count;
        record.others_count = group->replica_count - group->target_count;
        record.move_id = partition_group_move(group);
    }
    record_list_add(records, &group_replicas_record_type, 0, &record);
}
