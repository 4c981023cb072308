/* A client's connection: frames come in, answers go out in the order of their requests.
 *
 * Happy path: bytes are read straight into the frame's block, the frame becomes a request
 * (broker/api/request.h), its answer is queued and written at the end of the loop's turn. Several
 * requests of a connection may be under way; answers keep the order, as Kafka clients expect.
 * A bad frame closes this connection with a logged reason and touches nobody else.
 */
#ifndef OTTLA_BROKER_NET_CONNECTION_H
#define OTTLA_BROKER_NET_CONNECTION_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/block.h"
#include "base/buffer.h"
#include "base/list.h"
#include "base/view.h"
#include "broker/net/shard.h"

struct fetch_session;
struct listener;
struct liveness_node;
struct request;

enum {
    CONNECTION_ADDRESS_BYTES = 64,  /* "[IPv6]:port" and a final zero */
    CONNECTION_MAX_PIPELINED = 64,  /* requests under way before reading stops */
    CONNECTION_PEER_PIPELINED = 64 * 1024, /* the same for another node */
};

/* A frame being read: a four-byte size, then that many bytes. */
struct frame_reader {
    uint8_t head[4];
    size_t head_have;
    struct block *block;         /* grows with what has arrived, not with what was announced */
    size_t length;               /* announced */
    size_t have;
};

struct connection {
    struct shard_task flush;
    struct list_link link;       /* in the shard's connections, least recently active first */
    struct list_link paused;     /* in the list of those waiting for memory */
    struct shard *shard;
    const struct listener *listener;
    int fd;
    bool closed;
    bool reading;
    bool closing_after_answers;
    bool closing_when_idle;      /* as soon as nothing is under way either way */
    bool came_late;              /* while the broker stops */
    bool counted;                /* in the process's register of connections */
    bool spliced;                /* a file range is among what is still to be written */
    struct liveness_node *peer;  /* of the node that said hello here; null: a client */
    struct shard *works_for;     /* the shard that all its last requests went to, if another one */
    unsigned worked_for;         /* how many those are */
    struct shard *moves_to;      /* when nothing is under way; null: it stays */
    struct mail move;
    int32_t session_id;          /* of the fetch session used last here; 0: none */
    struct fetch_session *session; /* that one, while it goes over with the connection; owned */
    struct event *read_event;
    struct event *write_event;
    struct evbuffer *out;
    struct frame_reader frame;
    struct buffer rest;          /* read, but not begun: too many requests are under way */
    struct list ranges;          /* of files, in `out` (broker/net/file_range.h) */
    uint64_t sent_bytes;         /* since the connection was opened */
    struct list requests;        /* struct request, oldest first */
    unsigned request_count;
    uint64_t active_ms;          /* monotonic: last byte read or written */
    char address[CONNECTION_ADDRESS_BYTES];
    char software_name[64];      /* from ApiVersions, for logs */
    char software_version[64];
};

/* The connections of one shard. */
struct connections {
    struct list all;             /* least recently active first */
    struct list paused;
    struct list parked;          /* struct request: broker/api/parking.h */
    struct list leaderless;      /* struct leader_wait: broker/api/leader_wait.h */
    struct shard_timer leader_timer;
    struct list forwards;        /* struct produce_forward: broker/api/produce_forward.h */
    struct shard_timer forward_timer;
    struct block_pool *pool;     /* for frames of other nodes; null before the first */
    atomic_uint count;           /* changed by the shard alone */
};

/* What connections of the whole process share; bounds are Kafka's keys. */
struct connection_limits {
    size_t max_frame_bytes;          /* socket.request.max.bytes */
    size_t max_queued_bytes;         /* queued.max.request.bytes */
    uint64_t max_idle_ms;            /* connections.max.idle.ms */
    atomic_size_t queued_bytes;      /* bytes of frames read and not yet answered */
    int receive_buffer_bytes; /* of sockets; 0: the system's own, which grow with what is needed */
    int send_buffer_bytes;
};

/* Starts with none. */
void connections_init(struct connections *connections);

/* Releases what there is, when all are closed. */
void connections_free(struct connections *connections);

/* Takes over an accepted, non-blocking socket. `address` is its printable peer address. */
struct connection *connection_open(struct shard *shard, int fd, const struct listener *listener,
                                   const char *address);

/* Closes the socket now; logs the reason (null: the client closed, no line). The connection stays
 * in memory until its requests under way are done. */
void connection_close(struct connection *connection, const char *reason);

/* The other side is another node of the cluster, which said hello: from now on the bounds on
 * clients do not hold for it, its answers are written as they come, and what it sends proves it
 * alive. liveness_join was asked and said yes. When that is answered the connection goes over to
 * `home`, where the groups live that it speaks of: each message saves a way between threads. */
void connection_becomes_peer(struct connection *connection, struct liveness_node *node,
                             struct shard *home);

/* A request of a client is for this shard alone. When many in a row were for another one, and each
 * came when the one before was answered, the connection goes over to it, unless more connections
 * are there than here: a client that waits for each answer then saves two ways between threads, one
 * that waits for records four. Its fetch session goes with it. */
void connection_works_for(struct connection *connection, struct shard *shard);

/* Called when a request at any place of the queue has its answer: writes what is due in order; to
 * another node whatever has its answer. */
void connection_answered(struct connection *connection);

/* Closes idle connections, resumes paused ones; called at each tick of the shard. */
void connections_tick(struct shard *shard, uint64_t now_ms);

/* The broker stops: clients' connections close, each when nothing is under way on it, so that no
 * request is lost; of those that came late only when `all` is set. Returns whether none is left;
 * otherwise it is to be asked again. */
bool connections_drain(struct shard *shard, bool all);

/* Closes all connections of the shard, at the end. */
void connections_close_all(struct shard *shard);

#endif
