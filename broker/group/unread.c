/* Nothing of such a group is under way, so that it can be closed and opened again at any time. A
 * bad place that stays bad keeps one group of one node offline, and costs a few reads each time. */
#include "broker/group/unread.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/planted.h"
#include "broker/controller/topic_image.h"
#include "broker/group/boot.h"
#include "broker/group/group_journal.h"
#include "broker/group/group_members.h"
#include "broker/group/partition.h"
#include "broker/group/topic_logs.h"
#include "broker/server/broker.h"
#include "io/clock.h"

enum { HAND_OVER_EVERY_MS = 10 * 1000 };

bool unread_at_opening(const struct group *group)
{
    assert(group->raft == NULL);
    return group->storage == STATUS_IO;
}

void unread_note(struct group *group, const struct group_start *start)
{
    struct replicas *replicas = group->shard->replicas;
    assert(group->storage == STATUS_IO && !list_contains(&group->unread));
    group->is_unread = true;
    /* What it lacks, if it lacks something, is not known yet: the directory is not whole before. */
    atomic_fetch_add(&group->shard->broker->groups_catching_up, 1);
    group->existed = start->existed;
    group->boot = start->boot;
    if (start->boot != NULL) {
        start->boot->used = true; /* and kept for the next time */
    }
    for (int32_t i = 0; i < group->partition_count; i++) {
        partition_end(group->partitions[i]);
        group->partitions[i]->damaged = true;
    }
    if (group->topic != NULL && !planted(PLANT_UNREAD_STAYS)) {
        group->unread_ms = clock_monotonic_ms();
        list_push_back(&replicas->unread, &group->unread);
    }
}

void unread_end(struct group *group)
{
    if (list_contains(&group->unread)) {
        list_remove(&group->unread);
    }
    if (group->is_unread) {
        int before = atomic_fetch_sub(&group->shard->broker->groups_catching_up, 1);
        assert(before > 0);
        (void)before;
    }
}

static void open_again(struct replicas *replicas, struct group *group,
                       void (*open)(struct replicas *replicas, struct topic_image *topic,
                                    const struct group_start *start))
{
    assert(group->topic != NULL && group->io_pending == 0);
    struct topic_image *topic = topic_image_ref(group->topic);
    struct group_start start = {
        .id = group->id, .topic = topic, .boot = group->boot, .existed = group->existed};
    group_close(group, false);
    if (start.boot != NULL) {
        start.boot->used = false; /* it has all that the journal had */
    }
    open(replicas, topic, &start);
    topic_image_unref(topic);
}

void unread_tick(struct replicas *replicas, uint64_t now_ms,
                 void (*open)(struct replicas *replicas, struct topic_image *topic,
                              const struct group_start *start))
{
    struct list_link *link;
    while ((link = list_first(&replicas->unread)) != NULL) {
        struct group *group = container_of(link, struct group, unread);
        assert(group->is_unread && !group->closed);
        if (now_ms - group->unread_ms < UNREAD_EVERY_MS) {
            return; /* those behind it are younger */
        }
        open_again(replicas, group, open);
    }
}

void unread_log(struct group *group, enum status status)
{
    struct raft_event transfer = {.kind = RAFT_EVENT_TRANSFER, .node = RAFT_NO_NODE};
    uint64_t now_ms = clock_monotonic_ms();
    assert(!group->closed && now_ms >= group->unread_ms);
    bool is_due = group->unread_ms == 0 || now_ms - group->unread_ms >= HAND_OVER_EVERY_MS;
    if (status != STATUS_IO || !is_due || !group->leads || !group_is_replicated(group)) {
        return;
    }
    group->unread_ms = now_ms;
    log_warn("group", "group %" PRIu64 " of %s cannot be read here: another replica shall lead it",
             group->id, topic_log_name(group));
    group_step(group, &transfer);
}

struct unread_mail {
    struct mail mail;
    uint64_t group;
    enum status status;
};

static void told(struct shard *shard, struct mail *mail)
{
    struct unread_mail *unread = container_of(mail, struct unread_mail, mail);
    struct group *group = replicas_group(shard->replicas, unread->group);
    if (group != NULL) {
        unread_log(group, unread->status);
    }
    free(unread);
}

void unread_tell(struct shard *from, uint64_t group, enum status status)
{
    struct unread_mail *unread = memory_new_zero(1, sizeof *unread);
    assert(status != STATUS_OK);
    unread->group = group;
    unread->status = status;
    unread->mail.run = told;
    shard_post(broker_shard_of(from->broker, group), &unread->mail);
}

void unread_metadata(struct group *group, enum status status)
{
    assert(group->topic == NULL && status != STATUS_OK);
    atomic_store(&group->shard->broker->metadata_is_unread, true);
    log_writer_fail(group->shard->replicas->writer, status);
}
