/* JoinGroup and SyncGroup requests that wait in their members, and the answers they get. Happy
 * path: park, then finish. A member has at most one of each; a second one answers the first. */
#include <assert.h>

#include "broker/coordinator/answers.h"
#include "broker/coordinator/machine.h"
#include "messages/join_group.h"
#include "messages/sync_group.h"

enum { PROTOCOL_NAME_NULLABLE_VERSION = 7, SKIP_ASSIGNMENT_VERSION = 9 };

struct parked_answer coordinator_parked(const struct coordinator_context *context)
{
    return (struct parked_answer){
        .waiting = true,
        .version = context->version,
        .token = context->token,
        .arena = context->arena,
    };
}

void coordinator_answer_join_error(struct coordinator *coordinator, const struct parked_answer *to,
                                   struct view member_id, enum kafka_error error)
{
    struct join_group_response response = join_group_response_default;
    response.error_code = (int16_t)error;
    response.protocol_name =
        to->version < PROTOCOL_NAME_NULLABLE_VERSION ? VIEW_EMPTY : VIEW_NULL;
    response.member_id = coordinator_answer_text(to->arena, member_id);
    coordinator_answer(coordinator, to->token, API_JOIN_GROUP, &response);
}

static void fill_members(struct join_group_response *response, const struct parked_answer *to,
                         const struct consumer_group *group)
{
    struct join_group_response_join_group_response_member *out = coordinator_answer_list(
        to->arena, group->member_count, &join_group_response_join_group_response_member_default,
        sizeof(*out), &response->members_count);
    response->members = out;
    if (out == NULL) {
        return;
    }
    for (struct consumer_member *member = consumer_group_first(group); member != NULL;
         member = consumer_group_next(group, member)) {
        out->member_id = coordinator_answer_text(to->arena, member->id);
        out->group_instance_id = coordinator_answer_text(to->arena, member->instance_id);
        out->metadata = coordinator_answer_text(
            to->arena, consumer_member_metadata(member, group->protocol_name));
        out++;
    }
    assert(out == response->members + response->members_count);
}

static void fill_join(struct join_group_response *response, const struct parked_answer *to,
                      const struct consumer_member *member)
{
    const struct consumer_group *group = member->group;
    assert(group->protocol_name.data != NULL && group->leader != NULL);
    *response = join_group_response_default;
    response->generation_id = group->generation;
    response->protocol_type = coordinator_answer_text(to->arena, group->protocol_type);
    response->protocol_name = coordinator_answer_text(to->arena, group->protocol_name);
    response->leader = coordinator_answer_text(to->arena, group->leader->id);
    response->member_id = coordinator_answer_text(to->arena, member->id);
}

void coordinator_answer_join(struct coordinator *coordinator, const struct parked_answer *to,
                             const struct consumer_member *member)
{
    struct join_group_response response;
    fill_join(&response, to, member);
    if (member->group->leader == member) {
        fill_members(&response, to, member->group);
    }
    coordinator_answer(coordinator, to->token, API_JOIN_GROUP, &response);
}

void coordinator_answer_sync_error(struct coordinator *coordinator, const struct parked_answer *to,
                                   enum kafka_error error)
{
    struct sync_group_response response = sync_group_response_default;
    response.error_code = (int16_t)error;
    coordinator_answer(coordinator, to->token, API_SYNC_GROUP, &response);
}

void coordinator_answer_sync(struct coordinator *coordinator, const struct parked_answer *to,
                             const struct consumer_member *member)
{
    const struct consumer_group *group = member->group;
    struct sync_group_response response = sync_group_response_default;
    response.protocol_type = coordinator_answer_text(to->arena, group->protocol_type);
    response.protocol_name = coordinator_answer_text(to->arena, group->protocol_name);
    response.assignment = coordinator_answer_text(to->arena, member->assignment);
    coordinator_answer(coordinator, to->token, API_SYNC_GROUP, &response);
}

/* Takes the waiting JoinGroup out of the member; not waiting when there was none. */
static struct parked_answer take_join(struct consumer_member *member)
{
    struct parked_answer parked = member->join;
    if (parked.waiting) {
        assert(member->group->joining_count > 0);
        member->group->joining_count--;
        member->join = (struct parked_answer){0};
    }
    return parked;
}

void coordinator_park_join(struct coordinator *coordinator, struct consumer_member *member,
                           const struct coordinator_context *context)
{
    coordinator_fail_join(coordinator, member, member->id, KAFKA_REBALANCE_IN_PROGRESS);
    assert(!member->join.waiting);
    member->join = coordinator_parked(context);
    member->group->joining_count++;
}

void coordinator_park_sync(struct coordinator *coordinator, struct consumer_member *member,
                           const struct coordinator_context *context)
{
    coordinator_finish_sync(coordinator, member, KAFKA_REBALANCE_IN_PROGRESS);
    assert(!member->sync.waiting);
    member->sync = coordinator_parked(context);
}

void coordinator_fail_join(struct coordinator *coordinator, struct consumer_member *member,
                           struct view member_id, enum kafka_error error)
{
    struct parked_answer parked = take_join(member);
    if (parked.waiting) {
        coordinator_answer_join_error(coordinator, &parked, member_id, error);
    }
}

void coordinator_finish_join(struct coordinator *coordinator, struct consumer_member *member)
{
    struct parked_answer parked = take_join(member);
    if (parked.waiting) {
        coordinator_answer_join(coordinator, &parked, member);
    }
}

void coordinator_finish_static_join(struct coordinator *coordinator, struct consumer_member *member,
                                    struct view old_leader)
{
    struct parked_answer parked = take_join(member);
    if (!parked.waiting) {
        return;
    }
    struct join_group_response response;
    fill_join(&response, &parked, member);
    if (parked.version >= SKIP_ASSIGNMENT_VERSION) {
        response.skip_assignment = member->group->leader == member;
        if (response.skip_assignment) {
            fill_members(&response, &parked, member->group);
        }
    } else {
        response.leader = coordinator_answer_text(parked.arena, old_leader);
    }
    coordinator_answer(coordinator, parked.token, API_JOIN_GROUP, &response);
}

void coordinator_finish_sync(struct coordinator *coordinator, struct consumer_member *member,
                             enum kafka_error error)
{
    struct parked_answer parked = member->sync;
    if (!parked.waiting) {
        return;
    }
    member->sync = (struct parked_answer){0};
    if (error == KAFKA_NONE) {
        coordinator_answer_sync(coordinator, &parked, member);
    } else {
        coordinator_answer_sync_error(coordinator, &parked, error);
    }
}
