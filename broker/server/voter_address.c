/* One call of the leader at a time, which does no harm when it is done twice. Happy path: the
 * record that it makes comes back with the log, and then there is nothing to tell. Whatever goes
 * wrong, it is tried again some seconds later. Lives on shard 0. */
#include "broker/server/voter_address.h"

#include <assert.h>

#include "base/log.h"
#include "broker/config/endpoint.h"
#include "broker/server/metadata_state.h"
#include "messages/api_keys.h"
#include "messages/errors.h"
#include "messages/update_raft_voter.h"

enum { UPDATE_VERSION = 0, PATIENCE_MS = 1000, TRY_AGAIN_MS = 3000 };

bool voter_address_own(const struct broker *broker, struct view *name, struct view *host,
                       uint16_t *port)
{
    for (int i = 0; i < broker->listeners.count; i++) {
        const struct listener *listener = &broker->listeners.items[i];
        if (!listener->is_controller) {
            continue;
        }
        bool is_told = listener->advertised_host.data != NULL;
        *name = listener->name;
        *host = is_told ? listener->advertised_host : listener->host;
        *port = is_told && listener->advertised_port != 0 ? listener->advertised_port
                                                          : listener->port;
        return host->length > 0 && !host_is_wildcard(*host);
    }
    return false;
}

/* As the metadata says; before there is an image, as was known at the last stop. */
static const struct quorum_voter *known_self(const struct metadata_log *log)
{
    const struct broker *broker = log->broker;
    int count = broker->voter_count;
    const struct quorum_voter *voters = broker->voters;
    if (log->ready) {
        voters = image_voters(log->image, &count);
    }
    for (int i = 0; i < count; i++) {
        if (voters[i].node_id == broker->node_id) {
            return &voters[i];
        }
    }
    return NULL;
}

/* One that lost its disk has another directory; before there is an image none is known. */
static bool is_own_directory(const struct metadata_log *log, struct uuid directory_id)
{
    return !log->ready ||
           uuid_equal(directory_id, log_dir_identity(log->broker->log_dir)->directory_id);
}

static int16_t read_answer(struct view body)
{
    struct update_raft_voter_response response = update_raft_voter_response_default;
    struct arena arena;
    arena_init(&arena, SIZE_MAX / 2);
    enum status status =
        message_decode(&update_raft_voter_response_type, UPDATE_VERSION, &body, &arena, &response);
    arena_free(&arena);
    return status == STATUS_OK ? response.error_code : KAFKA_UNKNOWN_SERVER_ERROR;
}

static void answered(struct controller_call *call, int16_t error, struct view body)
{
    struct voter_address *address = container_of(call, struct voter_address, call);
    assert(address->is_asking);
    address->is_asking = false;
    error = error == KAFKA_NONE ? read_answer(body) : error;
    if (error != KAFKA_NONE && error != KAFKA_NOT_CONTROLLER && address->is_new) {
        log_warn("cluster", "the leader of the metadata does not know yet where this voter is "
                 "reached (%s); trying again", kafka_error_name(error));
    }
}

static void tell(struct metadata_log *log, struct view name, struct view host, uint16_t port)
{
    struct voter_address *address = &log->address;
    const struct broker *broker = log->broker;
    struct update_raft_voter_request_listener listener = {
        .name = name, .host = host, .port = port};
    struct update_raft_voter_request request = update_raft_voter_request_default;
    request.cluster_id = view_text(broker->cluster_id);
    request.current_leader_epoch = -1; /* whoever leads */
    request.voter_id = broker->node_id;
    request.voter_directory_id = log_dir_identity(broker->log_dir)->directory_id;
    request.listeners = &listener;
    request.listeners_count = 1;
    request.k_raft_version_feature.min_supported_version = 0;
    request.k_raft_version_feature.max_supported_version = 1;
    address->body.length = 0;
    enum status status = message_encode_to(&update_raft_voter_request_type, UPDATE_VERSION,
                                           &request, &address->body);
    assert(status == STATUS_OK);
    (void)status;
    address->is_asking = true;
    address->call = (struct controller_call){.api_key = API_UPDATE_RAFT_VOTER,
                                             .api_version = UPDATE_VERSION,
                                             .repeatable = true,
                                             .body = buffer_view(&address->body),
                                             .done = answered};
    controller_call(&broker->shards[0], &address->call);
}

void voter_address_tick(struct metadata_log *log, uint64_t now_ms)
{
    struct voter_address *address = &log->address;
    struct view name;
    struct view host;
    uint16_t port;
    bool is_first = address->next_try_ms == 0;
    const struct quorum_voter *self = known_self(log);
    if (!log->broker->changes_voters || address->is_asking || log->closed || self == NULL ||
        atomic_load(&log->broker->stopping) ||
        !voter_address_own(log->broker, &name, &host, &port)) {
        return;
    }
    address->next_try_ms = is_first ? now_ms + PATIENCE_MS : address->next_try_ms;
    bool is_known = view_equal(self->host, host) && self->port == port &&
                    is_own_directory(log, self->directory_id);
    bool is_lost = !log->ready && now_ms >= address->next_try_ms;
    if (is_lost || (!is_known && (is_first || now_ms >= address->next_try_ms))) {
        log_at(is_known ? LOG_DEBUG : LOG_INFO, "cluster", "tells the leader of the metadata "
               "which directory this voter has, and that it is reached at %.*s:%u",
               VIEW_PRINT(host), port);
        address->is_new = !is_known;
        address->next_try_ms = now_ms + TRY_AGAIN_MS;
        tell(log, name, host, port);
    }
}

void voter_address_free(struct metadata_log *log)
{
    assert(!log->address.is_asking);
    buffer_free(&log->address.body);
}
