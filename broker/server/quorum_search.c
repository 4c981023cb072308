/* One connection for each question, with the system's own timeouts. Nothing else runs yet, so that
 * blocking harms nobody. Whatever goes wrong, the next server is asked. First they are asked what
 * the leader says, then what they know themselves: where one of two voters lost its disk nobody
 * leads before it is back. */
#include "broker/server/quorum_search.h"

#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/log.h"
#include "broker/config/endpoint.h"
#include "broker/config/topic_name.h"
#include "broker/peer/frames.h"
#include "broker/server/broker.h"
#include "broker/server/cluster.h"
#include "messages/api_keys.h"
#include "messages/describe_cluster.h"
#include "messages/describe_quorum.h"
#include "messages/errors.h"

enum {
    QUORUM_VERSION = 2,
    CLUSTER_VERSION = 1,
    ENDPOINT_CONTROLLERS = 2,
    ANSWER_MOST_BYTES = 1024 * 1024,
    ANSWER_HEADER_BYTES = 5, /* correlation id, no tags */
    WAIT_S = 2
};

static int open_to(const struct addrinfo *address)
{
    struct timeval wait = {.tv_sec = WAIT_S};
    assert(address != NULL);
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int connect_to(struct view host, uint16_t port)
{
    char name[NI_MAXHOST];
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    snprintf(name, sizeof name, "%.*s", VIEW_PRINT(host));
    snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(name, service, &hints, &found) != 0) {
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = open_to(at);
    }
    freeaddrinfo(found);
    return fd;
}

static bool send_question(int fd, int16_t api_key, int16_t version,
                          const struct message_type *type, const void *request)
{
    struct buffer frame = {0};
    peer_frame_begin(&frame, api_key, version, 0);
    enum status status = message_encode_to(type, version, request, &frame);
    assert(status == STATUS_OK);
    (void)status;
    store_be32(frame.data, (uint32_t)(frame.length - 4));
    bool is_sent = send(fd, frame.data, frame.length, MSG_NOSIGNAL) == (ssize_t)frame.length;
    buffer_free(&frame);
    return is_sent;
}

static bool ask_quorum(int fd)
{
    struct describe_quorum_request_partition_data partition =
        describe_quorum_request_partition_data_default;
    struct describe_quorum_request_topic_data topic = describe_quorum_request_topic_data_default;
    struct describe_quorum_request request = describe_quorum_request_default;
    topic.topic_name = view_text(TOPIC_CLUSTER_METADATA);
    topic.partitions = &partition;
    topic.partitions_count = 1;
    request.topics = &topic;
    request.topics_count = 1;
    return send_question(fd, API_DESCRIBE_QUORUM, QUORUM_VERSION, &describe_quorum_request_type,
                         &request);
}

static bool ask_cluster(int fd)
{
    struct describe_cluster_request request = describe_cluster_request_default;
    request.endpoint_type = ENDPOINT_CONTROLLERS;
    return send_question(fd, API_DESCRIBE_CLUSTER, CLUSTER_VERSION, &describe_cluster_request_type,
                         &request);
}

static bool receive(int fd, void *bytes, size_t length)
{
    return recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

static bool receive_answer(int fd, struct buffer *body)
{
    uint8_t size[4];
    assert(body->length == 0);
    if (!receive(fd, size, sizeof size)) {
        return false;
    }
    uint32_t length = load_be32(size);
    return length > ANSWER_HEADER_BYTES && length <= ANSWER_MOST_BYTES &&
           receive(fd, buffer_extend(body, length), length);
}

/* Room for so many voters; false when they are none, or too many. */
static bool make_room(struct arena *arena, int32_t count, struct quorum_list *found)
{
    bool is_sane = count >= 1 && count <= QUORUM_VOTER_LIMIT;
    found->voters = is_sane ? arena_take(arena, (size_t)count, sizeof *found->voters) : NULL;
    found->count = 0;
    return found->voters != NULL;
}

static void add_voter(struct arena *arena, struct quorum_list *found, int32_t node,
                      struct view host, int32_t port)
{
    assert(found->count < QUORUM_VOTER_LIMIT);
    if (node >= 0 && host.length > 0 && port > 0 && port <= UINT16_MAX) {
        found->voters[found->count++] = (struct quorum_voter){
            .node_id = node, .host = arena_copy(arena, host), .port = (uint16_t)port};
    }
}

/* Whom the answer names, as far as it does. */
static void read_quorum(struct view body, struct arena *arena, struct quorum_list *found)
{
    struct describe_quorum_response answer = describe_quorum_response_default;
    enum status status =
        message_decode(&describe_quorum_response_type, QUORUM_VERSION, &body, arena, &answer);
    bool is_good = status == STATUS_OK && answer.error_code == KAFKA_NONE &&
                   make_room(arena, answer.nodes_count, found);
    for (int32_t i = 0; i < answer.nodes_count && is_good; i++) {
        const struct describe_quorum_response_node *node = &answer.nodes[i];
        if (node->listeners_count > 0) {
            add_voter(arena, found, node->node_id, node->listeners[0].host,
                      node->listeners[0].port);
        }
    }
}

static void read_cluster(struct view body, struct arena *arena, struct quorum_list *found)
{
    struct describe_cluster_response answer = describe_cluster_response_default;
    enum status status =
        message_decode(&describe_cluster_response_type, CLUSTER_VERSION, &body, arena, &answer);
    bool is_good = status == STATUS_OK && answer.error_code == KAFKA_NONE &&
                   make_room(arena, answer.brokers_count, found);
    for (int32_t i = 0; i < answer.brokers_count && is_good; i++) {
        const struct describe_cluster_response_describe_cluster_broker *node = &answer.brokers[i];
        add_voter(arena, found, node->broker_id, node->host, node->port);
    }
}

/* How a server may be asked who votes. */
struct question {
    bool (*send)(int fd);
    void (*read)(struct view body, struct arena *arena, struct quorum_list *found);
};

static enum status ask(struct broker *broker, struct view server, const struct question *question,
                       struct quorum_list *found)
{
    struct view host;
    uint16_t port;
    struct buffer bytes = {0};
    found->count = 0;
    int fd = host_port_parse(server, &host, &port) ? connect_to(host, port) : -1;
    if (fd < 0) {
        return STATUS_NOT_FOUND;
    }
    if (question->send(fd) && receive_answer(fd, &bytes)) {
        struct view body = buffer_view(&bytes);
        body = view_slice(body, ANSWER_HEADER_BYTES, body.length - ANSWER_HEADER_BYTES);
        question->read(body, &broker->arena, found);
    }
    buffer_free(&bytes);
    close(fd);
    if (found->count > 0) {
        log_info("cluster", "%.*s says that %d nodes vote on metadata", VIEW_PRINT(server),
                 found->count);
    }
    return found->count > 0 ? STATUS_OK : STATUS_NOT_FOUND;
}

enum status quorum_search(struct broker *broker, struct quorum_list *found)
{
    uint32_t count;
    const struct view *servers =
        config_list(broker->config, CONFIG_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS, &count);
    static const struct question questions[] = {{ask_quorum, read_quorum},
                                                {ask_cluster, read_cluster}};
    assert(count > 0 && found != NULL);
    for (size_t k = 0; k < sizeof questions / sizeof *questions; k++) {
        for (uint32_t i = 0; i < count; i++) {
            if (!cluster_is_own(broker, servers[i]) &&
                ask(broker, servers[i], &questions[k], found) == STATUS_OK) {
                return STATUS_OK;
            }
        }
    }
    return STATUS_NOT_FOUND;
}
