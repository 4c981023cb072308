/* Two nodes in one process, over real sockets: they find each other, refuse strangers, tell who
 * leads, answer calls and come back after a break. */
#include "broker/peer/link.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/api/fetch_session.h"
#include "broker/group/replicas.h"
#include "broker/peer/peer_table.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "io/random.h"
#include "messages/api_versions.h"
#include "protocol/api_table.h"
#include "tests/unit/runner.h"

enum { SHARDS = 2, LIMIT_MS = 20000 };

struct node {
    struct broker broker;
    struct listener listener;
    struct acceptor *acceptor;
};

struct world {
    struct node *nodes[2];
};

static void tick(struct shard *shard)
{
    peers_tick(shard, clock_monotonic_ms());
}

static void listen_again(struct node *node)
{
    ck_assert_int_eq(acceptor_open(&node->broker, &node->listener, &node->acceptor), STATUS_OK);
    acceptor_start(node->acceptor);
}

static struct node *open_node(int32_t id, const char *cluster_id)
{
    struct node *node = calloc(1, sizeof *node);
    struct broker *broker = &node->broker;
    broker->node_id = id;
    broker->cluster_id = cluster_id;
    broker->shard_count = SHARDS;
    broker->shards = calloc(SHARDS, sizeof *broker->shards);
    broker->connection_limits.max_frame_bytes = 1 << 20;
    broker->connection_limits.max_queued_bytes = 1 << 20;
    liveness_init(&broker->liveness);
    broker->self.incarnation = random_uuid();
    connection_register_init(&broker->connection_register, 1000, 1000);
    broker->resolver = resolver_new();
    for (int i = 0; i < SHARDS; i++) {
        struct shard *shard = &broker->shards[i];
        ck_assert_int_eq(shard_open(shard, i, broker, tick), STATUS_OK);
        shard->connections = calloc(1, sizeof *shard->connections);
        connections_init(shard->connections);
        shard->replicas = calloc(1, sizeof *shard->replicas);
        shard->replicas->shard = shard;
        shard->sessions = calloc(1, sizeof *shard->sessions);
        fetch_sessions_init(shard->sessions, 1);
        peers_open(shard);
    }
    node->listener = (struct listener){
        .name = VIEW_LITERAL("PLAINTEXT"), .host = VIEW_LITERAL("127.0.0.1")};
    listen_again(node);
    return node;
}

static struct world open_world(const char *cluster_id, const char *other_cluster_id)
{
    return (struct world){{open_node(1, cluster_id), open_node(2, other_cluster_id)}};
}

static void run_node(struct node *node)
{
    for (int i = 0; i < SHARDS; i++) {
        event_base_loop(node->broker.shards[i].base, EVLOOP_NONBLOCK);
        shard_run_pending(&node->broker.shards[i]);
    }
}

static void run(struct world *world)
{
    run_node(world->nodes[0]);
    run_node(world->nodes[1]);
    poll(NULL, 0, 1);
}

#define RUN_UNTIL(world, condition) \
    for (uint64_t end_ms = clock_monotonic_ms() + LIMIT_MS; !(condition); run(world)) { \
        ck_assert_msg(clock_monotonic_ms() < end_ms, "waited for " #condition); \
    }

static void stop_listening(struct node *node)
{
    acceptor_close(node->acceptor);
    for (int i = 0; i < SHARDS; i++) {
        connections_close_all(&node->broker.shards[i]);
    }
}

static void stop_node(struct node *node)
{
    atomic_store(&node->broker.stopping, true);
    resolver_close(node->broker.resolver);
    stop_listening(node);
    for (int i = 0; i < SHARDS; i++) {
        peers_close(&node->broker.shards[i]);
        ck_assert_ptr_null(node->broker.shards[i].peers);
    }
}

static void free_node(struct node *node)
{
    struct broker *broker = &node->broker;
    atomic_store(&broker->closing, true); /* what is on its way in goes */
    for (int i = 0; i < SHARDS; i++) {
        shard_run_pending(&broker->shards[i]);
        connections_close_all(&broker->shards[i]);
        shard_run_pending(&broker->shards[i]);
        shard_close(&broker->shards[i]);
        connections_free(broker->shards[i].connections);
        free(broker->shards[i].replicas);
        fetch_sessions_free(broker->shards[i].sessions);
        free(broker->shards[i].sessions);
    }
    connection_register_free(&broker->connection_register);
    directory_free(&broker->directory);
    free(broker->shards);
    free(node);
}

static void close_world(struct world *world)
{
    for (int n = 0; n < 2; n++) {
        stop_node(world->nodes[n]);
    }
    for (int n = 0; n < 2; n++) {
        free_node(world->nodes[n]);
    }
}

/* `of` reaches the other one from now on, and calls it `id`. */
static void put(struct node *of, const struct node *other, const char *host, int32_t id)
{
    struct peer_address address = {
        .node = id, .host = view_text(host), .port = other->listener.port};
    for (int i = 0; i < SHARDS; i++) {
        peers_put(&of->broker.shards[i], &address);
    }
}

static bool is_up(const struct node *node, int32_t to)
{
    bool all = true;
    for (int i = 0; i < SHARDS; i++) {
        const struct peer_link *link = peers_link(&node->broker.shards[i], to);
        all = all && link != NULL && link->state == LINK_UP;
    }
    return all;
}

static const char *said(const struct node *node, int32_t to)
{
    return peers_link(&node->broker.shards[0], to)->said;
}

static struct world open_linked_world(void)
{
    struct world world = open_world("one", "one");
    put(world.nodes[0], world.nodes[1], "127.0.0.1", 2);
    put(world.nodes[1], world.nodes[0], "localhost", 1);
    RUN_UNTIL(&world, is_up(world.nodes[0], 2) && is_up(world.nodes[1], 1));
    return world;
}

START_TEST(nodes_find_each_other)
{
    struct world world = open_world("one", "one");
    put(world.nodes[0], world.nodes[0], "127.0.0.1", 1); /* itself is passed over */
    ck_assert(!peers_any(&world.nodes[0]->broker));
    put(world.nodes[1], world.nodes[0], "127.0.0.1", 1);
    put(world.nodes[0], world.nodes[1], "localhost", 2);
    ck_assert(peers_any(&world.nodes[0]->broker));
    ck_assert(!peers_is_alive(&world.nodes[0]->broker, 2));
    RUN_UNTIL(&world, is_up(world.nodes[0], 2) && is_up(world.nodes[1], 1));
    ck_assert(peers_is_alive(&world.nodes[0]->broker, 2));
    ck_assert(peers_is_alive(&world.nodes[1]->broker, 1));
    ck_assert_uint_eq(world.nodes[0]->broker.connection_register.count, 0); /* no client */
    close_world(&world);
}
END_TEST

START_TEST(beats_keep_a_node_alive)
{
    struct world world = open_linked_world();
    uint64_t until_ms = clock_monotonic_ms() + 3 * LIVENESS_SILENT_MS;
    RUN_UNTIL(&world, clock_monotonic_ms() > until_ms);
    ck_assert(peers_is_alive(&world.nodes[0]->broker, 2));
    ck_assert(peers_is_alive(&world.nodes[1]->broker, 1));
    /* Node 2 is not run any more: it falls silent, though its sockets are open. */
    until_ms = clock_monotonic_ms() + LIMIT_MS;
    while (atomic_load(&liveness_find(&world.nodes[0]->broker.liveness, 2)->alive)) {
        ck_assert(clock_monotonic_ms() < until_ms);
        run_node(world.nodes[0]);
        poll(NULL, 0, 1);
    }
    ck_assert(is_up(world.nodes[0], 2));
    RUN_UNTIL(&world, peers_is_alive(&world.nodes[0]->broker, 2));
    close_world(&world);
}
END_TEST

START_TEST(another_cluster_is_refused)
{
    struct world world = open_world("one", "two");
    put(world.nodes[0], world.nodes[1], "127.0.0.1", 2);
    put(world.nodes[1], world.nodes[0], "127.0.0.1", 1);
    RUN_UNTIL(&world, said(world.nodes[0], 2)[0] != '\0' && said(world.nodes[1], 1)[0] != '\0');
    ck_assert_ptr_nonnull(strstr(said(world.nodes[0], 2), "node 2 belongs to cluster two"));
    ck_assert_ptr_nonnull(strstr(said(world.nodes[1], 1), "node 1 belongs to cluster one"));
    ck_assert(!is_up(world.nodes[0], 2));
    ck_assert(!peers_is_alive(&world.nodes[1]->broker, 1));
    close_world(&world);
}
END_TEST

START_TEST(a_node_that_stands_alone_refuses)
{
    struct world world = open_world("one", "one");
    put(world.nodes[0], world.nodes[1], "127.0.0.1", 2);
    RUN_UNTIL(&world, said(world.nodes[0], 2)[0] != '\0');
    ck_assert_ptr_nonnull(strstr(said(world.nodes[0], 2), "stands alone"));
    /* As soon as it knows the others and says hello itself, the refused link is tried again. */
    uint64_t began_ms = clock_monotonic_ms();
    put(world.nodes[1], world.nodes[0], "127.0.0.1", 1);
    RUN_UNTIL(&world, is_up(world.nodes[0], 2) && is_up(world.nodes[1], 1));
    ck_assert_uint_lt(clock_monotonic_ms() - began_ms, 2000);
    close_world(&world);
}
END_TEST

START_TEST(the_wrong_node_is_noticed)
{
    struct world world = open_world("one", "one");
    put(world.nodes[0], world.nodes[1], "127.0.0.1", 3);
    put(world.nodes[1], world.nodes[1], "127.0.0.1", 1); /* itself */
    RUN_UNTIL(&world, said(world.nodes[0], 3)[0] != '\0' && said(world.nodes[1], 1)[0] != '\0');
    ck_assert_ptr_nonnull(strstr(said(world.nodes[0], 3), "node 2 answers there"));
    ck_assert_ptr_nonnull(strstr(said(world.nodes[1], 1), "both nodes have node.id 2"));
    close_world(&world);
}
END_TEST

static struct group_leader leader(const struct node *node, uint64_t group)
{
    return directory_get(&node->broker.directory, group);
}

START_TEST(leaders_are_told)
{
    struct world world = open_linked_world();
    peers_tell_leader(&world.nodes[0]->broker.shards[1], 5, 3, 0);
    peers_tell_leader(&world.nodes[0]->broker.shards[1], 7, 9, (uint64_t)3 << 62);
    RUN_UNTIL(&world, leader(world.nodes[1], 7).leader == 1);
    ck_assert_int_eq(leader(world.nodes[1], 7).epoch, 9);
    ck_assert_int_eq(leader(world.nodes[1], 5).leader, 1);
    ck_assert_uint_eq(directory_lag(&world.nodes[1]->broker.directory, 7), (uint64_t)3 << 62);
    peers_tell_leader(&world.nodes[0]->broker.shards[1], 7, 8, 0); /* is known to be over */
    peers_tell_leader(&world.nodes[0]->broker.shards[1], 5, 4, 0);
    RUN_UNTIL(&world, leader(world.nodes[1], 5).epoch == 4);
    ck_assert_int_eq(leader(world.nodes[1], 7).epoch, 9);
    peers_tell_end(&world.nodes[0]->broker.shards[1], 5, 3);
    peers_tell_end(&world.nodes[0]->broker.shards[1], 7, 9);
    RUN_UNTIL(&world, leader(world.nodes[1], 7).leader == -1);
    ck_assert_int_eq(leader(world.nodes[1], 5).leader, 1); /* again, in a later one */
    close_world(&world);
}
END_TEST

START_TEST(raft_messages_arrive)
{
    struct world world = open_linked_world();
    struct block *block = block_new(700000);
    memset(block->bytes, 'x', block->capacity);
    struct raft_entry entry = {.index = 1, .term = 1, .payload = slice_of(block, 0, 700000)};
    struct raft_message message = {
        .kind = RAFT_APPEND, .from = 1, .to = 2, .term = 1, .entries = &entry, .entry_count = 1};
    for (int i = 0; i < 20; i++) { /* more than one frame */
        peers_send(&world.nodes[0]->broker.shards[0], (uint64_t)i, &message,
                   (struct payload_place){0});
    }
    message.to = 3; /* not known: dropped */
    peers_send(&world.nodes[0]->broker.shards[0], 1, &message, (struct payload_place){0});
    const struct peer_link *link = peers_link(&world.nodes[0]->broker.shards[0], 2);
    RUN_UNTIL(&world, evbuffer_get_length(link->out) == 0 && link->outbox.message_count == 0);
    RUN_UNTIL(&world, atomic_load(&block->references) == 1);
    RUN_UNTIL(&world, atomic_load(&world.nodes[1]->broker.connection_limits.queued_bytes) == 0);
    ck_assert(is_up(world.nodes[0], 2));
    ck_assert_uint_eq(link->dropped, 0);
    block_unref(block);
    close_world(&world);
}
END_TEST

START_TEST(what_nobody_takes_is_dropped)
{
    struct world world = open_linked_world();
    struct block *block = block_new(900000);
    memset(block->bytes, 'x', block->capacity);
    struct raft_entry entry = {.index = 1, .term = 1, .payload = slice_of(block, 0, 900000)};
    struct raft_message message = {
        .kind = RAFT_APPEND, .from = 1, .to = 2, .term = 1, .entries = &entry, .entry_count = 1};
    const struct peer_link *link = peers_link(&world.nodes[0]->broker.shards[0], 2);
    for (int i = 0; i < 100; i++) {
        peers_send(&world.nodes[0]->broker.shards[0], 0, &message, (struct payload_place){0});
    }
    ck_assert_uint_gt(link->dropped, 50);
    ck_assert_uint_lt(link->dropped, 70);
    RUN_UNTIL(&world, evbuffer_get_length(link->out) == 0);
    ck_assert_uint_eq(atomic_load(&block->references), 1);
    block_unref(block);
    close_world(&world);
}
END_TEST

struct question {
    struct peer_call call;
    bool ended;
    enum status status;
    struct block *block;
    struct view body;
};

static void answered(struct peer_call *call, enum status status, struct slice body)
{
    struct question *question = container_of(call, struct question, call);
    ck_assert(!question->ended);
    question->ended = true;
    question->status = status;
    if (status == STATUS_OK) {
        question->block = block_ref(body.block);
        question->body = slice_view(body);
    }
}

static void ask(struct node *node, struct question *question, int32_t to, uint64_t timeout_ms)
{
    struct buffer body = {0};
    struct api_versions_request request = api_versions_request_default;
    request.client_software_name = VIEW_LITERAL("test");
    request.client_software_version = VIEW_LITERAL("1");
    ck_assert_int_eq(message_encode_to(&api_versions_request_type, 3, &request, &body), STATUS_OK);
    *question = (struct question){.call = {.node = to,
                                           .api_key = API_API_VERSIONS,
                                           .api_version = 3,
                                           .timeout_ms = timeout_ms,
                                           .done = answered}};
    peers_call(&node->broker.shards[0], &question->call, buffer_view(&body));
    ck_assert(!question->ended);
    buffer_free(&body);
}

START_TEST(calls_are_answered)
{
    struct world world = open_linked_world();
    struct question questions[3];
    struct api_versions_response response;
    struct arena arena;
    for (int i = 0; i < 3; i++) {
        ask(world.nodes[0], &questions[i], 2, 60000);
    }
    peers_cancel(&world.nodes[0]->broker.shards[0], &questions[1].call);
    RUN_UNTIL(&world, questions[0].ended && questions[2].ended);
    ck_assert(!questions[1].ended);
    for (int i = 0; i < 3; i += 2) {
        arena_init(&arena, 1 << 20);
        ck_assert_int_eq(questions[i].status, STATUS_OK);
        ck_assert_int_eq(message_decode_whole(&api_versions_response_type, 3, questions[i].body,
                                              &arena, &response), STATUS_OK);
        ck_assert_int_gt(response.api_keys_count, 20);
        for (int32_t k = 0; k < response.api_keys_count; k++) {
            ck_assert(!api_is_private(response.api_keys[k].api_key));
        }
        arena_free(&arena);
        block_unref(questions[i].block);
    }
    close_world(&world);
}
END_TEST

START_TEST(calls_end_when_there_is_no_answer)
{
    struct world world = open_linked_world();
    struct question nobody;
    struct question late;
    struct question cut;
    ask(world.nodes[0], &nobody, 3, 60000);
    ask(world.nodes[0], &late, 2, 50);
    while (!nobody.ended || !late.ended) { /* the other node does not run */
        run_node(world.nodes[0]);
    }
    ck_assert_int_eq(nobody.status, STATUS_CLOSED);
    ck_assert_int_eq(late.status, STATUS_TIMEOUT);
    ask(world.nodes[0], &cut, 2, 60000);
    stop_listening(world.nodes[1]);
    RUN_UNTIL(&world, cut.ended);
    ck_assert_int_eq(cut.status, STATUS_CLOSED);
    listen_again(world.nodes[1]);
    ask(world.nodes[0], &cut, 2, 60000);
    peers_drop(&world.nodes[0]->broker.shards[0], 2);
    RUN_UNTIL(&world, cut.ended);
    ck_assert_int_eq(cut.status, STATUS_CLOSED);
    close_world(&world);
}
END_TEST

START_TEST(a_broken_link_comes_back)
{
    struct world world = open_linked_world();
    stop_listening(world.nodes[1]);
    RUN_UNTIL(&world, peers_link(&world.nodes[0]->broker.shards[0], 2)->state == LINK_WAITING);
    peers_tell_leader(&world.nodes[0]->broker.shards[1], 5, 3, 0); /* nobody hears it */
    listen_again(world.nodes[1]);
    RUN_UNTIL(&world, is_up(world.nodes[0], 2));
    ck_assert_int_eq(leader(world.nodes[1], 5).leader, -1);
    ck_assert(peers_is_alive(&world.nodes[1]->broker, 1));
    close_world(&world);
}
END_TEST

/* Node 2 does, and node 1 finds it again. */
static void goes_and_comes_back(struct world *world)
{
    stop_listening(world->nodes[1]);
    RUN_UNTIL(world, !is_up(world->nodes[0], 2));
    listen_again(world->nodes[1]);
    RUN_UNTIL(world, is_up(world->nodes[0], 2));
}

START_TEST(a_node_may_move)
{
    struct world world = open_world("one", "one");
    put(world.nodes[1], world.nodes[0], "127.0.0.1", 1);
    put(world.nodes[0], world.nodes[1], "nobody.invalid", 2);
    RUN_UNTIL(&world, said(world.nodes[0], 2)[0] != '\0');
    put(world.nodes[0], world.nodes[1], "127.0.0.1", 2);
    RUN_UNTIL(&world, is_up(world.nodes[0], 2));
    /* A link that is up is not broken for another address: it is the next one's. */
    put(world.nodes[0], world.nodes[1], "localhost", 2);
    ck_assert(is_up(world.nodes[0], 2));
    ck_assert_str_eq(peers_link(&world.nodes[0]->broker.shards[0], 2)->places.recorded.host,
                     "localhost");
    goes_and_comes_back(&world);
    close_world(&world);
}
END_TEST

static struct place place_at(const struct node *node)
{
    return place_of(VIEW_LITERAL("127.0.0.1"), node->listener.port);
}

/* Nobody has to record where it is: it says so itself. */
START_TEST(a_node_says_where_it_is)
{
    struct world world = open_world("one", "one");
    world.nodes[1]->broker.own_place = place_at(world.nodes[1]);
    put(world.nodes[0], world.nodes[1], "nobody.invalid", 2);
    put(world.nodes[1], world.nodes[0], "127.0.0.1", 1);
    RUN_UNTIL(&world, is_up(world.nodes[0], 2));
    goes_and_comes_back(&world);
    close_world(&world);
}
END_TEST

START_TEST(a_node_that_nobody_recorded)
{
    struct world world = open_world("one", "one");
    world.nodes[0]->broker.in_cluster = true;
    world.nodes[1]->broker.own_place = place_at(world.nodes[1]);
    put(world.nodes[1], world.nodes[0], "127.0.0.1", 1);
    RUN_UNTIL(&world, peers_link(&world.nodes[0]->broker.shards[0], 2) != NULL);
    RUN_UNTIL(&world, is_up(world.nodes[0], 2));
    /* It is forgotten when it is heard no more. */
    stop_listening(world.nodes[1]);
    for (int i = 0; i < SHARDS; i++) {
        peers_drop(&world.nodes[1]->broker.shards[i], 1);
    }
    RUN_UNTIL(&world, peers_link(&world.nodes[0]->broker.shards[0], 2) == NULL &&
                          peers_link(&world.nodes[0]->broker.shards[1], 2) == NULL);
    listen_again(world.nodes[1]);
    close_world(&world);
}
END_TEST

/* Each knows only where some controller is to be met, and there are two that could be meant. */
START_TEST(nodes_meet)
{
    struct world world = open_world("one", "one");
    for (int i = 0; i < 2; i++) {
        struct broker *broker = &world.nodes[i]->broker;
        const struct node *other = world.nodes[1 - i];
        broker->meeting_places.list[broker->meeting_places.count++] = place_at(other);
        put(world.nodes[i], other, "nobody.invalid", 9); /* another one than is met */
        put(world.nodes[i], other, "nobody.invalid", other->broker.node_id);
    }
    RUN_UNTIL(&world, is_up(world.nodes[0], 2) && is_up(world.nodes[1], 1));
    ck_assert(!is_up(world.nodes[0], 9));
    ck_assert(!peers_is_alive(&world.nodes[0]->broker, 9));
    close_world(&world);
}
END_TEST

/* The printed address of the link's own end. */
static void own_address(const struct peer_link *link, char text[CONNECTION_ADDRESS_BYTES])
{
    struct sockaddr_in name = {0};
    socklen_t length = sizeof name;
    ck_assert_int_eq(getsockname(link->fd, (struct sockaddr *)&name, &length), 0);
    snprintf(text, CONNECTION_ADDRESS_BYTES, "127.0.0.1:%d", ntohs(name.sin_port));
}

/* Whether each link of `from` came in on the shard of `to` with its own number. */
static bool are_at_home(const struct node *from, const struct node *to)
{
    int found = 0;
    for (int i = 0; i < SHARDS; i++) {
        char address[CONNECTION_ADDRESS_BYTES];
        own_address(peers_link(&from->broker.shards[i], to->broker.node_id), address);
        struct connections *connections = to->broker.shards[i].connections;
        for (struct list_link *at = list_first(&connections->all); at != NULL;
             at = list_next(&connections->all, at)) {
            struct connection *connection = container_of(at, struct connection, link);
            ck_assert_ptr_eq(connection->shard, &to->broker.shards[i]);
            found += strcmp(connection->address, address) == 0;
        }
    }
    return found == SHARDS;
}

static int connect_client(const struct node *node)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(node->listener.port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

START_TEST(a_link_is_served_by_the_shard_it_speaks_for)
{
    struct world world = open_world("one", "one");
    int client = connect_client(world.nodes[0]); /* the links come in on the other shard */
    RUN_UNTIL(&world, world.nodes[0]->broker.connection_register.count == 1);
    put(world.nodes[1], world.nodes[0], "127.0.0.1", 1);
    put(world.nodes[0], world.nodes[1], "127.0.0.1", 2);
    RUN_UNTIL(&world, is_up(world.nodes[0], 2) && is_up(world.nodes[1], 1));
    RUN_UNTIL(&world, are_at_home(world.nodes[1], world.nodes[0]) &&
                          are_at_home(world.nodes[0], world.nodes[1]));
    uint64_t until_ms = clock_monotonic_ms() + 2 * LIVENESS_SILENT_MS;
    RUN_UNTIL(&world, clock_monotonic_ms() > until_ms); /* what comes there is heard */
    ck_assert(peers_is_alive(&world.nodes[0]->broker, 2));
    close(client);
    close_world(&world);
}
END_TEST

static unsigned served_by(const struct node *node, int shard)
{
    return atomic_load(&node->broker.shards[shard].connections->count);
}

static struct connection *first_connection(struct node *node)
{
    struct list_link *link = list_first(&node->broker.shards[0].connections->all);
    return container_of(link, struct connection, link);
}

/* The client that moves next has a fetch session. */
static int32_t use_session(struct node *node)
{
    int32_t id = fetch_session_new(node->broker.shards[0].sessions, true)->id;
    first_connection(node)->session_id = id;
    return id;
}

/* A client's connection on shard 0 says that many of its requests were for shard 1. */
static void work_for_other(struct node *node, int requests)
{
    struct shard *shards = node->broker.shards;
    struct connection *connection = first_connection(node);
    for (int i = 0; i < requests; i++) {
        connection_works_for(connection, &shards[1]);
        connection_answered(connection);
        run_node(node);
    }
}

START_TEST(a_client_moves_to_the_shard_that_all_its_requests_are_for)
{
    struct world world = open_world("one", "one");
    struct node *node = world.nodes[0];
    int first = connect_client(node);
    RUN_UNTIL(&world, served_by(node, 0) == 1);
    int second = connect_client(node);
    RUN_UNTIL(&world, served_by(node, 1) == 1);
    int third = connect_client(node);
    int fourth = connect_client(node);
    RUN_UNTIL(&world, served_by(node, 0) == 2 && served_by(node, 1) == 2);
    work_for_other(node, 10);
    ck_assert_uint_eq(served_by(node, 0), 2); /* too few to tell */
    int32_t session = use_session(node);
    work_for_other(node, 100);
    RUN_UNTIL(&world, served_by(node, 1) == 3);
    ck_assert_ptr_null(fetch_session_find(node->broker.shards[0].sessions, session));
    ck_assert_ptr_nonnull(fetch_session_find(node->broker.shards[1].sessions, session));
    ck_assert_uint_eq(served_by(node, 0), 1);
    work_for_other(node, 100);
    RUN_UNTIL(&world, served_by(node, 0) + served_by(node, 1) == 4);
    ck_assert_uint_eq(served_by(node, 0), 1); /* shard 1 has more to do as it is */
    close(first);
    close(second);
    close(third);
    close(fourth);
    RUN_UNTIL(&world, served_by(node, 0) + served_by(node, 1) == 0); /* it is read where it is */
    close_world(&world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("link");
    TCase *tests = tcase_create("link");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, nodes_find_each_other);
    tcase_add_test(tests, beats_keep_a_node_alive);
    tcase_add_test(tests, another_cluster_is_refused);
    tcase_add_test(tests, a_node_that_stands_alone_refuses);
    tcase_add_test(tests, the_wrong_node_is_noticed);
    tcase_add_test(tests, leaders_are_told);
    tcase_add_test(tests, raft_messages_arrive);
    tcase_add_test(tests, what_nobody_takes_is_dropped);
    tcase_add_test(tests, calls_are_answered);
    tcase_add_test(tests, calls_end_when_there_is_no_answer);
    tcase_add_test(tests, a_broken_link_comes_back);
    tcase_add_test(tests, a_node_may_move);
    tcase_add_test(tests, a_node_says_where_it_is);
    tcase_add_test(tests, a_node_that_nobody_recorded);
    tcase_add_test(tests, nodes_meet);
    tcase_add_test(tests, a_link_is_served_by_the_shard_it_speaks_for);
    tcase_add_test(tests, a_client_moves_to_the_shard_that_all_its_requests_are_for);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
