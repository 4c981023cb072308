/* What is due when a batch was committed or failed. Happy path: the durable layer takes the
 * records, then the live layer does what it postponed: gives assignments, answers. A failed batch
 * changes nothing durable; who waited for it is told, and the group is left in a state from which
 * its members can go on. Groups may have moved in the meantime, so everything is looked up again.
 */
#include <assert.h>

#include "base/log.h"
#include "base/planted.h"
#include "broker/coordinator/machine.h"
#include "broker/coordinator/texts.h"
#include "messages/delete_groups.h"
#include "messages/leave_group.h"
#include "messages/offset_commit.h"
#include "messages/offset_delete.h"

enum { GROUP_VALUE_LIMIT_BYTES = 256 * 1024 * 1024 };

static void apply_records(struct coordinator *coordinator, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct coordinator_record *record = &batch->views[i];
        if (batch->producer_id >= 0) {
            offset_store_apply_open(&coordinator->store, batch->producer_id, record->key,
                                    record->value);
        } else {
            offset_store_apply(&coordinator->store, record->key, record->value);
        }
    }
}

static void give_answer(struct coordinator *coordinator, struct batch *batch)
{
    if (batch->answer.waiting) {
        batch->answer.waiting = false;
        coordinator_answer(coordinator, batch->answer.token, batch->answer.api,
                           batch->answer.response);
    }
}

/* The group that still waits for this assignment, or null when it went on without it. */
static struct consumer_group *awaiting_assignment(const struct coordinator *coordinator,
                                                  const struct batch *batch)
{
    struct consumer_group *group = coordinator_group(coordinator, batch->group);
    bool waits = group != NULL && group->state == GROUP_COMPLETING_REBALANCE &&
                 group->generation == batch->generation;
    return waits ? group : NULL;
}

/* Takes the assignments out of the record that was stored. */
static void read_assignments(struct consumer_group *group, const struct batch *batch)
{
    assert(batch->count == 1);
    struct arena arena;
    arena_init(&arena, GROUP_VALUE_LIMIT_BYTES);
    struct group_metadata_value value;
    bool read = coordinator_read_group_value(batch->views[0].value, &arena, &value);
    assert(read);
    for (int32_t i = 0; i < value.members_count; i++) {
        struct consumer_member *member = consumer_group_member(group, value.members[i].member_id);
        if (member != NULL) {
            coordinator_text_free(&member->assignment);
            member->assignment = coordinator_text_copy(
                value.members[planted(PLANT_ASSIGNED_TWICE) ? 0 : i].assignment);
        }
    }
    arena_free(&arena);
}

static void assignment_committed(struct coordinator *coordinator, const struct batch *batch)
{
    struct consumer_group *group = awaiting_assignment(coordinator, batch);
    if (group == NULL) {
        return;
    }
    assert(group->leader != NULL && group->protocol_name.data != NULL);
    int64_t stored_timestamp_ms = group->state_timestamp_ms;
    read_assignments(group, batch);
    coordinator_give_assignments(coordinator, group, KAFKA_NONE);
    consumer_group_transition(group, GROUP_STABLE, coordinator->now_ms);
    group->state_timestamp_ms = stored_timestamp_ms;
}

static void assignment_failed(struct coordinator *coordinator, const struct batch *batch,
                              enum kafka_error error)
{
    struct consumer_group *group = awaiting_assignment(coordinator, batch);
    if (group == NULL) {
        return;
    }
    coordinator_give_assignments(coordinator, group, coordinator_append_error(error));
    (void)coordinator_rebalance(coordinator, group, "the assignment could not be stored");
}

static void static_member_committed(struct coordinator *coordinator, const struct batch *batch)
{
    struct consumer_group *group = coordinator_group(coordinator, batch->group);
    struct consumer_member *member =
        group == NULL ? NULL : consumer_group_member(group, batch->member);
    if (member != NULL && member->join.waiting && group->protocol_name.data != NULL) {
        coordinator_finish_static_join(coordinator, member, batch->undo.old_leader);
    }
}

/* Gives the member its former self back, unless somebody else has the id by now. */
static void restore_static_member(struct consumer_group *group, struct consumer_member *member,
                                  const struct static_undo *undo)
{
    assert(undo->old_id.data != NULL);
    if (consumer_group_member(group, undo->old_id) == NULL) {
        consumer_group_rename(group, member, undo->old_id);
    }
    consumer_group_restore_protocols(group, member, undo->protocols, undo->protocol_count);
    member->session_timeout_ms = undo->session_timeout_ms;
    member->rebalance_timeout_ms = undo->rebalance_timeout_ms;
}

static void static_member_failed(struct coordinator *coordinator, struct batch *batch,
                                 enum kafka_error error)
{
    struct consumer_group *group = coordinator_group(coordinator, batch->group);
    struct consumer_member *member =
        group == NULL ? NULL : consumer_group_member(group, batch->member);
    if (member == NULL || !member->join.waiting) {
        return;
    }
    coordinator_fail_join(coordinator, member, VIEW_EMPTY, coordinator_append_error(error));
    if (group->state == GROUP_STABLE) {
        restore_static_member(group, member, &batch->undo);
    }
    coordinator_touch_member(coordinator, member);
}

/* A group whose first record failed never was: who waits in it is told. If another record of it is
 * on its way already, that one will be its first. */
static void new_group_failed(struct coordinator *coordinator, const struct batch *batch,
                             enum kafka_error error)
{
    struct consumer_group *group = coordinator_group(coordinator, batch->group);
    if (group == NULL || offset_store_group(&coordinator->store, group->id) != NULL ||
        coordinator_has_open_batch(coordinator, group->id)) {
        return;
    }
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        coordinator_fail_join(coordinator, member, VIEW_EMPTY, coordinator_append_error(error));
    }
    coordinator_group_drop(coordinator, group);
}

/* The group whose tombstone was lost is there after all. One that was made anew in the meantime
 * goes on; its next record replaces what is stored. */
static void revive_group(struct coordinator *coordinator, struct view id)
{
    struct consumer_group *group = coordinator_group(coordinator, id);
    if (group == NULL) {
        (void)coordinator_group_revive(coordinator, id);
    } else {
        group->unsaved = true;
    }
}

static void revive_groups(struct coordinator *coordinator, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct coordinator_key key = coordinator_read_key(batch->views[i].key);
        if (key.kind == COORDINATOR_KEY_GROUP) {
            revive_group(coordinator, key.group);
        }
    }
}

static void fail_commit(struct offset_commit_response *response, enum kafka_error error)
{
    for (int32_t i = 0; i < response->topics_count; i++) {
        for (int32_t k = 0; k < response->topics[i].partitions_count; k++) {
            int16_t *code = &response->topics[i].partitions[k].error_code;
            *code = *code == KAFKA_NONE ? (int16_t)error : *code;
        }
    }
}

static void fail_delete_groups(struct delete_groups_response *response, enum kafka_error error)
{
    for (int32_t i = 0; i < response->results_count; i++) {
        int16_t *code = &response->results[i].error_code;
        *code = *code == KAFKA_NONE ? (int16_t)error : *code;
    }
}

static void fail_leave(struct leave_group_response *response, enum kafka_error error)
{
    response->error_code = (int16_t)error;
    response->members_count = 0;
}

/* Changes the answer that waits into one that tells of the failure. */
static void fail_answer(const struct batch_answer *answer, enum kafka_error error)
{
    struct offset_delete_response *deletion = answer->response;
    switch (answer->api) {
    case API_OFFSET_COMMIT:
    case API_TXN_OFFSET_COMMIT:
        fail_commit(answer->response, coordinator_commit_error(error));
        break;
    case API_DELETE_GROUPS:
        fail_delete_groups(answer->response, coordinator_append_error(error));
        break;
    case API_LEAVE_GROUP:
        fail_leave(answer->response, coordinator_append_error(error));
        break;
    default:
        assert(answer->api == API_OFFSET_DELETE);
        deletion->error_code = (int16_t)coordinator_append_error(error);
        deletion->topics_count = 0;
        break;
    }
}

static void mark_saved(struct coordinator *coordinator, const struct batch *batch, bool saved)
{
    struct consumer_group *group =
        batch->group.data == NULL ? NULL : coordinator_group(coordinator, batch->group);
    if (group != NULL && batch->kind != BATCH_OFFSETS && batch->kind != BATCH_DELETE_OFFSETS) {
        group->unsaved = !saved;
    }
}

void coordinator_batch_committed(struct coordinator *coordinator, struct batch *batch)
{
    assert(batch->views != NULL && batch->count > 0);
    apply_records(coordinator, batch);
    mark_saved(coordinator, batch, true);
    if (batch->kind == BATCH_ASSIGNMENT) {
        assignment_committed(coordinator, batch);
    } else if (batch->kind == BATCH_STATIC_MEMBER) {
        static_member_committed(coordinator, batch);
    }
    give_answer(coordinator, batch);
    struct consumer_group *group =
        batch->group.data == NULL ? NULL : coordinator_group(coordinator, batch->group);
    if (group != NULL) {
        coordinator_group_drop_if_void(coordinator, group);
    }
}

void coordinator_batch_failed(struct coordinator *coordinator, struct batch *batch,
                              enum kafka_error error)
{
    log_warn("coordinator", "batch %llu of group %.*s was not stored: error %d",
             (unsigned long long)batch->id, VIEW_PRINT(batch->group), error);
    assert(error != KAFKA_NONE);
    mark_saved(coordinator, batch, false);
    if (batch->answer.waiting) {
        fail_answer(&batch->answer, error);
    }
    switch (batch->kind) {
    case BATCH_ASSIGNMENT:
        assignment_failed(coordinator, batch, error);
        break;
    case BATCH_STATIC_MEMBER:
        static_member_failed(coordinator, batch, error);
        break;
    case BATCH_NEW_GROUP:
        new_group_failed(coordinator, batch, error);
        break;
    case BATCH_DELETE_GROUPS:
    case BATCH_EXPIRY:
        revive_groups(coordinator, batch);
        break;
    default:
        break;
    }
    give_answer(coordinator, batch);
    struct consumer_group *group =
        batch->group.data == NULL ? NULL : coordinator_group(coordinator, batch->group);
    if (group != NULL) {
        coordinator_group_drop_if_void(coordinator, group);
    }
}

void coordinator_refuse_batch(struct coordinator *coordinator, struct batch *batch)
{
    if (batch->answer.waiting) {
        fail_answer(&batch->answer, KAFKA_NOT_COORDINATOR);
        give_answer(coordinator, batch);
    }
}
