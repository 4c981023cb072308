/* Both ends of it: the call of the group's leader, and the command that it becomes at the node that
 * leads the metadata log. */
#include "broker/api/group_moves.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/api/controller_call.h"
#include "broker/api/forward.h"
#include "broker/api/handlers.h"
#include "broker/controller/controller.h"
#include "broker/group/group_move.h"
#include "broker/server/broker.h"
#include "messages/errors.h"
#include "messages/peer_placement.h"
#include "protocol/api_table.h"

/* ---- The leader of the group --------------------------------------------------------------- */

struct tale {
    struct controller_call call;
    struct buffer body;
    uint64_t group;
};

static void told(struct controller_call *call, int16_t error, struct view body)
{
    struct tale *tale = container_of(call, struct tale, call);
    (void)body; /* the image says whether it is so */
    if (error != KAFKA_NONE) {
        log_debug("group", "group %" PRIu64 ": the end of its move could not be told: error %d",
                  tale->group, error);
    }
    buffer_free(&tale->body);
    free(tale);
}

static void tell(struct shard *shard, const struct group *group, int32_t move)
{
    struct peer_moved_request request = {
        .topic_id = group->topic->id, .group = (int64_t)group->id, .move_id = move};
    struct tale *tale = memory_new_zero(1, sizeof *tale);
    enum status status = message_encode_to(&peer_moved_request_type, 0, &request, &tale->body);
    assert(status == STATUS_OK);
    (void)status;
    log_debug("group", "group %" PRIu64 " is where it was to move to", group->id);
    tale->group = group->id;
    tale->call = (struct controller_call){
        .api_key = API_PEER_MOVED, .body = buffer_view(&tale->body), .repeatable = true,
        .done = told};
    controller_call(shard, &tale->call);
}

void group_moves_tell(struct shard *shard, uint64_t now_ms)
{
    assert(shard->replicas != NULL);
    group_moves_each_done(shard->replicas, now_ms, tell);
}

/* ---- The leader of the metadata log -------------------------------------------------------- */

struct moved {
    struct metadata_command command;
    struct request *request;
};

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct moved *moved = container_of(command, struct moved, command);
    const struct peer_moved_request *message = moved->request->message;
    const struct controller controller = {image};
    controller_end_move(&controller, message->topic_id, (uint64_t)message->group, message->move_id,
                        records);
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct moved *moved = container_of(command, struct moved, command);
    assert(command->wait.from == moved->request->home);
    if (error == KAFKA_NOT_CONTROLLER && forward_after_all(moved->request)) {
        return;
    }
    struct peer_moved_response response = {.error_code = error};
    request_answer(moved->request, moved->request->home, &response);
}

void peer_moved_handle(struct request *request)
{
    struct moved *moved = request_take(request, 1, sizeof *moved);
    assert(request->message != NULL);
    moved->request = request;
    moved->command.run = run;
    moved->command.done = ended;
    metadata_submit(request->home, &moved->command);
}
