/* A server that answers Produce and does nothing else: what bench/joyqueue's generator reaches
 * against it is the ceiling of the generator, the kernel and the machine, not of a broker.
 *
 *   null_server PORT
 *
 * Happy path: one thread, epoll; for each whole frame of Produce version 9 with one topic and one
 * partition (as sync_load sends) it answers offset 0, without looking at the records.
 *
 * Failure modes: a connection that sends anything else, or a frame of more than 128 kB, is closed.
 * It ends when it is killed. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_MAX = 128 << 10, EVENTS = 256, NAME_MAX_BYTES = 120 };

struct connection {
    int fd;
    size_t got_bytes;
    uint8_t frame[FRAME_MAX];
};

static void die(const char *what)
{
    fprintf(stderr, "null_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static void close_connection(struct connection *c)
{
    close(c->fd);
    free(c);
}

/* Writes the answer to a frame; its length, or 0 where the frame is not what sync_load sends. */
static size_t build_answer(const uint8_t *frame, uint8_t *out)
{
    if (frame[4] != 0 || frame[5] != 0 || frame[6] != 0 || frame[7] != 9)
        return 0;
    size_t client_id = (size_t) (frame[12] << 8 | frame[13]);
    const uint8_t *topics = frame + 14 + client_id + 1 + 1 + 2 + 4; /* tags, id, acks, timeout */
    size_t name = topics[1];        /* its length and one */
    if (client_id > NAME_MAX_BYTES || topics[0] != 2 || name > NAME_MAX_BYTES)
        return 0;
    uint8_t *p = out + 4;
    memcpy(p, frame + 8, 4), p += 4; /* correlation id */
    *p++ = 0;
    memcpy(p, topics, 2 + name + 4), p += 2 + name + 4; /* topic, one partition, its index */
    memset(p, 0, 2 + 8), p += 2 + 8; /* no error, offset 0 */
    memset(p, 0xff, 8), p += 8;     /* no append time */
    memset(p, 0, 8), p += 8;        /* log start */
    *p++ = 1, *p++ = 0;             /* no record errors, no message */
    memset(p, 0, 2 + 4 + 1), p += 2 + 4 + 1; /* tags, throttle time, tags */
    uint32_t length = htonl((uint32_t) (p - out - 4));
    memcpy(out, &length, 4);
    return (size_t) (p - out);
}

static int answer_frames(struct connection *c)
{
    uint8_t out[NAME_MAX_BYTES + 128];
    while (c->got_bytes >= 4) {
        size_t frame_bytes = 4 + (size_t) read_u32(c->frame);
        if (frame_bytes > FRAME_MAX || frame_bytes < 64)
            return 0;
        if (c->got_bytes < frame_bytes)
            return 1;
        size_t length = build_answer(c->frame, out);
        if (length == 0 || send(c->fd, out, length, MSG_NOSIGNAL) != (ssize_t) length)
            return 0;
        c->got_bytes -= frame_bytes;
        memmove(c->frame, c->frame + frame_bytes, c->got_bytes);
    }
    return 1;
}

static void readable(struct connection *c)
{
    ssize_t got = recv(c->fd, c->frame + c->got_bytes, FRAME_MAX - c->got_bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        close_connection(c);
        return;
    }
    c->got_bytes += (size_t) got;
    if (!answer_frames(c))
        close_connection(c);
}

static int listen_on(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0)
        die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *) &address, sizeof address) != 0 || listen(fd, 1024) != 0)
        die("listen");
    return fd;
}

static void accept_one(int listener, int epoll)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = calloc(1, sizeof *c);
    assert(c != NULL);
    c->fd = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll");
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS];
    if (argc != 2) {
        fprintf(stderr, "usage: null_server PORT\n");
        return 1;
    }
    int listener = listen_on(atoi(argv[1])), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
        die("epoll");
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL)
                accept_one(listener, epoll);
            else
                readable(events[i].data.ptr);
        }
    }
}
