/* Spreading partitions over groups and groups over brokers. Owns nothing; the record's arrays live
 * in the command's arena. */
#include "broker/controller/placement.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

#define GROUP partition_groups_record_partition_group

/* What one placement works on. */
struct placer {
    struct command *command;
    const struct topic_image *topic; /* what is there already; may be null */
    struct partition_groups_record *record;
    uint8_t *slots;
    uint32_t old_groups;
    uint32_t groups; /* old and new */
    int32_t placed;
};

/* A group's replicas while they are chosen. */
struct choice {
    bool *is_chosen;     /* for each place in the order of brokers */
    int32_t *rack_uses;  /* replicas in each rack */
};

static enum status start(struct placer *placer, struct command *command,
                         const struct topic_image *topic, int32_t added, uint32_t new_groups,
                         struct partition_groups_record *record)
{
    assert(added > 0);
    *placer = (struct placer){.command = command, .topic = topic, .record = record};
    placer->old_groups = topic == NULL ? 0 : topic->group_count;
    placer->groups = placer->old_groups;
    *record = partition_groups_record_default;
    record->first_partition = topic == NULL ? 0 : topic->partition_count;
    record->groups = arena_take(command->arena, new_groups + 1, sizeof *record->groups);
    placer->slots = arena_take(command->arena, (size_t)added, 2);
    record->slots = (struct view){placer->slots, 2 * (size_t)added};
    return record->groups == NULL || placer->slots == NULL ? STATUS_LIMIT : STATUS_OK;
}

static void put(struct placer *placer, uint32_t slot)
{
    assert(slot < placer->groups);
    store_be16(placer->slots + 2 * (size_t)placer->placed, (uint16_t)slot);
    placer->placed++;
}

/* A new group with these brokers; returns its slot. */
static uint32_t add_group(struct placer *placer, const int32_t *replicas, int32_t count)
{
    assert(placer->groups < TOPIC_GROUPS_MOST);
    struct GROUP *group = &placer->record->groups[placer->record->groups_count++];
    *group = (struct GROUP){.group_id = (int64_t)placer->command->next_group++,
                            .replicas = (int32_t *)(uintptr_t)replicas,
                            .replicas_count = count};
    return placer->groups++;
}

/* The place of the group's next replica in the command's order of brokers: the nearest one, counted
 * on from `from`, of those whose rack has the fewest replicas of this group so far. */
static int next_place(const struct command *command, const struct choice *choice, int from)
{
    int best = -1;
    assert(from >= 0 && from < command->broker_count);
    for (int i = 0; i < command->broker_count; i++) {
        int place = (from + i) % command->broker_count;
        if (!choice->is_chosen[place] &&
            (best < 0 || choice->rack_uses[command->racks[place]] <
                             choice->rack_uses[command->racks[best]])) {
            best = place;
        }
    }
    assert(best >= 0);
    return best;
}

/* The brokers for the next group. The first replica, the preferred leader, moves on by one broker
 * from group to group. Where the others begin moves on when each broker had its turn, so that the
 * loss of a broker does not burden its neighbour alone. Where those that are there do not suffice,
 * others are the last replicas: they will be back. */
static int32_t *choose_replicas(struct command *command, int32_t replication)
{
    size_t count = (size_t)command->broker_count;
    assert(command->next_group > METADATA_GROUP_ID);
    assert(replication > 0 && replication <= command->broker_count + command->absent_count);
    int32_t there = replication < command->broker_count ? replication : command->broker_count;
    int32_t *replicas = arena_take(command->arena, (size_t)replication, sizeof *replicas);
    struct choice choice = {arena_take(command->arena, count, sizeof *choice.is_chosen),
                            arena_take(command->arena, count, sizeof *choice.rack_uses)};
    if (replicas == NULL || choice.is_chosen == NULL || choice.rack_uses == NULL) {
        return NULL;
    }
    uint64_t first = count > 0 ? command->next_group % count : 0;
    uint64_t shift = count > 1 ? command->next_group / count % (count - 1) : 0;
    int place = (int)first;
    for (int32_t i = 0; i < there; i++) {
        place = i == 1 ? (int)((first + 1 + shift) % count) : place;
        place = next_place(command, &choice, place);
        choice.is_chosen[place] = true;
        choice.rack_uses[command->racks[place]]++;
        replicas[i] = command->brokers[place];
        place = (place + 1) % command->broker_count;
    }
    for (int32_t i = there; i < replication; i++) {
        assert(command->absent_count >= replication - there);
        uint64_t at = command->next_group + (uint64_t)(i - there);
        replicas[i] = command->absent[at % (uint64_t)command->absent_count];
    }
    return replicas;
}

enum status placement_spread(struct command *command, const struct topic_image *topic,
                             int32_t count_after, uint32_t cap, int32_t replication,
                             struct partition_groups_record *record)
{
    assert(cap > 0 && cap < TOPIC_GROUPS_MOST);
    int32_t first = topic == NULL ? 0 : topic->partition_count;
    uint32_t wanted = (uint32_t)count_after < cap ? (uint32_t)count_after : cap;
    struct placer placer;
    enum status status = start(&placer, command, topic, count_after - first, wanted, record);
    for (int32_t p = first; p < count_after && status == STATUS_OK; p++) {
        if (placer.groups >= wanted) {
            put(&placer, (uint32_t)p % placer.groups);
            continue;
        }
        int32_t *replicas = choose_replicas(command, replication);
        if (replicas == NULL) {
            return STATUS_LIMIT;
        }
        put(&placer, add_group(&placer, replicas, replication));
    }
    assert(status != STATUS_OK || placer.placed == count_after - first);
    return status;
}

static struct replica_list replicas_of(const struct placer *placer, uint32_t slot)
{
    if (slot < placer->old_groups) {
        const struct partition_group *group = &placer->topic->groups[slot];
        struct replica_list target;
        target.brokers = partition_group_target(group, &target.count);
        return target;
    }
    const struct GROUP *group = &placer->record->groups[slot - placer->old_groups];
    return (struct replica_list){group->replicas, group->replicas_count};
}

static bool same_replicas(struct replica_list a, struct replica_list b)
{
    return a.count == b.count &&
           memcmp(a.brokers, b.brokers, (size_t)a.count * sizeof *a.brokers) == 0;
}

/* A group of just these brokers, the search beginning at another one for each partition so that
 * partitions are spread; the number of groups when there is none. */
static uint32_t find_group(const struct placer *placer, struct replica_list list)
{
    uint32_t first = (uint32_t)placer->placed;
    for (uint32_t i = 0; i < placer->groups; i++) {
        uint32_t slot = (first + i) % placer->groups;
        if (same_replicas(replicas_of(placer, slot), list)) {
            return slot;
        }
    }
    return placer->groups;
}

enum status placement_manual(struct command *command, const struct topic_image *topic,
                             const struct replica_list *lists, int32_t list_count, uint32_t cap,
                             struct partition_groups_record *record)
{
    assert(cap > 0 && list_count > 0);
    struct placer placer;
    enum status status = start(&placer, command, topic, list_count, (uint32_t)list_count, record);
    for (int32_t i = 0; i < list_count && status == STATUS_OK; i++) {
        uint32_t slot = placer.groups < cap ? placer.groups : find_group(&placer, lists[i]);
        if (slot < placer.groups) {
            put(&placer, slot);
        } else if (placer.groups == TOPIC_GROUPS_MOST) {
            status = STATUS_LIMIT;
        } else {
            put(&placer, add_group(&placer, lists[i].brokers, lists[i].count));
        }
    }
    assert(status != STATUS_OK || placer.placed == list_count);
    return status;
}

static bool is_named_before(struct replica_list list, int32_t at)
{
    for (int32_t i = 0; i < at; i++) {
        if (list.brokers[i] == list.brokers[at]) {
            return true;
        }
    }
    return false;
}

/* Nobody would lead it otherwise. */
static bool any_is_there(const struct command *command, struct replica_list list)
{
    assert(list.count > 0);
    for (int32_t i = 0; i < list.count; i++) {
        if (command_can_take(command, list.brokers[i])) {
            return true;
        }
    }
    return false;
}

struct refusal placement_cordoned(const struct command *command, int32_t id)
{
    return (struct refusal){
        KAFKA_INVALID_REPLICA_ASSIGNMENT,
        arena_format(command->arena, "The manual partition assignment includes broker %d, but all "
                                     "its log directories are cordoned.", id)};
}

struct refusal placement_check(const struct command *command, struct replica_list list,
                               int32_t replication)
{
    struct arena *arena = command->arena;
    enum kafka_error error = KAFKA_INVALID_REPLICA_ASSIGNMENT;
    if (list.count <= 0) {
        return (struct refusal){error, VIEW_LITERAL("A partition is assigned to no broker")};
    }
    for (int32_t i = 0; i < list.count; i++) {
        if (!command_has_broker(command, list.brokers[i])) {
            return (struct refusal){
                error, arena_format(arena, "A partition is assigned to broker %d, which is not "
                                           "registered", list.brokers[i])};
        }
        if (is_named_before(list, i)) {
            return (struct refusal){error, arena_format(arena,
                                                        "A partition is assigned to broker %d "
                                                        "more than once", list.brokers[i])};
        }
        if (command_is_cordoned(command, list.brokers[i])) {
            return placement_cordoned(command, list.brokers[i]);
        }
    }
    if (replication > 0 && list.count != replication) {
        return (struct refusal){
            error, arena_format(arena, "A partition is assigned to %d broker(s), those before it "
                                       "to %d", list.count, replication)};
    }
    if (!any_is_there(command, list)) {
        return (struct refusal){error, VIEW_LITERAL("A partition is assigned only to brokers that "
                                                    "are fenced, or stop")};
    }
    return REFUSAL_NONE;
}

struct refusal placement_reach(const struct command *command, int32_t replication)
{
    int registered = command->broker_count + command->absent_count;
    if (replication >= 1 && replication <= registered) {
        return REFUSAL_NONE;
    }
    if (registered == 0) {
        return (struct refusal){
            KAFKA_INVALID_REPLICATION_FACTOR,
            arena_format(command->arena,
                         "Unable to replicate the partition %d time(s): All brokers are currently "
                         "fenced, or have all their log directories cordoned.", replication)};
    }
    const char *cordoned = command->cordoned_count > 0
                               ? " or some brokers have all their log directories cordoned"
                               : "";
    return (struct refusal){
        KAFKA_INVALID_REPLICATION_FACTOR,
        arena_format(command->arena,
                     "Unable to replicate the partition %d time(s): The target replication factor "
                     "of %d cannot be reached because only %d broker(s) are registered%s.",
                     replication, replication, registered, cordoned)};
}
