/* Sockets, frames and the order of answers.
 *
 * Reading: one readv into the frame under way and a scratch area behind it, so that a large frame
 * is not copied and many small ones cost one system call. Writing: libevent's evbuffer, which sends
 * file ranges with sendfile. Failures: the peer is gone or sends nonsense (the connection closes).
 */
#include "broker/net/connection.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/block_pool.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/memory.h"
#include "broker/api/fetch_session.h"
#include "broker/api/request.h"
#include "broker/net/acceptor.h"
#include "broker/net/file_range.h"
#include "broker/peer/liveness.h"
#include "broker/server/broker.h"
#include "io/clock.h"

enum {
    SCRATCH_BYTES = 64 * 1024,
    SCRATCH_BEHIND_BYTES = 4 * 1024,     /* behind a large frame: the next has its own turn */
    FIRST_BLOCK_BYTES = 64 * 1024,       /* a frame's first allocation */
    PEER_FIRST_BLOCK_BYTES = 1024 * 1024,
    PEER_PAGES_FROM_BYTES = 8 * 1024,    /* larger ones have pages of their own */
    FRAME_GROWTH = 4,                    /* how many times more when that is full */
    MAX_UNSENT_BYTES = 8 * 1024 * 1024,  /* answers waiting before reading stops */
    PEER_UNSENT_BYTES = 64 * 1024 * 1024,
    PEER_FRAME_BYTES = 8 * 1024 * 1024,  /* a frame of entries around the largest request */
    PEER_UNACKNOWLEDGED_MS = 4000,       /* then the kernel gives up */
    PEER_SILENT_MS = 10000,              /* a node that is silent for so long has gone */
    STALLED_FRAME_MS = 30000,            /* no byte of a frame under way for so long */
    READS_PER_TURN = 8,                  /* then others have their turn */
    WORKS_ELSEWHERE = 32,                /* requests in a row for another shard: there it belongs */
};

static void moved_in(struct shard *shard, struct mail *mail);

static struct connection_limits *limits_of(struct connection *connection)
{
    return &connection->shard->broker->connection_limits;
}

void connections_init(struct connections *connections)
{
    *connections = (struct connections){0};
    list_init(&connections->all);
    list_init(&connections->paused);
    list_init(&connections->parked);
    list_init(&connections->leaderless);
    list_init(&connections->forwards);
}

void connections_free(struct connections *connections)
{
    assert(list_is_empty(&connections->all));
    block_pool_free(connections->pool);
    free(connections);
}

static void touch(struct connection *connection)
{
    connection->active_ms = clock_monotonic_ms();
    list_remove(&connection->link);
    list_push_back(&connection->shard->connections->all, &connection->link);
}

/* Small frames have as much again for themselves: large ones that never end, of however many
 * connections, must not keep everybody else from being read. */
static bool out_of_memory_budget(struct connection *connection)
{
    if (connection->peer != NULL) {
        return false; /* what waits for memory may wait for what the node sends */
    }
    struct connection_limits *limits = limits_of(connection);
    size_t queued_bytes = atomic_load_explicit(&limits->queued_bytes, memory_order_relaxed);
    bool is_large = connection->frame.block != NULL && connection->frame.length > FIRST_BLOCK_BYTES;
    return queued_bytes / (is_large ? 1 : 2) > limits->max_queued_bytes;
}

/* Whether another request may be begun. */
static bool may_take(struct connection *connection)
{
    bool is_peer = connection->peer != NULL;
    unsigned pipelined = is_peer ? CONNECTION_PEER_PIPELINED : CONNECTION_MAX_PIPELINED;
    size_t unsent_bytes = is_peer ? PEER_UNSENT_BYTES : MAX_UNSENT_BYTES;
    return !connection->closed && !connection->closing_after_answers &&
           connection->request_count < pipelined &&
           evbuffer_get_length(connection->out) < unsent_bytes;
}

static bool may_read(struct connection *connection)
{
    return may_take(connection) && !list_contains(&connection->paused);
}

static void update_reading(struct connection *connection)
{
    bool wanted = may_read(connection);
    if (wanted == connection->reading || connection->closed) {
        return;
    }
    connection->reading = wanted;
    if (wanted) {
        event_add(connection->read_event, NULL);
        if (connection->rest.length > 0) {
            event_active(connection->read_event, EV_READ, 0);
        }
    } else {
        event_del(connection->read_event);
    }
}

static void release(struct connection *connection)
{
    assert(connection->closed);
    assert(connection->request_count == 0);
    if (list_contains(&connection->flush.link)) {
        list_remove(&connection->flush.link);
    }
    free(connection);
}

static void count_queued(struct connection *connection, size_t bytes)
{
    atomic_fetch_add_explicit(&limits_of(connection)->queued_bytes, bytes, memory_order_relaxed);
}

static void uncount_queued(struct connection *connection, size_t bytes)
{
    atomic_fetch_sub_explicit(&limits_of(connection)->queued_bytes, bytes, memory_order_relaxed);
}

static void drop_frame(struct connection *connection)
{
    struct frame_reader *frame = &connection->frame;
    if (frame->block != NULL) {
        uncount_queued(connection, frame->block->capacity);
        block_unref(frame->block);
    }
    *frame = (struct frame_reader){0};
}

/* Whoever waits for this client stops waiting. A cancelled request may be answered at once, and
 * with it others leave the list: each time the search begins anew. */
static void cancel_requests(struct connection *connection)
{
    struct list_link *link = list_first(&connection->requests);
    while (link != NULL) {
        struct request *request = container_of(link, struct request, link);
        void (*cancel)(struct request *request) = request->cancel;
        request->cancel = NULL;
        if (cancel != NULL && !request->answered) {
            cancel(request);
            link = list_first(&connection->requests);
        } else {
            link = list_next(&connection->requests, link);
        }
    }
}

static void uncount(struct connection *connection)
{
    if (connection->counted) {
        connection->counted = false;
        acceptor_connection_gone(connection->shard->broker, connection->address);
    }
}

/* A host that vanished leaves connections that say nothing for ever; they must not count as the
 * node's when it is back. */
static void notice_death(int fd)
{
    int on = 1;
    int idle_s = 4;
    int every_s = 1;
    int probes = 4;
    unsigned unacknowledged_ms = PEER_UNACKNOWLEDGED_MS;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

void connection_becomes_peer(struct connection *connection, struct liveness_node *node,
                             struct shard *home)
{
    assert(!connection->closed && node != NULL);
    assert(connection->peer == NULL);
    uncount(connection);
    connection->peer = node;
    connection->moves_to = home == connection->shard ? NULL : home;
    notice_death(connection->fd);
}

static unsigned count_of(struct shard *shard)
{
    return atomic_load_explicit(&shard->connections->count, memory_order_relaxed);
}

void connection_works_for(struct connection *connection, struct shard *shard)
{
    if (shard == connection->shard || shard != connection->works_for ||
        connection->request_count > 1) {
        connection->works_for = shard;
        connection->worked_for = 0;
        return;
    }
    connection->worked_for++;
    if (connection->worked_for >= WORKS_ELSEWHERE &&
        !atomic_load_explicit(&shard->broker->stopping, memory_order_relaxed) &&
        count_of(shard) <= count_of(connection->shard)) {
        connection->worked_for = 0;
        connection->moves_to = shard;
    }
}

/* The shard's loop and lists know it no more. */
static void leave_shard(struct connection *connection)
{
    struct connections *connections = connection->shard->connections;
    assert(list_contains(&connection->link));
    event_free(connection->read_event);
    event_free(connection->write_event);
    list_remove(&connection->link);
    if (list_contains(&connection->paused)) {
        list_remove(&connection->paused);
    }
    assert(count_of(connection->shard) > 0);
    atomic_fetch_sub_explicit(&connections->count, 1, memory_order_relaxed);
}

void connection_close(struct connection *connection, const char *reason)
{
    if (connection->closed) {
        return;
    }
    if (reason != NULL) {
        log_info("net", "closing the connection of %s: %s", connection->address, reason);
    }
    connection->closed = true;
    leave_shard(connection);
    evbuffer_free(connection->out);
    buffer_free(&connection->rest);
    drop_frame(connection);
    close(connection->fd);
    uncount(connection);
    if (connection->peer != NULL) {
        liveness_left(connection->shard->broker, connection->peer);
    }
    cancel_requests(connection);
    if (connection->request_count == 0) {
        /* The caller may be in the middle of this connection: free it at the end of the turn. */
        shard_defer(connection->shard, &connection->flush);
    }
}

/* Nothing was begun, nothing waits to be written. */
static bool is_between(const struct connection *connection)
{
    return connection->request_count == 0 && connection->frame.head_have == 0 &&
           connection->frame.block == NULL && connection->rest.length == 0 &&
           evbuffer_get_length(connection->out) == 0;
}

/* And nothing waits to be read. */
static bool is_idle(const struct connection *connection)
{
    uint8_t byte;
    return is_between(connection) &&
           recv(connection->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) < 0;
}

static void move(struct connection *connection)
{
    struct shard *home = connection->moves_to;
    assert(home != connection->shard && is_between(connection));
    assert(!list_contains(&connection->flush.link));
    if (connection->session_id != FETCH_SESSION_NONE) {
        connection->session =
            fetch_session_take(connection->shard->sessions, connection->session_id);
    }
    leave_shard(connection);
    connection->moves_to = NULL;
    connection->move.run = moved_in;
    shard_post(home, &connection->move);
}

static void could_not_write(struct connection *connection, int error)
{
    bool has_gone = error == 0 || error == EPIPE || error == ECONNRESET;
    bool is_told = file_range_failed(connection, error);
    connection_close(connection, is_told || has_gone ? NULL : strerror(error));
}

static void write_out(struct connection *connection)
{
    while (evbuffer_get_length(connection->out) > 0) {
        errno = 0;
        int sent = evbuffer_write(connection->out, connection->fd);
        if (sent > 0) {
            connection->sent_bytes += (uint64_t)sent;
            continue;
        }
        /* A sendfile that would block is reported as 0, with errno as the kernel set it. */
        if (errno != EAGAIN && errno != EINTR) {
            could_not_write(connection, sent < 0 ? errno : 0);
            return;
        }
        event_add(connection->write_event, NULL);
        break;
    }
    assert(!connection->closed);
    connection->active_ms = clock_monotonic_ms();
    if (evbuffer_get_length(connection->out) == 0 && connection->closing_after_answers &&
        connection->request_count == 0) {
        connection_close(connection, NULL);
        return;
    }
    if (connection->closing_when_idle && is_idle(connection)) {
        connection_close(connection, NULL);
        return;
    }
    if (connection->moves_to != NULL && !connection->closing_when_idle && is_between(connection)) {
        move(connection);
        return;
    }
    update_reading(connection);
}

static void flush_due(struct shard_task *task)
{
    struct connection *connection = container_of(task, struct connection, flush);
    if (!connection->closed) {
        write_out(connection);
    } else if (connection->request_count == 0) {
        release(connection);
    }
}

static void writable(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    write_out(argument);
}

void connection_answered(struct connection *connection)
{
    struct list_link *link = list_first(&connection->requests);
    while (link != NULL) {
        struct request *request = container_of(link, struct request, link);
        struct list_link *next = list_next(&connection->requests, link);
        if (!request->answered && connection->peer == NULL) {
            break;
        }
        if (!request->answered) {
            link = next;
            continue;
        }
        list_remove(link);
        assert(connection->request_count > 0);
        connection->request_count--;
        if (!connection->closed) {
            request_write_answer(request, connection->out);
            connection->closing_after_answers |= request->close_after;
        }
        uncount_queued(connection, request->frame->capacity);
        request_free(request);
        link = next;
    }
    /* Also when closed: the flush then frees the connection after its last request. */
    shard_defer(connection->shard, &connection->flush);
}

static void frame_complete(struct connection *connection)
{
    struct frame_reader *frame = &connection->frame;
    assert(frame->have == frame->length);
    struct block *block = frame->block;
    size_t length = frame->length;
    *frame = (struct frame_reader){0};
    struct request *request = request_new(connection, block, length);
    if (connection->peer == NULL) {
        connection->shard->work++; /* beats of other nodes do not keep this one awake */
    }
    list_push_back(&connection->requests, &request->link);
    connection->request_count++;
    request_start(request);
}

/* What other nodes send goes from there to the disk. */
static struct block *new_block(struct connection *connection, size_t length)
{
    struct connections *connections = connection->shard->connections;
    if (connection->peer == NULL || length < PEER_PAGES_FROM_BYTES) {
        return block_new(length);
    }
    if (connections->pool == NULL) {
        connections->pool = block_pool_new();
    }
    return block_pool_take(connections->pool, length);
}

static bool frame_begin(struct connection *connection)
{
    struct frame_reader *frame = &connection->frame;
    assert(frame->block == NULL && frame->head_have == sizeof frame->head);
    uint32_t length = load_be32(frame->head);
    size_t most = limits_of(connection)->max_frame_bytes;
    most += connection->peer != NULL ? PEER_FRAME_BYTES : 0;
    if (length > most || length < 8) {
        char reason[160];
        snprintf(reason, sizeof reason,
                 "a frame of %u bytes was announced; allowed are 8 to %zu "
                 "(socket.request.max.bytes). Is this a Kafka client, without TLS?",
                 length, most);
        connection_close(connection, reason);
        return false;
    }
    frame->length = length;
    size_t first = connection->peer != NULL ? PEER_FIRST_BLOCK_BYTES : FIRST_BLOCK_BYTES;
    first = length < first ? length : first;
    frame->block = new_block(connection, first);
    count_queued(connection, first);
    return true;
}

static void frame_grow(struct connection *connection)
{
    struct frame_reader *frame = &connection->frame;
    if (frame->have < frame->block->capacity || frame->have == frame->length) {
        return;
    }
    assert(frame->have <= frame->length);
    size_t grown = frame->block->capacity * FRAME_GROWTH;
    size_t capacity = grown < frame->length ? grown : frame->length;
    count_queued(connection, capacity - frame->block->capacity);
    frame->block = block_resize(frame->block, capacity);
}

/* Moves bytes of the scratch area into frames, as many as may be begun. Returns what is left. */
static size_t take_bytes(struct connection *connection, const uint8_t *bytes, size_t length)
{
    struct frame_reader *frame = &connection->frame;
    while (length > 0 && may_take(connection)) {
        if (frame->block == NULL) {
            size_t want = sizeof frame->head - frame->head_have;
            size_t part = want < length ? want : length;
            memcpy(frame->head + frame->head_have, bytes, part);
            frame->head_have += part;
            bytes += part;
            length -= part;
            if (frame->head_have < sizeof frame->head || !frame_begin(connection)) {
                continue;
            }
        }
        size_t room = frame->block->capacity - frame->have;
        size_t part = room < length ? room : length;
        memcpy(frame->block->bytes + frame->have, bytes, part);
        frame->have += part;
        bytes += part;
        length -= part;
        frame_grow(connection);
        if (frame->have == frame->length) {
            frame_complete(connection);
        }
    }
    return length;
}

/* Small requests that were read together with those that may be begun now wait here. Returns
 * whether none is left. */
static bool take_rest(struct connection *connection)
{
    struct buffer *rest = &connection->rest;
    size_t left = take_bytes(connection, rest->data, rest->length);
    if (connection->closed) {
        return false;
    }
    if (left == 0) {
        buffer_free(rest);
        return true;
    }
    memmove(rest->data, rest->data + (rest->length - left), left);
    rest->length = left;
    return false;
}

/* One system call: into the frame under way first, the rest into the scratch area. Returns false
 * when there is nothing more to read now. */
static bool read_once(struct connection *connection)
{
    if (connection->rest.length > 0 && !take_rest(connection)) {
        return false;
    }
    if (!may_take(connection)) {
        return false;
    }
    uint8_t scratch[SCRATCH_BYTES];
    struct frame_reader *frame = &connection->frame;
    struct iovec parts[2];
    int count = 0;
    size_t direct = frame->block == NULL ? 0 : frame->block->capacity - frame->have;
    if (direct > 0) {
        parts[count++] = (struct iovec){frame->block->bytes + frame->have, direct};
    }
    size_t behind = direct > SCRATCH_BYTES ? SCRATCH_BEHIND_BYTES : SCRATCH_BYTES;
    parts[count++] = (struct iovec){scratch, behind};
    ssize_t got = readv(connection->fd, parts, count);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        connection_close(connection, got < 0 && errno != ECONNRESET ? strerror(errno) : NULL);
        return false;
    }
    size_t into_frame = (size_t)got < direct ? (size_t)got : direct;
    if (into_frame > 0) {
        frame->have += into_frame;
        frame_grow(connection);
        if (frame->have == frame->length) {
            frame_complete(connection);
        }
    }
    size_t behind_frame = (size_t)got - into_frame;
    size_t left = take_bytes(connection, scratch, behind_frame);
    if (left > 0 && !connection->closed) {
        buffer_append(&connection->rest, scratch + (behind_frame - left), left);
    }
    return !connection->closed && (size_t)got == direct + behind;
}

static void readable(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    struct connection *connection = argument;
    if (out_of_memory_budget(connection)) {
        list_push_back(&connection->shard->connections->paused, &connection->paused);
        update_reading(connection);
        return;
    }
    for (int i = 0; i < READS_PER_TURN; i++) {
        if (!read_once(connection) || !may_read(connection)) {
            break;
        }
    }
    if (!connection->closed) {
        touch(connection);
        update_reading(connection);
    }
    if (!connection->closed && connection->peer != NULL) {
        liveness_heard(connection->peer, connection->active_ms);
    }
}

/* From now on this shard's loop reads and writes it. */
static void enter_shard(struct connection *connection, struct shard *shard)
{
    assert(connection->fd >= 0 && !list_contains(&connection->link));
    connection->shard = shard;
    connection->read_event =
        event_new(shard->base, connection->fd, EV_READ | EV_PERSIST, readable, connection);
    connection->write_event =
        event_new(shard->base, connection->fd, EV_WRITE, writable, connection);
    assert(connection->read_event != NULL && connection->write_event != NULL);
    list_push_back(&shard->connections->all, &connection->link);
    connection->active_ms = clock_monotonic_ms();
    atomic_fetch_add_explicit(&shard->connections->count, 1, memory_order_relaxed);
    connection->reading = false;
    update_reading(connection);
}

static void moved_in(struct shard *shard, struct mail *mail)
{
    struct connection *connection = container_of(mail, struct connection, move);
    assert(!connection->closed && connection->shard != shard);
    enter_shard(connection, shard);
    if (connection->session != NULL) {
        fetch_session_put(shard->sessions, connection->session);
        connection->session = NULL;
    }
    if (atomic_load(&shard->broker->closing)) {
        connection_close(connection, NULL);
    }
}

struct connection *connection_open(struct shard *shard, int fd, const struct listener *listener,
                                   const char *address)
{
    struct connection *connection = memory_new_zero(1, sizeof *connection);
    connection->listener = listener;
    connection->fd = fd;
    connection->counted = true;
    connection->came_late = atomic_load_explicit(&shard->broker->stopping, memory_order_relaxed);
    connection->flush.run = flush_due;
    connection->out = evbuffer_new();
    assert(connection->out != NULL);
    /* Lets file ranges go out with sendfile. */
    evbuffer_set_flags(connection->out, EVBUFFER_FLAG_DRAINS_TO_FD);
    list_init(&connection->requests);
    list_init(&connection->ranges);
    snprintf(connection->address, sizeof connection->address, "%s", address);
    enter_shard(connection, shard);
    return connection;
}

static bool is_stale(struct connection *connection, uint64_t now_ms)
{
    uint64_t quiet_ms = now_ms > connection->active_ms ? now_ms - connection->active_ms : 0;
    bool waits_for_bytes = connection->reading || list_contains(&connection->paused);
    if (connection->frame.block != NULL && waits_for_bytes && quiet_ms > STALLED_FRAME_MS) {
        /* Also while paused: frames that never end must not keep the memory from the others. */
        connection_close(connection, "a frame was begun and not finished for 30 s");
        return true;
    }
    if (connection->peer != NULL) {
        bool gone = liveness_silent_ms(connection->peer, now_ms) > PEER_SILENT_MS;
        if (gone) {
            connection_close(connection, "nothing came from its node for 10 s");
        }
        return gone;
    }
    if (connection->request_count == 0 && limits_of(connection)->max_idle_ms > 0 &&
        quiet_ms > limits_of(connection)->max_idle_ms) {
        connection_close(connection, "idle for longer than connections.max.idle.ms");
        return true;
    }
    return false;
}

static void resume_paused(struct shard *shard)
{
    struct list_link *link;
    while ((link = list_first(&shard->connections->paused)) != NULL) {
        struct connection *connection = container_of(link, struct connection, paused);
        if (out_of_memory_budget(connection)) {
            break;
        }
        list_remove(link);
        update_reading(connection);
    }
}

void connections_tick(struct shard *shard, uint64_t now_ms)
{
    struct connections *connections = shard->connections;
    struct list_link *link = list_first(&connections->all);
    while (link != NULL) {
        struct list_link *next = list_next(&connections->all, link);
        struct connection *connection = container_of(link, struct connection, link);
        if (!is_stale(connection, now_ms) && now_ms - connection->active_ms < 1000) {
            break; /* all that follow were active later */
        }
        link = next;
    }
    resume_paused(shard);
}

bool connections_drain(struct shard *shard, bool all)
{
    bool none_left = true;
    assert(atomic_load(&shard->broker->stopping));
    struct list_link *next;
    for (struct list_link *link = list_first(&shard->connections->all); link != NULL; link = next) {
        struct connection *connection = container_of(link, struct connection, link);
        next = list_next(&shard->connections->all, link);
        if (connection->peer != NULL || (connection->came_late && !all)) {
            continue;
        }
        connection->closing_when_idle = true;
        if (is_idle(connection)) {
            connection_close(connection, NULL);
        } else {
            none_left = false;
        }
    }
    return none_left;
}

void connections_close_all(struct shard *shard)
{
    struct list_link *link;
    while ((link = list_first(&shard->connections->all)) != NULL) {
        connection_close(container_of(link, struct connection, link), NULL);
    }
}
