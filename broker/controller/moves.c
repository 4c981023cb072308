/* AlterPartitionReassignments (KIP-455) and what ends a move. Owns nothing.
 *
 * A partition moves with its whole group. The record of a move says where the group was, where it
 * is to be, and who else may hold it; nobody gives up its copy before a later record says that the
 * move is over, which the group's leader asks for when its members are the target. So a move that
 * is given up, or another one in its place, is itself one more move, with another number: what was
 * told of the earlier one does not end it. */
#include "broker/controller/command.h"

#include <assert.h>
#include <string.h>

#include "base/planted.h"
#include "broker/controller/move_record.h"
#include "broker/controller/placement.h"
#include "io/random.h"

#define WISH alter_partition_reassignments_request_reassignable_partition
#define RESULT alter_partition_reassignments_response_reassignable_partition_response
#define TOPIC_RESULT alter_partition_reassignments_response_reassignable_topic_response

/* What one topic of the request asks for. */
struct mover {
    struct command *command;
    const struct topic_image *topic;
    const struct WISH **taken;    /* for each group: the wish that it follows already */
    bool may_resize;              /* the number of replicas may change */
};

static bool is_registered(const struct command *command, int32_t id)
{
    const struct image *image = command->controller->image;
    assert(image != NULL);
    for (int i = 0; i < image_broker_count(image); i++) {
        if (image_broker(image, i)->broker_id == id) {
            return true;
        }
    }
    return command_has_broker(command, id);
}

static bool holds(const int32_t *list, int32_t count, int32_t id)
{
    for (int32_t i = 0; i < count; i++) {
        if (list[i] == id) {
            return true;
        }
    }
    return false;
}

static bool is_same(const int32_t *a, int32_t a_count, const int32_t *b, int32_t b_count)
{
    assert(a_count > 0 && b_count > 0);
    return a_count == b_count && memcmp(a, b, (size_t)a_count * sizeof *a) == 0;
}

static struct refusal check_target(const struct mover *mover, const struct partition_group *group,
                                   const struct WISH *wish)
{
    enum kafka_error error = KAFKA_INVALID_REPLICA_ASSIGNMENT;
    struct arena *arena = mover->command->arena;
    int32_t now;
    partition_group_original(group, &now);
    assert(now > 0 && wish->replicas_count >= 0);
    if (wish->replicas_count == 0) {
        return (struct refusal){error, VIEW_LITERAL("A partition is assigned to no broker")};
    }
    for (int32_t i = 0; i < wish->replicas_count; i++) {
        int32_t id = wish->replicas[i];
        if (!is_registered(mover->command, id)) {
            return (struct refusal){error, arena_format(arena,
                                                        "Broker %d is not registered", id)};
        }
        if (holds(wish->replicas, i, id)) {
            return (struct refusal){error, arena_format(arena,
                                                        "Broker %d is named more than once", id)};
        }
        if (command_is_cordoned(mover->command, id)) {
            return placement_cordoned(mover->command, id);
        }
    }
    if (!mover->may_resize && wish->replicas_count != now) {
        return (struct refusal){KAFKA_INVALID_REPLICATION_FACTOR,
                                arena_format(arena, "There would be %d replica(s) instead of %d",
                                             wish->replicas_count, now)};
    }
    return REFUSAL_NONE;
}

/* Two partitions of a group cannot go two ways. */
static struct refusal check_taken(const struct mover *mover, const struct WISH *wish)
{
    assert(topic_image_has(mover->topic, wish->partition_index));
    const struct WISH *taken = mover->taken[mover->topic->slots[wish->partition_index]];
    if (taken == NULL || (taken->replicas_count < 0 && wish->replicas_count < 0) ||
        (taken->replicas_count > 0 && wish->replicas_count > 0 &&
         is_same(taken->replicas, taken->replicas_count, wish->replicas, wish->replicas_count))) {
        return REFUSAL_NONE;
    }
    return (struct refusal){
        KAFKA_INVALID_REPLICA_ASSIGNMENT,
        arena_format(mover->command->arena,
                     "Partition %d is in one partition group with partition %d and moves with it",
                     wish->partition_index, taken->partition_index)};
}

/* Who is in the target in another order only, stays. */
static bool is_reordering(const struct partition_group *group, const int32_t *target, int32_t count)
{
    bool same = !partition_group_moves(group) && count == group->replica_count;
    for (int32_t i = 0; i < count && same; i++) {
        same = partition_group_has(group, target[i]);
    }
    return same;
}

static enum status record_move(const struct mover *mover, const struct partition_group *group,
                               const int32_t *target, int32_t target_count)
{
    int32_t original_count;
    const int32_t *original = partition_group_original(group, &original_count);
    size_t most = (size_t)target_count + (size_t)group->replica_count + (size_t)original_count + 1;
    int32_t *numbers = arena_take(mover->command->arena, most, sizeof *numbers);
    struct partition_group after = {.id = group->id, .replicas = numbers};
    assert(target_count > 0 && target_count <= INT16_MAX);
    if (numbers == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(numbers, target, (size_t)target_count * sizeof *numbers);
    after.replica_count = target_count;
    if (!is_reordering(group, target, target_count)) {
        for (int32_t i = 0; i < group->replica_count; i++) {
            if (!holds(target, target_count, group->replicas[i])) {
                numbers[after.replica_count++] = group->replicas[i];
            }
        }
        after.target_count = (int16_t)target_count;
        after.original_count = (int16_t)original_count;
        memcpy(numbers + after.replica_count, original, (size_t)original_count * sizeof *numbers);
        numbers[after.replica_count + original_count] = 1 + (int32_t)random_below(INT32_MAX - 1);
    }
    assert(partition_group_numbers(&after) <= most);
    move_record_add(mover->command->records, mover->topic->id, &after);
    return STATUS_OK;
}

static enum status move_one(struct mover *mover, const struct WISH *wish, struct refusal *refusal)
{
    if (mover->topic == NULL || !topic_image_has(mover->topic, wish->partition_index)) {
        *refusal = (struct refusal){KAFKA_UNKNOWN_TOPIC_OR_PARTITION, VIEW_NULL};
        return STATUS_OK;
    }
    const struct partition_group *group = topic_image_group(mover->topic, wish->partition_index);
    bool cancels = wish->replicas_count < 0;
    int32_t target_count = wish->replicas_count;
    const int32_t *target =
        cancels ? partition_group_original(group, &target_count) : wish->replicas;
    int32_t now_count;
    const int32_t *now = partition_group_target(group, &now_count);
    if (cancels && !partition_group_moves(group)) {
        *refusal = (struct refusal){KAFKA_NO_REASSIGNMENT_IN_PROGRESS, VIEW_NULL};
        return STATUS_OK;
    }
    *refusal = cancels ? REFUSAL_NONE : check_target(mover, group, wish);
    if (refusal->error == KAFKA_NONE) {
        *refusal = check_taken(mover, wish);
    }
    const struct WISH **taken = &mover->taken[mover->topic->slots[wish->partition_index]];
    if (refusal->error != KAFKA_NONE || *taken != NULL) {
        return STATUS_OK;
    }
    *taken = wish;
    return is_same(now, now_count, target, target_count)
               ? STATUS_OK
               : record_move(mover, group, target, target_count);
}

static enum status move_topic(struct command *command,
                              const struct alter_partition_reassignments_request *request,
                              int32_t at, struct TOPIC_RESULT *result)
{
    const struct alter_partition_reassignments_request_reassignable_topic *wish =
        &request->topics[at];
    size_t count = wish->partitions_count < 0 ? 0 : (size_t)wish->partitions_count;
    struct mover mover = {.command = command,
                          .topic = image_topic(command->controller->image, wish->name),
                          .may_resize = request->allow_replication_factor_change};
    size_t groups = mover.topic == NULL ? 0 : mover.topic->group_count;
    mover.taken = arena_take(command->arena, groups + 1, sizeof(const struct WISH *));
    result->name = wish->name;
    result->partitions = arena_take(command->arena, count + 1, sizeof *result->partitions);
    if (mover.taken == NULL || result->partitions == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        struct refusal refusal = REFUSAL_NONE;
        enum status status = move_one(&mover, &wish->partitions[i], &refusal);
        if (status != STATUS_OK) {
            return status;
        }
        result->partitions[result->partitions_count++] =
            (struct RESULT){.partition_index = wish->partitions[i].partition_index,
                            .error_code = (int16_t)refusal.error,
                            .error_message = refusal.why};
    }
    return STATUS_OK;
}

enum status controller_alter_reassignments(
    const struct controller *controller,
    const struct alter_partition_reassignments_request *request, struct arena *arena,
    struct record_list *records, struct alter_partition_reassignments_response *response)
{
    struct command command;
    assert(request != NULL && response != NULL);
    enum status status = command_start(&command, controller, arena, records);
    size_t count = request->topics_count < 0 ? 0 : (size_t)request->topics_count;
    *response = alter_partition_reassignments_response_default;
    response->allow_replication_factor_change = request->allow_replication_factor_change;
    response->error_message = VIEW_NULL;
    response->responses = arena_take(arena, count + 1, sizeof *response->responses);
    if (status != STATUS_OK || response->responses == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = move_topic(&command, request, (int32_t)i,
                            &response->responses[response->responses_count++]);
    }
    return status;
}

void controller_end_move(const struct controller *controller, struct uuid topic_id, uint64_t group,
                         int32_t move, struct record_list *records)
{
    assert(records != NULL);
    const struct topic_image *topic = image_topic_by_id(controller->image, topic_id);
    for (uint32_t i = 0; topic != NULL && i < topic->group_count; i++) {
        struct partition_group after = topic->groups[i];
        if (after.id == group && partition_group_moves(&after) &&
            (partition_group_move(&after) == move || planted(PLANT_MOVE_NUMBER_IGNORED))) {
            after.replica_count = after.target_count;
            after.target_count = 0;
            after.original_count = 0;
            move_record_add(records, topic_id, &after);
        }
    }
}
