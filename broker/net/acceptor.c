/* Accepting: a listening socket on shard 0, new sockets as mail to the shards in turn. */
#include "broker/net/acceptor.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uthash.h>

#include "base/log.h"
#include "base/memory.h"
#include "broker/net/connection.h"
#include "broker/server/broker.h"
#include "io/clock.h"

enum { BACKLOG = 1024, ACCEPTS_PER_TURN = 64, PAUSE_MS = 100, SOCKETS_PER_LISTENER = 2 };

struct address_count {
    UT_hash_handle hh;
    char host[CONNECTION_ADDRESS_BYTES];
    uint32_t count;
};

struct acceptor {
    struct broker *broker;
    const struct listener *listener;
    int fds[SOCKETS_PER_LISTENER];
    struct event *events[SOCKETS_PER_LISTENER];
    struct event *resume;
    int fd_count;
    unsigned next_shard;
};

struct arrival {
    struct mail mail;
    int fd;
    const struct listener *listener;
    char address[CONNECTION_ADDRESS_BYTES];
};

void connection_register_init(struct connection_register *reg, uint32_t limit,
                              uint32_t limit_per_address)
{
    *reg = (struct connection_register){.limit = limit, .limit_per_address = limit_per_address};
    pthread_mutex_init(&reg->lock, NULL);
}

void connection_register_free(struct connection_register *reg)
{
    struct address_count *entry;
    struct address_count *next;
    HASH_ITER(hh, reg->by_address, entry, next) {
        HASH_DEL(reg->by_address, entry);
        free(entry);
    }
    pthread_mutex_destroy(&reg->lock);
}

/* "1.2.3.4:5" and "[::1]:5" without the port. */
static void host_of(const char *address, char host[CONNECTION_ADDRESS_BYTES])
{
    snprintf(host, CONNECTION_ADDRESS_BYTES, "%s", address);
    char *colon = strrchr(host, ':');
    if (colon != NULL) {
        *colon = '\0';
    }
}

static struct address_count *find_address(struct connection_register *reg, const char *host)
{
    struct address_count *entry = NULL;
    HASH_FIND_STR(reg->by_address, host, entry);
    return entry;
}

/* Null when it may come in, else which bound it would pass; none holds where only nodes come in. */
static const char *admit(struct connection_register *reg, const char *address, bool bounded)
{
    char host[CONNECTION_ADDRESS_BYTES];
    host_of(address, host);
    pthread_mutex_lock(&reg->lock);
    const char *refused = NULL;
    struct address_count *entry = find_address(reg, host);
    if (bounded && reg->count >= reg->limit) {
        refused = "max.connections";
    } else if (bounded && entry != NULL && entry->count >= reg->limit_per_address) {
        refused = "max.connections.per.ip";
    } else {
        if (entry == NULL) {
            entry = memory_new_zero(1, sizeof *entry);
            memcpy(entry->host, host, sizeof host);
            HASH_ADD_STR(reg->by_address, host, entry);
        }
        entry->count++;
        reg->count++;
    }
    uint64_t now_ms = clock_monotonic_ms();
    bool log = refused != NULL && now_ms - reg->refused_logged_ms >= 1000;
    if (log) {
        reg->refused_logged_ms = now_ms;
    }
    pthread_mutex_unlock(&reg->lock);
    if (log) {
        log_warn("net", "refusing connections: %s is reached (now from %s)", refused, address);
    }
    return refused;
}

void acceptor_connection_gone(struct broker *broker, const char *address)
{
    struct connection_register *reg = &broker->connection_register;
    char host[CONNECTION_ADDRESS_BYTES];
    host_of(address, host);
    pthread_mutex_lock(&reg->lock);
    struct address_count *entry = find_address(reg, host);
    assert(entry != NULL && entry->count > 0);
    assert(reg->count > 0);
    reg->count--;
    if (--entry->count == 0) {
        HASH_DEL(reg->by_address, entry);
        free(entry);
    }
    pthread_mutex_unlock(&reg->lock);
}

static void arrived(struct shard *shard, struct mail *mail)
{
    struct arrival *arrival = container_of(mail, struct arrival, mail);
    if (atomic_load(&shard->broker->closing)) {
        close(arrival->fd);
        acceptor_connection_gone(shard->broker, arrival->address);
    } else {
        connection_open(shard, arrival->fd, arrival->listener, arrival->address);
    }
    free(arrival);
}

static void print_address(const struct sockaddr_storage *peer, char *text)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (peer->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(text, CONNECTION_ADDRESS_BYTES, "%s:%d", host, ntohs(in->sin_port));
        return;
    }
    const struct sockaddr_in6 *in6 = (const void *)peer;
    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
    snprintf(text, CONNECTION_ADDRESS_BYTES, mapped ? "%s:%d" : "[%s]:%d",
             mapped ? host + strlen("::ffff:") : host, ntohs(in6->sin6_port));
}

static void set_buffer(int fd, int option, int bytes)
{
    if (bytes > 0) {
        setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes);
    }
}

static void hand_over(struct acceptor *acceptor, int fd, const struct sockaddr_storage *peer)
{
    struct broker *broker = acceptor->broker;
    struct arrival *arrival = memory_new_zero(1, sizeof *arrival);
    print_address(peer, arrival->address);
    bool bounded = !acceptor->listener->is_controller;
    if (admit(&broker->connection_register, arrival->address, bounded) != NULL) {
        close(fd);
        free(arrival);
        return;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    set_buffer(fd, SO_RCVBUF, broker->connection_limits.receive_buffer_bytes);
    set_buffer(fd, SO_SNDBUF, broker->connection_limits.send_buffer_bytes);
    arrival->fd = fd;
    arrival->listener = acceptor->listener;
    arrival->mail.run = arrived;
    unsigned shard = acceptor->next_shard++ % (unsigned)broker->shard_count;
    shard_post(&broker->shards[shard], &arrival->mail);
}

static void pause_accepting(struct acceptor *acceptor)
{
    log_warn("net", "cannot accept a connection: %s. Trying again in %d ms; raise the limit of "
             "open files (ulimit -n)", strerror(errno), PAUSE_MS);
    for (int i = 0; i < acceptor->fd_count; i++) {
        event_del(acceptor->events[i]);
    }
    struct timeval wait = {.tv_usec = PAUSE_MS * 1000};
    event_add(acceptor->resume, &wait);
}

static void resume_accepting(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    struct acceptor *acceptor = argument;
    for (int i = 0; i < acceptor->fd_count; i++) {
        event_add(acceptor->events[i], NULL);
    }
}

/* While this process was stopped its guard took the listener away (server/guard.h). */
static void listen_again(const struct acceptor *acceptor, int fd)
{
    if (listen(fd, BACKLOG) != 0) {
        log_error("net", "listener %.*s cannot listen again: %s",
                  VIEW_PRINT(acceptor->listener->name), strerror(errno));
        return;
    }
    log_info("net", "listener %.*s listens again, after the process was stopped",
             VIEW_PRINT(acceptor->listener->name));
}

static void acceptable(evutil_socket_t fd, short what, void *argument)
{
    (void)what;
    struct acceptor *acceptor = argument;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        int accepted = accept4(fd, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted >= 0) {
            hand_over(acceptor, accepted, &peer);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
            pause_accepting(acceptor);
            return;
        } else if (errno == EINVAL) {
            listen_again(acceptor, fd);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

static int listen_at(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ai_family == AF_INET6) {
        int off = 0; /* the IPv6 wildcard takes IPv4 too */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    int failed = getsockname(fd, (struct sockaddr *)&name, &length);
    assert(failed == 0);
    return name.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)(void *)&name)->sin6_port)
                                      : ntohs(((struct sockaddr_in *)(void *)&name)->sin_port);
}

/* All addresses: one IPv6 socket takes both families; without IPv6 an IPv4 one. A name: all that
 * it stands for, at most SOCKETS_PER_LISTENER. */
static void bind_all(struct acceptor *acceptor, const struct addrinfo *found, bool wildcard)
{
    for (int pass = 0; pass < 2; pass++) {
        for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
            bool wanted = (at->ai_family == AF_INET6) == (pass == 0);
            if (!wanted || acceptor->fd_count == SOCKETS_PER_LISTENER) {
                continue;
            }
            int fd = listen_at(at);
            if (fd >= 0) {
                acceptor->fds[acceptor->fd_count++] = fd;
            } else if (errno == EADDRINUSE) {
                return;
            }
        }
        if (wildcard && acceptor->fd_count > 0) {
            return;
        }
    }
}

static enum status bind_listener(struct acceptor *acceptor, struct listener *listener)
{
    char port[8];
    char *host = view_copy_text(listener->host);
    bool wildcard = host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    snprintf(port, sizeof port, "%u", listener->port);
    int failed = getaddrinfo(wildcard ? NULL : host, port, &hints, &found);
    if (failed == 0) {
        errno = EADDRNOTAVAIL;
        bind_all(acceptor, found, wildcard);
        freeaddrinfo(found);
    }
    enum status status = acceptor->fd_count > 0 ? STATUS_OK
                         : errno == EADDRINUSE   ? STATUS_BUSY
                                                 : STATUS_IO;
    if (status != STATUS_OK) {
        log_error("net", "listener %.*s cannot use %s port %s: %s. Choose another port in "
                  "listeners, or stop what uses it", VIEW_PRINT(listener->name),
                  wildcard ? "every address," : host, port,
                  failed != 0 ? gai_strerror(failed) : strerror(errno));
    }
    free(host);
    return status;
}

enum status acceptor_open(struct broker *broker, struct listener *listener, struct acceptor **out)
{
    struct acceptor *acceptor = memory_new_zero(1, sizeof *acceptor);
    assert(listener->protocol == SECURITY_PLAINTEXT);
    acceptor->broker = broker;
    acceptor->listener = listener;
    enum status status = bind_listener(acceptor, listener);
    if (status != STATUS_OK) {
        free(acceptor);
        return status;
    }
    listener->port = bound_port(acceptor->fds[0]);
    struct event_base *base = broker->shards[0].base;
    acceptor->resume = event_new(base, -1, 0, resume_accepting, acceptor);
    for (int i = 0; i < acceptor->fd_count; i++) {
        acceptor->events[i] =
            event_new(base, acceptor->fds[i], EV_READ | EV_PERSIST, acceptable, acceptor);
    }
    *out = acceptor;
    return STATUS_OK;
}

void acceptor_start(struct acceptor *acceptor)
{
    resume_accepting(-1, 0, acceptor);
}

void acceptor_close(struct acceptor *acceptor)
{
    for (int i = 0; i < acceptor->fd_count; i++) {
        event_free(acceptor->events[i]);
        close(acceptor->fds[i]);
    }
    event_free(acceptor->resume);
    free(acceptor);
}
