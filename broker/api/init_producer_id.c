/* InitProducerId for idempotent producers (KIP-98): a fresh id with epoch 0, whatever id the client
 * had before; any broker may answer. Transactional ids are refused with a reason. */
#include "broker/api/producer_ids.h"

#include <assert.h>

#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/controller/controller.h"
#include "broker/server/broker.h"
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

static void give(struct producer_ids *ids, int16_t error)
{
    struct list_link *link;
    while ((error != KAFKA_NONE || ids->next < ids->end) &&
           (link = list_pop_front(&ids->waiting)) != NULL) {
        struct producer_id_wait *wait = container_of(link, struct producer_id_wait, link);
        wait->done(wait, error, error == KAFKA_NONE ? ids->next++ : -1);
    }
}

static void run_command(struct metadata_command *command, struct image *image,
                        struct record_list *records)
{
    struct producer_ids *ids = container_of(command, struct producer_ids, command);
    const struct controller controller = {image, command->wait.from->broker->config};
    controller_allocate_producer_ids(&controller, command->wait.from->broker->node_id, records,
                                     &ids->block_start);
}

static void ask(struct shard *shard, struct producer_ids *ids);

static void block_came(struct metadata_command *command, int16_t error)
{
    struct producer_ids *ids = container_of(command, struct producer_ids, command);
    assert(ids->asking);
    assert(ids->next == ids->end);
    ids->asking = false;
    if (error == KAFKA_NONE) {
        ids->next = ids->block_start;
        ids->end = ids->block_start + PRODUCER_ID_BLOCK;
    }
    give(ids, error);
    if (!list_is_empty(&ids->waiting)) {
        ask(command->wait.from, ids);
    }
}

static void ask(struct shard *shard, struct producer_ids *ids)
{
    if (!ids->asking) {
        ids->asking = true;
        ids->command = (struct metadata_command){.run = run_command, .done = block_came};
        metadata_submit(shard, &ids->command);
    }
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
