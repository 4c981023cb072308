/* AddRaftVoter and RemoveRaftVoter (KIP-853): the voters on metadata change, one at a time. Happy
 * path: the change is recorded, Raft's members follow (a new voter learns first, and votes when it
 * has caught up), and when that is committed the answer is given. What takes too long is answered
 * with REQUEST_TIMED_OUT and goes on: asked for again, a voter that is on its way is waited for,
 * and one that does not come can be removed. */
#include <assert.h>

#include "broker/api/controller_request.h"
#include "broker/api/handlers.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_members.h"
#include "broker/server/voter_address.h"
#include "broker/server/voter_wait.h"
#include "io/clock.h"
#include "messages/add_raft_voter.h"
#include "messages/errors.h"
#include "messages/remove_raft_voter.h"

#define TOO_LATE VIEW_LITERAL("The change is not committed yet; it may still come to be")

enum { CHANGE_MOST_MS = 25000 };

/* Whether the client means another cluster. */
static bool is_foreign(const struct request *request, struct view cluster_id)
{
    return cluster_id.data != NULL && !view_is(cluster_id, request->home->broker->cluster_id);
}

/* The name of this node's listener of controllers; the null view without one. */
static struct view controller_listener(const struct broker *broker)
{
    struct view name = VIEW_NULL;
    struct view host;
    uint16_t port;
    voter_address_own(broker, &name, &host, &port);
    return name;
}

static struct refusal busy_with(int32_t voter, struct arena *arena)
{
    return (struct refusal){KAFKA_REQUEST_TIMED_OUT,
                            arena_format(arena, "Request timed out waiting for leader to handle "
                                         "previous voter change request: voter %d", voter)};
}

/* ---- Until it is so ------------------------------------------------------------------------- */

struct voter_change {
    struct voter_wait wait;
    struct request *request;
    void *response;
    void (*fail)(void *response, int16_t error);
};

static void settled(struct metadata_wait *wait, int16_t error)
{
    struct voter_wait *voter = container_of(wait, struct voter_wait, wait);
    struct voter_change *change = container_of(voter, struct voter_change, wait);
    struct request *request = change->request;
    if (error != KAFKA_NONE) {
        change->fail(change->response, error);
        request_encode(request, change->response);
    }
    request_go_home(request, request->home);
}

/* Clients give up after 30 s as a rule, and nodes that passed the request on do too. */
static void wait_until(struct request *request, struct voter_change *change, int64_t timeout_ms)
{
    int64_t wait_ms = timeout_ms < CHANGE_MOST_MS ? timeout_ms : CHANGE_MOST_MS;
    assert(change->fail != NULL && change->response != NULL);
    change->request = request;
    change->wait.wait.deadline_ms = clock_monotonic_ms() + (uint64_t)(wait_ms > 0 ? wait_ms : 0);
    change->wait.wait.done = settled;
    voter_wait_start(request->home, &change->wait);
}

/* ---- AddRaftVoter --------------------------------------------------------------------------- */

static bool is_the_same(const struct controller *controller,
                        const struct add_raft_voter_request *message)
{
    int count;
    const struct quorum_voter *voters = image_voters(controller->image, &count);
    for (int i = 0; i < count; i++) {
        if (voters[i].node_id == message->voter_id) {
            return uuid_equal(voters[i].directory_id, message->voter_directory_id);
        }
    }
    return false;
}

/* One that is on its way is only waited for. */
static struct refusal add(const struct controller *controller, struct request *request,
                          struct record_list *records)
{
    const struct add_raft_voter_request *message = request->message;
    const struct broker *broker = request->home->broker;
    int32_t pending = voter_pending(broker);
    if (is_foreign(request, message->cluster_id)) {
        return (struct refusal){KAFKA_INCONSISTENT_CLUSTER_ID, VIEW_NULL};
    }
    if (pending >= 0 && pending == message->voter_id && is_the_same(controller, message)) {
        return (struct refusal){KAFKA_NONE, VIEW_NULL};
    }
    if (pending >= 0) {
        return busy_with(pending, &request->arena);
    }
    return controller_add_voter(controller, message, controller_listener(broker), &request->arena,
                                records);
}

static enum status make_added(const struct controller *controller, struct request *request,
                              struct record_list *records, void *response)
{
    struct add_raft_voter_response *out = response;
    assert(request->message != NULL);
    *out = add_raft_voter_response_default;
    struct refusal refusal = add(controller, request, records);
    out->error_code = (int16_t)refusal.error;
    out->error_message = refusal.why;
    return STATUS_OK;
}

static void fail_added(void *response, int16_t error)
{
    struct add_raft_voter_response *out = response;
    if (out->error_code == KAFKA_NONE) {
        out->error_code = error;
        out->error_message = error == KAFKA_REQUEST_TIMED_OUT ? TOO_LATE : VIEW_NULL;
    }
}

static void settle_added(struct request *request, void *response)
{
    const struct add_raft_voter_request *message = request->message;
    const struct add_raft_voter_response *out = response;
    if (out->error_code != KAFKA_NONE || !message->ack_when_committed) {
        request_go_home(request, request->home);
        return;
    }
    struct voter_change *change = request_take(request, 1, sizeof *change);
    change->wait.node = message->voter_id;
    change->wait.votes = true;
    change->response = response;
    change->fail = fail_added;
    wait_until(request, change, message->timeout_ms);
}

void add_raft_voter_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct add_raft_voter_response), make_added, fail_added, settle_added};
    controller_request_start(request, &kind);
}

void add_raft_voter_refuse(struct request *request, int16_t error)
{
    struct add_raft_voter_response response = add_raft_voter_response_default;
    assert(error != KAFKA_NONE);
    response.error_code = error;
    response.error_message = VIEW_NULL;
    request_answer(request, request->home, &response);
}

/* ---- RemoveRaftVoter ------------------------------------------------------------------------ */

/* Without this voter too few of the others would be there to go on, for as long as that one is
 * away; by then nobody could take the change back. */
static struct refusal needed_with(int32_t voter, struct arena *arena)
{
    return (struct refusal){KAFKA_REQUEST_TIMED_OUT,
                            arena_format(arena, "Voter %d does not keep up, and without it the "
                                         "other voters are no majority: bring it back or remove "
                                         "it first", voter)};
}

static struct refusal remove_if_spared(const struct controller *controller,
                                       struct request *request, struct record_list *records)
{
    const struct remove_raft_voter_request *message = request->message;
    const struct broker *broker = request->home->broker;
    if (is_foreign(request, message->cluster_id)) {
        return (struct refusal){KAFKA_INCONSISTENT_CLUSTER_ID, VIEW_NULL};
    }
    int32_t pending = voter_pending(broker);
    if (pending >= 0 && pending != message->voter_id) {
        return busy_with(pending, &request->arena);
    }
    size_t before = records->count;
    struct refusal refusal =
        controller_remove_voter(controller, message, &request->arena, records);
    int32_t needed = metadata_members_needed(broker, message->voter_id);
    if (refusal.error == KAFKA_NONE && needed >= 0) {
        record_list_cut(records, before);
        return needed_with(needed, &request->arena);
    }
    return refusal;
}

static enum status make_removed(const struct controller *controller, struct request *request,
                                struct record_list *records, void *response)
{
    const struct remove_raft_voter_request *message = request->message;
    struct remove_raft_voter_response *out = response;
    assert(message != NULL);
    *out = remove_raft_voter_response_default;
    struct refusal refusal = remove_if_spared(controller, request, records);
    out->error_code = (int16_t)refusal.error;
    out->error_message = refusal.why;
    return STATUS_OK;
}

static void fail_removed(void *response, int16_t error)
{
    struct remove_raft_voter_response *out = response;
    if (out->error_code == KAFKA_NONE) {
        out->error_code = error;
        out->error_message = error == KAFKA_REQUEST_TIMED_OUT ? TOO_LATE : VIEW_NULL;
    }
}

static void settle_removed(struct request *request, void *response)
{
    const struct remove_raft_voter_request *message = request->message;
    const struct remove_raft_voter_response *out = response;
    if (out->error_code != KAFKA_NONE) {
        request_go_home(request, request->home);
        return;
    }
    struct voter_change *change = request_take(request, 1, sizeof *change);
    change->wait.node = message->voter_id;
    change->response = response;
    change->fail = fail_removed;
    wait_until(request, change, CHANGE_MOST_MS);
}

void remove_raft_voter_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct remove_raft_voter_response), make_removed, fail_removed, settle_removed};
    controller_request_start(request, &kind);
}

void remove_raft_voter_refuse(struct request *request, int16_t error)
{
    struct remove_raft_voter_response response = remove_raft_voter_response_default;
    assert(error != KAFKA_NONE);
    response.error_code = error;
    response.error_message = VIEW_NULL;
    request_answer(request, request->home, &response);
}
