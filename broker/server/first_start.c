/* Looks at what the other voters said, once a tick, until it is known. The directory is marked
 * complete before the first vote of a new cluster, or else when all groups have caught up; when the
 * mark cannot be removed, the node catches up once more at its next start. */
#include "broker/server/first_start.h"

#include <assert.h>

#include "base/log.h"
#include "broker/group/group_loss.h"
#include "broker/server/metadata_state.h"

enum { WAIT_FOR_ALL_MS = 2000 };

struct answers {
    int voters;
    int empty; /* this node among them */
    int kept;
};

static struct answers count_answers(const struct broker *broker)
{
    struct answers answers = {.voters = broker->voter_count};
    for (int i = 0; i < broker->voter_count; i++) {
        int32_t id = broker->voters[i].node_id;
        const struct liveness_node *node =
            id == broker->node_id ? NULL : liveness_find(&broker->liveness, id);
        int said = node == NULL ? LIVENESS_NOT_ASKED : atomic_load(&node->metadata);
        answers.empty += id == broker->node_id || said == LIVENESS_EMPTY;
        answers.kept += said == LIVENESS_KEPT;
    }
    assert(answers.empty + answers.kept <= answers.voters);
    return answers;
}

static bool is_voter(const struct broker *broker)
{
    for (int i = 0; i < broker->voter_count; i++) {
        if (broker->voters[i].node_id == broker->node_id) {
            return true;
        }
    }
    return false;
}

static bool complete(struct broker *broker)
{
    enum status status = log_dir_complete(broker->log_dir);
    if (status != STATUS_OK) {
        log_warn("cluster", "the data directory cannot be marked as complete: %s",
                 status_text(status));
    }
    return status == STATUS_OK;
}

/* What is known by now of an empty metadata log. */
static void judge(struct metadata_log *log, uint64_t now_ms)
{
    struct broker *broker = log->broker;
    struct answers answers = count_answers(broker);
    bool is_late = now_ms - log->first_start_ms >= WAIT_FOR_ALL_MS;
    if (answers.kept > 0) {
        log_warn("cluster", "the data directory is new, but the cluster is not: this node does not "
                 "vote before it has caught up");
        log->first_start = FIRST_START_OVER;
    } else if (!broker->changes_voters && is_voter(broker) &&
               (answers.empty == answers.voters ||
                (is_late && answers.empty * 2 > answers.voters)) && complete(broker)) {
        log_debug("cluster", "a new cluster: %d of %d voters are here", answers.empty,
                  answers.voters);
        log->first_start = FIRST_START_NEW;
        group_loss_none(log->group);
    }
}

void first_start_open(struct broker *broker)
{
    const struct journal_boot *part = boot_find(&broker->boot, METADATA_GROUP_ID);
    assert(!atomic_load(&broker->keeps_metadata));
    /* A vote alone is nothing: nobody leads a group without entries. */
    if (part != NULL && (part->count > 0 || part->mark > 0)) {
        atomic_store(&broker->keeps_metadata, true);
    }
}

static void go_on(struct metadata_log *log, uint64_t now_ms)
{
    struct group *group = log->group;
    bool is_untold = group->loss != NULL && group->catch_up_to == UINT64_MAX;
    if (log->first_start == FIRST_START_NEW) {
        /* A tick after it was known: by now the others know it too, and vote. */
        log->first_start = FIRST_START_OVER;
        if (raft_last_index(group->raft) == 0 && raft_leader(group->raft) == RAFT_NO_NODE) {
            group_campaign_first(group);
        }
    } else if (is_untold) {
        judge(log, now_ms);
    } else {
        log->first_start = FIRST_START_OVER;
    }
}

void first_start_tick(struct metadata_log *log, uint64_t now_ms)
{
    struct broker *broker = log->broker;
    if (!broker->in_cluster) {
        return;
    }
    log->first_start_ms = log->first_start_ms == 0 ? now_ms : log->first_start_ms;
    if (raft_last_index(log->group->raft) > 0) {
        atomic_store(&broker->keeps_metadata, true);
    }
    if (log->first_start != FIRST_START_OVER) {
        go_on(log, now_ms);
    } else if (log->announced && atomic_load(&broker->groups_catching_up) == 0 &&
               log_dir_is_incomplete(broker->log_dir)) {
        (void)complete(broker);
    }
}
