/* AddRaftVoter and RemoveRaftVoter (KIP-853): the voters on metadata change. The answer is given
 * when the change is recorded; a new voter votes as soon as it has caught up. */
#include <assert.h>

#include "broker/api/controller_request.h"
#include "broker/api/handlers.h"
#include "broker/server/broker.h"
#include "messages/add_raft_voter.h"
#include "messages/errors.h"
#include "messages/remove_raft_voter.h"

/* Whether the client means another cluster. */
static bool is_foreign(const struct request *request, struct view cluster_id)
{
    return cluster_id.data != NULL && !view_is(cluster_id, request->home->broker->cluster_id);
}

/* The name of this node's listener of controllers; the null view without one. */
static struct view controller_listener(const struct broker *broker)
{
    for (int i = 0; i < broker->listeners.count; i++) {
        if (broker->listeners.items[i].is_controller) {
            return broker->listeners.items[i].name;
        }
    }
    return VIEW_NULL;
}

static enum status make_added(const struct controller *controller, struct request *request,
                              struct record_list *records, void *response)
{
    const struct add_raft_voter_request *message = request->message;
    struct add_raft_voter_response *out = response;
    assert(message != NULL);
    *out = add_raft_voter_response_default;
    struct refusal refusal = {KAFKA_INCONSISTENT_CLUSTER_ID, VIEW_NULL};
    if (!is_foreign(request, message->cluster_id)) {
        refusal = controller_add_voter(controller, message,
                                       controller_listener(request->home->broker),
                                       &request->arena, records);
    }
    out->error_code = (int16_t)refusal.error;
    out->error_message = refusal.why;
    return STATUS_OK;
}

static void fail_added(void *response, int16_t error)
{
    struct add_raft_voter_response *out = response;
    out->error_code = out->error_code == KAFKA_NONE ? error : out->error_code;
}

void add_raft_voter_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct add_raft_voter_response), make_added, fail_added};
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

static enum status make_removed(const struct controller *controller, struct request *request,
                                struct record_list *records, void *response)
{
    const struct remove_raft_voter_request *message = request->message;
    struct remove_raft_voter_response *out = response;
    assert(message != NULL);
    *out = remove_raft_voter_response_default;
    struct refusal refusal = {KAFKA_INCONSISTENT_CLUSTER_ID, VIEW_NULL};
    if (!is_foreign(request, message->cluster_id)) {
        refusal = controller_remove_voter(controller, message, &request->arena, records);
    }
    out->error_code = (int16_t)refusal.error;
    out->error_message = refusal.why;
    return STATUS_OK;
}

static void fail_removed(void *response, int16_t error)
{
    struct remove_raft_voter_response *out = response;
    out->error_code = out->error_code == KAFKA_NONE ? error : out->error_code;
}

void remove_raft_voter_handle(struct request *request)
{
    static const struct controller_request_kind kind = {
        sizeof(struct remove_raft_voter_response), make_removed, fail_removed};
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
