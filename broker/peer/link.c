/* The state machine of a link. Each way out of a state ends in `broken`, which closes what there
 * is, says why and arms the timer for the next try. */
#include "broker/peer/link.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/peer/hello.h"
#include "broker/peer/peer_table.h"
#include "broker/server/broker.h"
#include "io/clock.h"
#include "io/random.h"
#include "messages/api_keys.h"

enum {
    BACKOFF_LEAST_MS = 20,
    BACKOFF_MOST_MS = 1000,
    BACKOFF_REFUSED_MS = 5000,   /* only an operator changes that */
    CONNECT_MS = 1000,           /* patience for a connection */
    HELLO_MS = 2000,             /* and for the answer to hello */
    UNACKNOWLEDGED_MS = 2000,    /* TCP_USER_TIMEOUT */
    UNSENT_BYTES = 32 * 1024 * 1024,
    FRAME_BYTES = 4 * 1024 * 1024, /* then Raft messages go on in another frame */
    ANSWER_BYTES = 128 * 1024 * 1024,
    SCRATCH_BYTES = 16 * 1024,
    READS_PER_TURN = 8,
    SAY_AGAIN_MS = 30000,
    TELL_DROPPED_MS = 10000,
};

static void try_now(struct peer_link *link);

static void arm(struct peer_link *link, uint64_t ms)
{
    struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
                           .tv_usec = (suseconds_t)(ms % 1000 * 1000)};
    event_add(link->timer, &wait);
}

/* Shard 0 speaks for all; the same reason is not said again at every try. */
static void say(struct peer_link *link, const char *why)
{
    uint64_t now_ms = clock_monotonic_ms();
    if (places_is_meeting(&link->places)) {
        return; /* others are met there, as a rule */
    }
    if (strcmp(link->said, why) == 0 && now_ms - link->said_ms < SAY_AGAIN_MS) {
        return;
    }
    snprintf(link->said, sizeof link->said, "%s", why);
    link->said_ms = now_ms;
    log_at(link->shard->number == 0 ? LOG_WARN : LOG_DEBUG, "peer",
           "no link to node %d at %s:%u: %s", link->node, link->place.host, link->place.port, why);
}

static void forget_answer(struct peer_link *link)
{
    block_unref(link->answer.block);
    link->answer = (struct answer_reader){0};
}

static void close_socket(struct peer_link *link)
{
    if (link->fd < 0) {
        return;
    }
    event_free(link->read_event);
    event_free(link->write_event);
    link->read_event = NULL;
    link->write_event = NULL;
    close(link->fd);
    link->fd = -1;
    link->life++;
    forget_answer(link);
}

static void disconnect(struct peer_link *link)
{
    close_socket(link);
    event_del(link->timer);
    evbuffer_drain(link->out, evbuffer_get_length(link->out));
    link->down_ms = link->state == LINK_UP ? clock_monotonic_ms() : link->down_ms;
    raft_outbox_free(&link->outbox);
    link->leader_count = 0;
    if (link->job != NULL) {
        link->job->owner = NULL;
        link->job = NULL;
    }
    link->state = LINK_WAITING;
    peer_calls_closed(link);
}

static void broken_for(struct peer_link *link, const char *why, uint64_t wait_ms)
{
    bool was_up = link->state == LINK_UP;
    disconnect(link);
    say(link, why);
    arm(link, wait_ms);
    if (!was_up) {
        places_next(&link->places, peers_meeting(link));
    }
    peers_link_broken(link);
}

static void broken(struct peer_link *link, const char *why)
{
    uint32_t wait_ms = link->backoff_ms / 2 + (uint32_t)random_below(link->backoff_ms / 2 + 1);
    link->backoff_ms =
        link->backoff_ms * 2 < BACKOFF_MOST_MS ? link->backoff_ms * 2 : BACKOFF_MOST_MS;
    broken_for(link, why, wait_ms);
}

static void write_out(struct peer_link *link)
{
    assert(link->fd >= 0);
    while (evbuffer_get_length(link->out) > 0) {
        errno = 0;
        int sent = evbuffer_write(link->out, link->fd);
        if (sent <= 0 && (errno == EAGAIN || errno == EINTR)) {
            event_add(link->write_event, NULL);
            return;
        }
        if (sent <= 0) {
            broken(link, sent < 0 ? strerror(errno) : "nothing can be written");
            return;
        }
    }
}

int32_t link_request(struct peer_link *link, int16_t api_key, int16_t api_version,
                     struct view body)
{
    assert(link->state == LINK_UP || link->state == LINK_GREETING);
    struct buffer frame = {0};
    link->correlation_id = link->correlation_id == INT32_MAX ? 1 : link->correlation_id + 1;
    peer_frame_begin(&frame, api_key, api_version, link->correlation_id);
    if (body.length > 0) {
        buffer_append(&frame, body.data, body.length);
    }
    peer_frame_write(&frame, link->out);
    link->sent = true;
    peers_due(link);
    return link->correlation_id;
}

static void greet(struct peer_link *link)
{
    struct buffer body = {0};
    hello_write(link->shard, link->node, &body);
    link->state = LINK_GREETING;
    link_request(link, API_PEER_HELLO, 0, buffer_view(&body));
    buffer_free(&body);
    arm(link, HELLO_MS);
}

static void come_up(struct peer_link *link)
{
    link->state = LINK_UP;
    link->backoff_ms = BACKOFF_LEAST_MS;
    link->said[0] = '\0';
    event_del(link->timer);
    log_at(link->shard->number == 0 ? LOG_INFO : LOG_DEBUG, "peer",
           "linked to node %d at %s:%u", link->node, link->place.host, link->place.port);
    peers_link_up(link);
}

static void hello_answered(struct peer_link *link, struct slice frame)
{
    struct peer_hello_response hello;
    struct arena arena;
    struct view rest = slice_view(frame);
    char text[160];
    if (rest.length < 4 || (int32_t)load_be32(rest.data) != link->correlation_id) {
        broken_for(link, "what answers there is no broker", BACKOFF_REFUSED_MS);
        return;
    }
    rest = view_slice(rest, 4, rest.length - 4);
    arena_init(&arena, 1024);
    if (message_decode(&peer_hello_response_type, 0, &rest, &arena, &hello) != STATUS_OK) {
        broken_for(link, "its answer to hello cannot be read", BACKOFF_REFUSED_MS);
    } else if (hello_objection(link->shard->broker, link->node, &hello, text, sizeof text) !=
               NULL) {
        peers_met(link, hello.node_id, hello.cluster_id);
        if (hello_may_change(link, &hello)) {
            broken(link, text);
        } else {
            broken_for(link, text, BACKOFF_REFUSED_MS);
        }
    } else {
        liveness_told(link->shard->broker, link->node, hello.incarnation, hello.keeps_metadata);
        come_up(link);
    }
    arena_free(&arena);
}

static void answer_complete(struct peer_link *link)
{
    struct answer_reader *answer = &link->answer;
    struct slice frame = slice_of(answer->block, 0, answer->length);
    *answer = (struct answer_reader){0};
    link->shard->work++;
    if (link->state == LINK_GREETING) {
        hello_answered(link, frame);
    } else {
        struct liveness_node *node = liveness_add(&link->shard->broker->liveness, link->node);
        if (node != NULL) {
            liveness_heard(node, clock_monotonic_ms());
        }
        peer_call_answered(link, frame);
    }
    block_unref(frame.block);
}

/* Moves bytes into answers. False when the connection ended meanwhile. */
static bool take_bytes(struct peer_link *link, const uint8_t *bytes, size_t length)
{
    struct answer_reader *answer = &link->answer;
    unsigned life = link->life;
    while (length > 0 && link->life == life) {
        if (answer->block == NULL) {
            answer->head[answer->head_have++] = *bytes++;
            length--;
            if (answer->head_have < sizeof answer->head) {
                continue;
            }
            answer->length = load_be32(answer->head);
            if (answer->length < 4 || answer->length > ANSWER_BYTES) {
                broken_for(link, "what answers there is no broker", BACKOFF_REFUSED_MS);
                return false;
            }
            answer->block = block_new(answer->length);
        }
        size_t room = answer->length - answer->have;
        size_t part = room < length ? room : length;
        memcpy(answer->block->bytes + answer->have, bytes, part);
        answer->have += part;
        bytes += part;
        length -= part;
        if (answer->have == answer->length) {
            answer_complete(link);
        }
    }
    return link->life == life;
}

/* Into the answer under way first, what is behind it into the scratch area. False when there is
 * nothing more to read now. */
static bool read_once(struct peer_link *link)
{
    uint8_t scratch[SCRATCH_BYTES];
    struct answer_reader *answer = &link->answer;
    struct iovec parts[2];
    int count = 0;
    size_t direct = answer->block == NULL ? 0 : answer->length - answer->have;
    if (direct > 0) {
        parts[count++] = (struct iovec){answer->block->bytes + answer->have, direct};
    }
    parts[count++] = (struct iovec){scratch, sizeof scratch};
    ssize_t got = readv(link->fd, parts, count);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        broken(link, got < 0 ? strerror(errno) : "it closed the connection");
        return false;
    }
    unsigned life = link->life;
    size_t into_answer = (size_t)got < direct ? (size_t)got : direct;
    answer->have += into_answer;
    if (into_answer > 0 && answer->have == answer->length) {
        answer_complete(link);
    }
    return link->life == life && take_bytes(link, scratch, (size_t)got - into_answer) &&
           (size_t)got == direct + sizeof scratch;
}

static void readable(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    struct peer_link *link = argument;
    assert(link->state >= LINK_GREETING);
    for (int i = 0; i < READS_PER_TURN && read_once(link); i++) {
    }
}

static void try_address(struct peer_link *link);

static void connected(struct peer_link *link)
{
    event_add(link->read_event, NULL);
    greet(link);
}

static void writable(evutil_socket_t fd, short what, void *argument)
{
    (void)what;
    struct peer_link *link = argument;
    if (link->state != LINK_CONNECTING) {
        write_out(link);
        return;
    }
    int failed = 0;
    socklen_t length = sizeof failed;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &length) == 0 && failed == 0) {
        connected(link);
        return;
    }
    errno = failed;
    close_socket(link);
    link->address++;
    try_address(link);
}

static int open_socket(const struct sockaddr_storage *address)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1;
    unsigned patience_ms = UNACKNOWLEDGED_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
    return fd;
}

/* Tries the addresses from the present one on; errno says why the one before did not do. */
static void try_address(struct peer_link *link)
{
    for (; link->address < link->addresses.count; link->address++) {
        const struct sockaddr_storage *address = &link->addresses.list[link->address];
        socklen_t length = address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                         : sizeof(struct sockaddr_in6);
        link->fd = open_socket(address);
        if (link->fd < 0) {
            continue;
        }
        struct event_base *base = link->shard->base;
        link->read_event = event_new(base, link->fd, EV_READ | EV_PERSIST, readable, link);
        link->write_event = event_new(base, link->fd, EV_WRITE, writable, link);
        assert(link->read_event != NULL && link->write_event != NULL);
        if (connect(link->fd, (const struct sockaddr *)address, length) == 0 ||
            errno == EINPROGRESS) {
            link->state = LINK_CONNECTING;
            event_add(link->write_event, NULL);
            arm(link, CONNECT_MS);
            return;
        }
        int why = errno;
        close_socket(link);
        errno = why;
    }
    broken(link, strerror(errno));
}

static void resolved(struct shard *shard, struct mail *mail)
{
    struct resolve_job *job = container_of(mail, struct resolve_job, mail);
    struct peer_link *link = job->owner;
    assert(job->shard == shard);
    (void)shard;
    if (link != NULL) {
        assert(link->job == job && link->state == LINK_RESOLVING);
        link->job = NULL;
        link->addresses = job->addresses;
        link->address = 0;
        if (job->error != NULL) {
            broken(link, job->error);
        } else {
            try_address(link);
        }
    }
    free(job);
}

static void try_now(struct peer_link *link)
{
    if (peers_rests(link)) {
        arm(link, BACKOFF_MOST_MS);
        return;
    }
    const struct place *place = places_now(&link->places, peers_meeting(link));
    assert(link->fd < 0 && link->job == NULL && place != NULL);
    link->place = *place;
    link->address = 0;
    if (resolver_numeric(place->host, place->port, &link->addresses)) {
        try_address(link);
        return;
    }
    struct resolve_job *job = memory_new_zero(1, sizeof *job);
    job->mail.run = resolved;
    job->shard = link->shard;
    job->owner = link;
    job->port = place->port;
    memcpy(job->host, place->host, sizeof job->host);
    link->job = job;
    link->state = LINK_RESOLVING;
    resolver_ask(link->shard->broker->resolver, job);
}

static void timer_due(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    struct peer_link *link = argument;
    switch (link->state) {
    case LINK_WAITING:
        try_now(link);
        break;
    case LINK_CONNECTING:
        close_socket(link);
        link->address++;
        errno = ETIMEDOUT;
        try_address(link);
        break;
    case LINK_GREETING:
        broken(link, "hello was not answered");
        break;
    case LINK_RESOLVING:
    case LINK_UP:
        assert(false && "no timer in this state");
    }
}

void link_hurry(struct peer_link *link)
{
    if (link->state != LINK_WAITING && link->state != LINK_CONNECTING) {
        return;
    }
    disconnect(link);
    link->backoff_ms = BACKOFF_LEAST_MS;
    arm(link, 0);
}

struct peer_link *link_new(struct shard *shard, int32_t node, const struct places *places)
{
    struct peer_link *link = memory_new_zero(1, sizeof *link);
    link->shard = shard;
    link->node = node;
    link->places = *places;
    link->fd = -1;
    link->backoff_ms = BACKOFF_LEAST_MS;
    link->out = evbuffer_new();
    link->timer = event_new(shard->base, -1, 0, timer_due, link);
    assert(link->out != NULL && link->timer != NULL);
    list_init(&link->calls);
    arm(link, 0);
    return link;
}

void link_moved(struct peer_link *link)
{
    assert(places_now(&link->places, peers_meeting(link)) != NULL);
    if (link->state != LINK_UP) { /* one that is up leads to the right process, wherever it is */
        disconnect(link);
        link->backoff_ms = BACKOFF_LEAST_MS;
        arm(link, 0);
    }
}

void link_free(struct peer_link *link)
{
    disconnect(link);
    assert(list_is_empty(&link->calls));
    if (list_contains(&link->due)) {
        list_remove(&link->due);
    }
    event_free(link->timer);
    evbuffer_free(link->out);
    raft_outbox_free(&link->outbox);
    free(link->leaders);
    free(link);
}

static void tell_dropped(struct peer_link *link)
{
    uint64_t now_ms = clock_monotonic_ms();
    link->dropped++;
    if (now_ms - link->dropped_told_ms > TELL_DROPPED_MS) {
        link->dropped_told_ms = now_ms;
        log_warn("peer", "node %d takes less than is sent to it: %" PRIu64 " Raft messages were "
                 "dropped so far; they are sent again", link->node, link->dropped);
    }
}

void link_send_raft(struct peer_link *link, uint64_t group, const struct raft_message *message,
                    struct payload_place place)
{
    if (link->state != LINK_UP) {
        return;
    }
    if (evbuffer_get_length(link->out) + link->outbox.bytes > UNSENT_BYTES) {
        tell_dropped(link);
        return;
    }
    if (link->outbox.bytes >= FRAME_BYTES) {
        raft_outbox_write(&link->outbox, 0, link->out);
    }
    raft_outbox_add(&link->outbox, group, message, place);
    link->sent = true;
    peers_due(link);
}

void link_send_leader(struct peer_link *link, const struct peer_leaders_request_leader *leader)
{
    if (link->state != LINK_UP) {
        return;
    }
    if (link->leader_count == link->leader_capacity) {
        link->leader_capacity = link->leader_capacity > 0 ? link->leader_capacity * 2 : 16;
        link->leaders =
            memory_resize(link->leaders, link->leader_capacity, sizeof *link->leaders);
    }
    link->leaders[link->leader_count++] = *leader;
    peers_due(link);
}

static void write_leaders(struct peer_link *link)
{
    struct peer_leaders_request request = {
        .leaders = link->leaders,
        .leaders_count = (int32_t)link->leader_count,
    };
    struct buffer body = {0};
    enum status status = message_encode_to(&peer_leaders_request_type, 0, &request, &body);
    assert(status == STATUS_OK);
    (void)status;
    link_request(link, API_PEER_LEADERS, 0, buffer_view(&body));
    buffer_free(&body);
    link->leader_count = 0;
}

void link_flush(struct peer_link *link)
{
    if (link->fd < 0) {
        return;
    }
    if (link->outbox.message_count > 0) {
        raft_outbox_write(&link->outbox, 0, link->out);
    }
    if (link->leader_count > 0) {
        write_leaders(link);
    }
    write_out(link);
}

void link_beat(struct peer_link *link)
{
    if (link->state == LINK_UP && !link->sent) {
        raft_outbox_write(&link->outbox, 0, link->out);
        write_out(link);
    }
    link->sent = false;
}
