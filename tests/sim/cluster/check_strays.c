/* Logs of a group that moved away go when the journal has forgotten the group on the disk, and not
 * earlier (the linker wraps log_dir_discard_partition). What the journal was given is on the disk
 * after its next turn at the earliest. */
#include <assert.h>
#include <inttypes.h>

#include "broker/controller/topic_image.h"
#include "broker/server/metadata_state.h"
#include "storage/journal.h"
#include "storage/log_dir.h"
#include "tests/sim/cluster/check.h"
#include "tests/sim/cluster/growing.h"
#include "tests/sim/cluster/node.h"
#include "tests/sim/cluster/world.h"

/* A group that a process told its journal to forget. */
struct forgotten {
    uint64_t group;
    int32_t node;
    unsigned life;
    uint64_t turns;              /* of the journal, then */
};

static struct growing list = {.item_bytes = sizeof(struct forgotten)};

void check_strays_forget(void)
{
    growing_forget(&list);
}

static void note(const struct sim_node *node, uint64_t group)
{
    struct forgotten *one = growing_add(&list);
    *one = (struct forgotten){group, node->id, node->life, node->journal_turns};
}

void check_strays_submitted(const struct journal_op *op)
{
    for (size_t i = 0; i < op->record_count; i++) {
        if (op->records[i].kind == JOURNAL_FORGET) {
            note(node_current(), op->records[i].group);
        }
    }
}

static bool is_forgotten(const struct sim_node *node, uint64_t group)
{
    bool found = false;
    for (size_t i = 0; i < list.count && !found; i++) {
        const struct forgotten *one = growing_at(&list, i);
        found = one->group == group && one->node == node->id && one->life == node->life &&
                one->turns < node->journal_turns;
    }
    return found;
}

enum status __real_log_dir_discard_partition(struct log_dir *dir, const char *topic,
                                             int32_t partition);
enum status __wrap_log_dir_discard_partition(struct log_dir *dir, const char *topic,
                                             int32_t partition);

enum status __wrap_log_dir_discard_partition(struct log_dir *dir, const char *topic,
                                             int32_t partition)
{
    const struct sim_node *node = node_current();
    const struct metadata_log *log = node->broker->metadata;
    assert(log != NULL);
    struct topic_image *known = image_topic(log->image, view_text(topic));
    if (known != NULL && topic_image_has(known, partition)) {
        const struct partition_group *group = topic_image_group(known, partition);
        world_require(partition_group_has(group, node->id) || is_forgotten(node, group->id),
                      "node %d removes %s-%d, which moved away, before its journal has forgotten "
                      "group %" PRIu64, node->id, topic, (int)partition, group->id);
    }
    return __real_log_dir_discard_partition(dir, topic, partition);
}
