/* InitProducerId for idempotent producers (KIP-98): a fresh id with epoch 0, whatever id the client
 * had before; any broker may answer. Transactional ids are refused with a reason. */
#include "broker/api/producer_ids.h"

#include <assert.h>

#include "broker/api/forward.h"
#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/controller/controller.h"
#include "broker/server/broker.h"
#include "broker/server/metadata_log.h"
#include "messages/allocate_producer_ids.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "messages/init_producer_id.h"

struct init_state {
    struct producer_id_wait wait;
    struct request *request;
};

void producer_ids_init(struct producer_ids *ids)
{
    *ids = (struct producer_ids){0};
    list_init(&ids->waiting);
}

void producer_ids_free(struct producer_ids *ids)
{
    assert(list_is_empty(&ids->waiting));
    buffer_free(&ids->body);
}

static void give(struct producer_ids *ids, int16_t error)
{
    struct list_link *link;
    while ((error != KAFKA_NONE || ids->next < ids->end) &&
           (link = list_pop_front(&ids->waiting)) != NULL) {
        struct producer_id_wait *wait = container_of(link, struct producer_id_wait, link);
        wait->done(wait, error, error == KAFKA_NONE ? ids->next++ : -1);
    }
}

static void ask(struct shard *shard, struct producer_ids *ids);

static bool read_block(struct producer_ids *ids, struct view body)
{
    struct allocate_producer_ids_response response;
    struct arena arena;
    arena_init(&arena, SIZE_MAX / 2);
    enum status status =
        message_decode(&allocate_producer_ids_response_type, 0, &body, &arena, &response);
    arena_free(&arena);
    if (status != STATUS_OK || response.error_code != KAFKA_NONE ||
        response.producer_id_len <= 0) {
        return false;
    }
    ids->next = response.producer_id_start;
    ids->end = response.producer_id_start + response.producer_id_len;
    return true;
}

static void block_came(struct controller_call *call, int16_t error, struct view body)
{
    struct producer_ids *ids = container_of(call, struct producer_ids, call);
    assert(ids->asking);
    assert(ids->next == ids->end);
    ids->asking = false;
    if (error == KAFKA_NONE && !read_block(ids, body)) {
        error = KAFKA_COORDINATOR_LOAD_IN_PROGRESS; /* retriable */
    }
    give(ids, error == KAFKA_NOT_CONTROLLER ? KAFKA_COORDINATOR_LOAD_IN_PROGRESS : error);
    if (!list_is_empty(&ids->waiting)) {
        ask(call->shard, ids);
    }
}

static void ask(struct shard *shard, struct producer_ids *ids)
{
    if (ids->asking) {
        return;
    }
    struct allocate_producer_ids_request message = allocate_producer_ids_request_default;
    message.broker_id = shard->broker->node_id;
    ids->body.length = 0;
    enum status status =
        message_encode_to(&allocate_producer_ids_request_type, 0, &message, &ids->body);
    assert(status == STATUS_OK);
    (void)status;
    ids->asking = true;
    ids->call = (struct controller_call){.api_key = API_ALLOCATE_PRODUCER_IDS,
                                         .repeatable = true,
                                         .body = buffer_view(&ids->body),
                                         .done = block_came};
    controller_call(shard, &ids->call);
}

void producer_ids_take(struct shard *shard, struct producer_ids *ids,
                       struct producer_id_wait *wait)
{
    list_push_back(&ids->waiting, &wait->link);
    give(ids, KAFKA_NONE);
    if (!list_is_empty(&ids->waiting)) {
        ask(shard, ids);
    }
}

static void id_came(struct producer_id_wait *wait, int16_t error, int64_t id)
{
    struct init_state *state = container_of(wait, struct init_state, wait);
    struct init_producer_id_response response = init_producer_id_response_default;
    response.error_code = error;
    response.producer_id = id;
    response.producer_epoch = error == KAFKA_NONE ? 0 : -1;
    request_answer(state->request, state->request->home, &response);
}

void init_producer_id_handle(struct request *request)
{
    const struct init_producer_id_request *message = request->message;
    assert(request->message != NULL);
    if (message->transactional_id.data != NULL) {
        struct init_producer_id_response response = init_producer_id_response_default;
        response.error_code = KAFKA_INVALID_REQUEST; /* transactions are not offered */
        response.producer_epoch = -1;
        request_answer(request, request->home, &response);
        return;
    }
    struct init_state *state = request_take(request, 1, sizeof *state);
    state->request = request;
    state->wait.done = id_came;
    producer_ids_take(request->home, request->home->producer_ids, &state->wait);
}

/* ---- At the node that leads the metadata log ----------------------------------------------- */

struct allocation {
    struct metadata_command command;
    struct request *request;
    int64_t first;
};

static void run(struct metadata_command *command, struct image *image,
                struct record_list *records)
{
    struct allocation *allocation = container_of(command, struct allocation, command);
    const struct allocate_producer_ids_request *message = allocation->request->message;
    const struct controller controller = {image};
    controller_allocate_producer_ids(&controller, message->broker_id, records,
                                     &allocation->first);
}

static void ended(struct metadata_command *command, int16_t error)
{
    struct allocation *allocation = container_of(command, struct allocation, command);
    struct allocate_producer_ids_response response = allocate_producer_ids_response_default;
    if (error == KAFKA_NOT_CONTROLLER && forward_after_all(allocation->request)) {
        return;
    }
    response.error_code = error;
    response.producer_id_start = allocation->first;
    response.producer_id_len = error == KAFKA_NONE ? PRODUCER_ID_BLOCK : 0;
    request_answer(allocation->request, allocation->request->home, &response);
}

void allocate_producer_ids_handle(struct request *request)
{
    struct allocation *allocation = request_take(request, 1, sizeof *allocation);
    allocation->request = request;
    allocation->command.run = run;
    allocation->command.done = ended;
    metadata_submit(request->home, &allocation->command);
}
