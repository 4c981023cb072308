/* ElectLeaders (KIP-183, KIP-460): partitions shall be led by their first replica.
 *
 * Happy path: every node that leads one of the groups is asked to hand it over, and when the
 * directory names the first replica, the client is told. A partition whose first replica is away or
 * too far behind keeps its leader and is refused. A leader without the committed records
 * ("unclean") cannot be elected: a partition group is a Raft group and has a leader whenever a
 * majority lives. Whom the directory names is asked whether it still leads: it may have lost that.
 * Any node serves this, since any node knows who leads. */
#include <assert.h>

#include "broker/api/handlers.h"
#include "broker/api/request.h"
#include "broker/controller/cluster_image.h"
#include "broker/controller/topic_image.h"
#include "broker/group/directory.h"
#include "broker/group/replicas.h"
#include "broker/peer/peers.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "messages/elect_leaders.h"
#include "messages/errors.h"
#include "messages/peer_placement.h"
#include "protocol/api_table.h"

#define TOPIC_RESULT elect_leaders_response_replica_election_result
#define RESULT elect_leaders_response_partition_result

enum { LOOK_EVERY_MS = 10, TAKE_OVER_MS = 5000, ELECTION_PREFERRED = 0, ELECTION_UNCLEAN = 1 };

/* One partition that another node shall lead; of an unclean election that its leader leads. */
struct election {
    struct RESULT *result;
    uint64_t group_id;
    int32_t leader;
    int32_t preferred;
    bool is_unclean;
    bool waits;
};

/* What one leader is asked. */
struct order {
    struct peer_call call;
    struct elect_state *state;
    struct election **elections;  /* in the order of the request */
    size_t count;
    int32_t node;
    bool away;
};

struct elect_state {
    struct shard_timer timer;
    struct request *request;
    struct elect_leaders_response response;
    struct election *elections;
    size_t count;
    struct order *orders;
    size_t order_count;
    unsigned away;                /* orders without an answer */
    uint64_t deadline_ms;         /* monotonic */
    bool hides_not_needed;        /* all partitions were asked for */
};

static void refuse(struct RESULT *result, int16_t error, struct view why)
{
    assert(error != KAFKA_NONE);
    result->error_code = error;
    result->error_message = why;
}

static void refuse_unclean(struct RESULT *result)
{
    refuse(result, KAFKA_ELIGIBLE_LEADERS_NOT_AVAILABLE,
           VIEW_LITERAL("A majority of the replicas has to be there: none may lead that could lack "
                        "acknowledged records"));
}

/* ---- The end ------------------------------------------------------------------------------- */

static bool is_open(const struct elect_state *state)
{
    const struct directory *directory = &state->request->home->broker->directory;
    bool any = false;
    for (size_t i = 0; i < state->count; i++) {
        struct election *election = &state->elections[i];
        election->waits = election->waits && directory_get(directory, election->group_id).leader !=
                                                 election->preferred;
        any = any || election->waits;
    }
    return any;
}

static void hide_not_needed(struct elect_state *state)
{
    for (int32_t t = 0; t < state->response.replica_election_results_count; t++) {
        struct TOPIC_RESULT *topic = &state->response.replica_election_results[t];
        int32_t kept = 0;
        for (int32_t i = 0; i < topic->partition_result_count; i++) {
            if (topic->partition_result[i].error_code != KAFKA_ELECTION_NOT_NEEDED) {
                topic->partition_result[kept++] = topic->partition_result[i];
            }
        }
        topic->partition_result_count = kept;
    }
}

static void finish(struct elect_state *state)
{
    struct request *request = state->request;
    assert(state->away == 0);
    for (size_t i = 0; i < state->count; i++) {
        if (state->elections[i].waits) {
            refuse(state->elections[i].result, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE,
                   VIEW_LITERAL("The preferred leader did not take over in time"));
        }
    }
    if (state->hides_not_needed) {
        hide_not_needed(state);
    }
    request->cancel = NULL;
    request_answer(request, request->home, &state->response);
}

static void look(struct elect_state *state)
{
    bool in_time = clock_monotonic_ms() < state->deadline_ms;
    assert(!state->timer.set);
    if (state->away > 0) {
        return; /* the last answer looks again */
    }
    if (in_time && is_open(state)) {
        shard_timer_set(state->request->home, &state->timer, LOOK_EVERY_MS);
    } else {
        finish(state);
    }
}

static void look_again(struct shard_timer *timer)
{
    look(container_of(timer, struct elect_state, timer));
}

static void client_gone(struct request *request)
{
    struct elect_state *state = request->state;
    state->deadline_ms = 0;
    for (size_t i = 0; i < state->order_count; i++) {
        struct order *order = &state->orders[i];
        if (order->away && list_contains(&order->call.link)) {
            peers_cancel(request->home, &order->call);
            order->away = false;
            state->away--;
        }
    }
    shard_timer_stop(&state->timer);
    look(state);
}

/* ---- The nodes that lead ------------------------------------------------------------------- */

static void order_ended(struct order *order, bool is_answered, struct view body)
{
    struct peer_transfer_response response = peer_transfer_response_default;
    struct elect_state *state = order->state;
    assert(order->away && state->away > 0);
    order->away = false;
    state->away--;
    bool is_good = is_answered &&
                   message_decode(&peer_transfer_response_type, 0, &body, &state->request->arena,
                                  &response) == STATUS_OK &&
                   response.error_codes_count == (int32_t)order->count;
    for (size_t i = 0; i < order->count; i++) {
        int16_t error = is_good ? response.error_codes[i] : KAFKA_PREFERRED_LEADER_NOT_AVAILABLE;
        if (error != KAFKA_NONE && order->elections[i]->is_unclean) {
            refuse_unclean(order->elections[i]->result);
        } else if (error != KAFKA_NONE) {
            order->elections[i]->waits = false;
            refuse(order->elections[i]->result, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE,
                   is_good ? VIEW_LITERAL("The preferred leader is not in sync")
                           : VIEW_LITERAL("The node that leads does not answer"));
        }
    }
    look(state);
}

static void peer_done(struct peer_call *call, enum status status, struct slice body)
{
    order_ended(container_of(call, struct order, call), status == STATUS_OK, slice_view(body));
}

static void came_home(struct request *inside)
{
    struct order *order = inside->asker;
    order_ended(order, !inside->silent, request_answer_body(inside));
    request_free(inside);
}

static void send_order(struct order *order)
{
    struct elect_state *state = order->state;
    struct shard *home = state->request->home;
    struct peer_transfer_request message = {.groups_count = (int32_t)order->count};
    struct buffer body = {0};
    assert(order->count > 0 && !order->away);
    message.groups = request_take(state->request, order->count, sizeof *message.groups);
    for (size_t i = 0; i < order->count; i++) {
        message.groups[i] = (struct peer_transfer_request_group){
            .group = (int64_t)order->elections[i]->group_id,
            .node_id = order->elections[i]->preferred};
    }
    enum status status = message_encode_to(&peer_transfer_request_type, 0, &message, &body);
    assert(status == STATUS_OK);
    (void)status;
    order->away = true;
    if (order->node == home->broker->node_id) {
        const struct inside_request inside = {.api_key = API_PEER_TRANSFER,
                                              .client_id = state->request->client_id,
                                              .body = buffer_view(&body),
                                              .came_home = came_home,
                                              .asker = order};
        bool is_run = request_run_inside(home, &inside);
        assert(is_run); /* it was made here */
        (void)is_run;
    } else {
        order->call = (struct peer_call){.node = order->node,
                                         .api_key = API_PEER_TRANSFER,
                                         .timeout_ms = TAKE_OVER_MS,
                                         .done = peer_done};
        peers_call(home, &order->call, buffer_view(&body));
    }
    buffer_free(&body);
}

static struct order *order_for(struct elect_state *state, int32_t node)
{
    size_t i = 0;
    while (i < state->order_count && state->orders[i].node != node) {
        i++;
    }
    struct order *order = &state->orders[i];
    assert(i < state->count && node >= 0);
    if (i == state->order_count) {
        state->order_count++;
        order->node = node;
        order->state = state;
        order->elections =
            request_take(state->request, state->count, sizeof(struct election *));
    }
    return order;
}

static void send_orders(struct elect_state *state)
{
    state->orders = request_take(state->request, state->count + 1, sizeof *state->orders);
    for (size_t i = 0; i < state->count; i++) {
        struct order *order = order_for(state, state->elections[i].leader);
        order->elections[order->count++] = &state->elections[i];
    }
    state->away = (unsigned)state->order_count + 1; /* held until all have left */
    for (size_t i = 0; i < state->order_count; i++) {
        send_order(&state->orders[i]);
    }
    state->away--;
    look(state);
}

/* ---- What is asked ------------------------------------------------------------------------- */

static bool is_there(const struct request *request, int32_t node)
{
    const struct cluster_broker *found =
        cluster_image_find(request->home->replicas->cluster, node);
    return found != NULL && !found->is_fenced && peers_is_alive(request->home->broker, node);
}

/* What was asked for, for people. */
static struct view unknown_text(struct request *request, struct view topic_name, bool has_topic,
                                int32_t partition)
{
    assert(request != NULL && request->message != NULL);
    return has_topic ? arena_format(&request->arena, "No such partition as %.*s-%d",
                                    VIEW_PRINT(topic_name), partition)
                     : arena_format(&request->arena, "No such topic as %.*s",
                                    VIEW_PRINT(topic_name));
}

/* `topic` is null when there is none of that name. */
static void add_partition(struct elect_state *state, struct view topic_name,
                          const struct topic_image *topic, int32_t partition,
                          struct RESULT *result)
{
    struct request *request = state->request;
    const struct elect_leaders_request *message = request->message;
    *result = elect_leaders_response_partition_result_default;
    result->partition_id = partition;
    result->error_message = VIEW_NULL;
    if (topic == NULL || !topic_image_has(topic, partition)) {
        refuse(result, KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
               unknown_text(request, topic_name, topic != NULL, partition));
        return;
    }
    const struct partition_group *group = topic_image_group(topic, partition);
    struct group_leader now = directory_get(&request->home->broker->directory, group->id);
    bool is_led = now.leader >= 0 && is_there(request, now.leader);
    bool is_unclean = request->api_version >= 1 && message->election_type == ELECTION_UNCLEAN;
    if (is_unclean && !is_led) {
        refuse_unclean(result);
    } else if (is_unclean) {
        refuse(result, KAFKA_ELECTION_NOT_NEEDED, VIEW_NULL);
        state->elections[state->count++] = (struct election){.result = result,
                                                             .group_id = group->id,
                                                             .leader = now.leader,
                                                             .preferred = now.leader,
                                                             .is_unclean = true};
    } else if (is_led && now.leader == group->replicas[0]) {
        refuse(result, KAFKA_ELECTION_NOT_NEEDED, VIEW_NULL);
    } else if (!is_led || !is_there(request, group->replicas[0])) {
        refuse(result, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE, VIEW_NULL);
    } else {
        state->elections[state->count++] = (struct election){.result = result,
                                                             .group_id = group->id,
                                                             .leader = now.leader,
                                                             .preferred = group->replicas[0],
                                                             .waits = true};
    }
}

static void add_asked(struct elect_state *state)
{
    struct request *request = state->request;
    const struct elect_leaders_request *message = request->message;
    size_t count = (size_t)message->topic_partitions_count;
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        all += (size_t)message->topic_partitions[i].partitions_count;
    }
    state->elections = request_take(request, all + 1, sizeof *state->elections);
    state->response.replica_election_results =
        request_take(request, count + 1, sizeof(struct TOPIC_RESULT));
    state->response.replica_election_results_count = (int32_t)count;
    for (size_t t = 0; t < count; t++) {
        const struct elect_leaders_request_topic_partitions *asked = &message->topic_partitions[t];
        struct TOPIC_RESULT *out = &state->response.replica_election_results[t];
        const struct topic_image *topic = replicas_topic(request->home->replicas, asked->topic);
        out->topic = asked->topic;
        out->partition_result_count = asked->partitions_count;
        out->partition_result = request_take(request, (size_t)asked->partitions_count + 1,
                                             sizeof *out->partition_result);
        for (int32_t p = 0; p < asked->partitions_count; p++) {
            add_partition(state, asked->topic, topic, asked->partitions[p],
                          &out->partition_result[p]);
        }
    }
}

static void count_topic(void *context, struct topic_image *topic)
{
    struct elect_state *state = context;
    state->response.replica_election_results_count++;
    state->count += (size_t)topic->partition_count;
}

static void add_topic(void *context, struct topic_image *topic)
{
    struct elect_state *state = context;
    struct elect_leaders_response *response = &state->response;
    struct TOPIC_RESULT *out =
        &response->replica_election_results[response->replica_election_results_count++];
    out->topic = arena_copy(&state->request->arena, topic->name); /* it may be gone by then */
    out->partition_result_count = topic->partition_count;
    out->partition_result = request_take(state->request, (size_t)topic->partition_count + 1,
                                         sizeof *out->partition_result);
    for (int32_t p = 0; p < topic->partition_count; p++) {
        add_partition(state, topic->name, topic, p, &out->partition_result[p]);
    }
}

static void add_all(struct elect_state *state)
{
    struct replicas *replicas = state->request->home->replicas;
    struct elect_leaders_response *response = &state->response;
    replicas_each_topic(replicas, count_topic, state);
    state->elections = request_take(state->request, state->count + 1, sizeof *state->elections);
    response->replica_election_results =
        request_take(state->request, (size_t)response->replica_election_results_count + 1,
                     sizeof(struct TOPIC_RESULT));
    state->count = 0;
    response->replica_election_results_count = 0;
    state->hides_not_needed = true;
    replicas_each_topic(replicas, add_topic, state);
}

void elect_leaders_handle(struct request *request)
{
    const struct elect_leaders_request *message = request->message;
    struct elect_state *state = request_take(request, 1, sizeof *state);
    bool is_known = request->api_version < 1 || message->election_type == ELECTION_PREFERRED ||
                    message->election_type == ELECTION_UNCLEAN;
    assert(message != NULL);
    state->request = request;
    state->response = elect_leaders_response_default;
    state->timer.run = look_again;
    if (!is_known) {
        state->response.error_code = KAFKA_INVALID_REQUEST;
        request_answer(request, request->home, &state->response);
        return;
    }
    uint64_t wait_ms = message->timeout_ms < 0 ? 0 : (uint64_t)message->timeout_ms;
    state->deadline_ms = clock_monotonic_ms() + (wait_ms < TAKE_OVER_MS ? wait_ms : TAKE_OVER_MS);
    request->state = state;
    request->cancel = client_gone;
    if (message->topic_partitions_count < 0) {
        add_all(state);
    } else {
        add_asked(state);
    }
    send_orders(state);
}
